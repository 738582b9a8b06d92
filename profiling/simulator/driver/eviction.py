"""Device memory: the lists of used blocks, the choice of a victim, its eviction."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import compiled, emit, inlined, spend
from louvain_um.profiling.simulator.driver.user_functions import FAILED, choose
from louvain_um.profiling.simulator.driver.words import evict_words

_TREE_BLOCKS = 16  # the tree of pre-eviction spans 32 MiB


# The lists are touched on every hit under some policies, so they take two arrays, not the state:
# handing all of it over would cost more than the work.


@inlined
def unlink(blocks, counters, block):
    """Take a block out of its list."""
    kind = blocks[block, c.LISTED]
    if kind == c.NOWHERE:
        return
    before, after = blocks[block, c.PREV], blocks[block, c.NEXT]
    if before == c.NOWHERE:
        counters[c.HEADS + kind] = after
    else:
        blocks[before, c.NEXT] = after
    if after == c.NOWHERE:
        counters[c.TAILS + kind] = before
    else:
        blocks[after, c.PREV] = before
    blocks[block, c.LISTED] = c.NOWHERE


@inlined
def append(blocks, counters, block):
    """Put a block at the end of its list, to be evicted last."""
    unlink(blocks, counters, block)
    kind = c.HELD_BACK if blocks[block, c.ADVICE] & c.HELD else c.ORDINARY
    tail = counters[c.TAILS + kind]
    blocks[block, c.PREV] = tail
    blocks[block, c.NEXT] = c.NOWHERE
    blocks[block, c.LISTED] = kind
    if tail == c.NOWHERE:
        counters[c.HEADS + kind] = block
    else:
        blocks[tail, c.NEXT] = block
    counters[c.TAILS + kind] = block


@compiled
def note_use(blocks, counters, block, policy):
    """Note a touch of a resident block for policies that use accesses."""
    if policy == c.BY_ACCESS:
        if blocks[block, c.LISTED] != c.NOWHERE and blocks[block, c.NEXT] != c.NOWHERE:
            append(blocks, counters, block)
    elif policy == c.BY_FREQUENCY:
        blocks[block, c.USES] += 1
    else:
        blocks[block, c.TOUCHED] = 1
        if policy == c.BY_USER:
            counters[c.TICKS] += 1
            blocks[block, c.USES] += 1
            blocks[block, c.LAST_USE] = counters[c.TICKS]


@inlined
def release(s, block):
    """Free the device memory of a block with no resident pages."""
    unlink(s.blocks, s.counters, block)
    s.counters[c.USED] -= s.blocks[block, c.CHARGED]
    s.blocks[block, c.CHARGED] = 0
    s.blocks[block, c.RESIDENT] = 0
    s.blocks[block, c.USES] = 0
    s.blocks[block, c.TOUCHED] = 0


@inlined
def evict(s, block):
    """Evict a block to the host. Clean pages are copied, too, unless the host has a copy."""
    row = s.blocks[block]
    after = np.uint8(c.ON_HOST | (c.MAP_REMOTE if row[c.ADVICE] & c.ACCESSED_BY else 0))
    if row[c.PAGES] == c.BLOCK_PAGES:
        here, dropped = evict_words(s.words[row[c.FIRST] >> 3 :], after)
    else:
        pages = s.pages[row[c.FIRST] : row[c.FIRST] + row[c.PAGES]]
        here = 0
        dropped = 0
        for i in range(len(pages)):
            bits = pages[i]
            on_gpu = bits & c.ON_GPU
            here += on_gpu
            dropped += on_gpu & (bits >> 1)
            pages[i] = after if on_gpu else bits
    moved = here - dropped
    release(s, block)
    spend(s, c.WRITE_BACK, s.rates[c.PER_BYTE_OUT] * moved * c.PAGE_BYTES)
    totals = s.totals[row[c.OWNER]]
    totals[c.T_EVICTIONS] += 1
    totals[c.T_OUT_EVICTION] += moved * c.PAGE_BYTES
    totals[c.T_DROPPED_COPIES] += dropped * c.PAGE_BYTES
    if moved:
        emit(s, c.K_DTOH, row[c.FIRST], moved * c.PAGE_BYTES, 1, c.C_EVICTION)
    emit(s, c.K_EVICTION, row[c.FIRST], (moved + dropped) * c.PAGE_BYTES, 1, c.C_EVICTION)


@inlined
def victim(s, keep):
    """Return the block to evict next, never `keep`; NOWHERE if there is none."""
    policy = s.switches[c.POLICY]
    for kind in range(2):
        block = s.counters[c.HEADS + kind]
        if policy == c.BY_USER and block != c.NOWHERE:
            chosen = choose(s.switches[c.USER_EVICTION], s.blocks, block, keep)
            if chosen == FAILED:
                raise ValueError("raised an exception")
            if chosen != c.NOWHERE:
                if chosen < 0 or chosen >= len(s.blocks) or chosen == keep:
                    raise ValueError("chose no block, or the one being served")
                if s.blocks[chosen, c.LISTED] == c.NOWHERE:
                    raise ValueError("chose a block without pages on the device")
                return chosen
        if policy == c.BY_FREQUENCY:
            best = c.NOWHERE
            while block != c.NOWHERE:
                rarer = best == c.NOWHERE or s.blocks[block, c.USES] < s.blocks[best, c.USES]
                if block != keep and rarer:
                    best = block
                block = s.blocks[block, c.NEXT]
            if best != c.NOWHERE:
                return best
            continue
        while block != c.NOWHERE:
            after = s.blocks[block, c.NEXT]
            if block != keep:
                if policy != c.SECOND_CHANCE or s.blocks[block, c.TOUCHED] == 0:
                    return block
                s.blocks[block, c.TOUCHED] = 0
                append(s.blocks, s.counters, block)
                if after == c.NOWHERE:
                    after = block
            block = after
    return c.NOWHERE


@compiled
def evict_sparse_trees(s, gone, keep):
    """Evict the rest of every aligned subtree around `gone` that is less than half resident."""
    owner = s.blocks[gone, c.OWNER]
    frame = s.blocks[gone, c.FIRST] >> c.BLOCK_BITS
    frames = len(s.pages) >> c.BLOCK_BITS
    width = 2
    while width <= _TREE_BLOCKS:
        low = frame & ~(width - 1)
        high = min(low + width, frames)
        there = 0
        here = 0
        for sweep in range(2):
            if sweep == 1 and (here == 0 or 2 * here >= there):
                break
            page = low << c.BLOCK_BITS
            while page < high << c.BLOCK_BITS:
                block = s.block_of[page]
                if block == c.NOWHERE or s.blocks[block, c.OWNER] != owner:
                    page = ((page >> c.BLOCK_BITS) + 1) << c.BLOCK_BITS
                    continue
                row = s.blocks[block]
                page = row[c.FIRST] + row[c.PAGES]
                if sweep == 0:
                    there += row[c.PAGES]
                    here += row[c.PAGES] if row[c.LISTED] != c.NOWHERE else 0
                elif row[c.LISTED] == c.ORDINARY and block != keep:
                    evict(s, block)
        width <<= 1


@inlined
def make_room(s, more, keep):
    """Evict until `more` pages fit; the block `keep` stays."""
    while s.counters[c.USED] + more > s.switches[c.CAPACITY]:
        block = victim(s, keep)
        if block == c.NOWHERE:
            raise MemoryError("the block being served does not fit beside the device arrays")
        evict(s, block)
        if s.switches[c.POLICY] == c.BY_TREE:
            evict_sparse_trees(s, block, keep)
    s.counters[c.USED] += more
    s.counters[c.PEAK] = max(s.counters[c.PEAK], s.counters[c.USED])


@inlined
def charge(s, block, more):
    """Take device memory for `more` further pages of a block and renew its place in the list."""
    row = s.blocks[block]
    whole = row[c.PAGES] == c.BLOCK_PAGES
    left = row[c.PAGES] - row[c.CHARGED]
    # Pages that left one by one kept their memory.
    more = left if whole else min(more, left)
    if more > 0:
        make_room(s, more, block)
        row[c.CHARGED] += more
    if whole or row[c.LISTED] == c.NOWHERE:
        append(s.blocks, s.counters, block)


@compiled
def allocate(s, first, end):
    """Take device memory for pages placed there; managed blocks may be evicted."""
    while first < end:
        row = s.blocks[s.block_of[first]]
        stop = min(end, row[c.FIRST] + row[c.PAGES])
        if row[c.ADVICE] & c.DEVICE:
            make_room(s, stop - first, c.NOWHERE)
        first = stop


@compiled
def free(s, first, end):
    """Free the pages: nothing is copied, and their device memory is released."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[c.FIRST] + row[c.PAGES])
        if row[c.ADVICE] & c.DEVICE:
            s.counters[c.USED] -= stop - first
        elif not row[c.ADVICE] & (c.PINNED | c.PREFERS_HOST):
            if row[c.CHARGED]:
                release(s, block)
            for page in range(first, stop):
                s.pages[page] = 0
        first = stop
