"""From a list of edges to compressed rows, exactly and in little memory.

Arcs are first dealt into blocks of neighbouring rows, written in a few hundred streams, then
put into their rows block by block: each block fits a cache, so that nothing is scattered over
main memory. Peak memory beyond the edge list is two 32-bit numbers an arc and its weight.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from louvain_um import parallel
from louvain_um.errors import GraphError
from louvain_um.graph import MAX_TOTAL_WEIGHT, MAX_VERTICES, Duplicates, Graph

G = TypeVar("G", bound=Graph)

SMALL = 1 << 15
"""Edges below which a second thread costs more than it brings."""

SLICE_BITS = 14
"""Rows are told apart by so many leading bits: a table that stays in the first cache."""

BLOCK_ARCS = 1 << 16
"""Arcs of a block, 4 bytes each in three arrays: well inside a second-level cache."""

PLAIN_ROW = 16
"""Steps of a row's last but one pass: plain insertion is fastest up to about 3 × 16 arcs."""

MOST_BLOCKS = 512
"""Streams that a processor writes side by side without missing its page table."""


def build_graph(
    cls: type[G],
    source: ArrayLike,
    target: ArrayLike,
    weights: ArrayLike | None,
    *,
    n_vertices: int | None,
    duplicates: Duplicates | None,
    names: NDArray[Any] | None,
) -> G:
    """Build a graph; `Graph.from_edges` documents the arguments."""
    u, v = _ids(source, "source"), _ids(target, "target")
    if len(u) != len(v):
        raise GraphError(f"source has {len(u)} entries and target {len(v)}; they must match")
    n = int(max(u.max(), v.max())) + 1 if len(u) else 0
    if n_vertices is not None:
        if n > n_vertices:
            raise GraphError(f"vertex {n - 1} is outside the {n_vertices} vertices announced")
        n = n_vertices
    if n > MAX_VERTICES:
        raise GraphError(f"{n} vertices; at most {MAX_VERTICES} are supported")
    if duplicates not in (None, "once", "sum"):
        raise GraphError(f"duplicates must be 'once' or 'sum', not {duplicates!r}")

    scale = 1.0
    notes: tuple[str, ...] = ()
    integers: NDArray[np.int64] | None = None
    if weights is not None:
        integers, scale, notes = quantise(np.asarray(weights))
        if len(integers) != len(u):
            raise GraphError(f"{len(integers)} weights for {len(u)} edges; they must match")
    summing = duplicates == "sum" or (duplicates is None and weights is not None)
    if summing and integers is None:
        integers = np.ones(len(u), np.int64)

    u = u.astype(np.uint32, copy=False)
    v = v.astype(np.uint32, copy=False)
    threads = parallel.default_threads() if len(u) > SMALL else 1
    offsets, targets, arc_weights, loops = _rows(u, v, integers, n, summing, threads)
    del u, v, integers
    kept = _merge(offsets, targets, arc_weights, summing)
    targets = _trim(targets, kept)
    if arc_weights is not None:
        arc_weights = _narrow(_trim(arc_weights, kept))
    return cls(offsets, targets, arc_weights, loops, scale, names, notes)


def quantise(weights: NDArray[Any]) -> tuple[NDArray[np.int64], float, tuple[str, ...]]:
    """Turn weights into int64, by a power of two as large as an exact total allows.

    The result does not depend on the order of the weights. Integers are kept.

    Returns
    -------
    integers : int64 array
    scale : float
        Power of two that was multiplied in.
    notes : tuple of str
        Says how many positive weights rounded to nothing, if any did.
    """
    if weights.dtype.kind in "biu":
        _refuse(weights < 0, weights, "negative")
        total = weights.sum(dtype=np.float64)
        if 2 * total >= MAX_TOTAL_WEIGHT:
            raise GraphError(
                f"integer weights add up to {total:.3g}, above 2^52; pass them as floats, "
                "which are scaled to fit"
            )
        return weights.astype(np.int64), 1.0, ()
    if weights.dtype.kind != "f":
        raise GraphError(f"weights must be numbers, not {weights.dtype}")
    weights = weights.astype(np.float64, copy=False)
    _refuse(np.isnan(weights), weights, "not a number")
    _refuse(np.isinf(weights), weights, "infinite")
    _refuse(weights < 0, weights, "negative")
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        return np.zeros(len(weights), np.int64), 1.0, ()

    # A coarse total in integers first: a float sum would depend on the order.
    room = 61 - len(weights).bit_length()
    coarse = room - int(np.frexp(largest)[1])
    total = int(np.rint(np.ldexp(weights, coarse)).astype(np.int64).sum())
    shift = coarse
    while 2 * _shifted(total, shift - coarse) + 2 * len(weights) >= MAX_TOTAL_WEIGHT:
        shift -= 1
    while 2 * _shifted(total, shift + 1 - coarse) + 2 * len(weights) < MAX_TOTAL_WEIGHT:
        shift += 1
    integers = np.rint(np.ldexp(weights, shift)).astype(np.int64)

    # Halves and quarters need no more bits than they have; whole numbers need none.
    bits = int(np.bitwise_or.reduce(integers))
    spare = min((bits & -bits).bit_length() - 1, shift)
    if spare > 0:
        integers >>= spare
        shift -= spare
    vanished = int(np.count_nonzero((integers == 0) & (weights > 0)))
    notes: tuple[str, ...] = ()
    if vanished:
        notes = (
            f"{vanished} of {len(weights)} positive weights are so small beside the total "
            f"that they count as 0 (below {0.5 / 2.0**shift:.3g})",
        )
    return integers, 2.0**shift, notes


def weighted_degrees(
    offsets: NDArray[np.int64],
    weights: NDArray[np.uint32] | NDArray[np.int64] | None,
    loops: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the degree of each vertex, int64[n]: its arcs' weights and twice its loop."""
    if weights is None:
        return np.diff(offsets) + 2 * loops
    degrees = np.empty(len(loops), np.int64)
    _sum_rows(offsets, weights, loops, degrees)
    return degrees


def _shifted(value: int, shift: int) -> int:
    return value << shift if shift >= 0 else -(-value >> -shift)


def _ids(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return vertex ids as an integer array, or say which one is none."""
    ids = np.asarray(values)
    if ids.ndim != 1:
        raise GraphError(f"{what} must be one-dimensional, not of shape {ids.shape}")
    if len(ids) == 0:
        return np.zeros(0, np.uint32)
    if ids.dtype.kind == "f":
        _refuse(ids != np.floor(ids), ids, "not a whole number", what)
        _refuse(np.abs(ids) > MAX_VERTICES, ids, "outside the range of vertex ids", what)
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        raise GraphError(f"{what} must be integers, not {ids.dtype}")
    if ids.dtype.kind == "i":
        _refuse(ids < 0, ids, "negative", what)
    _refuse(ids > MAX_VERTICES - 1, ids, "outside the range of vertex ids", what)
    return ids


def _refuse(bad: NDArray[np.bool_], values: NDArray[Any], why: str, what: str = "weight") -> None:
    """Raise an error naming the first entry where `bad` holds."""
    if bad.any():
        first = int(np.argmax(bad))
        raise GraphError(f"{what} at index {first} is {why} ({values[first]})")


def _trim(array: NDArray[Any], kept: int) -> NDArray[Any]:
    """Return the first `kept` entries; a copy only where it frees a worthwhile part."""
    if kept == len(array):
        return array
    return array[:kept].copy()


def _narrow(weights: NDArray[np.int64]) -> NDArray[np.uint32] | NDArray[np.int64]:
    if len(weights) == 0 or weights.max() < 2**32:
        return weights.astype(np.uint32)
    return weights


def _rows(u, v, weights, n, summing, threads):
    """Return offsets, targets, weights (or None) and loops; rows sorted, not yet merged."""
    starts = np.zeros(n + 1, np.int64)
    loops = np.zeros(n, np.int64)
    _count(u, v, weights, summing, starts, loops)
    np.cumsum(starts, out=starts)
    arcs = int(starts[-1])
    has = weights is not None
    none = np.zeros(0, np.int64)

    # Slices are runs of 2^shift rows; blocks are runs of slices holding about as many arcs.
    shift = max(0, n.bit_length() - SLICE_BITS)
    edges = np.append(starts[: n : 1 << shift], arcs)
    blocks = min(max(1, arcs // BLOCK_ARCS), MOST_BLOCKS)
    block_of = (edges[:-1] * blocks // max(arcs, 1)).clip(max=blocks - 1).astype(np.uint16)
    first_slice = np.searchsorted(block_of, np.arange(blocks + 1))
    first_row = np.minimum(first_slice << shift, n)

    counts = np.zeros((threads, blocks), np.int64)
    parallel.run(_count_blocks, threads, u, v, shift, block_of, counts)
    places = starts[first_row[:-1]] + np.cumsum(counts, axis=0) - counts
    rows, targets = np.empty(arcs, np.uint32), np.empty(arcs, np.uint32)
    arc_weights = np.empty(arcs, np.int64) if has else none
    parallel.run(
        _deal, threads, u, v, weights if has else none, shift, block_of, places, rows, targets,
        arc_weights,
    )  # fmt: skip
    parallel.run(_order_blocks, threads, first_row, starts, rows, targets, arc_weights)
    return starts, targets, arc_weights if has else None, loops


def _merge(offsets, targets, weights, summing):
    """Merge repeated neighbours in place; return how many arcs remain."""
    none = np.zeros(0, np.int64)
    return int(_merge_rows(offsets, targets, none if weights is None else weights, summing))


@njit(nogil=True, cache=True)
def _count(u, v, weights, summing, starts, loops):
    for e in range(len(u)):
        a, b = np.int64(u[e]), np.int64(v[e])
        if a == b:
            weight = weights[e] if weights is not None else 1
            loops[a] = loops[a] + weight if summing else max(loops[a], weight)
        else:
            starts[a + 1] += 1
            starts[b + 1] += 1


@njit(nogil=True, cache=True)
def _count_blocks(t, threads, u, v, shift, block_of, counts):
    """Count the arcs that this thread's share of the edges puts into each block."""
    mine = counts[t]
    for e in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        a, b = np.int64(u[e]), np.int64(v[e])
        if a != b:
            mine[block_of[a >> shift]] += 1
            mine[block_of[b >> shift]] += 1


@njit(nogil=True, cache=True)
def _deal(t, threads, u, v, weights, shift, block_of, places, rows, targets, out_weights):
    """Write both arcs of this thread's share of the edges into their blocks."""
    next_ = places[t]
    has = len(weights) > 0
    for e in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        a, b = np.int64(u[e]), np.int64(v[e])
        if a != b:
            i = next_[block_of[a >> shift]]
            next_[block_of[a >> shift]] = i + 1
            j = next_[block_of[b >> shift]]
            next_[block_of[b >> shift]] = j + 1
            rows[i], targets[i] = a, b
            rows[j], targets[j] = b, a
            if has:
                out_weights[i] = weights[e]
                out_weights[j] = weights[e]


@njit(nogil=True, cache=True)
def _order_blocks(t, threads, first_row, starts, rows, targets, weights):
    """Put every arc of every threads-th block into its row, and sort the rows."""
    has = len(weights) > 0
    for block in range(t, len(first_row) - 1, threads):
        low, high = first_row[block], first_row[block + 1]
        begin, end = starts[low], starts[high]
        loose = targets[begin:end].copy()
        loose_weights = weights[begin:end].copy() if has else weights[:0]
        next_ = starts[low:high].copy()
        for i in range(begin, end):
            row = rows[i] - low
            j = next_[row]
            next_[row] = j + 1
            targets[j] = loose[i - begin]
            if has:
                weights[j] = loose_weights[i - begin]
        for row in range(low, high):
            _sort_row(targets[starts[row] : starts[row + 1]],
                      weights[starts[row] : starts[row + 1]] if has else weights[:0])  # fmt: skip


@njit(nogil=True, cache=True)
def _sort_row(targets, weights):
    """Sort a row by target, weights along with it: Shell's sort, no memory, short on short rows."""
    has = len(weights) > 0
    length = len(targets)
    gap = 1
    while gap < length // PLAIN_ROW:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, length):
            target = targets[i]
            j = i - gap
            if targets[j] <= target:
                continue
            weight = weights[i] if has else 0
            while j >= 0 and targets[j] > target:
                targets[j + gap] = targets[j]
                if has:
                    weights[j + gap] = weights[j]
                j -= gap
            targets[j + gap] = target
            if has:
                weights[j + gap] = weight
        gap //= 3


@njit(nogil=True, cache=True)
def _merge_rows(offsets, targets, weights, summing):
    has = len(weights) > 0
    out = 0
    start = offsets[0]
    for a in range(len(offsets) - 1):
        stop = offsets[a + 1]
        first = out
        for j in range(start, stop):
            if out > first and targets[out - 1] == targets[j]:
                if has:
                    if summing:
                        weights[out - 1] += weights[j]
                    else:
                        weights[out - 1] = max(weights[out - 1], weights[j])
            else:
                targets[out] = targets[j]
                if has:
                    weights[out] = weights[j]
                out += 1
        start = stop
        offsets[a + 1] = out
    return out


@njit(nogil=True, cache=True)
def _sum_rows(offsets, weights, loops, degrees):
    for v in range(len(loops)):
        total = 2 * loops[v]
        for j in range(offsets[v], offsets[v + 1]):
            total += np.int64(weights[j])
        degrees[v] = total
