"""Connected components.

Returns the smallest member of each vertex's component, uint32[n]: a unique answer. Special is what
is left out: after two arcs of each vertex, most vertices are in one large component, and their
other arcs are not visited.

Reference: Sutton, Ben-Nun, Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph
Sampling (Afforest), 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Observer

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.placement.policy.policy import Policy


def connected_components(
    graph: Any,
    *,
    device: str = "auto",
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> NDArray[np.uint32]:
    """Find the connected components of a graph.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
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
    uint32[n]
        The smallest number of a vertex in each vertex's component. An isolated vertex is a
        component of its own.

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
    Sutton, Ben-Nun, Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph
    Sampling, 2018.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([4, 1, 2], [3, 2, 5], n_vertices=7)
    >>> lu.connected_components(g).tolist()
    [0, 1, 1, 3, 3, 1, 6]
    """
    from louvain_um.algorithms.running import running

    with running(
        "components", graph, device=device, memory=memory, device_budget=device_budget,
        peer_memory=peer_memory, threads=threads, observer=observer,
    ) as run:  # fmt: skip
        if run.on_gpu:
            from louvain_um.gpu.algorithms import structure

            found = structure.components(run.rows, run.space)
            labels: NDArray[np.uint32] = run.space.get("components", found)
            return labels
        from louvain_um.cpu.algorithms.components import components

        return components(run.rows, run.threads)
