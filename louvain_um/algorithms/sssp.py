"""Shortest paths from one source along weighted arcs.

Returns distances, int64[n] or, of real weights, float64[n], and parents int64[n], −1 for vertices
that are not reached. The parent of a vertex is its smallest neighbour on a shortest path to it;
so both are unique. Special are two piles instead of a queue by distance: vertices nearer than a
limit are worked on until none is left, the others wait. Distances are sums of integers: exact.

References: Davidson, Baxter, Garland, Owens: Work-Efficient Parallel GPU Methods for Single-Source
Shortest Paths, 2014; Meyer, Sanders: Δ-stepping: a parallelizable shortest path algorithm, 2003.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Observer

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.placement.policy.policy import Policy


class ShortestPaths(NamedTuple):
    """Distances, int64[n] or float64[n], and parents int64[n] from one source; −1: not reached."""

    distances: NDArray[np.int64] | NDArray[np.float64]
    parents: NDArray[np.int64]


def sssp(
    graph: Any,
    source: Any,
    *,
    device: str = "auto",
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> ShortestPaths:
    """Find the shortest paths from one vertex to all others.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Weights are lengths; without weights each arc has length 1.
    source : int or name
        As of `bfs`.
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
    ShortestPaths
        `distances`, int64[n], or float64[n] where weights are real, and `parents`, int64[n], the
        smallest neighbour on a shortest path. Both are −1 for vertices that are not reached. The
        source is its own parent. Real weights are rounded when a graph is built (`Graph`).

    Raises
    ------
    GraphError
        The source is no vertex, or the object no undirected graph; graphs have no negative
        weights.
    MemoryBudgetError
        What must be on the device, or what the policy places there, exceeds the budget.
    DeviceUnavailableError
        The device is not available.

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
    from louvain_um.algorithms.graphs import vertex_of
    from louvain_um.algorithms.running import running

    with running(
        "sssp", graph, device=device, memory=memory, device_budget=device_budget,
        peer_memory=peer_memory, threads=threads, observer=observer,
    ) as run:  # fmt: skip
        start = vertex_of(run.graph, source)
        if run.on_gpu:
            from louvain_um.gpu.algorithms import traversal

            lengths, before = traversal.sssp(run.rows, start, run.space)
            distances = run.space.get("distances", lengths)
            parents = run.space.get("parents", before)
        else:
            from louvain_um.cpu.algorithms.sssp import sssp as settle

            distances, parents = settle(run.rows, start, run.threads)
        if run.graph.scale == 1.0:
            return ShortestPaths(distances, parents)
        return ShortestPaths(np.where(distances < 0, -1.0, run.real(distances)), parents)
