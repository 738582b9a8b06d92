"""``louvain-um plan``: memory, placements and predicted time of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.common import Method
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from rich.table import Table

    from louvain_um.formats.size_from_header import Size
    from louvain_um.gpu.memory.shape import Shape
    from louvain_um.placement.planner import Plan

SIZE = "Without a graph"


@with_exit_code
@graphs.with_reading
def plan(
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            help="A graph file, - for standard input, or example:les-miserables. Without it, pass "
            "--vertices and --arcs.",
            show_default=False,
        ),
    ] = None,
    vertices: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of vertices.", show_default=False, rich_help_panel=SIZE
        ),
    ] = None,
    arcs: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="Number of arcs: twice the number of edges.",
            show_default=False,
            rich_help_panel=SIZE,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="mesh|community_structured|power_law",
            help="Mesh, community-structured or power-law graph.  "
            "[default: by its degrees, if the whole graph is read]",
            show_default=False,
        ),
    ] = None,
    method: Annotated[Method, typer.Option(help="Method to plan for.")] = Method.louvain,
    memory: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Memory policy: auto, device, zero_copy, base, adv1 … adv9, or a TOML file.",
        ),
    ] = "auto",
    device_budget: common.Budget = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="h200, p4000, rtx3060ti, or a file written by calibrate.  "
            "[default: the GPU of this machine, or h200]",
            show_default=False,
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--read",
            help="Read the whole graph, even if its header gives the size.",
            rich_help_panel=graphs.READING,
        ),
    ] = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: graphs.Reading = graphs.DEFAULT_READING,
) -> None:
    """Predict memory, placements and time of a GPU run; needs no GPU."""
    from louvain_um import planning
    from louvain_um.options import Budget

    budget = Budget.parse(device_budget)
    if graph is None:
        if vertices is None or arcs is None:
            raise OptionError(remedy="name a GRAPH, or pass both --vertices and --arcs")
        if whole or replace(reading, weighted=None) != graphs.DEFAULT_READING:
            raise OptionError(
                remedy="reading options (--read, --format, …) need a GRAPH; name one, or omit them"
            )
        shape = planning.shape_of_size(
            vertices, arcs, bool(reading.weighted), method.value, ("vertices", "arcs")
        )
        result = planning.plan_shape(shape, memory, budget, machine, kind=kind)
        name = "a graph of this size"
        source_note = "" if kind else "planned from the size alone: the kind of graph is a guess"
    else:
        if vertices is not None or arcs is not None:
            raise OptionError(remedy="name a GRAPH, or pass --vertices and --arcs, not both")
        # A bad policy or machine raises before a long read.
        check_options(memory, machine)
        name = "standard input" if graph == "-" else graph
        size = None if whole else size_in_header(graph, reading.format)
        if size is not None:
            shape = shape_from_header(size, reading, method.value)
            result = planning.plan_shape(shape, memory, budget, machine, kind=kind)
            guess = "" if kind else "; the kind of graph is a guess: --read determines it"
            source_note = f"only {size.read_from} was read{guess}"
            if reading.symmetrize and size.directed:
                source_note += "; assumes that each edge is listed in one direction only"
        else:
            from louvain_um.cli.progress import progress_reporter

            with progress_reporter(quiet=quiet) as reporter:
                reporter.step(f"reading {graph}")
                loaded = reading.read(graph)
            result = planning.plan(
                loaded,
                method=method.value,
                memory=memory,
                device_budget=device_budget,
                machine=machine,
                kind=kind,
            )
            source_note = "the whole graph was read" + (
                "" if whole else ", as it has no header with its size"
            )
    notes = (*([source_note] if source_note else []), *result.notes)
    if json:
        common.print_json({**result.to_dict(), "graph": graph, "notes": list(notes)})
        return
    if not quiet:
        show(result, name, verbose=verbose)
        for text in notes:
            print_note(text)
    typer.echo(result.verdict)


def check_options(memory: str, machine: str | None) -> None:
    """Raise for a bad policy or machine."""
    from louvain_um.placement.machine.machine_files import load_machine
    from louvain_um.placement.policy.find import find_policy

    find_policy(memory)
    if machine is not None:
        load_machine(machine)


def size_in_header(source: str, format: str | None) -> Size | None:
    """Return the size that a file's header gives, None if it gives none."""
    from pathlib import Path

    from louvain_um.formats.size_from_header import size_from_header

    if source == "-" or (source.startswith(graphs.PREFIX) and not Path(source).exists()):
        return None
    return size_from_header(source, format)


def shape_from_header(
    size: Size, reading: graphs.Reading, method: Literal["louvain", "leiden"]
) -> Shape:
    """Return the shape of a graph whose header gives its size."""
    from louvain_um.planning import shape_of_size

    weights: Literal["real", "integer"] = "real" if size.real else "integer"
    kept = size.weighted and reading.weighted is not False
    arcs = 2 * size.arcs if reading.symmetrize and size.directed else size.arcs
    # The header also counts loops and repeated edges, which are not arcs.
    arcs = min(arcs, size.vertices * max(size.vertices - 1, 0))
    return shape_of_size(size.vertices, arcs, weights if kept else False, method)


def show(plan: Plan, name: str, *, verbose: bool) -> None:
    """Print a plan."""
    from louvain_um.cli import tables
    from louvain_um.placement.units import seconds, size
    from louvain_um.results.display import count

    console = tables.console()
    work = plan.work
    many = count(work.vertices, "vertex", "vertices")
    heading = f"{name}: {many}, {count(work.arcs, 'arc', 'arcs')}, {work.method}"
    console.print(heading, soft_wrap=True)
    console.print()
    console.print(group_table(plan))
    console.print()
    for group, reason in plan.reasons.items():
        console.print(f"{group}: {reason.sentence}", soft_wrap=True)
    console.print()
    total = sum(plan.peak_bytes.values())
    limit = "budget" if plan.request.budgeted else "available"
    parts = f"{size(plan.device_bytes)} on the device ({limit}: {size(plan.limit)})"
    if plan.host_bytes:
        parts += f", {size(plan.host_bytes)} on the host"
    console.print(f"{size(total)} in total: {parts}", soft_wrap=True)
    stages = plan.stage_seconds
    load, fetch = seconds(stages.get("load", 0)), seconds(stages.get("fetch", 0))
    core = f"{seconds(plan.seconds_in_core)} in core"
    text = f"{seconds(plan.seconds)} ({core}), plus {load} to load and {fetch} to fetch labels"
    console.print(text, soft_wrap=True)
    if plan.out_of_core:
        text = f"{count(plan.blocks, 'block', 'blocks')} per pass over the arcs"
        if plan.transfer_mode == "fault":
            text += f", touched by {count(plan.blocking, 'page', 'pages')} per warp"
        console.print(text, soft_wrap=True)
    if work.arcs:
        console.print(
            f"largest graph of this shape in core: {plan.cliff_arcs:,} arcs", soft_wrap=True
        )
    if verbose:
        for table in (stage_table(plan), array_table(plan)):
            console.print()
            console.print(table)
    console.print()


def group_table(plan: Plan) -> Table:
    """Return a table with one row per group: placement, peak and the terms of the model."""
    from louvain_um.cli.tables import new_table
    from louvain_um.placement.units import seconds, size

    table = new_table("<placement", "peak", "φ", "τ", "σ", "φ − τ − σ", label="group")
    for group, reason in plan.reasons.items():
        terms = (reason.phi, reason.tau, reason.sigma, reason.net)
        where = str(plan.placements[group])
        table.add_row(group, where, size(plan.peak_bytes[group]), *map(seconds, terms))
    return table


def stage_table(plan: Plan) -> Table:
    """Return a table with one row per stage: bytes alive, and seconds by cause."""
    from louvain_um.cli.tables import new_table
    from louvain_um.core.array_spec import STAGES
    from louvain_um.placement.units import seconds, size

    expected = plan.expected
    table = new_table("bytes", "compute", "bus", "blocks", "first touch", "total", label="stage")
    causes = (
        expected.core,
        expected.remote,
        expected.out_of_core,
        expected.arrival,
        expected.stages,
    )
    for stage in STAGES:
        row = [cause.get(stage, 0.0) for cause in causes]
        if any(row):
            table.add_row(stage, size(plan.bytes_by_stage[stage]), *map(seconds, row))
    return table


def array_table(plan: Plan) -> Table:
    """Return a table with one row per array: placement, bytes and stages."""
    from louvain_um.cli.tables import new_table
    from louvain_um.placement.layout import placed
    from louvain_um.placement.units import size

    table = new_table("<group", "<placement", "bytes", "<alive in", label="array")
    for array in sorted(plan.arrays, key=lambda a: (a.group, -a.nbytes)):
        where = str(placed(array, plan.chosen))
        alive = " ".join(array.stages)
        table.add_row(array.name, array.group, where, size(array.nbytes), alive)
    return table
