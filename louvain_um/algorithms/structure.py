"""Connected components, minimum spanning forests and triangles.

Components: after two arcs of each vertex, most vertices are in one large component, and their other
arcs are not visited. Spanning forests: edges are ordered by (weight, smaller end, larger end), so
that the forest is unique; in each round every component is joined along its smallest edge to
another one. Triangles: arcs lead to the end of higher degree, so that no row is longer than the
root of the number of arcs; each triangle is found once, where the rows of two neighbours intersect.

References: Sutton, Ben-Nun, Barak, 2018 (Afforest); Borůvka: O jistém problému minimálním, 1926;
Schank, Wagner, 2005.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from louvain_um.algorithms.running import running
from louvain_um.events import Observer
from louvain_um.options import OF_DETECTION, RunValues, takes_options


@takes_options(*OF_DETECTION)
def connected_components(
    graph: Any, *, observer: Observer | None = None, **options: Unpack[RunValues]
) -> NDArray[np.uint32]:
    """Find the connected components of a graph.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
    **options
        Where it runs.
    observer : callable, optional
        Called with events (`louvain_um.events.Event`).

    Returns
    -------
    uint32[n]
        The smallest number of a vertex in each vertex's component. An isolated vertex is a
        component of its own.

    Raises
    ------
    GraphError
        The object is not an undirected graph.

    References
    ----------
    Sutton, Ben-Nun, Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph
    Sampling, 2018.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([4, 1, 2], [3, 2, 5], n_vertices=7)
    >>> lu.connected_components(g).tolist()
    [0, 1, 1, 3, 3, 1, 6]
    """
    with running("components", graph, observer, **options) as run:
        if run.on_gpu:
            from louvain_um.gpu.algorithms import launches

            found = launches.components(run.rows, run.space)
            labels: NDArray[np.uint32] = run.space.get("components", found)
            return labels
        from louvain_um.cpu.algorithms.structure import components

        return components(run.rows, run.threads)


class Forest(NamedTuple):
    """Edges of a spanning forest: ends u < v, uint32[k], and weights, ascending by (u, v)."""

    u: NDArray[np.uint32]
    v: NDArray[np.uint32]
    weights: NDArray[np.int64] | NDArray[np.float64]


@takes_options(*OF_DETECTION)
def minimum_spanning_forest(
    graph: Any, *, observer: Observer | None = None, **options: Unpack[RunValues]
) -> Forest:
    """Find the spanning forest of least weight.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Without weights every edge weighs 1.
    **options
        Where it runs.
    observer : callable, optional
        Called with events (`louvain_um.events.Event`).

    Returns
    -------
    Forest
        `u` and `v`, uint32[k], with u < v, ascending by (u, v), and `weights`, int64[k], or
        float64[k] where weights are real. Of edges that weigh the same, the one with the smaller
        (u, v) comes first. k is the number of vertices less the number of components.

    Raises
    ------
    GraphError
        The object is not an undirected graph.

    References
    ----------
    Nešetřil, Milková, Nešetřilová: Otakar Borůvka on minimum spanning tree problem, 2001.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 4], [3, 1, 2, 7])
    >>> u, v, weights = lu.minimum_spanning_forest(g)
    >>> list(zip(u.tolist(), v.tolist(), weights.tolist()))
    [(0, 2, 2), (1, 2, 1), (3, 4, 7)]
    """
    with running("mst", graph, observer, **options) as run:
        if run.on_gpu:
            from louvain_um.gpu.algorithms import launches

            space = run.space
            edges, weights, count = launches.spanning_forest(run.rows, space)
            with space.sorting() as on_device:
                if on_device:
                    edges, weights = launches.in_order(edges[:count], weights[:count])
                    edges, weights = edges.get(), weights.get()
                else:
                    edges = space.get("edges", edges)[:count]
                    weights = space.get("edge_weights", weights)[:count]
                    edges, weights = launches.in_order(edges, weights)
        else:
            from louvain_um.cpu.algorithms.structure import spanning_forest

            edges, weights = spanning_forest(run.rows, run.threads)
        u, v = (edges >> np.uint64(32)).astype(np.uint32), edges.astype(np.uint32)
        return Forest(u, v, run.real(weights))


@takes_options(*OF_DETECTION)
def triangles(
    graph: Any, *, observer: Observer | None = None, **options: Unpack[RunValues]
) -> NDArray[np.int64]:
    """Count the triangles of each vertex.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Weights do not matter.
    **options
        Where it runs.
    observer : callable, optional
        Called with events (`louvain_um.events.Event`).

    Returns
    -------
    int64[n]
        Triangles that contain each vertex; a third of their sum is the number of triangles.

    Raises
    ------
    GraphError
        The object is not an undirected graph.

    References
    ----------
    Schank, Wagner: Finding, Counting and Listing All Triangles in Large Graphs, 2005.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 2, 3], [1, 2, 0, 3, 0])
    >>> lu.triangles(g).tolist()
    [2, 1, 2, 1]
    """
    with running("triangles", graph, observer, **options) as run:
        if run.on_gpu:
            from louvain_um.gpu.algorithms import launches

            counts: NDArray[np.int64] = run.space.get(
                "counts", launches.triangles(run.rows, run.space)
            )
            return counts
        from louvain_um.cpu.algorithms.structure import triangles as count

        return count(run.rows, run.threads, run.progress)
