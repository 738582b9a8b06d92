"""``louvain-um plan``: memory, placements and predicted time of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from louvain_um.cli import common
from louvain_um.cli.common import Method
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.messages import with_flags
from louvain_um.cli.plans.changing import (
    Batch,
    Growth,
    OnCpu,
    StoreName,
    dynamic_size,
    print_store,
)
from louvain_um.cli.plans.programs import declared_program, print_program
from louvain_um.cli.plans.several import plan_devices, plan_ranks, refuse_given
from louvain_um.cli.reading import DEFAULT_READING, READING, Reading, with_reading
from louvain_um.cli.terminal.output import echo
from louvain_um.errors import OptionError
from louvain_um.formats.objects.examples import is_example

if TYPE_CHECKING:
    from louvain_um.formats.size_from_header import Size
    from louvain_um.gpu.memory.shape import Shape

SIZE = "Without a graph"
CLUSTER = "Ranks of a cluster, several GPUs"
LINK = "10Gb"
CORES = 16
GUESSED = (
    "; the kind of graph is a guess, and so is the memory of coarse levels: --read determines "
    "both, and states the bytes that simulate does"
)


@with_exit_code
@with_reading
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
        str | None,
        typer.Option(
            metavar="N",
            help="Number of vertices, such as 1000000, 1e6 or 1M.",
            show_default=False,
            rich_help_panel=SIZE,
        ),
    ] = None,
    arcs: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            help="Number of arcs: twice the number of edges. k, M and G are thousands, millions "
            "and thousands of millions.",
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
    program: common.Program = None,
    memory: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Memory policy: auto, device, zero_copy, base, adv1 … adv9, or a TOML file.",
        ),
    ] = "auto",
    device_budget: common.Budget = None,
    peer_memory: common.Peer = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="h200, p4000, rtx3060ti, p100, p100-nvlink, or a file written by calibrate.  "
            "[default: the GPU of this machine, or h200]",
            show_default=False,
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Instead, plan up to N ranks of a cluster that run on CPUs.  [default: none]",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Instead, plan up to N H200 of one host that share a graph.  [default: none]",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    store: StoreName = None,
    batch: Batch = None,
    growth: Growth = 1.0,
    on_cpu: OnCpu = False,
    link: Annotated[
        str,
        typer.Option(
            metavar="RATE",
            help="Network rate into a rank: bits (100Gb) or bytes (10GB) per second.",
            rich_help_panel=CLUSTER,
        ),
    ] = LINK,
    cores: Annotated[
        int, typer.Option(metavar="N", min=1, help="Cores of a rank.", rich_help_panel=CLUSTER)
    ] = 16,
    rank_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory of a rank, such as 256GiB.  [default: any]",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--read",
            help="Read the whole graph, even if its header gives the size.",
            rich_help_panel=READING,
        ),
    ] = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: Reading = DEFAULT_READING,
) -> None:
    """Predict memory, placements and time of a GPU run; needs no GPU."""
    from louvain_um import planning
    from louvain_um.options import Budget, parse_count

    n_vertices = None if vertices is None else parse_count(vertices, "vertices")
    n_arcs = None if arcs is None else parse_count(arcs, "arcs")
    of_changing = {"--batch": batch, "--growth": growth != 1, "--on-cpu": on_cpu}
    of_ranks = {"--link": link != LINK, "--cores": cores != CORES, "--rank-memory": rank_memory}
    if store is None:
        refuse_given("a plan without --store", of_changing)
    if ranks is not None or devices is not None:
        if graph is not None:
            what = "--devices" if ranks is None else "--ranks"
            raise OptionError(remedy=f"{what} takes no GRAPH; pass --vertices and --arcs instead")
        of_one_gpu = {
            "--method": method is not Method.louvain,
            "--program": program,
            "--store": store,
            "--memory": memory != "auto",
            "--device-budget": device_budget,
            "--peer-memory": peer_memory,
            "--machine": machine,
            "--read": whole,
            "other reading options": replace(reading, weighted=None) != DEFAULT_READING,
        }
        given = n_vertices, n_arcs, bool(reading.weighted), kind
        if ranks is None:
            refuse_given("--devices", of_one_gpu | of_ranks)
            plan_devices(given, devices, json=json, quiet=quiet)
        else:
            refuse_given("--ranks", of_one_gpu | {"--devices": devices})
            plan_ranks(given, ranks, link, cores, rank_memory, json=json, quiet=quiet)
        return
    refuse_given("a plan of one GPU", of_ranks)
    budget = Budget.parse(device_budget)
    own = planning.machine_of(machine, peer_memory)
    if store is not None:
        refuse_given(
            "--store",
            {
                "--program": program,
                "--kind": kind,
                "--method": method is not Method.louvain,
                "--peer-memory": peer_memory,
                "--read": whole,
            },
        )
        check_options(memory, machine)
        options = {"batch": batch, "growth": growth, "device": "cpu" if on_cpu else None}
        changing = dynamic_size(graph, (n_vertices, n_arcs, reading), store, options, quiet=quiet)
        policy = {"memory": memory, "device_budget": device_budget, "machine": own}
        print_store(changing, policy, graph, json=json, quiet=quiet)
        return
    if program is not None:
        of_detection = {"--kind": kind, "--method": method is not Method.louvain}
        refuse_given("--program", {**of_detection, "--read": whole and graph is None})
        check_options(memory, machine)
        declared = declared_program(program, graph, (n_vertices, n_arcs, reading), quiet, json)
        policy = {"memory": memory, "device_budget": device_budget, "machine": own}
        print_program(declared, policy, graph, json=json, quiet=quiet)
        return
    graph_notes: tuple[str, ...] = ()
    if graph is None:
        if n_vertices is None or n_arcs is None:
            raise OptionError(remedy="name a GRAPH, or pass both --vertices and --arcs")
        reading.refuse_without_graph(whole=whole)
        shape = planning.shape_of_size(
            n_vertices, n_arcs, bool(reading.weighted), method.value, ("vertices", "arcs")
        )
        result = planning.plan_shape(shape, memory, budget, own, kind=kind)
        name = "a graph of this size"
        source_note = "" if kind else "planned from the size alone: the kind of graph is a guess"
    else:
        if n_vertices is not None or n_arcs is not None:
            raise OptionError(remedy="name a GRAPH, or pass --vertices and --arcs, not both")
        # A bad policy or machine raises before a long read.
        check_options(memory, machine)
        name = "standard input" if graph == "-" else graph
        known = not whole and not reading.chooses_columns
        size = size_in_header(graph, reading.format) if known else None
        if size is not None:
            shape = shape_from_header(size, reading, method.value)
            result = planning.plan_shape(shape, memory, budget, own, kind=kind)
            guess = "" if kind else GUESSED
            source_note = f"only {size.read_from} was read{guess}"
            if reading.symmetrize and size.directed:
                source_note += "; assumes that each edge is listed in one direction only"
        else:
            from louvain_um.cli.progress import progress_reporter

            with progress_reporter(quiet=quiet) as reporter:
                reporter.step(f"reading {graph}")
                loaded = reading.read(graph)
            graph_notes = loaded.notes
            result = planning.plan(
                loaded,
                method=method.value,
                memory=memory,
                device_budget=device_budget,
                machine=own,
                kind=kind,
            )
            source_note = "the whole graph was read" + (
                "" if whole else ", as it has no header with its size"
            )
    notes = [*graph_notes, *([source_note] if source_note else []), *result.notes]
    if json:
        common.print_json(
            {**result.to_dict(), "graph": graph, "notes": [with_flags(note) for note in notes]}
        )
        return
    if not quiet:
        from louvain_um.cli.plans.tables import print_plan

        print_plan(result, name, verbose=verbose)
        for text in notes:
            print_note(text)
    echo(result.verdict)


def check_options(memory: str, machine: str | None) -> None:
    """Raise for a bad policy or machine."""
    from louvain_um.placement.machine.machine_files import load_machine
    from louvain_um.placement.policy.find import find_policy

    find_policy(memory)
    if machine is not None:
        load_machine(machine)


def size_in_header(source: str, format: str | None) -> Size | None:
    """Return the size that a file's header gives, None if it gives none."""
    from louvain_um.formats.size_from_header import size_from_header

    if source == "-" or is_example(source):
        return None
    return size_from_header(source, format)


def shape_from_header(size: Size, reading: Reading, method: Literal["louvain", "leiden"]) -> Shape:
    """Return the shape of a graph whose header gives its size."""
    from louvain_um.planning import shape_of_size

    weights: Literal["real", "integer"] = "real" if size.real else "integer"
    kept = size.weighted and reading.weighted is not False
    arcs = 2 * size.arcs if reading.symmetrize and size.directed else size.arcs
    # The header also counts loops and repeated edges, which are not arcs.
    arcs = min(arcs, size.vertices * max(size.vertices - 1, 0))
    return shape_of_size(size.vertices, arcs, weights if kept else False, method)
