"""PageRank: how often a random walk that now and then starts anew visits each vertex.

Returns ranks, float64[n], which sum to 1. Special is the arithmetic: ranks are integers in units of
2^-60, so that sums are exact and the answer does not depend on their order. Arcs are followed in
proportion to their weights; a loop is one arc. The rank of vertices without arcs is spread evenly.

Reference: Page, Brin, Motwani, Winograd: The PageRank Citation Ranking, 1999.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.events import Observer
from louvain_um.options import is_number, is_whole

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.placement.policy.policy import Policy


UNIT: Final = 1 << 60
"""The sum of all ranks, but for what is cut off: less than one unit per arc and iteration.

What an arc carries is the product of two doubles, each rounded once, cut to an integer."""


STRETCH: Final = 1 << 14
"""Ranks that are divided at a time: they stay in a core's cache."""


class NotSettledError(LouvainUmError):
    """Ranks still change by more than the tolerance after all iterations."""


def pagerank(
    graph: Any,
    damping: float = 0.85,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 500,
    device: str = "auto",
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> NDArray[np.float64]:
    """Rank vertices by a random walk.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
    damping : float
        Probability, 0 … 1, of following an arc; else the walk starts anew at any vertex.
    tolerance : float
        Stop when an iteration changes all ranks by no more than this together.
    max_iterations : int
        Give up after so many iterations.
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
        Ranks, which sum to 1.

    Raises
    ------
    OptionError
        A value outside its range.
    NotSettledError
        Ranks still change after `max_iterations`.
    GraphError
        The object is no undirected graph.
    MemoryBudgetError
        What must be on the device, or what the policy places there, exceeds the budget.
    DeviceUnavailableError
        The device is not available.

    References
    ----------
    Page, Brin, Motwani, Winograd: The PageRank Citation Ranking: Bringing Order to the Web, 1999.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 0, 0], [1, 2, 3])
    >>> lu.pagerank(g).round(3).tolist()
    [0.48, 0.173, 0.173, 0.173]
    """
    from louvain_um.algorithms.programs import iterations_to
    from louvain_um.algorithms.running import running

    if not is_number(damping) or not 0 <= damping <= 1:
        raise OptionError("damping", damping, "must lie in 0 … 1")
    if not is_number(tolerance) or not (math.isfinite(tolerance) and tolerance >= 0):
        raise OptionError("tolerance", tolerance, "must be a number of at least 0")
    if not is_whole(max_iterations) or max_iterations < 1:
        raise OptionError("max_iterations", max_iterations, "must be a whole number of at least 1")
    change = int(min(tolerance, 2.0) * UNIT)
    expected = iterations_to(tolerance, int(max_iterations))
    with running(
        "pagerank", graph, device=device, memory=memory, device_budget=device_budget,
        peer_memory=peer_memory, threads=threads, observer=observer, iterations=expected,
    ) as run:  # fmt: skip
        n = run.rows.n_vertices
        if n == 0:
            return np.zeros(0)
        start, teleport = UNIT // n, int(UNIT * (1.0 - damping) / n)

        def iterated(iteration: int, moved: int) -> None:
            # Ranks change less by a constant factor in each iteration.
            left = math.log1p(moved / (change + 1)) / math.log1p(UNIT / (change + 1))
            run.progress(iteration, round(1000 * left), 1000)

        rule = float(damping), start, teleport, change, int(max_iterations)
        if run.on_gpu:
            from louvain_um.gpu.algorithms import products

            on_device, moved = products.pagerank(run.rows, *rule, iterated, run.space)
            ranks: NDArray[np.int64] = run.space.get("ranks", on_device)
        else:
            from louvain_um.cpu.algorithms.pagerank import pagerank as iterate

            ranks, moved = iterate(run.rows, *rule, run.threads, iterated)
        if moved > change:
            raise NotSettledError(
                f"PageRank still changes by {moved / UNIT:.2g} after {max_iterations} iterations; "
                "allow more of them, or a larger tolerance"
            )
        return shares_of(ranks)


def shares_of(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Turn integers into doubles that sum to 1, in place."""
    total, shares = float(ranks.sum()), ranks.view(np.float64)
    for begin in range(0, len(ranks), STRETCH):
        part = slice(begin, begin + STRETCH)
        shares[part] = ranks[part] / total
    return shares
