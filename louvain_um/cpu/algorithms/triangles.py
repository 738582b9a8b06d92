"""Triangles on the CPU: each is found once, at its vertex of lowest degree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import atomic_add
from louvain_um.cpu.algorithms.operators import arrays, claim_rows, intersect
from louvain_um.cpu.walk import INLINE, WHOLE, after, piece_of, row

STEP = 64
"""Rows that a thread claims at a time: few, since the longest take 10^5 times the shortest's."""

SLICES = 20
"""Parts after which progress is announced."""


def triangles(
    rows: Any, threads: int, counted: Callable[[int, int, int], None]
) -> NDArray[np.int64]:
    """Return the number of triangles of each vertex, int64[n].

    `counted` is called now and then: with a running number, the vertices left, and all.
    """
    n, tuple_ = rows.n_vertices, arrays(rows)
    begins = np.zeros(n + 1, np.int64)
    parallel.run(count_upward, threads, tuple_, np.zeros(1, np.int64), begins)
    np.cumsum(begins, out=begins)
    targets = np.empty(int(begins[n]), np.uint32)
    parallel.run(keep_upward, threads, tuple_, np.zeros(1, np.int64), begins, targets)
    upward = (begins[:-1], begins[1:], targets, np.empty(0, np.uint32), *WHOLE)
    counts = np.zeros(n, np.int64)
    marked = np.zeros((threads, n), np.bool_)
    counter = np.zeros(1, np.int64)
    for part in range(SLICES):
        last = n * (part + 1) // SLICES
        counter[0] = n * part // SLICES
        parallel.run(count_triangles, threads, upward, counter, last, marked, counts)
        counted(part, n - last, n)
    return counts


@kernel(**INLINE)
def is_above(rows, v, u):
    """Tell whether `u` comes after `v` in the order of degrees, ties by number."""
    low, high = row(rows, v)
    begin, end = row(rows, u)
    return end - begin > high - low or (end - begin == high - low and u > v)


@kernel()
def count_upward(t, threads, rows, counter, begins):
    """Count each vertex's neighbours of higher degree in ``begins[v + 1]``."""
    n = len(begins) - 1
    low, high = claim_rows(counter, n, STEP)
    while low < high:
        for v in range(low, high):
            count, piece = 0, piece_of(rows, v)
            while piece.arc < piece.stop:
                for arc in range(piece.arc, piece.stop):
                    count += is_above(rows, v, rows[2][arc])
                piece = after(rows, piece)
            begins[v + 1] = count
        low, high = claim_rows(counter, n, STEP)


@kernel()
def keep_upward(t, threads, rows, counter, begins, targets):
    """Write each vertex's neighbours of higher degree."""
    n = len(begins) - 1
    low, high = claim_rows(counter, n, STEP)
    while low < high:
        for v in range(low, high):
            at, piece = begins[v], piece_of(rows, v)
            while piece.arc < piece.stop:
                for arc in range(piece.arc, piece.stop):
                    if is_above(rows, v, rows[2][arc]):
                        targets[at] = rows[2][arc]
                        at += 1
                piece = after(rows, piece)
        low, high = claim_rows(counter, n, STEP)


@kernel(**INLINE)
def add_one(counts, v, w):
    """Count a triangle at its third vertex."""
    atomic_add(counts, w, 1)


@kernel()
def count_triangles(t, threads, upward, counter, last, marks, counts):
    """Count the triangles of unclaimed vertices, each of which is their lowest."""
    marked, targets = marks[t], upward[2]
    low, high = claim_rows(counter, last, STEP)
    while low < high:
        for u in range(low, high):
            begin, end = row(upward, u)
            for arc in range(begin, end):
                marked[targets[arc]] = True
            own = 0
            for arc in range(begin, end):
                v = targets[arc]
                found = intersect(upward, v, marked, add_one, counts)
                if found:
                    atomic_add(counts, v, found)
                    own += found
            if own:
                atomic_add(counts, u, own)
            for arc in range(begin, end):
                marked[targets[arc]] = False
        low, high = claim_rows(counter, last, STEP)
