"""Matrices and adjacency lists, where every edge stands twice: check it, then keep one half.

A matrix is symmetric when it equals its transpose. Transposing twice sorts its rows, so that
the two compare entry by entry; nothing but two copies of the entries is needed.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from louvain_um.formats.edge_list.edges import EdgeList


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a matrix differs from its transpose: an entry with another, or no, counterpart."""

    row: int
    column: int
    missing: bool

    def describe(self, base: int = 0) -> str:
        """Return the difference in words, with ids counted from `base`."""
        a, b = self.row + base, self.column + base
        if self.missing:
            return f"{a} lists {b} as a neighbour, but {b} does not list {a} as often"
        return f"the weights of {a} to {b} and of {b} to {a} differ"


def compress(
    u: NDArray[np.uint32], v: NDArray[np.uint32], w: NDArray[Any] | None, n: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any] | None]:
    """Return the rows of a matrix given by its entries: offsets, columns, values."""
    offsets = _starts(u, n)
    columns = np.empty(len(u), np.uint32)
    values = None if w is None else np.empty(len(u), w.dtype)
    _scatter(u, v, _or_none(w), offsets[:-1].copy(), columns, _or_none(values))
    return offsets, columns, values


def transpose(
    offsets: NDArray[np.int64], columns: NDArray[np.uint32], values: NDArray[Any] | None, n: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any] | None]:
    """Return the rows of the transposed matrix, each ascending."""
    starts = _starts(columns, n)
    rows = np.empty(len(columns), np.uint32)
    out = None if values is None else np.empty(len(columns), values.dtype)
    _flip(offsets, columns, _or_none(values), starts[:-1].copy(), rows, _or_none(out))
    return starts, rows, out


def one_half(
    offsets: NDArray[np.int64], columns: NDArray[np.uint32], values: NDArray[Any] | None
) -> EdgeList | Mismatch:
    """Return each edge of a symmetric matrix once, with its weight, or where it is not one.

    Loops, on the diagonal, stand once already. Several entries at one place must be matched
    by as many at the opposite one.
    """
    n = len(offsets) - 1
    turned = transpose(offsets, columns, values, n)
    starts, ordered, sums = transpose(*turned, n)
    sums = _ties_in_order(starts, ordered, sums)
    turned = (*turned[:2], _ties_in_order(*turned))
    row, place, missing = _first_difference(
        starts, ordered, _or_none(sums), turned[0], turned[1], _or_none(turned[2])
    )
    if row >= 0 and place < 0:
        return Mismatch(int(turned[1][-1 - place]), int(row), True)
    if row >= 0:
        return Mismatch(int(row), int(ordered[place]), bool(missing))
    del turned
    upper = _count_upper(starts, ordered)
    u, v = np.empty(upper, np.uint32), np.empty(upper, np.uint32)
    w = None if sums is None else np.empty(upper, sums.dtype)
    _take_upper(starts, ordered, _or_none(sums), u, v, _or_none(w))
    return EdgeList(u, v, w)


def all_entries(
    offsets: NDArray[np.int64], columns: NDArray[np.uint32], values: NDArray[Any] | None
) -> EdgeList:
    """Return every entry as an edge."""
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.uint32), np.diff(offsets))
    return EdgeList(rows, columns, values)


def _or_none(values: NDArray[Any] | None) -> NDArray[Any]:
    return np.empty(0, np.float64) if values is None else values


def _ties_in_order(
    offsets: NDArray[np.int64], columns: NDArray[np.uint32], values: NDArray[Any] | None
) -> NDArray[Any] | None:
    """Return the values with those at one place ascending, for the file lists them in any order.

    A matrix with several values at one place is rare: only then are all of them sorted.
    """
    if values is None or len(values) == 0:
        return values
    again = columns[1:] == columns[:-1]
    starts = offsets[(offsets > 0) & (offsets < len(columns))]
    again[starts - 1] = False
    if not again.any():
        return values
    place = np.concatenate(([0], np.cumsum(~again)))
    return values[np.lexsort((values, place))]


def _starts(keys: NDArray[np.uint32], n: int) -> NDArray[np.int64]:
    starts = np.zeros(n + 1, np.int64)
    _count(keys, starts)
    return np.cumsum(starts, out=starts)


@njit(nogil=True, cache=True)
def _count(keys, starts):
    for i in range(len(keys)):
        starts[np.int64(keys[i]) + 1] += 1


@njit(nogil=True, cache=True)
def _scatter(u, v, w, next_, columns, values):
    for e in range(len(u)):
        a = np.int64(u[e])
        i = next_[a]
        next_[a] = i + 1
        columns[i] = v[e]
        if len(w):
            values[i] = w[e]


@njit(nogil=True, cache=True)
def _flip(offsets, columns, values, next_, rows, out):
    for a in range(len(offsets) - 1):
        for j in range(offsets[a], offsets[a + 1]):
            b = np.int64(columns[j])
            i = next_[b]
            next_[b] = i + 1
            rows[i] = a
            if len(values):
                out[i] = values[j]


@njit(nogil=True, cache=True)
def _first_difference(starts, columns, values, starts_t, columns_t, values_t):
    """Return row, place and kind of the first entry without its counterpart; row −1 if none.

    A place from 0 on is one of the matrix, a place below 0 is ``-1 - place`` of the transpose.
    """
    for a in range(len(starts) - 1):
        i, j = starts[a], starts_t[a]
        while i < starts[a + 1] or j < starts_t[a + 1]:
            if j == starts_t[a + 1] or (i < starts[a + 1] and columns[i] < columns_t[j]):
                return a, i, True
            if i == starts[a + 1] or columns[i] > columns_t[j]:
                return a, -1 - j, True
            if len(values) and values[i] != values_t[j]:
                return a, i, False
            i += 1
            j += 1
    return -1, 0, False


@njit(nogil=True, cache=True)
def _count_upper(offsets, columns):
    count = 0
    for a in range(len(offsets) - 1):
        for j in range(offsets[a], offsets[a + 1]):
            if np.int64(columns[j]) >= a:
                count += 1
    return count


@njit(nogil=True, cache=True)
def _take_upper(offsets, columns, values, u, v, w):
    count = 0
    for a in range(len(offsets) - 1):
        for j in range(offsets[a], offsets[a + 1]):
            if np.int64(columns[j]) >= a:
                u[count] = a
                v[count] = columns[j]
                if len(values):
                    w[count] = values[j]
                count += 1
