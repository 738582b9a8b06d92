"""Minimum spanning forest: a tree of least weight for every component.

Returns the edges, ascending by their ends. Edges are ordered by (weight, smaller end, larger end),
so that no two are equal and the forest is unique. Special are the rounds: every component chooses
its smallest edge to another one, all at once, and is joined along it.

Reference: Borůvka: O jistém problému minimálním, 1926; Nešetřil, Milková, Nešetřilová: Otakar
Borůvka on minimum spanning tree problem, 2001.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Observer

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.placement.policy.policy import Policy


class Forest(NamedTuple):
    """Edges of a spanning forest: ends u < v, uint32[k], and weights, ascending by (u, v)."""

    u: NDArray[np.uint32]
    v: NDArray[np.uint32]
    weights: NDArray[np.int64] | NDArray[np.float64]


def minimum_spanning_forest(
    graph: Any,
    *,
    device: str = "auto",
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> Forest:
    """Find the spanning forest of least weight.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Without weights every edge weighs 1.
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
    Forest
        `u` and `v`, uint32[k], with u < v, ascending by (u, v), and `weights`, int64[k], or
        float64[k] where weights are real. Of edges that weigh the same, the one with the smaller
        (u, v) comes first. k is the number of vertices less the number of components.

    Raises
    ------
    GraphError
        The object is no undirected graph.
    MemoryBudgetError
        What must be on the device, or what the policy places there, exceeds the budget.
    DeviceUnavailableError
        The device is not available.

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
    from louvain_um.algorithms.running import running

    with running(
        "mst", graph, device=device, memory=memory, device_budget=device_budget,
        peer_memory=peer_memory, threads=threads, observer=observer,
    ) as run:  # fmt: skip
        if run.on_gpu:
            from louvain_um.gpu.algorithms import structure

            space = run.space
            edges, weights, count = structure.spanning_forest(run.rows, space)
            with space.sorting() as on_device:
                if on_device:
                    edges, weights = structure.in_order(edges[:count], weights[:count])
                    edges, weights = edges.get(), weights.get()
                else:
                    edges = space.get("edges", edges)[:count]
                    weights = space.get("edge_weights", weights)[:count]
                    edges, weights = structure.in_order(edges, weights)
        else:
            from louvain_um.cpu.algorithms.spanning_forest import spanning_forest

            edges, weights = spanning_forest(run.rows, run.threads)
        u, v = (edges >> np.uint64(32)).astype(np.uint32), edges.astype(np.uint32)
        return Forest(u, v, run.real(weights))
