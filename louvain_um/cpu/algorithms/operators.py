"""Three operators that the algorithms are written with: `filter`, `advance` and `intersect`.

Each takes a compiled function and a tuple of arrays, its `state`, and is inlined into the kernel
that calls it. Rows are a tuple as `louvain_um.cpu.walk` has it; no weights is an empty array. For
compressed rows `begins` and `ends` are two views of the offsets.

Threads claim ranges of work from a shared counter. None of the operators orders its calls, so
that their functions must commute: minima, integer sums, marks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.core.compiled import atomic_add, kernel
from louvain_um.cpu.walk import INLINE, WHOLE, after, piece_from, piece_of, row

ROWS = 512
"""Rows, or items of a frontier, that a thread claims at a time."""

ARCS = 4096
"""Arcs of a frontier that a thread claims at a time: rows are cut, so that hubs are shared."""

PARTS = 32
"""Partial sums of a row."""

SERIAL_ARCS = 1 << 14
"""Arcs below which a second thread costs more than it saves."""


def arrays(rows: Any) -> tuple[Any, ...]:
    """Return a view of rows as kernels take it."""
    weights = np.empty(0, np.uint32) if rows.weights is None else rows.weights
    return rows.begins, rows.ends, rows.targets, weights, *(rows.blocks or WHOLE)


@kernel(**INLINE)
def filter(frontier, begin, end, keep, state, kept, tail):
    """Append the items of frontier[begin:end] with keep(state, item) to `kept`."""
    count = 0
    for i in range(begin, end):
        count += keep(state, frontier[i])
    at = atomic_add(tail, 0, count)
    for i in range(begin, end):
        if count and keep(state, frontier[i]):
            kept[at] = frontier[i]
            at += 1
            count -= 1


@kernel(**INLINE)
def advance(rows, frontier, before, counter, visit, state):
    """Call visit(state, u, arc, k) for all arcs of a frontier, the k-th of all; cut at equal arcs.

    ``before[i]`` is the number of arcs of items before the i-th; the last entry is their sum.
    """
    items, arcs = len(frontier), before[len(frontier)]
    first = atomic_add(counter, 0, ARCS)
    while first < arcs:
        last = min(first + ARCS, arcs)
        low, high = 0, items
        while high - low > 1:
            middle = (low + high) // 2
            if before[middle] <= first:
                low = middle
            else:
                high = middle
        at = first
        while at < last:
            u = frontier[low]
            stop = min(before[low + 1], last)
            piece = piece_from(rows, u, at - before[low])
            while at < stop:
                here = min(stop - at, np.int64(piece.stop - piece.arc))
                for arc in range(piece.arc, piece.arc + np.uint64(here)):
                    visit(state, u, arc, at + np.int64(arc - piece.arc))
                at += here
                piece = after(rows, piece)
            low += 1
        first = atomic_add(counter, 0, ARCS)


@kernel(**INLINE)
def claim_rows(counter, n, step):
    """Return begin and end of the next unclaimed rows; begin is `n` if there are none left."""
    begin = min(atomic_add(counter, 0, step), n)
    return begin, min(begin + step, n)


@kernel(**INLINE)
def intersect(rows, u, marked, visit, state):
    """Call visit(state, u, w) for every w of row `u` that is marked; return how many there are."""
    targets, found, piece = rows[2], 0, piece_of(rows, u)
    while piece.arc < piece.stop:
        for arc in range(piece.arc, piece.stop):
            w = targets[arc]
            if marked[w]:
                visit(state, u, w)
                found += 1
        piece = after(rows, piece)
    return found


@kernel(**INLINE)
def sum_row(rows, v, parts, load, state):
    """Return the sum of load(state, v, arc) over a row, in an order that its length decides."""
    # Arc k adds to part k mod `PARTS`, as a warp's lanes do, and parts are added in a tree.
    begin, end = row(rows, v)
    # Parts without arcs are 0, and add nothing: the tree starts at those that have some.
    width = np.uint64(1)
    while width < np.uint64(PARTS) and width < end - begin:
        width <<= np.uint64(1)
    parts[:width] = 0.0
    piece, before = piece_of(rows, v), np.uint64(0)
    while piece.arc < piece.stop:
        for k in range(piece.stop - piece.arc):
            part = (before + np.uint64(k)) % np.uint64(PARTS)
            parts[part] += load(state, v, piece.arc + np.uint64(k))
        before += piece.stop - piece.arc
        piece = after(rows, piece)
    half = width >> np.uint64(1)
    while half:
        for k in range(half):
            parts[k] += parts[np.uint64(k) + half]
        half >>= np.uint64(1)
    return parts[0] + 0.0  # −0 becomes 0, as among parts without arcs


@kernel()
def arcs_before(rows, frontier, count, before):
    """Fill before[: count + 1] with the running sum of the lengths of a frontier's rows."""
    total = 0
    for i in range(count):
        before[i] = total
        begin, end = row(rows, frontier[i])
        total += np.int64(end - begin)
    before[count] = total
