"""From edges to sorted rows without repetition: the work behind `Graph.from_edges`.

Every arc becomes a record: its row and its target in one 64-bit word, its weight, if any, in a
second one. Records are distributed to blocks of consecutive rows, blocks to parts that fit a cache,
and there to their rows. Each row is sorted and its repetitions are merged while it is in the cache.
Finished rows overwrite their block's records, so that peak memory beyond the edge list is one
record per arc, and the weights.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.headroom import by_small_pages, give_back, return_heap

PART_ARCS = 1 << 11
"""Fewest arcs of a part: a few copies of 16 bytes per arc fit a second-level cache."""

STREAMS = 64
"""Memory streams written at a time: as many as a processor's prefetcher follows. More are
far slower."""

DIGITS = 256
"""Target ranges by which a part is ordered first; sorting its rows then moves few entries."""

PLAIN_ROW = 16
"""Gap of the last but one pass over a row: plain insertion is fastest up to about 3 × 16 arcs."""

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)

SLICE_BITS = 14
"""Leading bits of a row that select its block: a byte table that fits the first-level cache."""

BLOCK_ARCS = 1 << 16
"""Fewest arcs of a block, while there are fewer than `STREAMS` blocks."""

PART = 1 << 18
"""Edges after whose records the system may have the memory that they took."""

MANY = 1 << 26
"""Bytes of records from which their memory is taken as they are written, in small pages: up to a
sixth of the time, for a quarter of the peak."""

SPENT: ContextVar[bool] = ContextVar("spent", default=False)
"""Whether nobody needs a list of edges once rows are made of it, so that its memory is freed."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Compressed rows, ascending and without repetition."""

    offsets: NDArray[np.int64]
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint32] | NDArray[np.int64] | None
    loops: NDArray[np.int64]
    repeats: int
    weightless: int

    @property
    def n_loops(self) -> int:
        """Number of vertices with a loop."""
        return int(np.count_nonzero(self.loops))

    def here(self) -> SortedRows:
        """Return rows in host memory, which these are."""
        return self

    def graph(self, made: Any, **more: Any) -> Any:
        """Return a graph of these rows, of a class of graphs."""
        arrays = self.offsets, self.targets, self.weights, self.loops
        return made(*arrays, **more, check=False)


def compress(
    u: NDArray[np.uint32],
    v: NDArray[np.uint32],
    weights: NDArray[np.int64] | None,
    n: int,
    *,
    summing: bool,
    threads: int,
) -> SortedRows:
    """Return the rows of an undirected graph given by its edges."""
    shift = max(0, n.bit_length() - SLICE_BITS)
    counts = np.zeros((threads, (n >> shift) + 1), np.int64)
    parallel.run(_count_slices, threads, u, v, shift, counts)

    # Slices are runs of 2^shift rows; blocks are runs of slices holding about as many arcs.
    edges = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
    arcs = int(edges[-1])
    blocks = min(max(1, arcs // BLOCK_ARCS), STREAMS)
    block_of = (edges[:-1] * blocks // max(arcs, 1)).clip(max=blocks - 1).astype(np.uint8)
    first_slice = np.searchsorted(block_of, np.arange(blocks + 1))
    first_row = np.minimum(first_slice.astype(np.int64) << shift, n)
    starts = edges[first_slice]

    before = np.zeros((threads, counts.shape[1] + 1), np.int64)
    np.cumsum(counts, axis=1, out=before[:, 1:])
    sizes = np.diff(before[:, first_slice], axis=1)
    places = starts[:-1] + np.cumsum(sizes, axis=0) - sizes
    words = 1 if weights is None else 2
    records = np.empty(words * arcs, np.uint64)
    if SPENT.get() and records.nbytes >= MANY:
        return_heap()
        by_small_pages(records)
    given = np.empty(0, np.int64) if weights is None else weights
    parallel.run(_distribute, threads, u, v, given, shift, block_of, places, records, SPENT.get())

    offsets, loops = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    kept, largest, repeats, weightless = (np.zeros(blocks, np.int64) for _ in range(4))
    parallel.run(
        _order_blocks, threads, np.zeros(1, np.int64), first_row, starts, records, words, summing,
        offsets, loops, kept, largest, repeats, weightless,
    )  # fmt: skip
    np.cumsum(offsets, out=offsets)
    out_weights = _take_weights(records, starts, kept, largest, threads) if words == 2 else None
    targets = _close_up(records, words, starts, kept)
    # Each edge was counted in the rows of both ends.
    return SortedRows(
        offsets, targets, out_weights, loops, int(repeats.sum()) // 2, int(weightless.sum()) // 2
    )


def _take_weights(
    records, starts, kept, largest, threads
) -> NDArray[np.uint32] | NDArray[np.int64]:
    """Return the weights, which are in the second half of each block."""
    narrow = int(largest.max()) < 2**32
    weights: NDArray[Any] = np.empty(int(kept.sum()), np.uint32 if narrow else np.int64)
    places = np.cumsum(kept) - kept

    def copy(t: int, threads: int) -> None:
        for block in range(t, len(kept), threads):
            place, end = places[block], 2 * starts[block + 1]
            mine = records[starts[block] + starts[block + 1] : end]
            weights[place : place + kept[block]] = mine[: kept[block]]
            give_back(mine)

    parallel.run(copy, threads)
    return weights


def _close_up(records, words, starts, kept) -> NDArray[np.uint32]:
    """Make the targets, which are at the front of each block, contiguous; free the rest."""
    flat = records.view(np.uint32)
    place = 0
    for start, count in zip(starts[:-1].tolist(), kept.tolist(), strict=True):
        first = 2 * words * start
        if first > place:
            flat[place : place + count] = flat[first : first + count]
        place += count
    del flat
    # Arcs come in pairs, so they fill whole 64-bit words.
    records.resize(place // 2, refcheck=False)
    targets: NDArray[np.uint32] = records.view(np.uint32)
    return targets


@kernel()
def _count_slices(t, threads, u, v, shift, counts):
    """Count a thread's records per slice."""
    mine = counts[t]
    s = np.uint32(shift)
    for e in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        a, b = u[e], v[e]
        mine[np.uint64(a >> s)] += 1
        if a != b:
            mine[np.uint64(b >> s)] += 1


def _distribute(
    t: int, threads: int, u: Any, v: Any, weights: Any, shift: int, block_of: Any, places: Any,
    records: Any, spent: bool,
) -> None:  # fmt: skip
    """Write a thread's records into their blocks; edges that are spent leave memory meanwhile."""
    next_ = places[t].copy()  # a copy per thread: no shared cache lines
    end = len(u) * (t + 1) // threads
    for begin in range(len(u) * t // threads, end, PART):
        mine = [array[begin : min(begin + PART, end)] for array in (u, v, weights)]
        _distribute_part(*mine, shift, block_of, next_, records)
        for array in mine if spent else ():
            give_back(array)


@kernel()
def _distribute_part(u, v, weights, shift, block_of, next_, records):
    """Write records of some edges into their blocks; a loop has one record."""
    s = np.uint32(shift)
    has = len(weights) > 0
    for e in range(len(u)):
        a, b = np.uint64(u[e]), np.uint64(v[e])
        block = np.uint64(block_of[np.uint64(u[e] >> s)])
        i = np.uint64(next_[block])
        next_[block] += 1
        block = np.uint64(block_of[np.uint64(v[e] >> s)])
        j = np.uint64(next_[block])
        if has:
            weight = np.uint64(weights[e])
            records[i + i] = (a << HALF) | b
            records[i + i + ONE] = weight
            if a != b:
                next_[block] += 1
                records[j + j] = (b << HALF) | a
                records[j + j + ONE] = weight
        else:
            records[i] = (a << HALF) | b
            if a != b:
                next_[block] += 1
                records[j] = (b << HALF) | a


@kernel()
def _order_blocks(
    t, threads, counter, first_row, starts, records, words, summing, offsets, loops, kept,
    largest, repeats, weightless,
):  # fmt: skip
    """Turn the records of unclaimed blocks into rows, in place."""
    flat = records.view(np.uint32)
    unsorted = np.empty(0, np.uint64)
    ordered = np.empty(0, np.uint64)
    targets = np.empty(0, np.uint32)
    weights = np.empty(0, np.int64)
    bounds = np.empty(STREAMS + 1, np.int64)
    block = parallel.take(counter, 1)
    while block < len(kept):
        begin, end = starts[block], starts[block + 1]
        low, high = first_row[block], first_row[block + 1]
        size = end - begin
        if words * size > len(unsorted):
            unsorted = np.empty(words * size, np.uint64)
        row_bits, parts = cut(size, high - low)
        split(
            records[words * begin : words * end],
            words,
            low,
            row_bits,
            bounds[: parts + 1],
            unsorted,
        )
        out, out_weight = 2 * words * begin, begin + end
        most, repeated, dropped = np.int64(0), np.int64(0), np.int64(0)
        for part in range(parts):
            mine = unsorted[words * bounds[part] : words * bounds[part + 1]]
            size = bounds[part + 1] - bounds[part]
            if size > len(targets):
                ordered = np.empty(words * size, np.uint64)
                targets = np.empty(size, np.uint32)
                weights = np.empty(size if words == 2 else 0, np.int64)
            first = low + (part << row_bits)
            last = min(first + (1 << row_bits), high)
            lengths = offsets[first + 1 : last + 1]
            order_part(mine, words, first, ordered, lengths, targets, weights)
            start = np.int64(0)
            for row in range(first, last):
                stop = offsets[row + 1]
                sort_row(targets, weights, start, stop)
                count, loop, merged, nothing, heaviest = merge_row(
                    row, targets, weights, start, stop, summing, flat, out, records, out_weight
                )
                offsets[row + 1] = count
                loops[row] = loop
                repeated += merged
                dropped += nothing
                most = max(most, heaviest)
                out += count
                out_weight += count if words == 2 else 0
                start = stop
        kept[block] = out - 2 * words * begin
        largest[block] = most
        repeats[block] = repeated
        weightless[block] = dropped
        block = parallel.take(counter, 1)


@kernel()
def cut(arcs, rows):
    """Return the bits of a row's number within its part, and the number of parts."""
    most = min(STREAMS, max(1, arcs // PART_ARCS))
    bits = 0
    while (rows - 1) >> bits >= most:
        bits += 1
    return bits, max(0, rows - 1 >> bits) + 1 if rows > 0 else 0


@kernel()
def split(records, words, low, row_bits, bounds, out):
    """Sort a block's records by part into `out`; part p is ``bounds[p]:bounds[p + 1]``."""
    bits, first = np.uint64(row_bits), np.uint64(low)
    next_ = np.zeros(len(bounds), np.int64)
    for i in range(0, len(records), words):
        next_[(((records[i] >> HALF) - first) >> bits) + ONE] += 1
    for part in range(1, len(bounds)):
        next_[part] += next_[part - 1]
    for part in range(len(bounds)):
        bounds[part] = next_[part]
    for i in range(0, len(records), words):
        part = ((records[i] >> HALF) - first) >> bits
        j = np.uint64(next_[part])
        next_[part] += 1
        if words == 2:
            out[j + j] = records[i]
            out[j + j + ONE] = records[i + 1]
        else:
            out[j] = records[i]


@kernel()
def order_part(records, words, first_row, tidy, ends, targets, weights):
    """Put a part's records into their rows, nearly sorted; leave where each row ends in `ends`."""
    least, most = LOW, np.uint64(0)
    for i in range(0, len(records), words):
        target = records[i] & LOW
        least, most = min(least, target), max(most, target)
    bits = np.uint64(0)
    while (most - least) >> bits >= np.uint64(DIGITS) and most > least:
        bits += ONE
    low = np.uint64(first_row)
    digits = np.zeros(DIGITS + 1, np.int64)
    ends[:] = 0
    for i in range(0, len(records), words):
        digits[(((records[i] & LOW) - least) >> bits) + ONE] += 1
        ends[(records[i] >> HALF) - low] += 1
    for digit in range(1, DIGITS):
        digits[digit] += digits[digit - 1]
    total = np.int64(0)
    for row in range(len(ends)):
        length = ends[row]
        ends[row] = total
        total += length
    for i in range(0, len(records), words):
        digit = ((records[i] & LOW) - least) >> bits
        j = np.uint64(digits[digit])
        digits[digit] += 1
        if words == 2:
            tidy[j + j] = records[i]
            tidy[j + j + ONE] = records[i + 1]
        else:
            tidy[j] = records[i]
    for i in range(0, len(records), words):
        row = (tidy[i] >> HALF) - low
        j = np.uint64(ends[row])
        ends[row] += 1
        targets[j] = np.uint32(tidy[i] & LOW)
        if words == 2:
            weights[j] = np.int64(tidy[i + 1])


@kernel()
def sort_row(targets, weights, start, stop):
    """Sort a row by target, weights along with it: Shell's sort, no memory, short on short rows."""
    has = len(weights) > 0
    gap = 1
    while gap < (stop - start) // PLAIN_ROW:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, stop):
            target = targets[i]
            j = i - gap
            if targets[j] <= target:
                continue
            weight = weights[i] if has else 0
            while j >= start and targets[j] > target:
                targets[j + gap] = targets[j]
                if has:
                    weights[j + gap] = weights[j]
                j -= gap
            targets[j + gap] = target
            if has:
                weights[j + gap] = weight
        gap //= 3


@kernel()
def merge_row(row, targets, weights, start, stop, summing, out, out_place, out_weights, out_weight):
    """Write a sorted row without repetitions, edges of weight 0 and its loop."""
    has = len(weights) > 0
    count, loop, again, nothing = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    heaviest = np.int64(0)
    i = start
    while i < stop:
        target = targets[i]
        weight = weights[i] if has else np.int64(1)
        first = i
        i += 1
        while i < stop and targets[i] == target:
            if has:
                weight = weight + weights[i] if summing else max(weight, weights[i])
            i += 1
        if target == row:
            loop = weight
            again += 2 * (i - first - 1)
            nothing += 2 * (weight == 0)
        elif weight == 0:
            again += i - first - 1
            nothing += 1
        else:
            out[out_place + count] = target
            if has:
                out_weights[out_weight + count] = np.uint64(weight)
                heaviest = max(heaviest, weight)
            count += 1
            again += i - first - 1
    return count, loop, again, nothing, heaviest
