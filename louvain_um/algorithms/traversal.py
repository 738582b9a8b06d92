"""Searches from one vertex: breadth first, and along shortest paths.

A parent is the smallest neighbour on a shortest path, so the answers are unique. In a breadth-first
search narrow frontiers push to their neighbours, and the vertices of wide ones are pulled by those
not yet reached, which stop at the first neighbour found. Shortest paths use two piles instead of a
queue by distance: vertices nearer than a limit are processed until none is left, the others wait.
Distances are sums of integers, hence exact.

References: Beamer, Asanović, Patterson, 2012 (`bfs`); Davidson, Baxter, Garland, Owens, 2014, and
Meyer, Sanders: Δ-stepping: a parallelizable shortest path algorithm, 2003 (`sssp`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from louvain_um.algorithms.programs import vertex_of
from louvain_um.algorithms.running import running
from louvain_um.events import Observer
from louvain_um.options import OF_DETECTION, RunValues, takes_options


class SearchTree(NamedTuple):
    """Distances int32[n] and parents int64[n] of a breadth-first search; −1: not reached."""

    distances: NDArray[np.int32]
    parents: NDArray[np.int64]


@takes_options(*OF_DETECTION)
def bfs(
    graph: Any, source: Any, *, observer: Observer | None = None, **options: Unpack[RunValues]
) -> SearchTree:
    """Search a graph from one vertex, breadth first.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
    source : int or name
        Where the search begins: a vertex's name in the source of the graph, or its number
        where it has no names.
    **options
        Where it runs.
    observer : callable, optional
        Called with events (`louvain_um.events.Event`).

    Returns
    -------
    SearchTree
        `distances`, int32[n], in arcs, and `parents`, int64[n], the smallest neighbour at the
        previous distance. Both are −1 for vertices that are not reached. The source is its own
        parent.

    Raises
    ------
    GraphError
        The source is not a vertex, or the object no undirected graph.

    References
    ----------
    Beamer, Asanović, Patterson: Direction-Optimizing Breadth-First Search, 2012.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3], n_vertices=5)
    >>> distances, parents = lu.bfs(g, 0)
    >>> distances.tolist(), parents.tolist()
    ([0, 1, 1, 2, -1], [0, 0, 0, 1, -1])
    """
    with running("bfs", graph, observer, **options) as run:
        start = vertex_of(run.graph, source)
        if run.on_gpu:
            from louvain_um.gpu.algorithms import launches

            distances, parents = launches.bfs(run.rows, start, run.space)
            return SearchTree(
                run.space.get("distances", distances), run.space.get("parents", parents)
            )
        from louvain_um.cpu.algorithms.traversal import bfs as search

        return SearchTree(*search(run.rows, start, run.threads))


class ShortestPaths(NamedTuple):
    """Distances, int64[n] or float64[n], and parents int64[n] from one source; −1: not reached."""

    distances: NDArray[np.int64] | NDArray[np.float64]
    parents: NDArray[np.int64]


@takes_options(*OF_DETECTION)
def sssp(
    graph: Any, source: Any, *, observer: Observer | None = None, **options: Unpack[RunValues]
) -> ShortestPaths:
    """Find the shortest paths from one vertex to all others.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Weights are lengths; without weights each arc has length 1.
    source : int or name
        As of `bfs`.
    **options
        Where it runs.
    observer : callable, optional
        Called with events (`louvain_um.events.Event`).

    Returns
    -------
    ShortestPaths
        `distances`, int64[n], or float64[n] where weights are real, and `parents`, int64[n], the
        smallest neighbour on a shortest path. Both are −1 for vertices that are not reached. The
        source is its own parent. Real weights are rounded when a graph is built (`Graph`).

    Raises
    ------
    GraphError
        The source is not a vertex, or the object no undirected graph; graphs have no negative
        weights.

    References
    ----------
    Davidson, Baxter, Garland, Owens: Work-Efficient Parallel GPU Methods for Single-Source
    Shortest Paths, 2014.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3], [5, 1, 1, 1], n_vertices=5)
    >>> distances, parents = lu.sssp(g, 0)
    >>> distances.tolist(), parents.tolist()
    ([0, 3, 1, 2, -1], [0, 3, 0, 2, -1])
    """
    with running("sssp", graph, observer, **options) as run:
        start = vertex_of(run.graph, source)
        if run.on_gpu:
            from louvain_um.gpu.algorithms import launches

            lengths, before = launches.sssp(run.rows, start, run.space)
            distances = run.space.get("distances", lengths)
            parents = run.space.get("parents", before)
        else:
            from louvain_um.cpu.algorithms.traversal import sssp as search

            distances, parents = search(run.rows, start, run.threads)
        if run.graph.scale == 1.0:
            return ShortestPaths(distances, parents)
        return ShortestPaths(np.where(distances < 0, -1.0, run.real(distances)), parents)
