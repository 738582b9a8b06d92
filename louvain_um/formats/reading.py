"""Graphs from a source by name (a file, standard input, an example) and from objects."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Literal

from louvain_um.errors import (
    GraphError,
    HostMemoryError,
    Uncertain,
    among,
    shown,
    warn,
)
from louvain_um.formats.file_types import (
    NETWORKS,
    READERS,
    TEXTS,
    check_format,
    format_of,
    format_of_content,
    other_content,
    path_text,
)
from louvain_um.formats.read_options import Column, ReadOptions, named

if TYPE_CHECKING:
    from louvain_um.formats.graph_file import GraphFile
    from louvain_um.graph.graph import Graph
    from louvain_um.graph.limits import Duplicates
    from louvain_um.options import ObjectiveName

HEAD = 1 << 12
"""Bytes of a file by which formats other than text are recognised."""


def read_graph(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    weighted: bool | None = None,
    duplicates: Duplicates | None = None,
    symmetrize: bool = False,
    directed: bool = False,
    signed: bool = False,
    bipartite: bool | None = None,
    one_based: bool | None = None,
    header: bool | None = None,
    separator: str | None = None,
    ids: Literal["auto", "number", "text"] = "auto",
    trusted: bool = False,
    allow_rounding: bool = False,
    loops: Literal["keep", "drop"] = "keep",
    nodes: Any = None,
) -> Graph:
    r"""Read a graph from a file, or from standard input.

    Parameters
    ----------
    path : path
        Edge list (``.txt .tsv .csv .edges .edgelist .el .wel .ncol .snap .dat``, ``out.*`` of
        KONECT), MatrixMarket (``.mtx``), METIS (``.graph .metis``), ``.gml``, ``.graphml``,
        ``.gexf``, JSON (Cytoscape ``.cyjs``; node-link data, lists of edges ``.json``), JSON lines
        (``.jsonl``), Pajek (``.net``), UCINET (``.dl``), DIMACS (``.gr .col``), ``.lgl``, ``.sif``,
        lists of neighbours (``.adjlist``), ``.npz``, ``.parquet``, ``.feather`` or ``.h5ad``; each
        may be gzipped. Text is also recognized by its first lines: a matrix with labels, edges
        with a dict of attributes, and others. ``-`` is standard input, whose format is recognized
        by its first bytes, or else an edge list; so is that of a pipe without a suffix, such as
        ``/dev/stdin``.
        ``example:les-miserables`` and other names of `louvain_um.formats.objects` are
        small graphs.
    format : str, optional
        A name in `louvain_um.formats.READERS`, such as "edges", "matrixmarket" or "adjacency": the
        format, if neither suffix nor first lines show it.
    source, target : str or int, optional
        Columns of the two ends of each edge in an edge list or a Parquet table: names, or
        numbers from 1. By default they are the columns with known names, wherever these stand
        (``from`` and ``to``, ``src`` and ``dst``, ``user_id`` and ``friend_id``, ``customer_a``
        and ``customer_b`` …), or else the first two. In an ``.npz`` file they are arrays.
    weight : str or int, optional
        Column of the weights, or edge attribute in GML and GraphML.
    time : str or int, optional
        Column of times. It is not read as a weight, and not used otherwise.
    weighted : bool, optional
        Whether to read weights; True is an error if there are none. By default they are read if
        there are any: the column or edge attribute named weight (or value, count, strength …, in
        any case), or the only numeric one without another role, which the last note names. Of an
        edge list without a header they are the third column, if its numbers look like neither
        Unix times nor years.
    duplicates : {"once", "sum"}, optional
        How repeated edges count; see `Graph.from_edges`. A symmetric matrix and METIS list
        each edge twice; that is one edge.
    symmetrize : bool
        Read a directed graph, including one whose column ``Type`` is ``Directed``, as
        undirected.
    directed : bool
        Keep directions, for ``objective="directed"``.
    signed : bool
        Accept negative weights, for ``objective="signed"``.
    bipartite : bool, optional
        Whether the ids of both columns are independent, as in a table of users and items: user
        5 and item 5 are then two vertices, named ``user:5`` and ``item:5`` after the header, or
        else ``source:5`` and ``target:5``. By default they are if the names of the columns or
        the file (``% bip`` of KONECT) say so and equal ids occur in both; with True the graph
        also suits ``objective="bipartite"``.
    one_based : bool, optional
        For edge lists: all ids from 1 (True) or 0 (False) to the largest are vertices. By
        default vertices are the ids that occur, or 0 … N − 1 if a comment ``# Nodes: N``
        announces N vertices and all ids are smaller.
    header : bool, optional
        For edge lists: whether the first line that is not a comment is a header. By default
        it is one if it has words above numbers, counts the vertices and edges that follow,
        has names such as source and target, or names that do not occur again in a short
        list in which all others do. In uncertain cases a note reports the decision.
    separator : str, optional
        For edge lists: the character between fields. By default detected from the first lines.
    ids : {"auto", "number", "text"}
        For edge lists: whether ids are numbers or names. By default they are numbers if each
        reads back as it is written; ``007``, ``+4`` and ``1.0`` make all ids text.
    trusted : bool
        Read files whose lines exceed 1 GiB, that unpack to more than 200 times their size, or
        that have more than 100 vertices per edge. By default these are errors, so that a
        small file cannot take all memory; up to 256 MiB and 67 million vertices are accepted.
    allow_rounding : bool
        Round integer weights whose total exceeds 2^52, which are otherwise an error; see
        `Graph.from_edges`.
    loops : {"keep", "drop"}
        Whether edges of a vertex to itself count, such as the diagonal of correlations.
    nodes : table or path, optional
        A row for each vertex, whose columns become `Graph.attributes`: a table of pandas, Arrow
        or Polars, or a CSV, TSV or Parquet file. Vertices, as the graph names them, are in the
        column vertex, id, node, name or label, else in an index that is not of numbers, else in
        the first column. Notes count rows and vertices without a match.

    Returns
    -------
    Graph
        `names` holds the ids or names of the file, unless these are 0 … n − 1. Vertices ascend by
        id, or by name in the order of code points, from whatever source. `notes` report
        what was guessed, which columns were not read, and how many edges are repeated or
        loops.

    Warns
    -----
    GraphWarning
        For each note on a guess that may be wrong.

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
    options = ReadOptions.of(locals())
    from louvain_um.formats.attributes import table_of, with_table

    name = path_text(path, "pass one, or an object to as_graph")
    table = table_of(nodes)
    return warned(with_table(read(name, format, options), table))


def as_graph(
    obj: Any,
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    weighted: bool | None = None,
    duplicates: Duplicates | None = None,
    symmetrize: bool = False,
    directed: bool = False,
    signed: bool = False,
    bipartite: bool | None = None,
    allow_rounding: bool = False,
    loops: Literal["keep", "drop"] = "keep",
    nodes: Any = None,
) -> Graph:
    """Convert another library's graph to a `Graph`.

    Of what lies in the memory of a CUDA device, the graph is there, too; each of its arrays is
    copied to the host when something asks for it.

    Parameters
    ----------
    obj : object
        A Graph (returned unchanged), a DynamicGraph as it is now, or a DeviceGraph; a networkx,
        igraph or NetworKit graph; a SciPy or CuPy sparse matrix or a square array (a symmetric
        adjacency matrix, with loops on the diagonal; a sparse one of nearest neighbours, whose rows
        have as many entries, is united with its transpose); an AnnData
        (``obsp["connectivities"]``, or the key that `weight` names, united with its transpose if
        it is not symmetric); a pandas,
        Arrow, Polars or cuDF table of edges (columns source and target, or the first two, and
        weight), also lazy; ``(source, target)`` or ``(source, target, weights)``, also as rows or
        columns of an array, where integers are vertices 0 … n − 1 and strings are names; or a path
        for `read_graph`. igraph's graphs, AnnData, matrices and arrays keep the numbers of their
        vertices; in all others vertices ascend by name.
    source, target, weight, time : str or int, optional
        Columns of a table: names, or numbers from 1; see `read_graph`. `weight` is also the
        edge attribute of a networkx or igraph graph (by default ``weight``).
    weighted : bool, optional
        Whether to read weights; by default if there are any.
    duplicates : {"once", "sum"}, optional
        See `Graph.from_edges`. Parallel edges of a networkx multigraph and repeated entries of a
        SciPy matrix are summed by default.
    symmetrize : bool
        Read a directed object as undirected.
    directed : bool
        Keep directions, for ``objective="directed"``. A matrix need not be symmetric then.
    signed : bool
        Accept negative weights, for ``objective="signed"``.
    bipartite : bool, optional
        Whether the ids of both columns of a table, or of both arrays, are independent; see
        `read_graph`.
    allow_rounding : bool
        Round integer weights whose total exceeds 2^52, which are otherwise an error; see
        `Graph.from_edges`.
    loops : {"keep", "drop"}
        Whether edges of a vertex to itself count.
    nodes : table or path, optional
        Attributes of vertices, as for `read_graph`. By default those of a networkx or igraph
        graph's vertices, or ``obs`` of an AnnData.

    Raises
    ------
    GraphError
        The type is not supported, the graph is directed, a column is missing, or ids or weights
        are out of range.

    Warns
    -----
    GraphWarning
        For each note on a guess that may be wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.formats import as_graph
    >>> as_graph((["ann", "bob"], ["bob", "cid"])).names.tolist()
    ['ann', 'bob', 'cid']
    >>> as_graph(np.array([[0, 2], [2, 0]])).weights.tolist()
    [2, 2]
    """
    if not among(duplicates, None, "once", "sum"):
        raise GraphError(f"duplicates must be 'once' or 'sum', not {shown(duplicates)}")
    options = ReadOptions.of(locals())
    from louvain_um.formats.attributes import table_of, with_table

    table = table_of(nodes)
    if isinstance(obj, str | os.PathLike):
        with named("read_graph"):
            return warned(with_table(read(os.fspath(obj), None, options), table))
    from louvain_um.formats.objects import adapt

    graph = adapt(obj, options)
    if graph is not obj:
        return warned(with_table(graph, table))
    return graph if table is None else warned(with_table(graph.renewed(), table))


def graph_of(obj: Any, objective: ObjectiveName = "modularity") -> Graph:
    """Convert a graph for a function that takes no options of reading."""
    with named("as_graph"):
        return as_graph(obj, directed=objective == "directed", signed=objective == "signed")


def read(name: str, format: str | None, options: ReadOptions) -> Graph:
    """Read a graph without warnings; `read_graph` documents the options."""
    from louvain_um.formats.graph_file import open_graph_file
    from louvain_um.formats.objects import example, is_example

    by_name = check_source(name, format)
    if is_example(name):
        return example(name, options)
    with open_graph_file(name, trusted=options.trusted) as file:
        file.skip_byte_order_mark()
        kind = format or _kind_of(file, by_name, options)
        if kind in TEXTS:
            file.refuse_utf16()
            file.end_lines_with_newlines()
        if kind == "edges":
            file.skip_separator_line()
        _refuse_unsuited(file, kind, options)
        module, _, function = READERS[kind].partition(":")
        read_file = getattr(importlib.import_module(f"louvain_um.formats.{module}"), function)
        try:
            with file.naming():
                graph: Graph = read_file(file, options)
        except HostMemoryError as error:
            raise file.error(str(error)) from None
        except MemoryError:
            raise file.error(
                "needs more memory than available; check the number of vertices that it announces"
            ) from None
    return graph


def check_source(name: str, format: str | None = None) -> str:
    """Return the format that a name shows; raise the errors that need no look into the file."""
    from louvain_um.formats.graph_file import is_stream, refuse_missing
    from louvain_um.formats.objects import is_example

    check_format(format)
    if is_example(name):
        return "edges"
    if name != "-":
        refuse_missing(name)
    by_content = is_stream(name) and not os.path.splitext(name)[1]
    return format or ("edges" if by_content else format_of(name))


def _kind_of(file: GraphFile, kind: str, options: ReadOptions) -> str:
    """Return the format that a file's contents show, if its suffix says that it is text."""
    if kind != "edges":
        return kind
    kind = format_of_content(file.peek(HEAD))
    if kind != "edges":
        return kind
    if problem := other_content(file.peek(64)):
        raise file.error(problem)
    file.refuse_utf16()
    file.end_lines_with_newlines()
    file.skip_separator_line()
    if options.names_columns or options.header is not None:
        return kind
    from louvain_um.formats.line_lists import recognised, refuse_incidence

    kind = recognised(file)
    if kind == "incidence":
        refuse_incidence(file)
    return kind


def _refuse_unsuited(file: GraphFile, kind: str, options: ReadOptions) -> None:
    """Raise an error for options that a format has no use for."""
    for name in ("directed", "signed") if kind == "metis" else ():
        if getattr(options, name):
            raise file.error(f"a METIS file is not {name}; drop {name}=True (--{name})")
    fits: dict[str, tuple[str, ...]] = {"matrixmarket": (), "metis": (), "dimacs": ()}
    fits |= {"matrix": (), "incidence": ("bipartite",), "anndata": ("weight",)}
    fits |= dict.fromkeys(NETWORKS, ("weight",))
    records = kind == "json" and file.peek(64).lstrip().startswith(b"[")
    problem = options.unsuited(f"a {kind} file", but=fits[kind]) if kind in fits else ""
    if problem and not records:
        raise file.error(problem)
    if problem := options.unsuited_to("jsonl" if records else kind):
        raise file.error(problem)


def warned(graph: Graph) -> Graph:
    """Return a graph, after warnings of its uncertain notes."""
    warn_of(graph.notes)
    return graph


def warn_of(notes: tuple[str, ...]) -> None:
    """Warn of uncertain notes."""
    for note in notes:
        if isinstance(note, Uncertain):
            warn(note)
