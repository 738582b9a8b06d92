"""The GRAPH argument of commands: options for reading files, and examples by name."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.errors import GraphFormatError, LouvainUmError
from louvain_um.formats import READERS
from louvain_um.formats.objects.examples import PREFIX, is_example

if TYPE_CHECKING:
    from louvain_um.distributed.files.reading import PartitionedGraph
    from louvain_um.graph.graph import Graph

READING = "Reading the graph"


class Duplicates(StrEnum):
    """How an edge listed more than once is counted."""

    once = "once"
    sum = "sum"


class IdKind(StrEnum):
    """How the ids of an edge list are read."""

    auto = "auto"
    number = "number"
    text = "text"


GraphArgument = Annotated[
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
        help=f"Format of the input: {', '.join(READERS)}.  [default: by suffix]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="COLUMN",
        help="Column of an edge's first end: its name, or its number from 1.  [default: detected]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="Column of an edge's second end.  [default: detected]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COLUMN",
        help="Column of the weights, or edge attribute in GML and GraphML.  [default: detected]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="Column of times, which is then not taken for a weight.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Bipartite = Annotated[
    bool,
    typer.Option(
        "--bipartite",
        help="Keep equal ids in both columns apart, such as user 5 and item 5.",
        rich_help_panel=READING,
    ),
]
Weighted = Annotated[
    bool | None,
    typer.Option(
        "--weighted/--unweighted",
        help="Whether the third column is a weight.  [default: detected]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Repeats = Annotated[
    Duplicates | None,
    typer.Option(
        "--duplicates",
        help="Count an edge listed twice once, or sum its weights.  "
        "[default: once if unweighted, sum if weighted]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Symmetrize = Annotated[
    bool,
    typer.Option(
        "--symmetrize",
        help="Treat a directed graph as undirected.",
        rich_help_panel=READING,
    ),
]
Directed = Annotated[
    bool,
    typer.Option(
        "--directed",
        help="Keep directions, for --objective directed.",
        rich_help_panel=READING,
    ),
]
Signed = Annotated[
    bool,
    typer.Option(
        "--signed",
        help="Accept negative weights, for --objective signed.",
        rich_help_panel=READING,
    ),
]
OneBased = Annotated[
    bool | None,
    typer.Option(
        "--one-based/--zero-based",
        help="Number the vertices of an edge list from 1 or 0 to the largest id.  "
        "[default: only ids that occur]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of an edge list is a header.  [default: detected]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHAR",
        help="Field separator of an edge list; \\t for a tab.  [default: detected]",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Ids = Annotated[
    IdKind,
    typer.Option(
        "--ids", help="Read ids of an edge list as numbers or names.", rich_help_panel=READING
    ),
]
Trusted = Annotated[
    bool,
    typer.Option(
        "--trusted",
        help="Lift the limits on line length, unpacked size and vertices per edge.",
        rich_help_panel=READING,
    ),
]

Rounding = Annotated[
    bool,
    typer.Option(
        "--allow-rounding",
        help="Round integer weights whose total exceeds 2^52.",
        rich_help_panel=READING,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Options for reading a graph, shared by every command with a GRAPH."""

    format: Format = None
    source: Source = None
    target: Target = None
    weight: Weight = None
    time: Time = None
    weighted: Weighted = None
    duplicates: Repeats = None
    symmetrize: Symmetrize = False
    directed: Directed = False
    signed: Signed = False
    bipartite: Bipartite = False
    one_based: OneBased = None
    header: Header = None
    separator: Separator = None
    ids: Ids = IdKind.auto
    trusted: Trusted = False
    allow_rounding: Rounding = False

    @property
    def chooses_columns(self) -> bool:
        """Whether an option chooses columns or says what they hold."""
        return self.bipartite or any((self.source, self.target, self.weight, self.time))

    def suited_to(self, objective: str) -> Reading:
        """Return options that keep what an objective needs."""
        if objective == "directed":
            return replace(self, directed=True)
        return replace(self, signed=True) if objective == "signed" else self

    def partitioned(self, name: str) -> PartitionedGraph:
        """Name files that the ranks of a cluster read."""
        from louvain_um.distributed.files.reading import read_partitioned

        return read_partitioned(
            name,
            source=self.source,
            target=self.target,
            weight=self.weight,
            weighted=self.weighted,
            duplicates=None if self.duplicates is None else self.duplicates.value,
        )

    def read(self, name: str) -> Graph:
        """Read a graph from a file, standard input or the examples.

        It warns of nothing: commands print the graph's notes.
        """
        from louvain_um.cli.kernels import import_numba

        import_numba()
        from louvain_um.formats.read_options import ReadOptions
        from louvain_um.formats.reading import read

        options = ReadOptions(
            source=self.source,
            target=self.target,
            weight=self.weight,
            time=self.time,
            weighted=self.weighted,
            duplicates=None if self.duplicates is None else self.duplicates.value,
            symmetrize=self.symmetrize,
            directed=self.directed,
            signed=self.signed,
            bipartite=self.bipartite,
            one_based=self.one_based,
            header=self.header,
            # Shells pass a tab unexpanded.
            separator="\t" if self.separator == r"\t" else self.separator,
            ids=self.ids.value,
            trusted=self.trusted,
            allow_rounding=self.allow_rounding,
        )
        return read(name, self.format, options)


DEFAULT_READING = Reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading(Reading):
    """The same for commands whose ``--source`` is a vertex."""

    source: Annotated[
        str | None,
        typer.Option(
            "--source-column",
            metavar="COLUMN",
            help="Column of an edge's first end: its name, or its number from 1.  "
            "[default: detected]",
            show_default=False,
            rich_help_panel=READING,
        ),
    ] = None

    def partitioned(self, name: str) -> PartitionedGraph:
        """Name files that the ranks of a cluster read."""
        from louvain_um.distributed.files.reading import read_partitioned

        return read_partitioned(
            name,
            source=self.source,
            target=self.target,
            weight=self.weight,
            weighted=self.weighted,
            duplicates=None if self.duplicates is None else self.duplicates.value,
        )

    def read(self, name: str) -> Graph:
        """Read a graph; errors name the option as it is called here."""
        try:
            return super(ColumnReading, self).read(name)
        except GraphFormatError as error:
            raise GraphFormatError(source_column(error.message), error.file, error.line) from error


def source_column(text: str) -> str:
    """Return advice of reading with the option that names a column of first ends."""
    return re.sub(r"source=…( \(--source\))?", "--source-column …", text)


def with_options(name: str, kind: type[Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of a dataclass to a command.

    The command gets them together, as its parameter `name`.
    """

    def add(command: Command) -> Command:
        options = inspect.signature(kind, eval_str=True).parameters
        own = inspect.signature(command, eval_str=True).parameters
        parameters = [*(own[key] for key in own if key != name), *options.values()]

        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> None:
            given = {key: kwargs.pop(key) for key in options if key in kwargs}
            command(*args, **kwargs, **{name: kind(**given)})

        # Typer finds a command's options in its signature and annotations.
        wrapped: Any = run
        wrapped.__signature__ = inspect.Signature(
            [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        )
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return add


Command = Callable[..., None]
with_reading = with_options("reading", Reading)
"""Adds the options of `Reading` to a command, which gets them as its parameter `reading`."""


def check_output(path: Path, *, force: bool) -> None:
    """Raise if a graph file cannot be written, before any work is done."""
    from louvain_um.formats import check_graph_path

    try:
        check_graph_path(path, force=force)
    except GraphFormatError as error:
        # The suffix of the output decides its format; there is no option for it.
        message, _, _ = error.message.partition(", or pass format")
        raise GraphFormatError(message, path) from None


def refuse_same(source: str, target: Path) -> None:
    """Raise if the output is the input, also with ``--force``."""
    if target.exists() and Path(source).exists() and target.samefile(source):
        raise LouvainUmError(f"{target}: is also the input; choose another name")


def print_notes(loaded: Mapping[str, Graph], *, quiet: bool) -> None:
    """Print the notes on graphs that were read; with several graphs, each with its name."""
    from louvain_um.cli.exit_codes import print_note

    for name, graph in loaded.items():
        for text in () if quiet else graph.notes:
            print_note(f"{name}: {text}" if len(loaded) > 1 else text)


def name_of(source: str) -> str:
    """Return a graph's name for tables: its file's name without suffixes.

    Examples
    --------
    >>> from louvain_um.cli.graphs import name_of
    >>> name_of("data/web-NotreDame.txt.gz"), name_of("a.b.mtx"), name_of("example:karate")
    ('web-NotreDame', 'a.b', 'karate')
    """
    if source == "-":
        return "standard input"
    if is_example(source):
        return source.removeprefix(PREFIX)
    path = Path(source)
    if path.suffix in (".gz", ".bz2", ".xz", ".zst"):
        path = path.with_suffix("")
    # The name goes into tables and files, which are UTF-8; file names may be any bytes.
    return path.stem.encode("utf-8", "backslashreplace").decode()


def named(graph: Graph, text: str) -> Any:
    """Return the vertex that a text on the command line names.

    Raises
    ------
    GraphError
        There is none.
    """
    from louvain_um.algorithms.graphs import vertex_of

    names = graph.names
    if names is None or names.dtype.kind in "iu":
        number = text.removeprefix("-")
        return int(text) if number.isdecimal() and number.isascii() else vertex_of(graph, text)
    return next((name for name in names.tolist() if str(name) == text), text)
