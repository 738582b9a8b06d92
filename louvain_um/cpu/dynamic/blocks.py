"""Rows in linked blocks of targets: walking them, and merging changes in.

A row is a chain or a complete binary tree of blocks. ``links[b]`` leads on from block b: to the
next one and back, or to both children: block k of a row (from 1) hangs from block k // 2. A walk
lists a row's blocks first, so that entry i is ``targets[ids[i // width], i % width]``.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take

HOLE = np.uint32(0xFFFFFFFF)
"""Target of an entry that was deleted, or never filled; also a link that leads nowhere."""

DENSE, HOLES, LAZY = 0, 1, 2
"""What deleting leaves: nothing, as the last entry takes the place; a hole that a later insertion
fills; a hole for good."""

CHAIN, TREE = 0, 1
"""How the blocks of a row are linked."""

STRETCH = 16
"""Touched rows a thread claims at a time."""


@kernel()
def list_blocks(first, links, shape, count, ids):
    """List the blocks of a row."""
    if count == 0:
        return
    ids[0] = first
    for k in range(2, count + 1):
        ids[k - 1] = links[ids[k - 2], 0] if shape == CHAIN else links[ids[k // 2 - 1], k & 1]


@kernel()
def link(links, shape, ids, k):
    """Link block k of a row, from 1, to those before it."""
    block = ids[k - 1]
    links[block, 0] = links[block, 1] = HOLE
    if k == 1:
        return
    if shape == CHAIN:
        links[ids[k - 2], 0] = block
        links[block, 1] = ids[k - 2]
    else:
        links[ids[k // 2 - 1], k & 1] = block


@kernel()
def find(t, threads, rows, pool, shape, most, u, v, found):
    """Write the weight of each edge, 0 where there is none; the shorter row is searched."""
    first, blocks, filled = rows
    targets, weights, links = pool
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    for i in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        row, other = u[i], v[i]
        if filled[other] < filled[row]:
            row, other = other, row
        list_blocks(first[row], links, shape, blocks[row], ids)
        found[i] = 0
        for j in range(filled[row]):
            if targets[ids[j // width], j % width] == other:
                weight = np.int64(1)
                if len(weights):
                    weight = np.int64(weights[ids[j // width], j % width])
                found[i] = weight
                break


@kernel()
def count_blocks(touched, starts, before, after, rows, live, width, policy, needed, spare):
    """Write how many blocks each touched row needs, and how many it gives back."""
    _, blocks, filled = rows
    for i in range(len(touched)):
        row = touched[i]
        fresh, gone = np.int64(0), np.int64(0)
        for k in range(starts[i], starts[i + 1]):
            fresh += before[k] == 0
            gone += after[k] == 0
        entries = np.int64(live[row]) + fresh - gone
        if policy == LAZY:
            entries = np.int64(filled[row]) + fresh
        after_batch = -(-entries // width)
        needed[i] = max(after_batch - blocks[row], 0)
        spare[i] = max(blocks[row] - after_batch, 0) if policy == DENSE else 0


@kernel()
def drop_entries(ids, pool, filled, keys, after, high, policy):
    """Delete and reweigh the entries of a row that changes name; return its entries."""
    targets, weights, _ = pool
    width = targets.shape[1]
    i = 0
    while i < filled:
        block, slot = ids[i // width], i % width
        target = targets[block, slot]
        k = np.searchsorted(keys[:high], np.uint64(target))
        if target == HOLE or k == high or keys[k] != target:
            i += 1
        elif after[k] > 0:
            if len(weights):
                weights[block, slot] = after[k]
            i += 1
        elif policy == DENSE:
            filled -= 1
            last, end = ids[filled // width], filled % width
            targets[block, slot] = targets[last, end]
            if len(weights):
                weights[block, slot] = weights[last, end]
        else:
            targets[block, slot] = HOLE
            i += 1
    return filled


@kernel()
def edit(
    t, threads, claimed, changes, rows, live, pool, shape, policy, most, new_ids, new_starts,
    freed, free_starts, dirty,
):  # fmt: skip
    """Merge changes into the touched rows; `dirty` marks the blocks written to."""
    touched, starts, keys, before, after = changes
    first, blocks, filled = rows
    targets, weights, links = pool
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    names = np.empty(most * width, np.uint64)
    while True:
        begin = take(claimed, STRETCH)
        if begin >= len(touched):
            break
        for i in range(begin, min(begin + STRETCH, len(touched))):
            row, low, high = touched[i], starts[i], starts[i + 1]
            count = np.int64(blocks[row])
            list_blocks(first[row], links, shape, count, ids)
            for k in range(high - low):
                names[k] = keys[low + k] & np.uint64(0xFFFFFFFF)
            entries = drop_entries(
                ids, pool, np.int64(filled[row]), names, after[low:high], high - low, policy
            )
            given = new_starts[i]
            place = np.int64(0) if policy == HOLES else entries
            for k in range(low, high):
                live[row] += np.uint32(before[k] == 0)
                live[row] -= np.uint32(after[k] == 0)
                if before[k] > 0:
                    continue
                while place < entries and targets[ids[place // width], place % width] != HOLE:
                    place += 1
                if place // width == count:
                    ids[count] = new_ids[given]
                    count += 1
                    given += 1
                    link(links, shape, ids, count)
                    targets[ids[count - 1], :] = HOLE
                targets[ids[place // width], place % width] = np.uint32(keys[k])
                if len(weights):
                    weights[ids[place // width], place % width] = after[k]
                place += 1
                entries = max(entries, place)
            kept = count - (free_starts[i + 1] - free_starts[i])
            for k in range(kept, count):
                freed[free_starts[i] + k - kept] = ids[k]
            if kept < count and kept > 0:
                links[ids[kept - 1], 0] = HOLE
            if policy == DENSE and kept > 0:
                for j in range(entries, kept * width):
                    targets[ids[j // width], j % width] = HOLE
            first[row] = ids[0] if kept > 0 else HOLE
            blocks[row], filled[row] = kept, entries
            if len(dirty):
                for k in range(kept):
                    dirty[ids[k]] = 1


@kernel()
def gather(rows, pool, shape, most, vertices, places, out, out_weights):
    """Copy the entries of some rows, holes left out, from `places` on."""
    first, blocks, filled = rows
    targets, weights, links = pool
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    for i in range(len(vertices)):
        row, at = vertices[i], places[i]
        list_blocks(first[row], links, shape, blocks[row], ids)
        for j in range(filled[row]):
            target = targets[ids[j // width], j % width]
            if target != HOLE:
                out[at] = target
                if len(out_weights):
                    out_weights[at] = weights[ids[j // width], j % width]
                at += 1


@kernel()
def scatter(offsets, source, source_weights, rows, live, pool, shape):
    """Fill blocks 0, 1, … with compressed rows, in the order of the vertices."""
    first, blocks, filled = rows
    targets, weights, links = pool
    width = targets.shape[1]
    next_block = np.int64(0)
    for v in range(len(offsets) - 1):
        length = offsets[v + 1] - offsets[v]
        count = -(-length // width)
        ids = np.arange(next_block, next_block + count).astype(np.uint32)
        for k in range(1, count + 1):
            link(links, shape, ids, k)
            targets[ids[k - 1], :] = HOLE
        for j in range(length):
            targets[ids[j // width], j % width] = source[offsets[v] + j]
            if len(weights):
                weights[ids[j // width], j % width] = source_weights[offsets[v] + j]
        first[v] = next_block if count else HOLE
        blocks[v], filled[v], live[v] = count, length, length
        next_block += count


@kernel()
def mark_used(rows, links, shape, most, used):
    """Count in `used` how often each block belongs to a row."""
    first, blocks, _ = rows
    ids = np.empty(most, np.uint32)
    for v in range(len(first)):
        list_blocks(first[v], links, shape, blocks[v], ids)
        for k in range(blocks[v]):
            used[ids[k]] += 1


@kernel()
def sum_targets(t, threads, claimed, rows, pool, shape, most, sums):
    """Add up all targets in ``sums[t]``, row by row, block by block."""
    first, blocks, filled = rows
    targets, _, links = pool
    width = targets.shape[1]
    ids = np.empty(most, np.uint32)
    total, n = np.int64(0), len(first)
    while True:
        low = take(claimed, 4096)
        if low >= n:
            break
        for v in range(low, min(low + 4096, n)):
            list_blocks(first[v], links, shape, blocks[v], ids)
            for k in range(blocks[v]):
                block = ids[k]
                for j in range(min(width, np.int64(filled[v]) - k * width)):
                    target = targets[block, j]
                    total += np.int64(target) if target != HOLE else np.int64(0)
    sums[t] = total
