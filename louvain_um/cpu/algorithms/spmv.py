"""Product of the adjacency matrix and a vector on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.cpu.algorithms.operators import STRETCH, arrays, claim_rows
from louvain_um.cpu.walk import after, piece_of, row

PARTS = 32
"""Partial sums of a row: arc k of the row adds to part k mod 32, as a warp's lanes do."""


def spmv(rows: Any, x: NDArray[np.float64], scale: float, threads: int) -> NDArray[np.float64]:
    """Return A x, float64[n], with weights divided by `scale`."""
    y = np.empty(rows.n_vertices, np.float64)
    parallel.run(
        multiply, threads, arrays(rows), rows.loops, np.zeros(1, np.int64), x, 1.0 / scale, y
    )
    return y


@kernel()
def multiply(t, threads, rows, loops, counter, x, unit, y):
    """Multiply unclaimed rows with x; a fixed order of additions, each rounded on its own."""
    targets, weights = rows[2], rows[3]
    n = len(y)
    parts = np.zeros(PARTS, np.float64)
    low, high = claim_rows(counter, n, STRETCH)
    while low < high:
        for v in range(low, high):
            begin, end = row(rows, v)
            # Parts without arcs are 0, and add nothing: the tree starts at those that have some.
            width = np.uint64(1)
            while width < np.uint64(PARTS) and width < end - begin:
                width <<= np.uint64(1)
            parts[:width] = 0.0
            piece, before = piece_of(rows, v), np.uint64(0)
            while piece.arc < piece.stop:
                for k in range(piece.stop - piece.arc):
                    arc, part = piece.arc + np.uint64(k), (before + np.uint64(k)) % np.uint64(PARTS)
                    if len(weights) > 0:
                        parts[part] += np.float64(weights[arc]) * x[targets[arc]]
                    else:
                        parts[part] += x[targets[arc]]
                before += piece.stop - piece.arc
                piece = after(rows, piece)
            half = width >> np.uint64(1)
            while half:
                for k in range(half):
                    parts[k] += parts[np.uint64(k) + half]
                half >>= np.uint64(1)
            total = parts[0] + 0.0  # −0 becomes 0, as among parts without arcs
            if loops[v]:
                total += np.float64(loops[v]) * x[v]
            y[v] = total * unit
        low, high = claim_rows(counter, n, STRETCH)
