"""Graphs that commands read: options for files, examples by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.errors import GraphFormatError, LouvainUmError, OptionError
from louvain_um.formats import READERS

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph

EXAMPLES: Mapping[str, str] = {
    "les-miserables": "les_miserables_graph",
    "karate": "karate_club_graph",
    "florentine-families": "florentine_families_graph",
    "southern-women": "davis_southern_women_graph",
}
"""Networks that NetworkX ships: our name, its function."""

PREFIX = "example:"
READING = "Reading the graph"


class Duplicates(StrEnum):
    """What an edge listed more than once counts for."""

    once = "once"
    sum = "sum"


class IdKind(StrEnum):
    """What the ids of an edge list are."""

    auto = "auto"
    number = "number"
    text = "text"


Source = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="A graph file, - for standard input, or example:les-miserables."
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"Format of the input: {', '.join(READERS)}.  [default: what its suffix says]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Weighted = Annotated[
    bool | None,
    typer.Option(
        "--weighted/--unweighted",
        help="Whether a third column is a weight.  [default: found out]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Repeats = Annotated[
    Duplicates | None,
    typer.Option(
        "--duplicates",
        help="Whether an edge listed twice counts once or sums up.  "
        "[default: once without weights, sum with]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Symmetrize = Annotated[
    bool,
    typer.Option(
        "--symmetrize",
        help="Take a graph declared directed as undirected.",
        rich_help_panel=READING,
    ),
]
OneBased = Annotated[
    bool | None,
    typer.Option(
        "--one-based/--zero-based",
        help="Whether the vertices of an edge list are 1, 2 … or 0, 1 … to the largest id.  "
        "[default: the ids that occur]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of an edge list is a header, to be skipped.  "
        "[default: found out]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHAR",
        help="Character between the fields of an edge list, \\t for a tab.  [default: found out]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Ids = Annotated[
    IdKind,
    typer.Option(
        "--ids", help="Whether ids of an edge list are numbers or names.", rich_help_panel=READING
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a graph is to be read: the options that every command with a graph has."""

    format: Format = None
    weighted: Weighted = None
    duplicates: Repeats = None
    symmetrize: Symmetrize = False
    one_based: OneBased = None
    header: Header = None
    separator: Separator = None
    ids: Ids = IdKind.auto

    def read(self, source: str) -> Graph:
        """Read a graph from a file, standard input or the examples."""
        from louvain_um.cli.kernels import import_numba

        import_numba()
        repeats: Any = None if self.duplicates is None else self.duplicates.value
        if source.startswith(PREFIX) and not Path(source).exists():
            from louvain_um.formats import as_graph

            return as_graph(example(source.removeprefix(PREFIX)), duplicates=repeats)
        from louvain_um.formats import read_graph

        return read_graph(
            source,
            format=self.format,
            weighted=self.weighted,
            duplicates=repeats,
            symmetrize=self.symmetrize,
            one_based=self.one_based,
            header=self.header,
            separator="\t" if self.separator == r"\t" else self.separator,  # as shells leave it
            ids=self.ids.value,
        )


AS_IT_IS = Reading()


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Reading`, which come to it as its parameter `reading`."""
    options = inspect.signature(Reading, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters
    parameters = [*(own[name] for name in own if name != "reading"), *options.values()]

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        given = {name: kwargs.pop(name) for name in options if name in kwargs}
        command(*args, **kwargs, reading=Reading(**given))

    # What Typer looks at to find a command's options.
    declared: Any = run
    declared.__signature__ = inspect.Signature(
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    )
    declared.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def example(name: str) -> Any:
    """Return one of NetworkX's small social networks."""
    if name not in EXAMPLES:
        raise OptionError(f"there is no example {name!r}; there are {', '.join(EXAMPLES)}")
    try:
        import networkx
    except ImportError:
        raise LouvainUmError(
            "examples come with NetworkX: pip install 'louvain-um[formats]'"
        ) from None
    build: Callable[[], Any] = getattr(networkx, EXAMPLES[name])
    return build()


def check_output(path: Path, *, force: bool) -> None:
    """Refuse a graph file that could not be written, before the work is done."""
    from louvain_um.formats import check_graph_path

    try:
        check_graph_path(path, force=force)
    except GraphFormatError as error:
        # No option names the format of what is written: its suffix does.
        wrong, _, _ = error.message.partition(", or name the format")
        raise GraphFormatError(wrong, path) from None


def refuse_same(source: str, target: Path) -> None:
    """Refuse to write over the file that is being read, even by force."""
    if target.exists() and Path(source).exists() and target.samefile(source):
        raise LouvainUmError(f"{target}: is the input itself; choose another name")


def name_of(source: str) -> str:
    """Return what a graph is called in tables: its file's name without endings.

    Examples
    --------
    >>> from louvain_um.cli.graphs import name_of
    >>> name_of("data/web-NotreDame.txt.gz"), name_of("a.b.mtx"), name_of("example:karate")
    ('web-NotreDame', 'a.b', 'karate')
    """
    if source == "-":
        return "standard input"
    if source.startswith(PREFIX) and not Path(source).exists():
        return source.removeprefix(PREFIX)
    path = Path(source)
    if path.suffix in (".gz", ".bz2", ".xz", ".zst"):
        path = path.with_suffix("")
    return path.stem
