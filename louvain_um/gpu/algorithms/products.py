"""PageRank and matrix-vector products on the device (`pagerank.cu`, `spmv.cu`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from louvain_um.gpu.algorithms.rows import KernelRows, from_row
from louvain_um.gpu.algorithms.workspace import PLAIN, Workspace
from louvain_um.gpu.runtime.launch import Launcher


def pagerank(
    rows: KernelRows,
    damping: float,
    start: int,
    teleport: int,
    change: int,
    most: int,
    iterated: Callable[[int, int], None],
    space: Workspace = PLAIN,
) -> tuple[Any, int]:
    """Return the ranks, int64[n] in units of 2^-60, and the change of the last iteration.

    See `louvain_um.cpu.algorithms.products`.
    """
    n = rows.n_vertices
    sums = space.control()[0][:2].view(np.int64)
    ranks = space.empty("ranks", n, np.int64)
    outs, shares, next_shares = (
        space.empty(name, n, np.float64) for name in ("row_weights", "shares", "next_shares")
    )
    weigh, iterate = (
        Launcher("pagerank", name, f"{rows.types}, {rows.kind}")
        for name in ("weigh_rows", "iterate")
    )
    with space.phase("weigh"):
        for part, first in rows.parts("weights"):
            mine = (from_row(array, first) for array in (ranks, outs, shares))
            weigh(part.argument(), part.loops_argument, np.int64(start), *mine, sums)
    dangling, moved = int(sums[0]), start * n
    with space.phase("iterate"):
        for iteration in range(most):
            base = teleport + int(damping * float(dangling) / float(n))
            sums.fill(0)
            for part, first in rows.parts("targets", "weights"):
                iterate(
                    part.argument(), part.loops_argument, np.float64(damping),
                    np.int64(base), from_row(outs, first), shares, from_row(next_shares, first),
                    from_row(ranks, first), sums,
                )  # fmt: skip
            if iteration == 0 and rows.on_demand:
                rows = rows.arrived()
                iterate = Launcher("pagerank", "iterate", f"{rows.types}, {rows.kind}")
            shares, next_shares = next_shares, shares
            dangling, moved = sums.tolist()
            iterated(iteration, moved)
            if moved <= change:
                break
    return ranks, moved


def spmv(rows: KernelRows, x: Any, scale: float, space: Workspace = PLAIN) -> Any:
    """Return A x, float64[n], with weights divided by `scale`."""
    y = space.empty("y", rows.n_vertices, np.float64)
    vector = space.filled("x", x)
    launch = Launcher("spmv", "multiply", f"{rows.types}, {rows.kind}")
    with space.phase("run"):
        for part, first in rows.parts("targets", "weights"):
            launch(
                part.argument(), part.loops_argument, vector, from_row(vector, first),
                np.float64(1.0 / scale), from_row(y, first),
            )  # fmt: skip
    return y
