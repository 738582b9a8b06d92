"""Rows in linked blocks of targets: walking them, and merging changes in.

A row is a chain or a complete binary tree of blocks. ``links[b]`` leads on from block b: to the
next one and back, or to both children: block k of a row (from 1) hangs from block k // 2. A walk
lists a row's blocks first, so that entry i is ``targets[ids[i // width], i % width]``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take

NONE = np.uint32(0xFFFFFFFF)
"""Target of an entry that was deleted, or never filled; also a link that leads nowhere."""

DENSE, REFILLED, LAZY = 0, 1, 2
"""What a deletion leaves: nothing, as the last entry takes the place; a gap that a later insertion
fills; a gap for good."""

CHAIN, TREE = 0, 1
"""How the blocks of a row are linked."""

ROWS_AT_ONCE = 16
"""Touched rows a thread claims at a time."""

ALL_AT_ONCE = 4096
"""Rows a thread claims at a time where all are read."""


class LinkedRows(NamedTuple):
    """Rows of a store: by row the first block, blocks, entries and arcs; by block its contents."""

    first: Any
    blocks: Any
    filled: Any
    live: Any
    targets: Any
    weights: Any
    links: Any
    shape: int
    policy: int


class Taken(NamedTuple):
    """Blocks that touched rows take, and where they list those that they free, cut by row."""

    new: Any
    new_starts: Any
    freed: Any
    free_starts: Any


@kernel()
def list_blocks(rows, row, ids):
    """List the blocks of a row; return how many there are."""
    count, links = np.int64(rows.blocks[row]), rows.links
    if count > 0:
        ids[0] = rows.first[row]
    for k in range(2, count + 1):
        if rows.shape == CHAIN:
            ids[k - 1] = links[ids[k - 2], 0]
        else:
            ids[k - 1] = links[ids[k // 2 - 1], k & 1]
    return count


@kernel()
def link(links, shape, ids, k):
    """Link block k of a row, from 1, to those before it."""
    block = ids[k - 1]
    links[block, 0] = links[block, 1] = NONE
    if k == 1:
        return
    if shape == CHAIN:
        links[ids[k - 2], 0] = block
        links[block, 1] = ids[k - 2]
    else:
        links[ids[k // 2 - 1], k & 1] = block


@kernel()
def find(t, threads, rows, most, u, v, found):
    """Write the weight of each edge, 0 where there is none; the shorter row is searched."""
    filled, targets, weights = rows.filled, rows.targets, rows.weights
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    for i in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        row, other = u[i], v[i]
        if filled[other] < filled[row]:
            row, other = other, row
        list_blocks(rows, row, ids)
        found[i] = 0
        for j in range(filled[row]):
            if targets[ids[j // width], j % width] == other:
                weight = np.int64(1)
                if len(weights):
                    weight = np.int64(weights[ids[j // width], j % width])
                found[i] = weight
                break


@kernel()
def count_blocks(rows, changes, needed, spare):
    """Write how many blocks each touched row needs, and how many it gives back."""
    width = rows.targets.shape[1]
    for i in range(len(changes.rows)):
        row = changes.rows[i]
        fresh, gone = np.int64(0), np.int64(0)
        for k in range(changes.starts[i], changes.starts[i + 1]):
            fresh += changes.before[k] == 0
            gone += changes.after[k] == 0
        entries = np.int64(rows.live[row]) + fresh - gone
        if rows.policy == LAZY:
            entries = np.int64(rows.filled[row]) + fresh
        after_batch = -(-entries // width)
        needed[i] = max(after_batch - rows.blocks[row], 0)
        spare[i] = max(rows.blocks[row] - after_batch, 0) if rows.policy == DENSE else 0


@kernel()
def change_entries(rows, row, ids, filled, keys, after):
    """Delete and reweigh the entries of a row that `keys` name; return its entries."""
    above = np.uint64(row) << np.uint64(32)
    targets, weights, high = rows.targets, rows.weights, len(keys)
    width = targets.shape[1]
    i = 0
    while i < filled:
        block, slot = ids[i // width], i % width
        target = targets[block, slot]
        key = above | np.uint64(target)
        k = np.searchsorted(keys, key)
        if target == NONE or k == high or keys[k] != key:
            i += 1
        elif after[k] > 0:
            if len(weights):
                weights[block, slot] = after[k]
            i += 1
        elif rows.policy == DENSE:
            filled -= 1
            last, end = ids[filled // width], filled % width
            targets[block, slot] = targets[last, end]
            if len(weights):
                weights[block, slot] = weights[last, end]
        else:
            targets[block, slot] = NONE
            i += 1
    return filled


@kernel()
def edit(t, threads, claimed, rows, changes, taken, most, dirty):
    """Merge changes into the touched rows; `dirty` marks the blocks written to."""
    touched, starts, keys, before, after = changes
    first, blocks, filled, live, targets, weights, links, shape, policy = rows
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    while True:
        begin = take(claimed, ROWS_AT_ONCE)
        if begin >= len(touched):
            break
        for i in range(begin, min(begin + ROWS_AT_ONCE, len(touched))):
            row, low, high = touched[i], starts[i], starts[i + 1]
            count = list_blocks(rows, row, ids)
            entries, gaps, old = np.int64(filled[row]), live[row] < filled[row], False
            for k in range(low, high):
                old |= before[k] > 0
                gaps |= after[k] == 0
            if old:
                entries = change_entries(rows, row, ids, entries, keys[low:high], after[low:high])
            given = taken.new_starts[i]
            place = np.int64(0) if policy == REFILLED and gaps else entries
            for k in range(low, high):
                live[row] += np.uint32(before[k] == 0)
                live[row] -= np.uint32(after[k] == 0)
                if before[k] > 0:
                    continue
                while place < entries and targets[ids[place // width], place % width] != NONE:
                    place += 1
                if place // width == count:
                    ids[count] = taken.new[given]
                    count += 1
                    given += 1
                    link(links, shape, ids, count)
                    targets[ids[count - 1], :] = NONE
                targets[ids[place // width], place % width] = np.uint32(keys[k])
                if len(weights):
                    weights[ids[place // width], place % width] = after[k]
                place += 1
                entries = max(entries, place)
            kept = count - (taken.free_starts[i + 1] - taken.free_starts[i])
            for k in range(kept, count):
                taken.freed[taken.free_starts[i] + k - kept] = ids[k]
            if kept < count and kept > 0:
                links[ids[kept - 1], 0] = NONE
            if policy == DENSE and kept > 0:
                for j in range(entries, kept * width):
                    targets[ids[j // width], j % width] = NONE
            first[row] = ids[0] if kept > 0 else NONE
            blocks[row], filled[row] = kept, entries
            if len(dirty):
                for k in range(kept):
                    dirty[ids[k]] = 1


@kernel()
def gather(rows, most, vertices, places, out, out_weights):
    """Copy the entries of some rows, gaps left out, from `places` on."""
    targets, weights = rows.targets, rows.weights
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    for i in range(len(vertices)):
        row, at = vertices[i], places[i]
        list_blocks(rows, row, ids)
        for j in range(rows.filled[row]):
            target = targets[ids[j // width], j % width]
            if target != NONE:
                out[at] = target
                if len(out_weights):
                    out_weights[at] = weights[ids[j // width], j % width]
                at += 1


@kernel()
def scatter(offsets, source, source_weights, rows):
    """Fill blocks 0, 1, … with compressed rows, in the order of the vertices."""
    first, blocks, filled, live, targets, weights, links, shape, _ = rows
    width = targets.shape[1]
    next_block = np.int64(0)
    for v in range(len(offsets) - 1):
        length = offsets[v + 1] - offsets[v]
        count = -(-length // width)
        ids = np.arange(next_block, next_block + count).astype(np.uint32)
        for k in range(1, count + 1):
            link(links, shape, ids, k)
            targets[ids[k - 1], :] = NONE
        for j in range(length):
            targets[ids[j // width], j % width] = source[offsets[v] + j]
            if len(weights):
                weights[ids[j // width], j % width] = source_weights[offsets[v] + j]
        first[v] = next_block if count else NONE
        blocks[v], filled[v], live[v] = count, length, length
        next_block += count


@kernel()
def mark_used(rows, most, used):
    """Count in `used` how often each block belongs to a row."""
    ids = np.empty(most, np.uint32)
    for v in range(len(rows.first)):
        for k in range(list_blocks(rows, v, ids)):
            used[ids[k]] += 1


@kernel()
def sum_targets(t, threads, claimed, rows, most, sums):
    """Add up all targets in ``sums[t]``, row by row, block by block."""
    filled, targets = rows.filled, rows.targets
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    total, n = np.int64(0), len(filled)
    while True:
        low = take(claimed, ALL_AT_ONCE)
        if low >= n:
            break
        for v in range(low, min(low + ALL_AT_ONCE, n)):
            for k in range(list_blocks(rows, v, ids)):
                block = ids[k]
                for j in range(min(width, np.int64(filled[v]) - k * width)):
                    target = targets[block, j]
                    total += np.int64(target) if target != NONE else np.int64(0)
    sums[t] = total
