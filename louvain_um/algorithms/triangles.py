"""Triangles of each vertex.

Returns int64[n]; every triangle counts at its three vertices. Special is the orientation: arcs lead
to the end of higher degree, which leaves no row longer than the root of the number of arcs, and
each triangle is found once, where the rows of two neighbours intersect. Loops are in no triangle.

Reference: Schank, Wagner: Finding, Counting and Listing All Triangles in Large Graphs, 2005.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Observer

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.placement.policy.policy import Policy


def triangles(
    graph: Any,
    *,
    device: str = "auto",
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> NDArray[np.int64]:
    """Count the triangles of each vertex.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Weights do not matter.
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
    int64[n]
        Triangles that contain each vertex; a third of their sum is the number of triangles.

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
    Schank, Wagner: Finding, Counting and Listing All Triangles in Large Graphs, 2005.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 2, 3], [1, 2, 0, 3, 0])
    >>> lu.triangles(g).tolist()
    [2, 1, 2, 1]
    """
    from louvain_um.algorithms.running import running

    with running(
        "triangles", graph, device=device, memory=memory, device_budget=device_budget,
        peer_memory=peer_memory, threads=threads, observer=observer,
    ) as run:  # fmt: skip
        if run.on_gpu:
            from louvain_um.gpu.algorithms import structure

            counts: NDArray[np.int64] = run.space.get(
                "counts", structure.triangles(run.rows, run.space)
            )
            return counts
        from louvain_um.cpu.algorithms.triangles import triangles as count

        return count(run.rows, run.threads, run.progress)
