"""Reading and writing graphs: one module per file format, adapters for other libraries' objects.

The modules of the formats, and the libraries they need, are imported when they are used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from louvain_um.errors import GraphError, OptionError
from louvain_um.formats.file_types import (
    READERS,
    SUFFIXES,
    check_format,
    format_of,
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
    trusted: bool = False,
) -> Graph:
    r"""Read a graph from a file, or from standard input.

    Parameters
    ----------
    path : path
        Edge list (``.txt .tsv .csv .edges .edgelist .el .wel .ncol .snap .dat``),
        MatrixMarket (``.mtx``), METIS (``.graph .metis``), ``.gml``, ``.graphml``, ``.npz``
        or ``.parquet``; each may be gzipped. ``-`` is standard input, whose format is
        recognized by its first bytes, or else an edge list. ``example:les-miserables`` and other
        names of `louvain_um.formats.examples` are small graphs of networkx.
    format : {"edges", "matrixmarket", "metis", "gml", "graphml", "npz", "parquet"}, optional
        The format, if the suffix does not tell it.
    weighted : bool, optional
        Whether to read weights. By default they are read if there are any. In an edge list
        they are the column named weight (or value, count, strength …) in the header, at any
        position; without a header the third column, if its numbers look like neither Unix
        times nor years. A third column with another name is a weight only if this is True.
        In GML and GraphML they are the edge attribute with such a name.
    duplicates : {"once", "sum"}, optional
        How repeated edges count; see `Graph.from_edges`. A symmetric matrix and METIS list
        each edge twice; that is one edge.
    symmetrize : bool
        Read a directed graph, including one whose column ``Type`` is ``Directed``, as
        undirected.
    one_based : bool, optional
        For edge lists: all ids from 1 (True) or 0 (False) to the largest are vertices. By
        default vertices are the ids that occur, or 0 … N − 1 if a comment ``# Nodes: N``
        announces N vertices and all ids are smaller.
    header : bool, optional
        For edge lists: whether the first line that is not a comment is a header. By default
        it is one if it has words above numbers, counts the vertices and edges that follow,
        has names such as source and target, or names that do not occur again in a short
        list in which all others do. In doubtful cases a note reports the decision.
    separator : str, optional
        For edge lists: the character between fields. By default detected from the first lines.
    ids : {"auto", "number", "text"}
        For edge lists: whether ids are numbers or names. By default detected from the first
        lines.
    trusted : bool
        Read files whose lines exceed 1 GiB, that unpack to more than 200 times their size, or
        that have more than 100 vertices per edge. By default these are errors, so that a
        small file cannot take all memory; up to 256 MiB and 67 million vertices are accepted.

    Returns
    -------
    Graph
        `names` holds the ids or names of the file, unless these are 0 … n − 1. `notes` report
        what was guessed, which columns were not read, and how many edges are repeated or
        loops.

    Raises
    ------
    GraphFormatError
        Names the file, the line if it is known, and a remedy.

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
    from louvain_um.formats.read_options import ReadOptions
    from louvain_um.formats.reading import read

    options = ReadOptions(
        weighted=weighted,
        duplicates=duplicates,
        symmetrize=symmetrize,
        one_based=one_based,
        header=header,
        separator=separator,
        ids=ids,
        trusted=trusted,
    )
    return read(os.fspath(path), format, options)


def as_graph(obj: Any, *, duplicates: Duplicates | None = None, symmetrize: bool = False) -> Graph:
    """Convert another library's graph to a `Graph`.

    Parameters
    ----------
    obj : object
        A Graph (returned unchanged); a networkx or igraph graph; a SciPy or CuPy sparse
        matrix or a square array (a symmetric adjacency matrix, with loops on the diagonal);
        a pandas, Arrow or Polars table of edges (columns source and target, or the first
        two, and weight); ``(source, target)`` or ``(source, target, weights)``, where
        integers are vertices 0 … n − 1 and strings are names; or a path for `read_graph`.
    duplicates : {"once", "sum"}, optional
        See `Graph.from_edges`. Parallel edges of a networkx multigraph are summed by default.
    symmetrize : bool
        Read a directed object as undirected.

    Raises
    ------
    GraphError
        The type is not supported, the graph is directed, or ids or weights are out of range.

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


@overload
def write_graph(
    path: str | os.PathLike[str], graph: Graph, *, format: str | None = ..., force: bool = ...
) -> tuple[str, ...]: ...
@overload
def write_graph(
    path: Graph, graph: str | os.PathLike[str], *, format: str | None = ..., force: bool = ...
) -> tuple[str, ...]: ...
def write_graph(
    path: str | os.PathLike[str] | Graph,
    graph: Graph | str | os.PathLike[str],
    *,
    format: str | None = None,
    force: bool = False,
) -> tuple[str, ...]:
    """Write a graph to a file in the format of its suffix; reading it gives the same graph.

    Parameters
    ----------
    path : path
        Edge list, ``.mtx``, ``.graph``, ``.npz`` (each may end in ``.gz``) or ``.parquet``.
    graph : Graph
        Each edge is written once (twice for METIS), real weights exactly. The order of the two
        is free: ``write_graph(graph, path)`` is the same.
    format : str, optional
        The format, if the suffix does not tell it; names as for `read_graph`.
    force : bool
        Whether to replace an existing file.

    Returns
    -------
    tuple of str
        Notes on what the format cannot store, such as names.

    Raises
    ------
    LouvainUmError
        The format cannot be written or cannot store the graph, the file exists, the folder
        does not, or the disk is full. No partial file is left.

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
    from louvain_um.graph.graph import Graph

    if isinstance(path, Graph):
        path, graph = cast("str | os.PathLike[str]", graph), path
    if not isinstance(path, str | os.PathLike) or not isinstance(graph, Graph):
        given = f"({type(path).__name__}, {type(graph).__name__})"
        raise OptionError(
            problem=f"write_graph needs a path and a Graph, not {given}",
            remedy="call write_graph('graph.csv', lu.as_graph(obj))",
        )
    check_format(format)
    return write(os.fspath(path), graph, format, force)


def check_graph_path(
    path: str | os.PathLike[str], *, format: str | None = None, force: bool = False
) -> None:
    """Raise the errors of `write_graph` about the path, before any work is done."""
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
