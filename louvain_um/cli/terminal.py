"""Text for the terminal: without commands to it, options as commands spell them, and tables."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from typer.models import OptionInfo

from louvain_um.errors import Taken

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from louvain_um.graph.graph import Graph
    from louvain_um.results.communities import Communities
    from louvain_um.results.description import Description
    from louvain_um.results.partition import Outcome

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but tab and line feed, marks that reverse text, bytes that are no text."""

NARROWEST = 20
"""Columns of the narrowest terminal; `COLUMNS` may say less."""


def safe(text: str) -> str:
    """Return text with characters that control a terminal written as escapes."""
    return UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def print_line(text: str) -> None:
    """Print one line on stderr."""
    with suppress(OSError):
        print(safe(text), file=sys.stderr, flush=True)


def echo(text: str) -> None:
    """Print a line on stdout, in its encoding, for which `typer.echo` takes another."""
    print(safe(text), flush=True)


def safe_console(**options: Any) -> Console:
    """Return a console of Rich that interprets nothing in the text it is given."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or not UNSAFE.search(segment.text):
                    yield segment
                else:
                    yield Segment(safe(segment.text), segment.style)

    return SafeConsole(highlight=False, markup=False, emoji=False, width=_width(), **options)


def _width() -> int | None:
    """Return the width that a `COLUMNS` of too few columns stands for, otherwise None."""
    columns = os.environ.get("COLUMNS", "")
    if not columns.isdecimal() or int(columns) >= NARROWEST:
        return None
    return NARROWEST if int(columns) else shutil.get_terminal_size().columns


OPTIONS = (
    "allow_rounding", "best_of", "bipartite", "checkpoint", "cluster", "date_format", "device",
    "device_budget", "directed", "duplicates", "effort", "every", "exchange", "fixed", "force",
    "format", "header", "ids", "initial", "kind", "loops", "max_level", "max_size", "memory",
    "method", "n_iterations", "objective", "on_loss", "one_based", "peer_memory", "resolution",
    "seed", "separator", "signed", "sort", "source", "symmetrize", "target", "threads",
    "threshold", "time", "tracer", "trusted", "weight", "weighted",
)  # fmt: skip
"""Arguments that have an option of the same name."""

OPPOSITES = {
    "bipartite": "--one-mode",
    "header": "--no-header",
    "one_based": "--zero-based",
    "weighted": "--unweighted",
}
"""Options that set an argument to False."""

NAME = "|".join(OPTIONS)
ARGUMENT = re.compile(rf"\b({NAME})=(True|False|'[^']*'|…|\.\.\.)( \(--[\w-]+( \w+)?\))?")
TWICE = re.compile(rf"(--[\w-]+) \(({NAME})=True\)")


def with_flags(text: str) -> str:
    """Return a message with Python arguments replaced by options."""
    text = TWICE.sub(r"\1", text)
    return ARGUMENT.sub(lambda match: option(match[1], match[2]), text)


def flags(command: Callable[..., Any]) -> dict[str, str]:
    """Return the flags of a command's options, by parameter name and by option name."""
    # Positional arguments are left out.
    result = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        declared = (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))
        for info in declared:
            if isinstance(info, OptionInfo):
                # In an annotation, Typer takes the first name as the default.
                texts = [str(text) for text in (info.default, *(info.param_decls or ()))]
                shown = next((text for text in texts if text.startswith("--")), flag(name))
                shown = shown.partition("/")[0]
                result[name] = result[shown[2:].replace("-", "_")] = shown
    return result


def option(name: str, value: str) -> str:
    """Return the option for an argument and its value."""
    if value == "True":
        return flag(name)
    if value == "False":
        return OPPOSITES.get(name, f"no {flag(name)}")
    return f"{flag(name)} {value.strip(chr(39))}"


def flag(name: str) -> str:
    """Return the option for an argument's name."""
    return f"--{name.replace('_', '-')}"


def title_of(source: str) -> str:
    """Return what a graph is called that comes from a file, or from standard input."""
    return "standard input" if source == "-" else source


def graph_line(graph: Graph, source: str) -> str:
    """Return a line with a graph's name and size."""
    from louvain_um.results.display import count

    kind = "weighted" if graph.weighted else "unweighted"
    vertices = count(graph.n_vertices, "vertex", "vertices")
    line = f"{title_of(source)}: {vertices}, {count(graph.n_edges, 'edge', 'edges')}, {kind}"
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
    from louvain_um.results.display import count, objective_text

    many = count(result.n_communities, "community", "communities")
    levels = count(len(result.levels), "level", "levels")
    seconds = max(result.timings.get("total", 0.0) - compiling, 0.0)
    device = result.provenance.get("device", "cpu")
    return (
        f"{many}, {objective_text(result)} ({result.method}, {levels}, {seconds:.2f} s on {device})"
    )


def communities_table(result: Communities, described: Description | None, top: int) -> Table:
    """Return a table of the `top` largest communities: descriptions, or members by degree."""
    from louvain_um.results.display import TEXTS, count, printable

    if described is None:
        table, room = new_table("#", "size", "<members"), max(20, safe_console().width - 20)
        for c, members in enumerate(largest(result, room, top)):
            size = int(result.sizes[c])
            table.add_row(str(c), f"{size:,}", listing(members, size, room))
    else:
        head = (f"<{name}" if name in TEXTS else name for name in described.head[1:])
        table = new_table("#", *head)
        for row in described.rows(top):
            table.add_row(*map(printable, row))
    rest = result.n_communities - top
    if rest > 0:
        sizes = result.sizes[top:]
        span = f"{sizes[-1]:,} to {sizes[0]:,}" if sizes[0] > sizes[-1] else f"{sizes[0]:,}"
        between = [""] * (len(table.columns) - 3)
        others = f"in {count(rest, 'more', 'more')}, of {span} each"
        table.add_row("…", f"{int(sizes.sum()):,}", *between, others)
    return table


def largest(result: Communities, most: int, top: int) -> list[list[str]]:
    """Return up to `most` names from each of the `top` largest communities, by degree."""
    # Where no process held the graph, in the order of vertices.
    import numpy as np

    from louvain_um.results.display import listable, printable

    chosen = np.flatnonzero(result.labels < top)
    labels = result.labels[chosen].astype(np.min_scalar_type(top))  # short ones are sorted sooner
    chosen = chosen[np.argsort(labels, kind="stable")]
    degrees = None if result.graph is None else result.graph.degrees
    bounds = np.cumsum(result.sizes[: min(top, result.n_communities)])[:-1]
    listed = []
    for vertices in np.split(chosen, bounds) if len(chosen) else []:
        shown = vertices if degrees is None else _of_high_degree(vertices, degrees[vertices], most)
        names = shown[:most] if result.names is None else result.names[shown[:most]]
        listed.append([printable(name) for name in listable(names)])
    return listed


def _of_high_degree(vertices: Any, degrees: Any, most: int) -> Any:
    """Return up to `most` of ascending vertices, by descending degree and then by number."""
    import numpy as np

    if len(vertices) > most:
        least = np.partition(degrees, -most)[-most]
        above, equal = np.flatnonzero(degrees > least), np.flatnonzero(degrees == least)
        kept = np.sort(np.concatenate([above, equal[: most - len(above)]]))
        vertices, degrees = vertices[kept], degrees[kept]
    return vertices[np.argsort(-degrees, kind="stable")]


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
    """Return an empty table of numbers; a heading marked with < is of a text column."""
    # `label` is the heading of a first column of text that is never wrapped.
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    if label is not None:
        table.add_column(label, no_wrap=True)
    for name in head:
        text = name.startswith("<")
        table.add_column(name.lstrip("<"), justify="left" if text else "right", no_wrap=not text)
    return table


def print_table(table: Table) -> None:
    """Print a table, on longer lines than the terminal's where else words would be cut."""
    from rich.cells import cell_len
    from rich.measure import Measurement

    console = safe_console()
    for column in table.columns:
        text = "\n".join(map(str, (column.header, *column.cells)))
        parts = text.split("\n") if column.no_wrap else text.split()
        column.min_width = max(map(cell_len, parts), default=0)
    least = Measurement.get(console, console.options.update(width=1 << 10), table).minimum
    console.width = max(console.width, least)
    console.print(table)
