"""``louvain-um plan --store``: graphs that change, in any store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from louvain_um.cli import common
from louvain_um.cli.reading import Reading
from louvain_um.cli.terminal.output import echo
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.dynamic.declared import DynamicSize


CHANGING: Final = "Graphs that change"

StoreName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Instead, plan a graph that changes, in a store such as rows, pages or bump: "
        "louvain-um stores lists them.  [default: none]",
        show_default=False,
        rich_help_panel=CHANGING,
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Edges of a batch at most.  [default: 10k]",
        show_default=False,
        rich_help_panel=CHANGING,
    ),
]
Growth = Annotated[
    float,
    typer.Option(metavar="X", help="Arcs at most, by those at first.", rich_help_panel=CHANGING),
]
OnCpu = Annotated[
    bool,
    typer.Option(
        "--on-cpu",
        help="Hold the graph in host memory; always so for stores that no GPU has.",
        rich_help_panel=CHANGING,
    ),
]


def dynamic_size(
    graph: str | None,
    size: tuple[int | None, int | None, Reading],
    store: str,
    options: dict[str, Any],
    *,
    quiet: bool,
) -> DynamicSize:
    """Return the size to plan: of a graph, or of vertices and arcs alone."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.dynamic.declared import DynamicSize
    from louvain_um.options import parse_count

    vertices, arcs, reading = size
    batch = options.pop("batch")
    if batch is not None:
        options["batch"] = parse_count(batch, "batch")
    if graph is None:
        if vertices is None or arcs is None:
            raise OptionError(remedy="name a GRAPH, or pass both --vertices and --arcs")
        reading.refuse_without_graph()
        weighted = bool(reading.weighted)
        return DynamicSize(
            n_vertices=vertices, n_arcs=arcs, weighted=weighted, store=store, **options
        )
    if vertices is not None or arcs is not None:
        raise OptionError(remedy="name a GRAPH, or pass --vertices and --arcs, not both")
    DynamicSize(n_vertices=0, n_arcs=0, store=store, **options)  # raises before a long read
    with progress_reporter(quiet=quiet) as reporter:
        reporter.step(f"reading {graph}")
        return DynamicSize.of(reading.read(graph), store=store, **options)


def print_store(
    size: DynamicSize, options: dict[str, Any], graph: str | None, *, json: bool, quiet: bool
) -> None:
    """Print the plan of a store, or only its last line."""
    from louvain_um.placement.units import size as size_text
    from louvain_um.planning import plan

    found = plan(dynamic=size, **options)
    if json:
        common.print_json({**found.to_dict(), "graph": graph, "store": size.store})
        return
    *table, last = str(found).splitlines()
    if not size.on_device:
        table = [f"{a.name:8} {size_text(a.nbytes)}" for a in found.program.arrays]
        held = sum(array.nbytes for array in found.program.arrays)
        last = f"{size.store} on the CPU: {size_text(held)} of host memory"
    echo(last if quiet else "\n".join([*table, last]))
