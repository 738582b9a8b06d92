"""A block of records in the cache: split into parts, put into rows, sorted, merged.

`louvain_um.graph.rows` defines records and blocks.
"""

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel

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
