"""Products with the adjacency matrix: PageRank, and the product with one vector.

Ranks are integers in units of 2^-60, so that sums are exact in any order; arcs are followed in
proportion to their weights, a loop is one arc, and the rank of vertices without arcs is spread
evenly. A product is that with the matrix of networkx and SciPy: symmetric, with the weight of a
loop, once, on the diagonal. Its additions have a fixed order (32 partial sums per row, arc k in sum
k mod 32, added up in a tree, each rounded), so that CPU and GPU agree bit for bit.
"""

from __future__ import annotations

import math
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.algorithms.programs import iterations_to
from louvain_um.algorithms.running import running
from louvain_um.core.plain_data import plain_array
from louvain_um.errors import GraphError, LouvainUmError, OptionError, is_number
from louvain_um.events import Observer
from louvain_um.options import OF_DETECTION, RunValues, is_whole, takes_options

UNIT: Final = 1 << 60
"""The sum of all ranks, but for what is cut off: less than one unit per arc and iteration.

What an arc carries is the product of two doubles, each rounded once, cut to an integer."""

CHUNK: Final = 1 << 14
"""Ranks that are divided at a time: they stay in a core's cache."""


class NotConvergedError(LouvainUmError):
    """Ranks still change by more than the tolerance after all iterations."""


@takes_options(*OF_DETECTION)
def pagerank(
    graph: Any,
    damping: float = 0.85,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 500,
    observer: Observer | None = None,
    **options: Unpack[RunValues],
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
        Give up after this many iterations.
    **options
        Where it runs.
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
    NotConvergedError
        Ranks still change after `max_iterations`.
    GraphError
        The object is not an undirected graph.

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
    if not is_number(damping) or not 0 <= damping <= 1:
        raise OptionError("damping", damping, "must lie in 0 … 1")
    if not is_number(tolerance) or not (math.isfinite(tolerance) and tolerance >= 0):
        raise OptionError("tolerance", tolerance, "must be a number of at least 0")
    if not is_whole(max_iterations) or max_iterations < 1:
        raise OptionError("max_iterations", max_iterations, "must be a whole number of at least 1")
    damping, tolerance = float(damping), float(tolerance)
    change = int(min(tolerance, 2.0) * UNIT)
    expected = iterations_to(tolerance, int(max_iterations))
    with running("pagerank", graph, observer, iterations=expected, **options) as run:
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
            from louvain_um.gpu.algorithms import launches

            on_device, moved = launches.pagerank(run.rows, *rule, iterated, run.space)
            ranks: NDArray[np.int64] = run.space.get("ranks", on_device)
        else:
            from louvain_um.cpu.algorithms.products import pagerank as iterate

            ranks, moved = iterate(run.rows, *rule, run.threads, iterated)
        if moved > change:
            raise NotConvergedError(
                f"PageRank still changes by {moved / UNIT:.2g} after {max_iterations} iterations; "
                "allow more of them, or a larger tolerance"
            )
        return shares_of(ranks)


def shares_of(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Turn integers into doubles that sum to 1, in place."""
    total, shares = float(ranks.sum()), ranks.view(np.float64)
    for begin in range(0, len(ranks), CHUNK):
        part = slice(begin, begin + CHUNK)
        shares[part] = ranks[part] / total
    return shares


@takes_options(*OF_DETECTION)
def spmv(
    graph: Any, x: ArrayLike, *, observer: Observer | None = None, **options: Unpack[RunValues]
) -> NDArray[np.float64]:
    """Multiply the adjacency matrix with a vector.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        Without weights every entry is 1.
    x : array of numbers, length n
        Converted to float64.
    **options
        Where it runs.
    observer : callable, optional
        Called with events (`louvain_um.events.Event`).

    Returns
    -------
    float64[n]
        A x; a loop is one entry of the diagonal.

    Raises
    ------
    GraphError
        `x` is not a vector of one number per vertex, or the object no undirected graph.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2], [1, 2, 2], [2, 3, 5])
    >>> lu.spmv(g, [1.0, 10.0, 100.0]).tolist()
    [20.0, 302.0, 530.0]
    """
    with running("spmv", graph, observer, **options) as run:
        vector = vector_of(x, run.rows.n_vertices)
        if run.on_gpu:
            from louvain_um.gpu.algorithms import launches

            found = launches.spmv(run.rows, vector, run.graph.scale, run.space)
            y: NDArray[np.float64] = run.space.get("y", found)
            return y
        from louvain_um.cpu.algorithms.products import spmv as multiply

        return multiply(run.rows, vector, run.graph.scale, run.threads)


def vector_of(x: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return a vector of `n` doubles."""
    array = plain_array(x, "x")
    if array.shape != (n,) or array.dtype.kind not in "biuf":
        got = f"{array.dtype} of shape {array.shape}"
        raise GraphError(
            f"a vector must hold one real number for each of the {n:,} vertices, not {got}"
        )
    return np.ascontiguousarray(array, np.float64)
