"""Device memory: the lists of used blocks, the choice of a victim, its eviction."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator.driver.compiled import compiled, inlined
from louvain_um.profiling.simulator.driver.constants import (
    ACCESSED_BY,
    ADVICE,
    BLOCK_BITS,
    BLOCK_PAGES,
    BY_ACCESS,
    BY_FREQUENCY,
    BY_TREE,
    CAPACITY,
    CHARGED,
    FIRST,
    HEADS,
    HELD,
    HELD_BACK,
    LAST_USE,
    LISTED,
    MAP_REMOTE,
    NEXT,
    NOWHERE,
    ON_GPU,
    ON_HOST,
    ORDINARY,
    OWN,
    OWN_EVICTION,
    OWNER,
    PAGE_BYTES,
    PAGES,
    PEAK,
    PER_BYTE_OUT,
    POLICY,
    PREV,
    RESIDENT,
    SECOND_CHANCE,
    T_DROPPED_COPIES,
    T_EVICTIONS,
    T_OUT_EVICTION,
    TAILS,
    TICKS,
    TOUCHED,
    USED,
    USES,
    WRITE_BACK,
)
from louvain_um.profiling.simulator.driver.own import FAILED, choose
from louvain_um.profiling.simulator.driver.state import emit, spend
from louvain_um.profiling.simulator.driver.words import evict_words

_DTOH = int(Kind.DTOH)
_EVICTED = int(Kind.EVICTION)
_EVICTION = int(Cause.EVICTION)
_TREE_BLOCKS = 16  # the tree of pre-eviction spans 32 MiB


# The lists are touched on every hit under some policies, so they take two arrays, not the state:
# handing all of it over would cost more than the work.


@inlined
def unlink(blocks, counters, block):
    """Take a block out of its list."""
    kind = blocks[block, LISTED]
    if kind == NOWHERE:
        return
    before, after = blocks[block, PREV], blocks[block, NEXT]
    if before == NOWHERE:
        counters[HEADS + kind] = after
    else:
        blocks[before, NEXT] = after
    if after == NOWHERE:
        counters[TAILS + kind] = before
    else:
        blocks[after, PREV] = before
    blocks[block, LISTED] = NOWHERE


@inlined
def append(blocks, counters, block):
    """Put a block at the end of its list, to be evicted last."""
    unlink(blocks, counters, block)
    kind = HELD_BACK if blocks[block, ADVICE] & HELD else ORDINARY
    tail = counters[TAILS + kind]
    blocks[block, PREV] = tail
    blocks[block, NEXT] = NOWHERE
    blocks[block, LISTED] = kind
    if tail == NOWHERE:
        counters[HEADS + kind] = block
    else:
        blocks[tail, NEXT] = block
    counters[TAILS + kind] = block


@compiled
def note_use(blocks, counters, block, policy):
    """Note a touch of a resident block for policies that use accesses."""
    if policy == BY_ACCESS:
        if blocks[block, LISTED] != NOWHERE and blocks[block, NEXT] != NOWHERE:
            append(blocks, counters, block)
    elif policy == BY_FREQUENCY:
        blocks[block, USES] += 1
    else:
        blocks[block, TOUCHED] = 1
        if policy == OWN:
            counters[TICKS] += 1
            blocks[block, USES] += 1
            blocks[block, LAST_USE] = counters[TICKS]


@inlined
def release(s, block):
    """Free the device memory of a block with no resident pages."""
    unlink(s.blocks, s.counters, block)
    s.counters[USED] -= s.blocks[block, CHARGED]
    s.blocks[block, CHARGED] = 0
    s.blocks[block, RESIDENT] = 0
    s.blocks[block, USES] = 0
    s.blocks[block, TOUCHED] = 0


@inlined
def evict(s, block):
    """Evict a block to the host. Clean pages are copied, too, unless the host has a copy."""
    row = s.blocks[block]
    after = np.uint8(ON_HOST | (MAP_REMOTE if row[ADVICE] & ACCESSED_BY else 0))
    if row[PAGES] == BLOCK_PAGES:
        here, dropped = evict_words(s.words[row[FIRST] >> 3 :], after)
    else:
        pages = s.pages[row[FIRST] : row[FIRST] + row[PAGES]]
        here = 0
        dropped = 0
        for i in range(len(pages)):
            bits = pages[i]
            on_gpu = bits & ON_GPU
            here += on_gpu
            dropped += on_gpu & (bits >> 1)
            pages[i] = after if on_gpu else bits
    moved = here - dropped
    release(s, block)
    spend(s, WRITE_BACK, s.rates[PER_BYTE_OUT] * moved * PAGE_BYTES)
    totals = s.totals[row[OWNER]]
    totals[T_EVICTIONS] += 1
    totals[T_OUT_EVICTION] += moved * PAGE_BYTES
    totals[T_DROPPED_COPIES] += dropped * PAGE_BYTES
    if moved:
        emit(s, _DTOH, row[FIRST], moved * PAGE_BYTES, 1, _EVICTION)
    emit(s, _EVICTED, row[FIRST], (moved + dropped) * PAGE_BYTES, 1, _EVICTION)


@inlined
def victim(s, keep):
    """Return the block to evict next, never `keep`; NOWHERE if there is none."""
    policy = s.switches[POLICY]
    for kind in range(2):
        block = s.counters[HEADS + kind]
        if policy == OWN and block != NOWHERE:
            chosen = choose(s.switches[OWN_EVICTION], s.blocks, block, keep)
            if chosen == FAILED:
                raise ValueError("raised an exception")
            if chosen != NOWHERE:
                if chosen < 0 or chosen >= len(s.blocks) or chosen == keep:
                    raise ValueError("chose no block, or the one being served")
                if s.blocks[chosen, LISTED] == NOWHERE:
                    raise ValueError("chose a block without pages on the device")
                return chosen
        if policy == BY_FREQUENCY:
            best = NOWHERE
            while block != NOWHERE:
                rarer = best == NOWHERE or s.blocks[block, USES] < s.blocks[best, USES]
                if block != keep and rarer:
                    best = block
                block = s.blocks[block, NEXT]
            if best != NOWHERE:
                return best
            continue
        while block != NOWHERE:
            after = s.blocks[block, NEXT]
            if block != keep:
                if policy != SECOND_CHANCE or s.blocks[block, TOUCHED] == 0:
                    return block
                s.blocks[block, TOUCHED] = 0
                append(s.blocks, s.counters, block)
                if after == NOWHERE:
                    after = block
            block = after
    return NOWHERE


@compiled
def evict_sparse_trees(s, gone, keep):
    """Evict the rest of every aligned subtree around `gone` that is less than half resident."""
    owner = s.blocks[gone, OWNER]
    frame = s.blocks[gone, FIRST] >> BLOCK_BITS
    frames = len(s.pages) >> BLOCK_BITS
    width = 2
    while width <= _TREE_BLOCKS:
        low = frame & ~(width - 1)
        high = min(low + width, frames)
        there = 0
        here = 0
        for sweep in range(2):
            if sweep == 1 and (here == 0 or 2 * here >= there):
                break
            page = low << BLOCK_BITS
            while page < high << BLOCK_BITS:
                block = s.block_of[page]
                if block == NOWHERE or s.blocks[block, OWNER] != owner:
                    page = ((page >> BLOCK_BITS) + 1) << BLOCK_BITS
                    continue
                row = s.blocks[block]
                page = row[FIRST] + row[PAGES]
                if sweep == 0:
                    there += row[PAGES]
                    here += row[PAGES] if row[LISTED] != NOWHERE else 0
                elif row[LISTED] == ORDINARY and block != keep:
                    evict(s, block)
        width <<= 1


@inlined
def make_room(s, more, keep):
    """Evict until `more` pages fit; the block `keep` stays."""
    while s.counters[USED] + more > s.switches[CAPACITY]:
        block = victim(s, keep)
        if block == NOWHERE:
            raise MemoryError("the block being served does not fit beside the device arrays")
        evict(s, block)
        if s.switches[POLICY] == BY_TREE:
            evict_sparse_trees(s, block, keep)
    s.counters[USED] += more
    s.counters[PEAK] = max(s.counters[PEAK], s.counters[USED])


@inlined
def charge(s, block, more):
    """Take device memory for `more` further pages of a block and renew its place in the list."""
    row = s.blocks[block]
    whole = row[PAGES] == BLOCK_PAGES
    left = row[PAGES] - row[CHARGED]
    # Pages that left one by one kept their memory.
    more = left if whole else min(more, left)
    if more > 0:
        make_room(s, more, block)
        row[CHARGED] += more
    if whole or row[LISTED] == NOWHERE:
        append(s.blocks, s.counters, block)
