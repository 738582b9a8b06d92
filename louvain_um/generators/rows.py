"""Compiled kernels of the kinds whose neighbours follow from positions, written row by row.

Rows are counted, summed to offsets, then filled. Each kernel is called once per thread as
``kernel(t, threads, …)`` and owns the rows that it writes.
"""

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take
from louvain_um.generators.hashing import HALF, ONE, below, draw, mix64, permute, unpermute

ROWS = 1 << 10
"""Rows claimed at a time."""

MAX_WEIGHT = 16
"""Uniform weights are 1 … this."""

COORDINATE = np.uint64(31)
COORDINATE_MASK = np.uint64(2**31 - 1)


@kernel()
def sort_row(row):
    """Sort a few ids in place (Shellsort: short rows, no recursion)."""
    gap = 1
    while 3 * gap < len(row):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(row)):
            value = row[i]
            j = i
            while j >= gap and row[j - gap] > value:
                row[j] = row[j - gap]
                j -= gap
            row[j] = value
        gap //= 3


@kernel()
def count_stencil(t, threads, nx, ny, nz, diagonals, periodic, ids, offsets):
    """Write each vertex's degree at ``offsets[v + 1]``."""
    n = nx * ny * nz
    for v in range(n * t // threads, n * (t + 1) // threads):
        point = np.int64(unpermute(ids, np.uint64(v)))
        product, total = 1, 0
        for size in (nx, ny, nz):
            at = point % size
            point //= size
            span = 3 if periodic and size > 1 else 1 + (at > 0) + (at < size - 1)
            product *= span
            total += span - 1
        offsets[v + 1] = product - 1 if diagonals else total


@kernel()
def fill_stencil(t, threads, nx, ny, nz, diagonals, periodic, ids, offsets, targets):
    """Write each vertex's neighbours, ascending."""
    n = nx * ny * nz
    for v in range(n * t // threads, n * (t + 1) // threads):
        point = np.int64(unpermute(ids, np.uint64(v)))
        x, y, z = point % nx, point // nx % ny, point // (nx * ny)
        out = offsets[v]
        for dz in range(-1, 2):
            for dy in range(-1, 2):
                for dx in range(-1, 2):
                    steps = abs(dx) + abs(dy) + abs(dz)
                    if steps == 0 or (steps > 1 and not diagonals):
                        continue
                    a, b, c = x + dx, y + dy, z + dz
                    if periodic:
                        # An axis with one point has no neighbours to wrap to.
                        a = (a + nx) % nx if nx > 1 else a
                        b = (b + ny) % ny if ny > 1 else b
                        c = (c + nz) % nz if nz > 1 else c
                    if 0 <= a < nx and 0 <= b < ny and 0 <= c < nz:
                        targets[out] = permute(ids, np.uint64(a + nx * (b + ny * c)))
                        out += 1
        sort_row(targets[offsets[v] : out])


@kernel()
def place_points(key, n, side):
    """Return the points by cell: first point of each cell, and the points' coordinates."""
    starts = np.zeros(side * side + 1, np.int64)
    for i in range(n):
        starts[cell_of(draw(key, i), side) + 1] += 1
    for c in range(side * side):
        starts[c + 1] += starts[c]
    x, y = np.empty(n, np.uint32), np.empty(n, np.uint32)
    next_ = starts[:-1].copy()
    for i in range(n):
        word = draw(key, i)
        c = cell_of(word, side)
        x[next_[c]] = (word >> HALF) & COORDINATE_MASK
        y[next_[c]] = word & COORDINATE_MASK
        next_[c] += 1
    return starts, x, y


@kernel()
def cell_of(word, side):
    """Return the cell of the point given by 64 random bits."""
    x = (((word >> HALF) & COORDINATE_MASK) * np.uint64(side)) >> COORDINATE
    y = ((word & COORDINATE_MASK) * np.uint64(side)) >> COORDINATE
    return np.int64(x + y * np.uint64(side))


@kernel()
def visit_near(v, side, reach, starts, x, y, ids, row):
    """Write the neighbours of vertex v to `row`, unordered; return their number."""
    i = np.int64(unpermute(ids, np.uint64(v)))
    px, py = np.int64(x[i]), np.int64(y[i])
    cx, cy = (px * side) >> 31, (py * side) >> 31
    found = 0
    for b in range(max(cy - 1, 0), min(cy + 2, side)):
        first = starts[b * side + max(cx - 1, 0)]
        last = starts[b * side + min(cx + 2, side)]
        for j in range(first, last):
            dx, dy = np.int64(x[j]) - px, np.int64(y[j]) - py
            if j != i and np.uint64(dx * dx) + np.uint64(dy * dy) <= np.uint64(reach * reach):
                if len(row) > 0:
                    row[found] = permute(ids, np.uint64(j))
                found += 1
    return found


@kernel()
def count_near(t, threads, side, reach, starts, x, y, ids, offsets):
    """Write each vertex's degree at ``offsets[v + 1]``."""
    n = len(x)
    nothing = np.empty(0, np.uint32)
    for v in range(n * t // threads, n * (t + 1) // threads):
        offsets[v + 1] = visit_near(v, side, reach, starts, x, y, ids, nothing)


@kernel()
def fill_near(t, threads, side, reach, starts, x, y, ids, offsets, targets):
    """Write each vertex's neighbours, ascending."""
    n = len(x)
    for v in range(n * t // threads, n * (t + 1) // threads):
        row = targets[offsets[v] : offsets[v + 1]]
        if len(row) > 0:
            visit_near(v, side, reach, starts, x, y, ids, row)
            sort_row(row)


@kernel()
def weigh_arcs(t, threads, counter, key, offsets, targets, weights):
    """Write each arc's weight, 1 … MAX_WEIGHT, a hash of the smaller and the larger end."""
    n = len(offsets) - 1
    while True:
        low = take(counter, ROWS)
        if low >= n:
            return
        for v in range(low, min(low + ROWS, n)):
            for j in range(offsets[v], offsets[v + 1]):
                a, b = np.uint64(v), np.uint64(targets[j])
                pair = (min(a, b) << HALF) | max(a, b)
                weights[j] = below(mix64(key ^ mix64(pair)), MAX_WEIGHT) + ONE
