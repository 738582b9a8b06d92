"""Contiguous ascending rows: searching them, merging changes into them, copying them out."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import prefetch
from louvain_um.core.parallel import take

STRETCH = 64
"""Touched rows a thread claims at a time."""

LONG_STRETCH = 4096
"""Rows a thread claims at a time where all are copied."""

AHEAD = 8
"""Rows ahead whose arcs are prefetched: a batch touches rows anywhere in memory."""

MOST_AHEAD = 128
"""Arcs of a row that are prefetched; the processor sees by itself how a longer one goes on."""


@kernel(forceinline=True)
def lower_bound(targets, low, high, target):
    """Return the place of the first target in targets[low:high] that is not below `target`."""
    while low < high:
        middle = (low + high) >> 1
        if targets[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@kernel()
def find(t, threads, begins, ends, targets, weights, u, v, found):
    """Write the weight of each arc u → v, 0 where there is none; `weights` is empty for all 1."""
    count = len(u)
    last = count * (t + 1) // threads
    weighted = len(weights) > 0
    for i in range(count * t // threads, last):
        far, near = u[min(i + 2 * AHEAD, last - 1)], u[min(i + AHEAD, last - 1)]
        prefetch(begins, far)
        prefetch(ends, far)
        middle, quarter = (begins[near] + ends[near]) >> 1, (ends[near] - begins[near]) >> 2
        prefetch(targets, middle)
        prefetch(targets, middle - quarter)
        prefetch(targets, middle + quarter)
        high = ends[u[i]]
        at = lower_bound(targets, begins[u[i]], high, v[i])
        if at == high or targets[at] != v[i]:
            found[i] = 0
        else:
            found[i] = np.int64(weights[at]) if weighted else np.int64(1)


@kernel()
def merge_row(
    targets, weights, begin, end, keys, after, first, last, out_targets, out_weights, out
):
    """Write a row with the changes keys[first:last] merged in from place `out`; return its end."""
    weighted = len(out_weights) > 0
    i = begin
    for k in range(first, last):
        target = np.uint32(keys[k])
        while i < end and targets[i] < target:
            out_targets[out] = targets[i]
            if weighted:
                out_weights[out] = weights[i]
            i += 1
            out += 1
        if i < end and targets[i] == target:
            i += 1
        if after[k] > 0:
            out_targets[out] = target
            if weighted:
                out_weights[out] = after[k]
            out += 1
    rest = end - i
    for j in range(rest):
        out_targets[out + j] = targets[i + j]
    if weighted:
        for j in range(rest):
            out_weights[out + j] = weights[i + j]
    return out + rest


@kernel()
def edit_row(targets, weights, begin, end, keys, before, after, first, last):
    """Merge the changes keys[first:last] into a row where it lies; return its new end."""
    weighted = len(weights) > 0
    fresh = 0
    place = out = np.int64(-1)
    for k in range(first, last):
        if before[k] == 0:
            fresh += 1
            continue
        target = np.uint32(keys[k])
        if place < 0:
            place = out = lower_bound(targets, begin, end, target)
        while targets[place] < target:
            targets[out] = targets[place]
            if weighted:
                weights[out] = weights[place]
            place += 1
            out += 1
        if after[k] > 0:
            targets[out] = target
            if weighted:
                weights[out] = after[k]
            out += 1
        place += 1
    if out < place:
        for j in range(end - place):
            targets[out + j] = targets[place + j]
            if weighted:
                weights[out + j] = weights[place + j]
        end -= place - out
    if fresh == 0:
        return end
    place, out = end, end + fresh
    stop = out
    for k in range(last - 1, first - 1, -1):
        if before[k] > 0:
            continue
        target = np.uint32(keys[k])
        while place > begin and targets[place - 1] > target:
            place -= 1
            out -= 1
            targets[out] = targets[place]
            if weighted:
                weights[out] = weights[place]
        out -= 1
        targets[out] = target
        if weighted:
            weights[out] = after[k]
    return stop


@kernel()
def edit_rows(
    t, threads, claimed, old_begins, old_lengths, new_begins, changes, begins, ends, targets,
    weights,
):  # fmt: skip
    """Merge changes into the touched rows: where they lie, or on their way to a new place."""
    rows, starts, keys, before, after = changes
    count = len(rows)
    while True:
        stretch = take(claimed, STRETCH)
        if stretch >= count:
            break
        for i in range(stretch, min(stretch + STRETCH, count)):
            near = min(i + AHEAD, count - 1)
            for line in range(0, min(old_lengths[near] + 16, MOST_AHEAD), 16):
                prefetch(targets, old_begins[near] + line)
            prefetch(targets, new_begins[near])
            prefetch(ends, rows[near])
            begin, out = old_begins[i], new_begins[i]
            end = begin + old_lengths[i]
            first, last = starts[i], starts[i + 1]
            if out == begin:
                end = edit_row(targets, weights, begin, end, keys, before, after, first, last)
            else:
                end = merge_row(
                    targets, weights, begin, end, keys, after, first, last, targets, weights, out
                )
                begins[rows[i]] = out
            ends[rows[i]] = end


@kernel()
def rebuild(
    t, threads, claimed, begins, ends, targets, weights, changes, out_begins, out_targets,
    out_weights,
):  # fmt: skip
    """Copy all rows to new arrays, with changes merged in."""
    rows, starts, keys, _, after = changes
    n = len(out_begins)
    while True:
        low = take(claimed, LONG_STRETCH)
        if low >= n:
            break
        at = np.searchsorted(rows, np.uint32(low))
        for v in range(low, min(low + LONG_STRETCH, n)):
            first = last = np.int64(0)
            if at < len(rows) and rows[at] == v:
                first, last = starts[at], starts[at + 1]
                at += 1
            merge_row(
                targets, weights, begins[v], ends[v], keys, after, first, last, out_targets,
                out_weights, out_begins[v],
            )  # fmt: skip


@kernel()
def gather(begins, ends, targets, ids, u, v):
    """List the arcs of some rows."""
    at = 0
    for i in range(len(ids)):
        row = ids[i]
        for j in range(begins[row], ends[row]):
            u[at], v[at] = row, targets[j]
            at += 1


@kernel()
def first_disorder(begins, ends, targets, n):
    """Return the first vertex whose row does not ascend, or holds itself or no vertex; else −1."""
    for v in range(len(begins)):
        for j in range(begins[v], ends[v]):
            if targets[j] >= n or targets[j] == v:
                return v
            if j > begins[v] and targets[j - 1] >= targets[j]:
                return v
    return -1


@kernel()
def sum_targets(t, threads, claimed, begins, ends, targets, sums):
    """Add up all targets in ``sums[t]``: the least that reading every arc takes."""
    total, n = np.int64(0), len(begins)
    while True:
        low = take(claimed, LONG_STRETCH)
        if low >= n:
            break
        for v in range(low, min(low + LONG_STRETCH, n)):
            for j in range(begins[v], ends[v]):
                total += np.int64(targets[j])
    sums[t] = total
