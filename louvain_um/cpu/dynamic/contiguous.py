"""Contiguous ascending rows: searching them, merging changes into them, copying them out.

Pages of rows have room for 4·2ᵏ or 6·2ᵏ arcs: at most a third of one is unused after growth.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel, prefetch
from louvain_um.core.parallel import take

ROWS_AT_ONCE = 64
"""Touched rows a thread claims at a time."""

ALL_AT_ONCE = 4096
"""Rows a thread claims at a time where all are copied."""

EARLY = 8
"""Rows by which arcs are prefetched early: a batch touches rows anywhere in memory."""

EARLY_ENTRIES = 16
"""Rows by which their begins and ends are."""

MOST_EARLY = 128
"""Arcs of a row that are prefetched; the processor sees by itself how a longer one goes on."""

CAPACITIES: Final = np.array([base << k for k in range(31) for base in (4, 6)], np.int64)
"""Arcs that a page of each class holds, up to more than any row can have."""

NO_PAGE: Final = np.uint8(255)
"""Class of a row without arcs, which has no page."""


class Rows(NamedTuple):
    """Rows ``targets[begins[v]:ends[v]]``, ascending; no weights is an empty array."""

    begins: Any
    ends: Any
    targets: Any
    weights: Any


class RowChanges(NamedTuple):
    """The changes of touched rows: those of row i are ``keys[starts[i]:starts[i + 1]]``."""

    rows: Any
    starts: Any
    keys: Any
    before: Any
    after: Any


class Places(NamedTuple):
    """Where touched rows lie and go, their lengths, and the classes that they have and want."""

    begins: Any
    lengths: Any
    new_begins: Any
    classes: Any
    wanted: Any


def classes_for(
    lengths: NDArray[np.int64], capacities: NDArray[np.int64] = CAPACITIES
) -> NDArray[np.uint8]:
    """Return the smallest class that holds each length; `NO_PAGE` for 0."""
    classes = np.searchsorted(capacities, lengths).astype(np.uint8)
    classes[lengths == 0] = NO_PAGE
    return classes


def capacities_for(
    lengths: NDArray[np.int64], capacities: NDArray[np.int64] = CAPACITIES
) -> NDArray[np.int64]:
    """Return the room of the smallest class that holds each length; 0 for 0."""
    room: NDArray[np.int64] = capacities[np.searchsorted(capacities, lengths)]
    room[lengths == 0] = 0
    return room


@kernel()
def want_classes(t, threads, rows, classes, touched, growth, capacities, places):
    """Write where each touched row lies, its length and class, and the class it wants."""
    last = len(touched) * (t + 1) // threads
    for i in range(len(touched) * t // threads, last):
        near = touched[min(i + EARLY_ENTRIES, last - 1)]
        prefetch(rows.begins, near)
        prefetch(rows.ends, near)
        prefetch(classes, near)
        row = touched[i]
        begin, length, size_class = (
            rows.begins[row],
            rows.ends[row] - rows.begins[row],
            classes[row],
        )
        places.begins[i], places.lengths[i], places.classes[i] = begin, length, size_class
        length += growth[i]
        wanted = size_class
        if length == 0:
            wanted = NO_PAGE
        elif size_class == NO_PAGE or not (
            capacities[size_class] // 2 <= length <= capacities[size_class]
        ):
            fitting = 0
            while capacities[fitting] < length:
                fitting += 1
            wanted = np.uint8(fitting)
        places.wanted[i] = wanted


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
def find(t, threads, rows, u, v, found):
    """Write the weight of each arc u → v, 0 where there is none."""
    begins, ends, targets, weights = rows
    count = len(u)
    last = count * (t + 1) // threads
    weighted = len(weights) > 0
    for i in range(count * t // threads, last):
        far, near = u[min(i + 2 * EARLY, last - 1)], u[min(i + EARLY, last - 1)]
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
def merge_row(rows, begin, end, changes, first, last, out_rows, out):
    """Write a row with its changes first … last merged in from place `out`; return its end."""
    targets, weights = rows.targets, rows.weights
    keys, after = changes.keys, changes.after
    out_targets, out_weights = out_rows.targets, out_rows.weights
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
def edit_row(rows, begin, end, changes, first, last):
    """Merge its changes first … last into a row where it lies; return its new end."""
    targets, weights = rows.targets, rows.weights
    keys, before, after = changes.keys, changes.before, changes.after
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
def edit_rows(t, threads, claimed, rows, changes, places):
    """Merge changes into the touched rows: where they lie, or on their way to a new place."""
    begins, ends, targets, _ = rows
    touched, starts = changes.rows, changes.starts
    count = len(touched)
    while True:
        low = take(claimed, ROWS_AT_ONCE)
        if low >= count:
            break
        for i in range(low, min(low + ROWS_AT_ONCE, count)):
            near = min(i + EARLY, count - 1)
            for line in range(0, min(places.lengths[near] + 16, MOST_EARLY), 16):
                prefetch(targets, places.begins[near] + line)
            prefetch(targets, places.new_begins[near])
            prefetch(ends, touched[near])
            begin, out = places.begins[i], places.new_begins[i]
            end = begin + places.lengths[i]
            first, last = starts[i], starts[i + 1]
            if out == begin:
                end = edit_row(rows, begin, end, changes, first, last)
            else:
                end = merge_row(rows, begin, end, changes, first, last, rows, out)
                begins[touched[i]] = out
            ends[touched[i]] = end


@kernel()
def rebuild(t, threads, claimed, rows, changes, out):
    """Copy all rows to new arrays, where `out` begins, with changes merged in."""
    touched, starts = changes.rows, changes.starts
    n = len(out.begins)
    while True:
        low = take(claimed, ALL_AT_ONCE)
        if low >= n:
            break
        at = np.searchsorted(touched, np.uint32(low))
        for v in range(low, min(low + ALL_AT_ONCE, n)):
            first = last = np.int64(0)
            if at < len(touched) and touched[at] == v:
                first, last = starts[at], starts[at + 1]
                at += 1
            begin, end = rows.begins[v], rows.ends[v]
            merge_row(rows, begin, end, changes, first, last, out, out.begins[v])


@kernel()
def gather(rows, ids, u, v):
    """List the arcs of some rows."""
    at = 0
    for i in range(len(ids)):
        row = ids[i]
        for j in range(rows.begins[row], rows.ends[row]):
            u[at], v[at] = row, rows.targets[j]
            at += 1


@kernel()
def first_disorder(rows, n):
    """Return the first vertex whose row does not ascend, or holds itself or no vertex; else −1."""
    begins, ends, targets = rows.begins, rows.ends, rows.targets
    for v in range(len(begins)):
        for j in range(begins[v], ends[v]):
            if targets[j] >= n or targets[j] == v:
                return v
            if j > begins[v] and targets[j - 1] >= targets[j]:
                return v
    return -1
