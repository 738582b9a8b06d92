"""``louvain-um plan``: memory, placements and predicted time; one subcommand per thing planned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from louvain_um.cli import common
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.help import Command, Group
from louvain_um.cli.reading import DEFAULT_READING, READING, Reading
from louvain_um.cli.terminal import echo, with_flags
from louvain_um.errors import OptionError
from louvain_um.options import Budget, Method, Options, parse_bytes, parse_count
from louvain_um.placement.policy.find import find_policy

if TYPE_CHECKING:
    from louvain_um.formats.size_from_header import Size
    from louvain_um.gpu.memory.shape import Shape
    from louvain_um.graph.graph import Graph
    from louvain_um.placement.detection_plan import Plan
    from louvain_um.placement.machine import Machine

SIZE: Final = "Without a graph"
GUESSED: Final = (
    "; the kind of graph is a guess, and so is the memory of coarse levels: --read determines "
    "both, and states the bytes that simulate does"
)
DEFAULT: Final = "detect"
"""The subcommand of ``louvain-um plan GRAPH``."""


class Plans(Group):
    """A group whose default subcommand needs no name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, after the default subcommand got its name."""
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=Plans, rich_markup_mode=None)


@app.callback()
def plans() -> None:
    """Predict memory, placements and time of a run; needs no GPU.

    `louvain-um plan GRAPH` is short for `louvain-um plan detect GRAPH`.
    """


PlannedGraph = Annotated[
    str | None,
    typer.Argument(
        metavar="GRAPH",
        help="A graph file, - for standard input, or example:les-miserables. Without it, pass "
        "--vertices and --arcs.",
        show_default=False,
    ),
]
Vertices = Annotated[
    str | None, option("N", "Number of vertices, such as 1000000, 1e6 or 1M.", SIZE)
]
Arcs = Annotated[
    str | None,
    option(
        "M",
        "Number of arcs: twice the number of edges. k, M and G are thousands, millions "
        "and thousands of millions.",
        SIZE,
    ),
]
Kind = Annotated[
    str | None,
    option(
        "mesh|community_structured|power_law",
        "Mesh, community-structured or power-law graph.  "
        "[default: by its degrees, if the whole graph is read]",
    ),
]
Weighted = Annotated[bool, option("--weighted", "Plan a graph with weights.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """Options that say where arrays may be placed."""

    memory: common.Memory = "auto"
    device_budget: common.Budget = None
    machine: Annotated[
        str | None,
        option(
            "PROFILE",
            "h200, p4000, rtx3060ti, p100, p100-nvlink, gh200, or a file written by calibrate.  "
            "[default: the GPU of this machine, or h200]",
        ),
    ] = None

    def checked(self, peer: str | None = None) -> dict[str, Any]:
        """Return arguments of `planning.plan`, checked before a long read."""
        from louvain_um import planning

        Budget.parse(self.device_budget)
        machine: Machine | None = planning.machine_of(self.machine, peer)
        find_policy(self.memory)
        return {"memory": self.memory, "device_budget": self.device_budget, "machine": machine}


def subcommand(function: common.Command) -> common.Command:
    """Make a function a subcommand of its name."""
    return app.command(cls=Command)(with_exit_code(function))


def numbers(vertices: str | None, arcs: str | None) -> tuple[int | None, int | None]:
    """Return numbers of vertices and arcs, where they are given."""
    return (
        None if vertices is None else parse_count(vertices, "vertices"),
        None if arcs is None else parse_count(arcs, "arcs"),
    )


def size_given(graph: str | None, vertices: str | None, arcs: str | None) -> tuple[int, int] | None:
    """Return vertices and arcs; None if a graph is named instead."""
    n_vertices, n_arcs = numbers(vertices, arcs)
    if graph is None:
        if n_vertices is None or n_arcs is None:
            raise OptionError(remedy="name a GRAPH, or pass both --vertices and --arcs")
        return n_vertices, n_arcs
    if n_vertices is not None or n_arcs is not None:
        raise OptionError(remedy="name a GRAPH, or pass --vertices and --arcs, not both")
    return None


def read(graph: str, reading: Reading, *, quiet: bool) -> Graph:
    """Read a whole graph with progress."""
    from louvain_um.cli.progress import progress_reporter

    with progress_reporter(quiet=quiet) as reporter:
        reporter.step(f"reading {graph}")
        return reading.read(graph)


@subcommand
def detect(
    graph: PlannedGraph = None,
    vertices: Vertices = None,
    arcs: Arcs = None,
    kind: Kind = None,
    method: Annotated[Method, option("", "Method to plan for.")] = "louvain",
    searching: common.Searching = common.Searching(),
    peer_memory: common.Peer = None,
    whole: Annotated[
        bool, option("--read", "Read the whole graph, even if its header gives the size.", READING)
    ] = False,
    placing: Placing = Placing(),
    printing: common.Printing = common.Printing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Plan a run of `louvain-um detect`."""
    from louvain_um import planning
    from louvain_um.formats.size_from_header import reading_bytes
    from louvain_um.placement.hardware import size as size_text

    counts = size_given(graph, vertices, arcs)
    options = placing.checked(peer_memory)
    memory, machine = placing.memory, options["machine"]
    budget = Budget.parse(placing.device_budget)
    asked = Options(method=method, **asdict(searching))

    def plan_of(shape: Shape) -> Plan:
        return planning.plan_shape(shape, memory, budget, machine, kind=kind)

    graph_notes: tuple[str, ...] = ()
    taken = None
    if counts is not None:
        reading.refuse_without_graph(whole=whole)
        shape = planning.shape_of_size(
            *counts, bool(reading.weighted), method, ("vertices", "arcs")
        )
        result = planning.plan_search(shape, asked, plan_of)
        name = "a graph of this size"
        source_note = "" if kind else "planned from the size alone: the kind of graph is a guess"
    else:
        assert graph is not None
        name = "standard input" if graph == "-" else graph
        taken = reading_bytes(graph, reading.format)
        known = not whole and not reading.changes_size
        size = size_in_header(graph, reading.format) if known else None
        if size is not None:
            shape = shape_from_header(size, reading, method)
            result = planning.plan_search(shape, asked, plan_of)
            guess = "" if kind else GUESSED
            source_note = f"only {size.read_from} was read{guess}"
            if reading.symmetrize and size.directed:
                source_note += "; assumes that each edge is listed in one direction only"
        else:
            loaded = read(graph, reading, quiet=printing.quiet)
            graph_notes = loaded.notes
            result = planning.plan(
                loaded, kind=kind, method=method, **asdict(searching), **options,
            )  # fmt: skip
            source_note = "the whole graph was read" + (
                "" if whole else ", as it has no header with its size"
            )
    notes = [*graph_notes, *([source_note] if source_note else []), *result.notes]
    if taken is not None:
        notes.append(f"reading it takes about {size_text(taken)} of host memory at its peak")
    if printing.json:
        found = {"graph": graph, "notes": [with_flags(note) for note in notes]}
        common.print_json({**result.to_dict(), **found, "reading_bytes": taken})
        return
    if not printing.quiet:
        from louvain_um.cli.plan_tables import print_plan

        print_plan(result, name, verbose=printing.verbose)
        print_note(*notes)
    else:
        echo(result.verdict)


@subcommand
def program(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ALGORITHM", help="bfs, sssp, components, mst, pagerank, triangles or spmv."
        ),
    ],
    graph: PlannedGraph = None,
    vertices: Vertices = None,
    arcs: Arcs = None,
    peer_memory: common.Peer = None,
    placing: Placing = Placing(),
    printing: common.Printing = common.Printing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Plan a run of another algorithm: `louvain-um plan program bfs friends.csv`."""
    from louvain_um import planning
    from louvain_um.algorithms.programs import check_name, program_for, program_of

    check_name(name)
    counts = size_given(graph, vertices, arcs)
    options = placing.checked(peer_memory)
    if counts is not None:
        reading.refuse_without_graph()
        shape = planning.shape_of_size(
            *counts, bool(reading.weighted), "louvain", ("vertices", "arcs")
        )
        weights = f"u{shape.weight_bytes}" if shape.weight_bytes else False
        declared = program_of(name, n_vertices=counts[0], n_arcs=counts[1], weighted=weights)
    else:
        assert graph is not None
        loaded = read(graph, reading, quiet=printing.quiet)
        if not (printing.json or printing.quiet):
            print_note(*loaded.notes)
        declared = program_for(name, loaded)
    found = planning.plan(declared, **options)
    if printing.json:
        common.print_json({**found.to_dict(), "graph": graph})
        return
    text = str(found)
    echo(text.splitlines()[-1] if printing.quiet else text)


@subcommand
def store(
    name: Annotated[
        str,
        typer.Argument(
            metavar="STORE", help="rows, pages, bump …: `louvain-um stores --help` lists them."
        ),
    ],
    graph: PlannedGraph = None,
    vertices: Vertices = None,
    arcs: Arcs = None,
    batch: Annotated[str | None, option("N", "Edges of a batch at most.  [default: 10k]")] = None,
    growth: Annotated[
        float, option("X", "Largest number of arcs, relative to the number at first.")
    ] = 1.0,
    on_cpu: Annotated[
        bool, option("--on-cpu", "Plan host memory; always so for stores that do not run on a GPU.")
    ] = False,
    placing: Placing = Placing(),
    printing: common.Printing = common.Printing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Plan the memory of a graph that changes: `louvain-um plan store pages friends.csv`."""
    from louvain_um.dynamic.declared import DynamicSize
    from louvain_um.placement.hardware import size as size_text
    from louvain_um.planning import plan

    values: dict[str, Any] = {"growth": growth, "device": "cpu" if on_cpu else None}
    if batch is not None:
        values["batch"] = parse_count(batch, "batch")
    counts = size_given(graph, vertices, arcs)
    options = placing.checked()
    if counts is not None:
        reading.refuse_without_graph()
        size = DynamicSize(
            n_vertices=counts[0],
            n_arcs=counts[1],
            weighted=bool(reading.weighted),
            store=name,
            **values,
        )
    else:
        assert graph is not None
        DynamicSize(n_vertices=0, n_arcs=0, store=name, **values)  # raises before a long read
        size = DynamicSize.of(read(graph, reading, quiet=printing.quiet), store=name, **values)
    if not size.on_device and placing.machine is not None:
        raise OptionError(remedy="--machine is for graphs on a GPU; leave it out")
    found = plan(dynamic=size, **options)
    if printing.json:
        common.print_json({**found.to_dict(), "graph": graph, "store": size.store})
        return
    *table, last = str(found).splitlines()
    if not size.on_device:
        table = [f"{a.name:8} {size_text(a.nbytes)}" for a in found.program.arrays]
        held = sum(array.nbytes for array in found.program.arrays)
        last = f"{size.store} on the CPU: {size_text(held)} of host memory"
    echo(last if printing.quiet else "\n".join([*table, last]))


@subcommand
def ranks(
    most: Annotated[int, typer.Argument(metavar="N", help="Largest number of ranks.")],
    vertices: Vertices = None,
    arcs: Arcs = None,
    weighted: Weighted = False,
    kind: Kind = None,
    link: Annotated[
        str, option("RATE", "Network rate into a rank: bits (100Gb) or bytes (10GB) per second.")
    ] = "10Gb",
    cores: Annotated[int, option("N", "Cores of a rank.", min=1)] = 16,
    rank_memory: Annotated[
        str | None, option("SIZE", "Memory of a rank, such as 256GiB.  [default: any]")
    ] = None,
    printing: common.Printing = common.Printing(),
) -> None:
    """Plan runs on up to N ranks of a cluster, which compute on CPUs."""
    from louvain_um.cli.plan_tables import print_ranks, ranks_summary
    from louvain_um.distributed.rank_plans import choices, least_ranks, link_bytes, most_speedup

    counts = both(vertices, arcs)
    memory = None if rank_memory is None else parse_bytes(rank_memory, "rank_memory")
    values: dict[str, Any] = {
        "weighted": weighted,
        "kind": kind,
        "link": link_bytes(link),
        "threads": cores,
    }
    found = ranks_summary(
        choices(*counts, most, **values),
        memory,
        least_ranks(*counts, memory, most, **values) if memory else None,
        most_speedup(*counts, **values),
    )
    if printing.json:
        common.print_json(found)
        return
    print_ranks(found, *counts)
    note_kind(kind, "", quiet=printing.quiet)


@subcommand
def devices(
    most: Annotated[int, typer.Argument(metavar="N", help="Largest number of GPUs.")],
    vertices: Vertices = None,
    arcs: Arcs = None,
    weighted: Weighted = False,
    kind: Kind = None,
    printing: common.Printing = common.Printing(),
) -> None:
    """Plan runs on up to N H200 of one host that share a graph."""
    from louvain_um.cli.plan_tables import devices_summary, print_devices
    from louvain_um.distributed.rank_plans import device_choices, most_device_speedup

    counts = both(vertices, arcs)
    found = devices_summary(
        device_choices(*counts, most, weighted=weighted, kind=kind), most_device_speedup(kind)
    )
    if printing.json:
        common.print_json(found)
        return
    print_devices(found, *counts)
    note_kind(
        kind, ". A plan of one GPU assumes no kind, so its seconds differ", quiet=printing.quiet
    )


def both(vertices: str | None, arcs: str | None) -> tuple[int, int]:
    """Return numbers of vertices and arcs, which must be given."""
    n_vertices, n_arcs = numbers(vertices, arcs)
    if n_vertices is None or n_arcs is None:
        raise OptionError(remedy="pass both --vertices and --arcs")
    return n_vertices, n_arcs


def note_kind(kind: str | None, more: str, *, quiet: bool) -> None:
    """Print which kind of graph is assumed, if none was given."""
    from louvain_um.distributed.rank_plans import DEFAULT_KIND

    if not (kind or quiet):
        print_note(f"kind of graph: {DEFAULT_KIND} is assumed; pass another one as --kind{more}")


def size_in_header(source: str, format: str | None) -> Size | None:
    """Return the size that a file's header gives, None if it gives none."""
    from louvain_um.formats.objects import is_example
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
