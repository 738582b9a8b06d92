"""The GRAPH argument of commands, and the options for reading it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from louvain_um.cli import import_numba
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import print_note
from louvain_um.errors import GraphFormatError, GraphWarning, LouvainUmError, OptionError
from louvain_um.formats import READERS, check_graph_path
from louvain_um.formats.read_options import KINDS, ReadOptions
from louvain_um.formats.reading import check_source

if TYPE_CHECKING:
    from louvain_um.distributed.files.reading import PartitionedGraph
    from louvain_um.graph.graph import Graph

READING = "Reading the graph"


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="A graph file, - for standard input, or example:les-miserables."
    ),
]

Format = Annotated[
    str | None,
    option(
        "--format NAME",
        f"Format of the input: {', '.join(READERS)}.  [default: by suffix]",
        READING,
    ),
]
FIRST_END = "Column of an edge's first end: its name, or its number from 1.  [default: detected]"
Source = Annotated[str | None, option("--source COLUMN", FIRST_END, READING)]
Target = Annotated[
    str | None,
    option("--target COLUMN", "Column of an edge's second end.  [default: detected]", READING),
]
Weight = Annotated[
    str | None,
    option(
        "--weight COLUMN",
        "Column of the weights, or edge attribute in GML and GraphML.  [default: detected]",
        READING,
    ),
]
Time = Annotated[
    str | None,
    option("--time COLUMN", "Column of times, which is then not taken for a weight.", READING),
]
Bipartite = Annotated[
    bool | None,
    option(
        "--bipartite/--one-mode",
        "Whether equal ids in both columns are two vertices, such as user 5 and item 5.  "
        "[default: if the columns' names say so]",
        READING,
    ),
]
Weighted = Annotated[
    bool | None,
    option(
        "--weighted/--unweighted",
        "Whether the third column is a weight.  [default: detected]",
        READING,
    ),
]
Repeats = Annotated[
    Literal["once", "sum"] | None,
    option(
        "--duplicates",
        "Count an edge listed twice once, or sum its weights.  "
        "[default: once if unweighted, sum if weighted]",
        READING,
    ),
]
Symmetrize = Annotated[
    bool, option("--symmetrize", "Treat a directed graph as undirected.", READING)
]
Directed = Annotated[
    bool, option("--directed", "Keep directions, for --objective directed.", READING)
]
Signed = Annotated[
    bool, option("--signed", "Accept negative weights, for --objective signed.", READING)
]
OneBased = Annotated[
    bool | None,
    option(
        "--one-based/--zero-based",
        "Number the vertices of an edge list from 1 or 0 to the largest id.  "
        "[default: only ids that occur]",
        READING,
    ),
]
Header = Annotated[
    bool | None,
    option(
        "--header/--no-header",
        "Whether the first line of an edge list is a header.  [default: detected]",
        READING,
    ),
]
Separator = Annotated[
    str | None,
    option(
        "--separator CHAR",
        "Field separator of an edge list; \\t for a tab.  [default: detected]",
        READING,
    ),
]
IdKind = Literal["auto", "number", "text"]
Ids = Annotated[IdKind, option("--ids", "Read ids of an edge list as numbers or names.", READING)]
Trusted = Annotated[
    bool,
    option(
        "--trusted", "Lift the limits on line length, unpacked size and vertices per edge.", READING
    ),
]
Loops = Annotated[
    Literal["keep", "drop"], option("--loops", "Keep or drop edges of a vertex to itself.", READING)
]
Rounding = Annotated[
    bool, option("--allow-rounding", "Round integer weights whose total exceeds 2^52.", READING)
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
    bipartite: Bipartite = None
    one_based: OneBased = None
    header: Header = None
    separator: Separator = None
    ids: Ids = "auto"
    trusted: Trusted = False
    allow_rounding: Rounding = False
    loops: Loops = "keep"

    @property
    def changes_size(self) -> bool:
        """Whether an option changes what a header says of a graph's size, or does not suit it."""
        kept = replace(self, format=None, weighted=None, symmetrize=False, trusted=False,
                       allow_rounding=False)  # fmt: skip
        return kept != DEFAULT_READING

    def refuse_without_graph(self, *, whole: bool = False) -> None:
        """Raise an `OptionError` if options say how to read a graph of which there is a size."""
        if whole or replace(self, weighted=None) != DEFAULT_READING:
            raise OptionError(
                remedy="reading options (--read, --format, …) need a GRAPH; name one, or omit them"
            )

    def suited_to(self, objective: str) -> Reading:
        """Return options that keep what an objective needs; refuse those that contradict it."""
        if objective not in ("directed", "signed"):
            return self
        for kind in KINDS:
            if kind != objective and getattr(self, kind):
                raise OptionError(
                    remedy="drop one", problem=f"--objective {objective} contradicts --{kind}"
                )
        return replace(self, directed=objective == "directed", signed=objective == "signed")

    def partitioned(self, name: str) -> PartitionedGraph:
        """Name files that the ranks of a cluster read."""
        from louvain_um.distributed.files.reading import read_partitioned

        return read_partitioned(
            name,
            source=self.source,
            target=self.target,
            weight=self.weight,
            weighted=self.weighted,
            duplicates=self.duplicates,
        )

    def read(self, name: str) -> Graph:
        """Read a graph from a file, standard input or the examples.

        It warns of nothing: commands print the graph's notes.
        """
        import_numba()
        from louvain_um.formats.reading import read

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphWarning)
            return read(name, self.format, self.options())

    def check(self, name: str) -> None:
        """Raise the errors of `read` that need no look into the file."""
        check_source(name, self.format)
        self.options()

    def options(self) -> ReadOptions:
        """Return the options as readers take them."""
        options = {field.name: getattr(self, field.name) for field in fields(ReadOptions)}
        return ReadOptions(**options | {"separator": expanded(self.separator)})


DEFAULT_READING = Reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading(Reading):
    """The same for commands whose ``--source`` is a vertex."""

    source: Annotated[str | None, option("--source-column COLUMN", FIRST_END, READING)] = None

    def read(self, name: str) -> Graph:
        """Read a graph; errors name the option as it is called here."""
        try:
            return super(ColumnReading, self).read(name)
        except GraphFormatError as error:
            raise GraphFormatError(source_column(error.message), error.file, error.line) from error


def source_column(text: str) -> str:
    """Return advice of reading with the option that names a column of first ends."""
    return re.sub(r"source=…( \(--source\))?", "--source-column …", text)


def expanded(separator: str | None) -> str | None:
    r"""Return a separator; a tab for ``\t``, which shells pass as it is."""
    return "\t" if separator == r"\t" else separator


def check_output(path: Path, *, force: bool) -> None:
    """Raise if a graph file cannot be written, before any work is done."""
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


def refuse_two_inputs(*names: object) -> None:
    """Raise if more than one input is standard input."""
    if sum(str(name) == "-" for name in names) > 1:
        raise OptionError(remedy="only one input can be standard input; name a file for the other")


def print_notes(loaded: Mapping[str, Graph], *, quiet: bool) -> None:
    """Print the notes on graphs that were read; with several graphs, each with its name."""
    for name, graph in () if quiet else loaded.items():
        print_note(*(f"{name}: {text}" if len(loaded) > 1 else text for text in graph.notes))


def name_of(source: str) -> str:
    """Return a graph's name for tables: its file's name without suffixes."""
    from louvain_um.formats.objects import PREFIX, is_example

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
    """Return the vertex that a text on the command line names."""
    from louvain_um.algorithms.programs import vertex_of

    names = graph.names
    if names is None or names.dtype.kind in "iu":
        number = text.removeprefix("-")
        return int(text) if number.isdecimal() and number.isascii() else vertex_of(graph, text)
    return next((name for name in names.tolist() if str(name) == text), text)
