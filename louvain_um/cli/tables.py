"""Tables and lines that commands print: graph sizes, communities, levels, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from louvain_um.cli.terminal import safe_console, with_flags
from louvain_um.errors import Taken
from louvain_um.results.display import count, listable, objective_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from louvain_um.graph.graph import Graph
    from louvain_um.results.communities import Communities
    from louvain_um.results.partition import Outcome


def console() -> Console:
    """Return a console on stdout that does not interpret markup in names."""
    return safe_console()


def graph_line(graph: Graph, name: str) -> str:
    """Return a line with a graph's name and size."""
    kind = "weighted" if graph.weighted else "unweighted"
    vertices = count(graph.n_vertices, "vertex", "vertices")
    line = f"{name}: {vertices}, {count(graph.n_edges, 'edge', 'edges')}, {kind}"
    return "\n".join([line, *(with_flags(note) for note in graph.notes if isinstance(note, Taken))])


def graph_numbers(graph: Graph) -> dict[str, Any]:
    """Return a graph's size as ``--json`` prints it."""
    return {
        "vertices": graph.n_vertices,
        "edges": graph.n_edges,
        "arcs": graph.n_arcs,
        "weighted": graph.weighted,
    }


def numbers_of(result: Outcome) -> dict[str, Any]:
    """Return the size of a result's graph; of one that no process held, what is known."""
    if result.graph is not None:
        return graph_numbers(result.graph)
    arcs = result.levels[0].arcs if result.levels else None
    return {"vertices": result.n_vertices, "edges": None, "arcs": arcs, "weighted": None}


def result_line(result: Outcome, compiling: float = 0.0) -> str:
    """Return a line with communities, modularity and seconds, compile time excluded."""
    many = count(result.n_communities, "community", "communities")
    levels = count(len(result.levels), "level", "levels")
    seconds = max(result.timings.get("total", 0.0) - compiling, 0.0)
    device = result.provenance.get("device", "cpu")
    return (
        f"{many}, {objective_text(result)} ({result.method}, {levels}, {seconds:.2f} s on {device})"
    )


def communities_table(result: Communities, width: int, top: int) -> Table:
    """Return a table of the `top` largest communities, members by descending degree."""
    table = new_table("#", "size", "<members")
    room = max(20, width - 20)
    for c, members in enumerate(largest(result, room, top)):
        size = int(result.sizes[c])
        table.add_row(str(c), f"{size:,}", listing(members, size, room))
    rest = result.n_communities - top
    if rest > 0:
        sizes = result.sizes[top:]
        span = f"{sizes[-1]:,} to {sizes[0]:,}" if sizes[0] > sizes[-1] else f"{sizes[0]:,}"
        table.add_row(
            "…", f"{int(sizes.sum()):,}", f"in {count(rest, 'more', 'more')}, of {span} each"
        )
    return table


def largest(result: Communities, most: int, top: int) -> list[list[str]]:
    """Return up to `most` names from each of the `top` largest communities, by degree.

    Where no process held the graph, in the order of vertices.
    """
    chosen = np.flatnonzero(result.labels < top)
    degrees = np.zeros(len(chosen)) if result.graph is None else result.graph.degrees[chosen]
    order = np.lexsort((chosen, -degrees, result.labels[chosen]))
    chosen = chosen[order]
    bounds = np.cumsum(result.sizes[: min(top, result.n_communities)])[:-1]
    listed = []
    for vertices in np.split(chosen, bounds) if len(chosen) else []:
        shown = vertices[:most]
        names = shown if result.names is None else result.names[shown]
        listed.append([printable(name) for name in listable(names)])
    return listed


def listing(members: list[str], size: int, room: int) -> str:
    """Return as many names as fit, at least one, and the number left out."""
    text, shown = "", 0
    for name in members:
        longer = f"{text}, {name}" if text else name
        rest = size - shown - 1
        if text and len(longer) + (len(f" and {rest:,} more") if rest else 0) > room:
            break
        text, shown = longer, shown + 1
    return f"{text} and {size - shown:,} more" if shown < size else text


def levels_table(result: Outcome) -> Table:
    """Return a table with one row per level."""
    from louvain_um.results.display import LEVEL_HEAD, level_rows

    table = new_table(*LEVEL_HEAD)
    for row in level_rows(result):
        table.add_row(*row)
    return table


def cost_lines(result: Outcome, compiling: float = 0.0) -> list[str]:
    """Return lines with seconds by phase, compile time included, and peak MiB by group."""
    seconds = ", ".join(f"{name} {value:.3f}" for name, value in result.timings.items())
    peaks = ", ".join(f"{name} {value / 2**20:,.1f}" for name, value in result.memory.items())
    included = f" (including {compiling:.3f} s to compile, first run only)" if compiling else ""
    return [f"seconds: {seconds}{included}", f"peak MiB: {peaks}"]


def new_table(*head: str, label: str | None = None) -> Table:
    """Return an empty table of numbers; a heading marked with < is of a text column.

    `label` is the heading of a first column of text that is never wrapped.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    if label is not None:
        table.add_column(label, no_wrap=True)
    for name in head:
        text = name.startswith("<")
        table.add_column(name.lstrip("<"), justify="left" if text else "right", no_wrap=not text)
    return table


def print_uncut(console: Console, table: Table) -> None:
    """Print a table whose lines may be longer than the console's, as they are to be copied."""
    from rich.measure import Measurement

    wide = Measurement.get(console, console.options.update(width=1 << 10), table).maximum
    console.width = max(console.width, wide)
    console.print(table)


def printable(name: Any) -> str:
    """Return a name with control characters replaced by question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(name))
