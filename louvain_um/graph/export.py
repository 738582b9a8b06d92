"""Graphs as objects of networkx, igraph, SciPy and pandas, with attributes of vertices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import GraphError, needed
from louvain_um.graph.integer_weights import weights_to_write
from louvain_um.graph.kinds import refuse_directed
from louvain_um.graph.limits import GraphData

EXPORT = "directed edges to export"

Attributes = Mapping[str, NDArray[Any]]
"""Values per vertex, by the name of the attribute."""

OBJECT_BYTES: Final = 300
"""What networkx takes for a vertex or an edge."""

PAIR_BYTES: Final = 240
"""What igraph takes for an edge, with the lists that it is made of."""

ARC_BYTES: Final = 32
"""What a matrix takes for an arc, and a table for an edge, with the columns that they are of."""

REMEDY: Final = "use the arrays of the graph, or a machine with more memory"


def to_networkx(graph: GraphData, attributes: Attributes) -> Any:
    """Return a networkx graph; `Graph.to_networkx` documents it."""
    refuse_directed(graph, EXPORT)
    networkx = needed("networkx", "this needs networkx", "formats")
    check_host_memory(
        OBJECT_BYTES * (graph.n_vertices + graph.n_edges), "a graph of networkx", REMEDY
    )
    u, v, w = all_edges(graph)
    found = networkx.Graph()
    vertices = vertex_names(graph)
    there = [name for name in vertices if name is not None]  # without removed ones
    found.add_nodes_from(there)
    if len(found) < len(there):
        raise GraphError("two vertices have the same name; rename one")
    ends = ([vertices[place] for place in column.tolist()] for column in (u, v))
    if w is None:
        found.add_edges_from(zip(*ends, strict=True))
    else:
        found.add_weighted_edges_from(zip(*ends, w.tolist(), strict=True))
    for name, values in values_of(graph, attributes).items():
        given = {v: value for v, value in zip(vertices, values, strict=True) if value is not None}
        networkx.set_node_attributes(found, given, name)
    return found


def to_igraph(graph: GraphData, attributes: Attributes) -> Any:
    """Return an igraph graph; `Graph.to_igraph` documents it."""
    refuse_directed(graph, EXPORT)
    igraph = needed("igraph", "this needs igraph", "formats")
    check_host_memory(PAIR_BYTES * graph.n_edges, "a graph of igraph", REMEDY)
    u, v, w = all_edges(graph)
    found = igraph.Graph(n=graph.n_vertices, edges=np.stack((u, v), axis=1).tolist())
    named = [] if graph.names is None else ["name"]
    if named:
        found.vs["name"] = vertex_names(graph)
    if w is not None:
        found.es["weight"] = w.tolist()
    columns = values_of(graph, attributes)
    for name, values in zip(distinct(columns, named), columns.values(), strict=True):
        found.vs[name] = values
    return found


def to_scipy(graph: GraphData) -> Any:
    """Return a symmetric SciPy matrix; `Graph.to_scipy` documents it."""
    return next(matrices(graph, [(0, graph.n_vertices)]))


def matrices(
    graph: GraphData, ranges: Iterable[tuple[int, int]], *, values: bool = True
) -> Iterator[Any]:
    """Yield ranges of rows of the matrix, without its `values` those of the signs."""
    refuse_directed(graph, EXPORT)
    from scipy.sparse import csr_array

    decimals, n = weights_to_write(graph) if values else np.sign, graph.n_vertices
    for start, stop in ranges:
        offsets = graph.offsets[start : stop + 1]
        arcs = int(offsets[-1] - offsets[0])
        check_host_memory(ARC_BYTES * arcs, f"a matrix of {arcs:,} arcs", REMEDY)
        targets, weights = graph.arcs(int(offsets[0]), int(offsets[-1]))
        if weights is None:
            weights = np.ones(len(targets), np.int64)
        arrays = decimals(weights.astype(np.int64)), targets.astype(np.int64), offsets - offsets[0]
        matrix = csr_array(arrays, shape=(stop - start, n))
        loops = graph.loops[start:stop]
        if np.any(loops):
            diagonal = decimals(loops), np.arange(start, stop), np.arange(stop - start + 1)
            matrix = csr_array(matrix + csr_array(diagonal, shape=matrix.shape))
        yield matrix


def to_pandas(graph: GraphData) -> Any:
    """Return a frame of edges; `Graph.to_pandas` documents it."""
    refuse_directed(graph, EXPORT)
    check_host_memory(ARC_BYTES * graph.n_edges, f"a table of {graph.n_edges:,} edges", REMEDY)
    u, v, w = all_edges(graph)
    columns: dict[str, Any] = {"source": u, "target": v}
    if graph.names is not None:
        columns = {name: graph.names[ends] for name, ends in columns.items()}
    if w is not None:
        columns["weight"] = w
    return needed("pandas", "this needs pandas", "formats").DataFrame(columns)


def vertex_names(graph: GraphData) -> list[Any]:
    """Return the vertices' names, or their ids if they have none."""
    return list(range(graph.n_vertices)) if graph.names is None else graph.names.tolist()


def values_of(graph: GraphData, attributes: Attributes) -> dict[str, list[Any]]:
    """Return the values of attributes as lists, one value per vertex, None where missing."""
    for name, values in attributes.items():
        if np.shape(values) != (graph.n_vertices,):
            raise GraphError(
                f"attribute {name!r} has shape {np.shape(values)}; pass one value for each of the "
                f"{graph.n_vertices} vertices"
            )
    lists = {name: np.asarray(values).tolist() for name, values in attributes.items()}
    return {name: [*map(_or_none, values)] for name, values in lists.items()}


def _or_none(value: Any) -> Any:
    """Return a value without NumPy's type of number, None for NaN."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def distinct(names: Iterable[Any], taken: Iterable[str] = ()) -> list[str]:
    """Return names as texts, such as a, a_2, a_3, that differ, also from those that are taken."""
    found, chosen = set(taken), list[str]()
    for name in map(str, names):
        others = chain([name], (f"{name}_{number}" for number in count(2)))
        chosen.append(next(other for other in others if other not in found))
        found.add(chosen[-1])
    return chosen


BLOCK_ARCS = 1 << 20
"""Arcs handled at a time."""

Edges = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]


def vertex_ranges(graph: GraphData) -> Iterator[tuple[int, int]]:
    """Yield ranges of vertices with about `BLOCK_ARCS` arcs."""
    n, start = graph.n_vertices, 0
    while start < n:
        stop = int(np.searchsorted(graph.offsets, graph.offsets[start] + BLOCK_ARCS, "right")) - 1
        stop = min(max(stop, start + 1), n, start + BLOCK_ARCS)
        yield start, stop
        start = stop


def edges(graph: GraphData) -> Iterator[Edges]:
    """Yield each edge once, loops included, block by block; real weights as floats."""
    decimals = weights_to_write(graph)
    for start, stop in vertex_ranges(graph):
        low, high = int(graph.offsets[start]), int(graph.offsets[stop])
        u = np.repeat(np.arange(start, stop), np.diff(graph.offsets[start : stop + 1]))
        targets, weights = graph.arcs(low, high)
        v = targets.astype(np.int64)
        upper = u < v
        u, v = u[upper], v[upper]
        loops = np.flatnonzero(graph.loops[start:stop]) + start
        w: NDArray[Any] | None = None
        if weights is not None:
            w = weights[upper].astype(np.int64)
        if len(loops):
            u, v = np.concatenate((u, loops)), np.concatenate((v, loops))
            if w is not None:
                w = np.concatenate((w, graph.loops[loops]))
            order = np.lexsort((v, u))
            u, v, w = u[order], v[order], None if w is None else w[order]
        yield u, v, None if w is None else decimals(w)


def all_edges(
    graph: GraphData,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[Any] | None]:
    """Return the two ends of all edges, loops included, and their weights, if there are any."""
    parts = [(u.astype(np.uint32), v.astype(np.uint32), w) for u, v, w in edges(graph)] or [
        (
            np.empty(0, np.uint32),
            np.empty(0, np.uint32),
            np.empty(0, np.int64) if graph.weighted else None,
        )
    ]
    u = np.concatenate([part[0] for part in parts])
    v = np.concatenate([part[1] for part in parts])
    weights = [part[2] for part in parts if part[2] is not None]
    return u, v, np.concatenate(weights) if weights else None
