"""Breadth-first search: distances in arcs, and a tree of shortest paths.

Returns distances int32[n] and parents int64[n], −1 for vertices that are not reached. The parent
of a vertex is its smallest neighbour at the previous distance, that of the source itself; so both
are unique. Special is the direction: narrow frontiers push to their neighbours, wide ones are
pulled into by the vertices not yet reached, which stop at the first neighbour that they find.

Reference: Beamer, Asanović, Patterson: Direction-Optimizing Breadth-First Search, 2012.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Observer

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.placement.policy.policy import Policy


class SearchTree(NamedTuple):
    """Distances int32[n] and parents int64[n] of a breadth-first search; −1: not reached."""

    distances: NDArray[np.int32]
    parents: NDArray[np.int64]


def bfs(
    graph: Any,
    source: Any,
    *,
    device: str = "auto",
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> SearchTree:
    """Search a graph from one vertex, breadth first.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
    source : int or name
        Where the search begins: a vertex's name in the source of the graph, or its number
        where it has no names.
    device : {"auto", "cpu", "cuda", "cuda:N"}
    memory : str, path or Policy
        Memory policy of a GPU run; see `louvain`. The result does not depend on it.
    device_budget : int or str, optional
        Device memory that a GPU run may occupy, as of `louvain`.
    peer_memory : str, optional
        Another GPU, such as "cuda:1", whose memory takes what does not fit, as of `louvain`.
    threads : int, optional
        CPU threads; all cores by default. The result does not depend on them.
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
        The source is no vertex, or the object no undirected graph.
    MemoryBudgetError
        What must be on the device, or what the policy places there, exceeds the budget.
    DeviceUnavailableError
        The device is not available.

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
    from louvain_um.algorithms.graphs import vertex_of
    from louvain_um.algorithms.running import running

    with running(
        "bfs", graph, device=device, memory=memory, device_budget=device_budget,
        peer_memory=peer_memory, threads=threads, observer=observer,
    ) as run:  # fmt: skip
        start = vertex_of(run.graph, source)
        if run.on_gpu:
            from louvain_um.gpu.algorithms import traversal

            distances, parents = traversal.bfs(run.rows, start, run.space)
            return SearchTree(
                run.space.get("distances", distances), run.space.get("parents", parents)
            )
        from louvain_um.cpu.algorithms.bfs import bfs as search

        return SearchTree(*search(run.rows, start, run.threads))
