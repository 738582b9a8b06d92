"""PageRank, its ranks pulled along rows in integers, and matrix-vector products, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import atomic_add, kernel
from louvain_um.cpu.algorithms.operators import PARTS, ROWS, arrays, claim_rows, sum_row
from louvain_um.cpu.walk import INLINE, after, piece_of, row


def pagerank(
    rows: Any,
    damping: float,
    start: int,
    teleport: int,
    change: int,
    most: int,
    threads: int,
    iterated: Callable[[int, int], None],
) -> tuple[NDArray[np.int64], int]:
    """Return the ranks, int64[n] in units of 2^-60, and the change of the last iteration.

    Every rank is `start` at first; `teleport` of it comes from no neighbour.
    Iterations end when ranks change by no more than `change` in all, or after `most` of them.
    `iterated` is called after each with its number and the change.
    """
    n, tuple_ = rows.n_vertices, arrays(rows)
    ranks, outs = np.full(n, start, np.int64), np.empty(n, np.float64)
    shares, next_shares = np.empty(n, np.float64), np.empty(n, np.float64)
    sums = np.zeros(2, np.int64)
    parallel.run(weigh_rows, threads, tuple_, rows.loops, ranks, outs, shares, sums)
    moved = start * n
    for iteration in range(most):
        dangling, sums = int(sums[0]), np.zeros(2, np.int64)
        base = teleport + int(damping * float(dangling) / float(n))
        parallel.run(
            iterate, threads, tuple_, rows.loops, np.zeros(1, np.int64), outs, shares, next_shares,
            ranks, damping, base, sums,
        )  # fmt: skip
        shares, next_shares, moved = next_shares, shares, int(sums[1])
        iterated(iteration, moved)
        if moved <= change:
            break
    return ranks, moved


@kernel()
def weigh_rows(t, threads, rows, loops, ranks, outs, shares, sums):
    """Sum the weight of each row, its loop once; set first shares; add up the ranks without any."""
    weights = rows[3]
    dangling = 0
    for v in range(len(outs) * t // threads, len(outs) * (t + 1) // threads):
        begin, end = row(rows, v)
        total = loops[v]
        if len(weights) > 0:
            piece = piece_of(rows, v)
            while piece.arc < piece.stop:
                for arc in range(piece.arc, piece.stop):
                    total += np.int64(weights[arc])
                piece = after(rows, piece)
        else:
            total += np.int64(end - begin)
        outs[v] = np.float64(total)
        shares[v] = np.float64(ranks[v]) / outs[v] if total else 0.0
        dangling += 0 if total else ranks[v]
    atomic_add(sums, 0, dangling)


@kernel()
def iterate(
    t, threads, rows, loops, counter, outs, shares, next_shares, ranks, damping, base, sums
):
    """Replace every rank by what its neighbours pass on; sum dangling ranks and changes."""
    targets, weights = rows[2], rows[3]
    n, dangling, change = len(ranks), 0, 0
    low, high = claim_rows(counter, n, ROWS)
    while low < high:
        for v in range(low, high):
            total = np.int64(shares[v] * np.float64(loops[v]))
            piece = piece_of(rows, v)
            while piece.arc < piece.stop:
                if len(weights) > 0:
                    for arc in range(piece.arc, piece.stop):
                        total += np.int64(shares[targets[arc]] * np.float64(weights[arc]))
                else:
                    for arc in range(piece.arc, piece.stop):
                        total += np.int64(shares[targets[arc]])
                piece = after(rows, piece)
            rank = base + np.int64(damping * np.float64(total))
            change += abs(rank - ranks[v])
            ranks[v] = rank
            if outs[v] > 0.0:
                next_shares[v] = np.float64(rank) / outs[v]
            else:
                next_shares[v] = 0.0
                dangling += rank
        low, high = claim_rows(counter, n, ROWS)
    atomic_add(sums, 0, dangling)
    atomic_add(sums, 1, change)


def spmv(rows: Any, x: NDArray[np.float64], scale: float, threads: int) -> NDArray[np.float64]:
    """Return A x, float64[n], with weights divided by `scale`."""
    y = np.empty(rows.n_vertices, np.float64)
    parallel.run(
        multiply, threads, arrays(rows), rows.loops, np.zeros(1, np.int64), x, 1.0 / scale, y
    )
    return y


@kernel(**INLINE)
def product(state, v, arc):
    """Return the product of an arc's weight and its target's entry."""
    targets, weights, x = state
    if len(weights) > 0:
        return np.float64(weights[arc]) * x[targets[arc]]
    return x[targets[arc]]


@kernel()
def multiply(t, threads, rows, loops, counter, x, unit, y):
    """Multiply unclaimed rows with x; a fixed order of additions, each rounded on its own."""
    state = rows[2], rows[3], x
    parts = np.zeros(PARTS, np.float64)
    low, high = claim_rows(counter, len(y), ROWS)
    while low < high:
        for v in range(low, high):
            total = sum_row(rows, v, parts, product, state)
            if loops[v]:
                total += np.float64(loops[v]) * x[v]
            y[v] = total * unit
        low, high = claim_rows(counter, len(y), ROWS)
