"""Graphs of commands: their names, notes, vertices, and the files that they are written to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louvain_um.errors import GraphFormatError, LouvainUmError

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph


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
