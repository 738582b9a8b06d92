"""Product of the weighted adjacency matrix and a vector.

Returns float64[n]. The matrix is the one that networkx and SciPy show: symmetric, with the weight
of a loop, once, on the diagonal. Special is the order of additions, which is fixed: 32 partial sums
per row, arc k in sum k mod 32, added up in a tree, each operation rounded on its own; so CPU and
GPU agree bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.errors import GraphError
from louvain_um.events import Observer

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.placement.policy.policy import Policy


def spmv(
    graph: Any,
    x: ArrayLike,
    *,
    device: str = "auto",
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> NDArray[np.float64]:
    """Multiply the adjacency matrix with a vector.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Without weights every entry is 1.
    x : array of numbers, length n
        Converted to float64.
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
    float64[n]
        A x; a loop is one entry of the diagonal.

    Raises
    ------
    GraphError
        `x` is no vector of one number per vertex, or the object no undirected graph.
    MemoryBudgetError
        What must be on the device, or what the policy places there, exceeds the budget.
    DeviceUnavailableError
        The device is not available.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2], [1, 2, 2], [2, 3, 5])
    >>> lu.spmv(g, [1.0, 10.0, 100.0]).tolist()
    [20.0, 302.0, 530.0]
    """
    from louvain_um.algorithms.running import running

    with running(
        "spmv", graph, device=device, memory=memory, device_budget=device_budget,
        peer_memory=peer_memory, threads=threads, observer=observer,
    ) as run:  # fmt: skip
        vector = vector_of(x, run.rows.n_vertices)
        if run.on_gpu:
            from louvain_um.gpu.algorithms import products

            found = products.spmv(run.rows, vector, run.graph.scale, run.space)
            y: NDArray[np.float64] = run.space.get("y", found)
            return y
        from louvain_um.cpu.algorithms.spmv import spmv as multiply

        return multiply(run.rows, vector, run.graph.scale, run.threads)


def vector_of(x: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return a vector of `n` doubles."""
    array = np.asarray(x)
    if array.shape != (n,) or array.dtype.kind not in "biuf":
        got = f"{array.dtype} of shape {array.shape}"
        raise GraphError(
            f"a vector must hold one real number for each of the {n:,} vertices, not {got}"
        )
    return np.ascontiguousarray(array, np.float64)
