"""Reading and writing graphs: one module per file format, adapters for other libraries' objects.

The modules of the formats, and the libraries they need, are imported when they are used.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Literal

from louvain_um.errors import GraphError, OptionError
from louvain_um.formats.file_types import (
    READERS,
    SUFFIXES,
    check_format,
    format_of,
    format_of_content,
)

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph
    from louvain_um.graph.limits import Duplicates


def read_graph(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    weighted: bool | None = None,
    duplicates: Duplicates | None = None,
    symmetrize: bool = False,
    one_based: bool | None = None,
    header: bool | None = None,
    separator: str | None = None,
    ids: Literal["auto", "number", "text"] = "auto",
) -> Graph:
    r"""Read a graph from a file, or from standard input.

    Parameters
    ----------
    path : path
        Edge list (``.txt .tsv .csv .edges .edgelist .el .wel .ncol .snap .dat``),
        MatrixMarket (``.mtx``), METIS (``.graph .metis``), ``.gml``, ``.graphml``, ``.npz``
        or ``.parquet``; each may be gzipped. ``-`` is standard input, an edge list or, by
        its first bytes, another format.
    format : {"edges", "matrixmarket", "metis", "gml", "graphml", "npz", "parquet"}, optional
        Instead of what the suffix says.
    weighted : bool, optional
        Whether to read weights. By default they are read where there are any. In an edge
        list that is the column that a header calls weight (or value, count, strength …),
        wherever it stands; without a header the third, if it holds numbers that look like
        neither Unix times nor years. A third column with another name is a weight only if
        this is True. In GML and GraphML it is the edges' attribute of such a name.
    duplicates : {"once", "sum"}, optional
        What an edge listed more than once counts for; see `Graph.from_edges`. A symmetric
        matrix and METIS list every edge twice; that is one edge.
    symmetrize : bool
        Read what declares itself directed, a column ``Type`` with ``Directed`` included, as
        undirected.
    one_based : bool, optional
        For edge lists: every id from 1 (True) or 0 (False) to the largest is a vertex. By
        default vertices are the ids that occur, or as many as a comment ``# Nodes: N``
        announces where the ids lie below N.
    header : bool, optional
        For edge lists: whether the first line that is no comment is a header. By default
        it is one if it is words over numbers, counts the vertices and edges that follow,
        holds words such as source and target, or words that do not occur again in a short
        list where all others do. A note tells what was decided wherever it is in doubt.
    separator : str, optional
        For edge lists: the character between fields. By default the first lines tell.
    ids : {"auto", "number", "text"}
        For edge lists: whether ids are numbers or names. By default the first lines tell.

    Returns
    -------
    Graph
        With the ids or names of the file in `names` unless they are 0 … n − 1, and in
        `notes` what was guessed, which columns were not read, and how many edges repeat
        another or are loops.

    Raises
    ------
    GraphFormatError
        Naming the file, the line where there is one, and a remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from louvain_um.formats import read_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "edges.csv")
    ...     _ = path.write_text("source,target\nann,bob\nbob,cid\n")
    ...     g = read_graph(path)
    >>> g.names.tolist(), g.n_edges
    (['ann', 'bob', 'cid'], 2)
    """
    name = os.fspath(path)
    check_format(format)
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise OptionError("separator", separator, "must be one ASCII character")
    if ids not in ("auto", "number", "text"):
        raise OptionError("ids", ids, "must be 'auto', 'number' or 'text'")

    from louvain_um.formats.read_options import ReadOptions
    from louvain_um.formats.source import open_source, refuse_missing

    if name != "-":
        refuse_missing(name)
    kind = format or (None if name == "-" else format_of(name))
    options = ReadOptions(
        weighted=weighted,
        duplicates=duplicates,
        symmetrize=symmetrize,
        one_based=one_based,
        header=header,
        separator=separator,
        ids=ids,
    )
    with open_source(name) as source:
        if kind in (None, "edges"):
            source.skip_byte_order_mark()
            guess = format_of_content(source.peek(64))
            kind = guess if kind is None or guess == "matrixmarket" else kind
        module, _, function = READERS[kind].partition(":")
        read = getattr(importlib.import_module(f"louvain_um.formats.{module}"), function)
        try:
            graph: Graph = read(source, options)
        except MemoryError:
            raise source.error(
                "needs more memory than there is; check the number of vertices it announces"
            ) from None
    return graph


def as_graph(obj: Any, *, duplicates: Duplicates | None = None, symmetrize: bool = False) -> Graph:
    """Return another library's graph as a `Graph`.

    Parameters
    ----------
    obj : object
        A Graph (returned as it is); a networkx or igraph graph; a SciPy or CuPy sparse
        matrix or a square array (an adjacency matrix: symmetric, the diagonal holds loops);
        a pandas, Arrow or Polars table of edges (columns source and target, or the first
        two, and weight); ``(source, target)`` or ``(source, target, weights)``, where
        integers are vertices 0 … n − 1 and strings are names; or a path, as `read_graph`.
    duplicates : {"once", "sum"}, optional
        See `Graph.from_edges`. Parallel edges of a networkx multigraph add up by default.
    symmetrize : bool
        Read a directed object as undirected.

    Raises
    ------
    GraphError
        Objects of another kind, directed objects, ids or weights out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.formats import as_graph
    >>> as_graph((["ann", "bob"], ["bob", "cid"])).names.tolist()
    ['ann', 'bob', 'cid']
    >>> as_graph(np.array([[0, 2], [2, 0]])).weights.tolist()
    [2, 2]
    """
    if isinstance(obj, str | os.PathLike):
        return read_graph(obj, duplicates=duplicates, symmetrize=symmetrize)
    from louvain_um.formats.objects.adapt import adapt
    from louvain_um.formats.read_options import ReadOptions

    if duplicates not in (None, "once", "sum"):
        raise GraphError(f"duplicates must be 'once' or 'sum', not {duplicates!r}")
    return adapt(obj, ReadOptions(duplicates=duplicates, symmetrize=symmetrize))


def write_graph(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    format: str | None = None,
    force: bool = False,
) -> tuple[str, ...]:
    """Write a graph to a file, by its suffix; reading it back gives the same graph.

    Parameters
    ----------
    path : path
        Edge list, ``.mtx``, ``.graph``, ``.npz`` (each may end in ``.gz``) or ``.parquet``.
    graph : Graph
        Every edge is written once (twice for METIS); real weights exactly.
    format : str, optional
        Instead of what the suffix says; names as for `read_graph`.
    force : bool
        Whether to replace a file that exists.

    Returns
    -------
    tuple of str
        What the format could not keep, such as names.

    Raises
    ------
    LouvainUmError
        A format that cannot be written or hold the graph, a file that exists, a folder that
        does not, a full disc. Nothing half written is left.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from louvain_um.formats import as_graph, read_graph, write_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.mtx.gz")
    ...     notes = write_graph(path, as_graph(([0, 1], [1, 2], [0.5, 0.25])))
    ...     g = read_graph(path)
    >>> (g.weights / g.scale).tolist()
    [0.5, 0.5, 0.25, 0.25]
    """
    from louvain_um.formats.write import write

    check_format(format)
    return write(os.fspath(path), graph, format, force)


def check_graph_path(
    path: str | os.PathLike[str], *, format: str | None = None, force: bool = False
) -> None:
    """Raise what `write_graph` would raise about the path, before the work is done."""
    from louvain_um.formats.write import writer_for

    check_format(format)
    writer_for(os.fspath(path), format, force)


__all__ = [
    "READERS",
    "SUFFIXES",
    "as_graph",
    "check_graph_path",
    "format_of",
    "read_graph",
    "write_graph",
]
