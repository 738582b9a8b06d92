"""``louvain-um plan``: what a run would take, before anything is allocated."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.common import Method
from louvain_um.cli.guard import guarded, note
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from rich.table import Table

    from louvain_um.formats.size_from_header import Size
    from louvain_um.gpu.memory.shape import Shape
    from louvain_um.placement.planner import Plan

SIZE = "Without a graph"


class KindName(StrEnum):
    """Kinds of graphs that were measured."""

    even = "even"
    communities = "communities"
    skewed = "skewed"


@guarded
@graphs.with_reading
def plan(
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            help="A graph file, - for standard input, or example:les-miserables; or say "
            "--vertices and --arcs instead.",
            show_default=False,
        ),
    ] = None,
    vertices: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Vertices of the graph.", show_default=False, rich_help_panel=SIZE
        ),
    ] = None,
    arcs: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="Arcs of the graph: twice its edges.",
            show_default=False,
            rich_help_panel=SIZE,
        ),
    ] = None,
    kind: Annotated[
        KindName | None,
        typer.Option(
            help="Degrees hardly differ (meshes), differ (friends), or hubs rule (links).  "
            "[default: what the degrees tell, where all of the graph is read]",
            show_default=False,
        ),
    ] = None,
    method: Annotated[Method, typer.Option(help="What to plan for.")] = Method.louvain,
    memory: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Where arrays live: auto, device, zero_copy, base, adv1 … adv9, or a .toml file.",
        ),
    ] = "auto",
    device_budget: common.Budget = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="h200, p4000, rtx3060ti, or a file that calibrate wrote.  "
            "[default: the GPU here, or an h200]",
            show_default=False,
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--read",
            help="Read all of the graph, also where its first lines tell the size.",
            rich_help_panel=graphs.READING,
        ),
    ] = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: graphs.Reading = graphs.AS_IT_IS,
) -> None:
    """Tell what a run on a GPU would take: bytes, placements, seconds; needs no GPU."""
    from louvain_um import planning

    chosen = None if kind is None else kind.value
    if graph is None:
        if vertices is None or arcs is None:
            raise OptionError("name a GRAPH, or say both --vertices and --arcs")
        if whole or replace(reading, weighted=None) != graphs.AS_IT_IS:
            raise OptionError(
                "options of reading (--read, --format, ...) are about a GRAPH; name one, or leave "
                "them out"
            )
        shape = planning.shape_of_size(
            vertices, arcs, bool(reading.weighted), method.value, ("vertices", "arcs")
        )
        found = planning.plan_shape(shape, memory, device_budget, machine, kind=chosen)
        name, read = "a graph of this size", "nothing was read: the kind of graph is a guess"
        read = "" if chosen else read
    else:
        if vertices is not None or arcs is not None:
            raise OptionError("name a GRAPH, or say --vertices and --arcs, not both")
        # A policy, machine or budget that there is not is refused before a long read.
        refuse_early(memory, device_budget, machine)
        name = "standard input" if graph == "-" else graph
        size = None if whole else told_by_head(graph, reading.format)
        if size is not None:
            shape = shape_of_head(size, reading, method.value)
            found = planning.plan_shape(shape, memory, device_budget, machine, kind=chosen)
            guess = "" if chosen else ", so the kind of graph is a guess; --read tells"
            read = f"no more was read than {size.read_from}{guess}"
            if reading.symmetrize and size.directed:
                read += "; each arc is taken as listed one way only, --read tells"
        else:
            from louvain_um.cli.progress import reporting

            with reporting(quiet=quiet) as reporter:
                reporter.step(f"reading {graph}")
                loaded = reading.read(graph)
            found = planning.plan(
                loaded,
                method=method.value,
                memory=memory,
                device_budget=device_budget,
                machine=machine,
                kind=chosen,
            )
            read = "all of the graph was read" if whole else "all of the graph had to be read"
    notes = (*([read] if read else []), *found.notes)
    if json:
        common.print_json({**found.to_dict(), "graph": graph, "notes": list(notes)})
        return
    if not quiet:
        show(found, name, verbose=verbose)
        for text in notes:
            note(text)
    typer.echo(found.verdict)


def refuse_early(memory: str, device_budget: str | None, machine: str | None) -> None:
    """Raise what is wrong with options that do not depend on the graph."""
    from louvain_um.options import parse_budget
    from louvain_um.placement.machine.machine import load_machine
    from louvain_um.placement.policy.policy import find_policy

    find_policy(memory)
    if device_budget is not None:
        parse_budget(device_budget)
    if machine is not None:
        load_machine(machine)


def told_by_head(source: str, format: str | None) -> Size | None:
    """Return the size that a file's first lines tell, None where they do not."""
    from pathlib import Path

    from louvain_um.formats.size_from_header import size_from_header

    if source == "-" or (source.startswith(graphs.PREFIX) and not Path(source).exists()):
        return None
    return size_from_header(source, format)


def shape_of_head(
    size: Size, reading: graphs.Reading, method: Literal["louvain", "leiden"]
) -> Shape:
    """Return the shape that a file's first lines stand for."""
    from louvain_um.planning import shape_of_size

    weights: Literal["real", "integer"] = "real" if size.real else "integer"
    kept = size.weighted and reading.weighted is not False
    arcs = 2 * size.arcs if reading.symmetrize and size.directed else size.arcs
    # Loops and repeated edges are entries, too, but no arcs.
    arcs = min(arcs, size.vertices * max(size.vertices - 1, 0))
    return shape_of_size(size.vertices, arcs, weights if kept else False, method)


def show(plan: Plan, name: str, *, verbose: bool) -> None:
    """Print a plan for people."""
    from louvain_um.cli import tables
    from louvain_um.placement.reasons import seconds, size
    from louvain_um.results.display import count

    console = tables.console()
    work = plan.work
    many = count(work.vertices, "vertex", "vertices")
    told = f"{name}: {many}, {count(work.arcs, 'arc', 'arcs')}, {work.method}"
    console.print(told, soft_wrap=True)
    console.print()
    console.print(group_table(plan))
    console.print()
    for group, reason in plan.reasons.items():
        console.print(f"{group}: {reason.sentence}", soft_wrap=True)
    console.print()
    total = sum(plan.peak_bytes.values())
    budget = ", as the budget says" if plan.request.budgeted else ""
    there = f"{size(plan.device_bytes)} on the device of {size(plan.limit)}{budget}"
    if plan.host_bytes:
        there += f"; {size(plan.host_bytes)} on the host"
    console.print(f"{size(total)} in all; {there}", soft_wrap=True)
    stages = plan.stage_seconds
    apart = f"{seconds(stages.get('load', 0))} to load, {seconds(stages.get('fetch', 0))} to fetch"
    core = f"{seconds(plan.seconds_in_core)} in core"
    console.print(f"{seconds(plan.seconds)} ({core}); besides {apart} labels", soft_wrap=True)
    if plan.paged:
        text = f"{count(plan.blocks, 'block', 'blocks')} a pass over the arcs"
        if plan.paged_by == "fault":
            text += f", touched by {count(plan.blocking, 'page', 'pages')} a warp"
        console.print(text, soft_wrap=True)
    if work.arcs:
        console.print(f"up to {plan.cliff_arcs:,} arcs of this shape run in core", soft_wrap=True)
    if verbose:
        for table in (stage_table(plan), array_table(plan)):
            console.print()
            console.print(table)
    console.print()


def group_table(plan: Plan) -> Table:
    """Return a row a group: where it lives and the model's terms."""
    from louvain_um.placement.reasons import seconds, size

    table = new_table("group", "<placement", "peak", "φ", "τ", "σ", "φ − τ − σ")
    for group, reason in plan.reasons.items():
        terms = (reason.phi, reason.tau, reason.sigma, reason.net)
        where = str(plan.placements[group])
        table.add_row(group, where, size(plan.peak_bytes[group]), *map(seconds, terms))
    return table


def stage_table(plan: Plan) -> Table:
    """Return a row a stage: bytes alive, and what its seconds are due to."""
    from louvain_um.core.array_spec import STAGES
    from louvain_um.placement.reasons import seconds, size

    found = plan.expected
    table = new_table("stage", "bytes", "computing", "bus", "blocks", "arrival", "together")
    causes = (found.core, found.remote, found.paging, found.arrival, found.stages)
    for stage in STAGES:
        row = [cause.get(stage, 0.0) for cause in causes]
        if any(row):
            table.add_row(stage, size(plan.bytes_by_stage[stage]), *map(seconds, row))
    return table


def array_table(plan: Plan) -> Table:
    """Return a row an array: bytes, where, and when it is alive."""
    from louvain_um.placement.layout import placed
    from louvain_um.placement.reasons import size

    table = new_table("array", "<group", "<placement", "bytes", "<alive in")
    for array in sorted(plan.arrays, key=lambda a: (a.group, -a.nbytes)):
        where = str(placed(array, plan.chosen))
        alive = " ".join(array.stages)
        table.add_row(array.name, array.group, where, size(array.nbytes), alive)
    return table


def new_table(first: str, *others: str) -> Table:
    """Return a table whose first column, and those marked with <, are text."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in others:
        text = name.startswith("<")
        table.add_column(name.lstrip("<"), justify="left" if text else "right", no_wrap=not text)
    return table
