"""PageRank and matrix-vector products on the device (`pagerank.cu`, `spmv.cu`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from louvain_um.gpu.algorithms.launch import DeviceRows, Launch


def pagerank(
    rows: DeviceRows,
    damping: float,
    start: int,
    teleport: int,
    change: int,
    most: int,
    iterated: Callable[[int, int], None],
) -> tuple[Any, int]:
    """Return the ranks, int64[n] in units of 2^-60, and the change of the last iteration.

    See `louvain_um.cpu.algorithms.pagerank`.
    """
    import cupy

    n, view = rows.n_vertices, rows.argument()
    ranks, outs = cupy.empty(n, np.int64), cupy.empty(n, np.float64)
    shares, next_shares = cupy.empty(n, np.float64), cupy.empty(n, np.float64)
    sums = cupy.zeros(2, np.int64)
    Launch("pagerank", "weigh_rows", rows.types)(
        view, rows.loops_argument, np.int64(start), ranks, outs, shares, sums
    )
    iterate = Launch("pagerank", "iterate", rows.types)
    dangling, moved = int(sums[0]), start * n
    for iteration in range(most):
        base = teleport + int(damping * float(dangling) / float(n))
        sums.fill(0)
        iterate(
            view, rows.loops_argument, np.float64(damping), np.int64(base), outs, shares,
            next_shares, ranks, sums,
        )  # fmt: skip
        shares, next_shares = next_shares, shares
        dangling, moved = sums.tolist()
        iterated(iteration, moved)
        if moved <= change:
            break
    return ranks, moved


def spmv(rows: DeviceRows, x: Any, scale: float) -> Any:
    """Return A x, float64[n], with weights divided by `scale`."""
    import cupy

    y = cupy.empty(rows.n_vertices, np.float64)
    Launch("spmv", "multiply", rows.types)(
        rows.argument(), rows.loops_argument, cupy.asarray(x), np.float64(1.0 / scale), y
    )
    return y
