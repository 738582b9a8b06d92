"""Rows in linked blocks of targets (`louvain_um.cpu.walk`): searching them, and merging changes in.

What reaches any entry of a row lists the places of the row's blocks first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take
from louvain_um.cpu.walk import INLINE, after, piece_at
from louvain_um.graph.rows import sort_row

NONE = np.uint32(0xFFFFFFFF)
"""Target of an entry that was deleted, or never filled; also a link that leads nowhere."""

DENSE, REFILLED, LAZY = 0, 1, 2
"""What a deletion leaves: nothing, as the last entry takes the place; a gap that a later insertion
fills; a gap for good."""

ROWS_AT_ONCE = 16
"""Touched rows a thread claims at a time."""


class LinkedRows(NamedTuple):
    """Rows of a store: by row its first place, blocks, entries, arcs and order; then the pool."""

    begins: Any
    blocks: Any
    filled: Any
    live: Any
    ascending: Any
    targets: Any
    weights: Any
    width: int
    words: int
    link: int
    step: int
    tree: bool
    policy: int


class TakenBlocks(NamedTuple):
    """Blocks that touched rows take, and where they list those that they free, cut by row."""

    new: Any
    new_starts: Any
    freed: Any
    free_starts: Any


@kernel()
def list_blocks(rows, v, places):
    """List where the blocks of a row begin; return how many there are."""
    count = np.int64(rows.blocks[v])
    if count > 0:
        places[0] = rows.begins[v]
    for k in range(2, count + 1):
        above, side = k // 2 if rows.tree else k - 1, k & 1 if rows.tree else 0
        to = places[above - 1] + rows.link + side
        places[k - 1] = np.int64(rows.targets[to]) * rows.words
    return count


@kernel(**INLINE)
def entry_at(rows, places, i):
    """Return the place of entry i of a row."""
    return places[i // rows.width] + i % rows.width * rows.step


@kernel()
def link(rows, places, k):
    """Link block k of a row, from 1, to those before it; it has no entries yet."""
    block = places[k - 1]
    rows.targets[block : block + rows.words] = NONE
    if k > 1:
        above, side = (places[k // 2 - 1], k & 1) if rows.tree else (places[k - 2], 0)
        rows.targets[above + rows.link + side] = block // rows.words
        if not rows.tree and rows.words > rows.link + 1:
            rows.targets[block + rows.link + 1] = above // rows.words


@kernel(**INLINE)
def entries_of(entries, v):
    """Return the first piece of a row, where `entries` has lengths instead of ends."""
    begin = np.uint64(entries[0][v])
    return piece_at(entries, begin, begin + np.uint64(entries[1][v]))


@kernel()
def find(t, threads, entries, u, v, found, directed):
    """Write the weight of each edge, 0 where there is none; the shorter row is searched.

    If edges are directed, row u is.
    """
    targets, weights = entries[2], entries[3]
    for i in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        source, other = u[i], v[i]
        if not directed and entries[1][other] < entries[1][source]:
            source, other = other, source
        found[i] = 0
        piece = entries_of(entries, source)
        while piece.arc < piece.stop and found[i] == 0:
            for arc in range(piece.arc, piece.stop):
                if targets[arc] == other:
                    found[i] = np.int64(weights[arc]) if len(weights) else np.int64(1)
                    break
            piece = after(entries, piece)


@kernel()
def count_blocks(rows, changes, needed, spare):
    """Write how many blocks each touched row needs, and how many it gives back."""
    for i in range(len(changes.rows)):
        v = changes.rows[i]
        fresh, gone = np.int64(0), np.int64(0)
        for k in range(changes.starts[i], changes.starts[i + 1]):
            fresh += changes.before[k] == 0
            gone += changes.after[k] == 0
        entries = np.int64(rows.live[v]) + fresh - gone
        if rows.policy == LAZY:
            entries = np.int64(rows.filled[v]) + fresh
        after_batch = -(-entries // rows.width)
        needed[i] = max(after_batch - rows.blocks[v], 0)
        spare[i] = max(rows.blocks[v] - after_batch, 0) if rows.policy == DENSE else 0


@kernel()
def change_entries(rows, v, places, filled, keys, after):
    """Delete and reweigh the entries of a row that `keys` name; return its entries."""
    above = np.uint64(v) << np.uint64(32)
    targets, weights, high = rows.targets, rows.weights, len(keys)
    i = 0
    while i < filled:
        at = entry_at(rows, places, i)
        target = targets[at]
        key = above | np.uint64(target)
        k = np.searchsorted(keys, key)
        if target == NONE or k == high or keys[k] != key:
            i += 1
        elif after[k] > 0:
            if len(weights):
                weights[at] = after[k]
            i += 1
        elif rows.policy == DENSE:
            filled -= 1
            last = entry_at(rows, places, filled)
            targets[at] = targets[last]
            if len(weights):
                weights[at] = weights[last]
        else:
            targets[at] = NONE
            i += 1
    return filled


@kernel()
def edit(t, threads, claimed, rows, changes, taken, most, dirty):
    """Merge changes into the touched rows; `dirty` marks the blocks written to."""
    touched, starts, keys, before, after = changes
    targets, weights, width, policy = rows.targets, rows.weights, rows.width, rows.policy
    places = np.empty(most, np.int64)
    while True:
        begin = take(claimed, ROWS_AT_ONCE)
        if begin >= len(touched):
            break
        for i in range(begin, min(begin + ROWS_AT_ONCE, len(touched))):
            v, low, high = touched[i], starts[i], starts[i + 1]
            count = list_blocks(rows, v, places)
            entries, old = np.int64(rows.filled[v]), False
            gaps = rows.live[v] < rows.filled[v]
            for k in range(low, high):
                old |= before[k] > 0
                gaps |= after[k] == 0
                if (before[k] == 0) != (after[k] == 0):
                    rows.ascending[v] = 0
            if old:
                entries = change_entries(rows, v, places, entries, keys[low:high], after[low:high])
            given = taken.new_starts[i]
            entry = np.int64(0) if policy == REFILLED and gaps else entries
            for k in range(low, high):
                rows.live[v] += np.uint32(before[k] == 0)
                rows.live[v] -= np.uint32(after[k] == 0)
                if before[k] > 0:
                    continue
                while entry < entries and targets[entry_at(rows, places, entry)] != NONE:
                    entry += 1
                if entry // width == count:
                    places[count] = np.int64(taken.new[given]) * rows.words
                    count += 1
                    given += 1
                    link(rows, places, count)
                at = entry_at(rows, places, entry)
                targets[at] = np.uint32(keys[k])
                if len(weights):
                    weights[at] = after[k]
                entry += 1
                entries = max(entries, entry)
            kept = count - (taken.free_starts[i + 1] - taken.free_starts[i])
            for k in range(kept, count):
                taken.freed[taken.free_starts[i] + k - kept] = places[k] // rows.words
            if kept < count and kept > 0:
                targets[places[kept - 1] + rows.link] = NONE
            if policy == DENSE and kept > 0:
                for j in range(entries, kept * width):
                    targets[entry_at(rows, places, j)] = NONE
            rows.begins[v] = places[0] if kept > 0 else 0
            rows.blocks[v], rows.filled[v] = kept, entries
            if len(dirty):
                for k in range(kept):
                    dirty[places[k] // rows.words] = 1


@kernel()
def sort_rows(t, threads, claimed, rows, chosen, most, dirty):
    """Sort the rows of some vertices by target where they lie, gaps last."""
    width, weighted = rows.width, len(rows.weights) > 0
    places, targets = np.empty(most, np.int64), np.empty(most * width, np.uint32)
    weights = np.empty(len(targets) if weighted else 0, rows.weights.dtype)
    while True:
        begin = take(claimed, ROWS_AT_ONCE)
        if begin >= len(chosen):
            break
        for i in range(begin, min(begin + ROWS_AT_ONCE, len(chosen))):
            v = chosen[i]
            count, kept = list_blocks(rows, v, places), np.int64(0)
            filled = np.int64(rows.filled[v])
            for j in range(filled):
                at = entry_at(rows, places, j)
                if rows.targets[at] != NONE:
                    targets[kept] = rows.targets[at]
                    if weighted:
                        weights[kept] = rows.weights[at]
                    kept += 1
            sort_row(targets, weights, 0, kept)
            targets[kept:filled] = NONE
            for j in range(filled):
                at = entry_at(rows, places, j)
                rows.targets[at] = targets[j]
                if weighted and j < kept:
                    rows.weights[at] = weights[j]
            rows.ascending[v] = 1
            if len(dirty):
                for k in range(count):
                    dirty[places[k] // rows.words] = 1


@kernel()
def gather(entries, vertices, to, out, out_weights, places):
    """Copy the entries of some rows, gaps left out, from `to` on, and tell where they are."""
    targets, weights = entries[2], entries[3]
    for i in range(len(vertices)):
        at, piece = to[i], entries_of(entries, vertices[i])
        while piece.arc < piece.stop:
            for arc in range(piece.arc, piece.stop):
                if targets[arc] != NONE:
                    out[at] = targets[arc]
                    if len(out_weights):
                        out_weights[at] = weights[arc]
                    if len(places):
                        places[at] = arc
                    at += 1
            piece = after(entries, piece)


@kernel()
def mentions(entries, vertices, keys):
    """List the arcs to some vertices, which ascend, while there is room; return how many."""
    count, targets = 0, entries[2]
    for v in range(len(entries[0])):
        piece = entries_of(entries, v)
        while piece.arc < piece.stop:
            for arc in range(piece.arc, piece.stop):
                k = np.searchsorted(vertices, targets[arc])
                if k < len(vertices) and vertices[k] == targets[arc]:
                    if count < len(keys):
                        keys[count] = np.uint64(v) << np.uint64(32) | np.uint64(targets[arc])
                    count += 1
            piece = after(entries, piece)
    return count


@kernel()
def scatter(offsets, source, source_weights, rows):
    """Fill blocks 0, 1, … with compressed rows, in the order of the vertices."""
    width, next_block = rows.width, np.int64(0)
    for v in range(len(offsets) - 1):
        length = offsets[v + 1] - offsets[v]
        count = -(-length // width)
        places = np.arange(next_block, next_block + count) * rows.words
        for k in range(1, count + 1):
            link(rows, places, k)
        for j in range(length):
            at = entry_at(rows, places, j)
            rows.targets[at] = source[offsets[v] + j]
            if len(rows.weights):
                rows.weights[at] = source_weights[offsets[v] + j]
        rows.begins[v] = places[0] if count else 0
        rows.blocks[v], rows.filled[v], rows.live[v], rows.ascending[v] = count, length, length, 1
        next_block += count


@kernel()
def mark_used(rows, most, used):
    """Count in `used` how often each block belongs to a row."""
    places = np.empty(most, np.int64)
    for v in range(len(rows.begins)):
        for k in range(list_blocks(rows, v, places)):
            used[places[k] // rows.words] += 1
