"""The choice of a victim, its eviction, and the memory that blocks take for it."""

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.chunks import (
    PAGE,
    SPLIT,
    append,
    drop_root,
    free_root,
    give_back,
    note_used,
    pages_of,
    pinned_pages,
    release,
    root_of,
    split_root,
    take_free,
    unpin_served,
)
from louvain_um.profiling.simulator.driver.state import (
    compiled,
    emit,
    evict_words,
    from_python,
    inlined,
    note_change,
    spend,
)
from louvain_um.profiling.simulator.driver.thrashing import forget_block
from louvain_um.profiling.simulator.driver.user_functions import FAILED, choose

_TREE_BLOCKS = 16  # the tree of pre-eviction spans 32 MiB


@compiled
def note_use(blocks, counters, block, policy):
    """Note a touch of a resident block for policies that use accesses."""
    chunk = blocks[block, c.CHUNK]
    if chunk == c.NOWHERE:  # placed there
        return
    if policy == c.BY_ACCESS:
        if blocks[chunk, c.LISTED] != c.NOWHERE and blocks[chunk, c.NEXT] != c.NOWHERE:
            note_used(blocks, counters, chunk)
    elif policy == c.BY_FREQUENCY:
        blocks[chunk, c.USES] += 1
    else:
        blocks[chunk, c.TOUCHED] = 1
        if policy == c.BY_USER:
            counters[c.TICKS] += 1
            blocks[chunk, c.USES] += 1
            blocks[chunk, c.LAST_USE] = counters[c.TICKS]


@inlined
def home_after(row):
    """Return the state of a page that left the device for the host."""
    return np.uint8(c.ON_HOST | (c.MAP_REMOTE if row[c.ADVICE] & c.ACCESSED_BY else 0))


@inlined
def note_eviction(s, row, here, dropped):
    """Charge and record that pages of a block were evicted, some of which the host had, too."""
    moved = here - dropped
    spend(s, c.WRITE_BACK, s.rates[c.PER_BYTE_OUT] * moved * c.PAGE_BYTES)
    totals = s.totals[row[c.OWNER]]
    totals[c.T_EVICTIONS] += 1
    totals[c.T_OUT_EVICTION] += moved * c.PAGE_BYTES
    totals[c.T_DROPPED_COPIES] += dropped * c.PAGE_BYTES
    if moved:
        emit(s, c.K_DTOH, row[c.FIRST], moved * c.PAGE_BYTES, 1, c.C_EVICTION)
    emit(s, c.K_EVICTION, row[c.FIRST], here * c.PAGE_BYTES, 1, c.C_EVICTION)
    note_change(s, s.block_of[row[c.FIRST]])


@compiled
def evict_part(s, block, chunk):
    """Evict the pages of a small block that lie in a root chunk."""
    row = s.blocks[block]
    after = home_after(row)
    here = 0
    dropped = 0
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        if s.home[page] == c.NOWHERE or root_of(s, s.home[page]) != chunk:
            continue
        s.home[page] = c.NOWHERE
        bits = s.pages[page]
        if bits & c.ON_GPU:
            here += 1
            dropped += (bits >> 1) & 1
            s.pages[page] = after
    row[c.RESIDENT] -= here
    if here:
        note_eviction(s, row, here, dropped)


@compiled
def evict_shared(s, chunk):
    """Evict all pages of a root chunk that small blocks share."""
    first = (chunk - s.counters[c.BLOCKS]) * c.LEAVES
    for slot in range(first, first + s.blocks[chunk, c.CHARGED] // c.BIG_PAGES):
        low, high = slot, slot + 1
        if s.pieces[slot, PAGE] == SPLIT:
            low = pages_of(s, slot)
            high = low + c.BIG_PAGES
        for piece in range(low, high):
            page = s.pieces[piece, PAGE]
            if page >= 0 and s.home[page] == piece:
                evict_part(s, s.block_of[page], chunk)
    drop_root(s, chunk)


@inlined
def evict(s, chunk):
    """Evict a root chunk to the host. Clean pages are copied, too, unless the host has a copy."""
    # It goes to the host even if another GPU has room, and copies on other GPUs are lost.
    if chunk >= s.counters[c.BLOCKS]:
        evict_shared(s, chunk)
        return
    row = s.blocks[chunk]
    here, dropped = evict_words(s.words[row[c.FIRST] >> 3 :], home_after(row))
    release(s, chunk)
    if here:
        note_eviction(s, row, here, dropped)


@inlined
def victim(s, keep):
    """Return the root chunk to evict next, never `keep`; NOWHERE if there is none."""
    policy = s.switches[c.POLICY]
    for kind in (c.UNUSED, c.DISCARDED):
        if s.counters[c.HEADS + kind] != c.NOWHERE:
            return s.counters[c.HEADS + kind]
    for kind in (c.ORDINARY, c.HELD_BACK):
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
                note_used(s.blocks, s.counters, block)
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
                    here += row[c.PAGES] if row[c.RESIDENT] else 0
                elif row[c.LISTED] == c.ORDINARY and block != keep:
                    evict(s, block)
        width <<= 1


@compiled
def claim(s, pages, keep):
    """Take device memory, evicting until it fits; return how many pages that are."""
    # Small blocks share what is left, even if that is less than a root chunk, and evict their own
    # pieces with those of others before they fail.
    while s.counters[c.USED] + pages > s.switches[c.CAPACITY]:
        chunk = victim(s, keep)
        if chunk == c.NOWHERE:
            left = s.switches[c.CAPACITY] - s.counters[c.USED]
            if keep != c.NOWHERE and s.blocks[keep, c.PAGES] < c.BLOCK_PAGES:
                if left >= c.BIG_PAGES:
                    pages = left // c.BIG_PAGES * c.BIG_PAGES
                    break
                if left + pinned_pages(s) >= c.BLOCK_PAGES:  # the block alone fits a root chunk
                    unpin_served(s)
                    continue
            raise MemoryError("the block being served does not fit with the device arrays")
        evict(s, chunk)
        if s.switches[c.POLICY] == c.BY_TREE and chunk < s.counters[c.BLOCKS]:
            evict_sparse_trees(s, chunk, keep)
    s.counters[c.USED] += pages
    s.counters[c.PEAK] = max(s.counters[c.PEAK], s.counters[c.USED])
    return pages


@inlined
def charge(s, block):
    """Take device memory for the wanted pages of a block, which renews its place in the lists."""
    row = s.blocks[block]
    if row[c.PAGES] < c.BLOCK_PAGES:
        take_pieces(s, block)
        return
    if row[c.CHARGED] == 0:
        row[c.CHARGED] = claim(s, c.BLOCK_PAGES, block)
    note_used(s.blocks, s.counters, block)


@compiled
def take_pieces(s, block):
    """Take pieces of root chunks for the wanted pages of a small block."""
    row = s.blocks[block]
    missing = True
    while missing:  # other pieces of the block may be evicted meanwhile
        missing = False
        for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
            if s.want[page & (c.BLOCK_PAGES - 1)] and s.home[page] == c.NOWHERE:
                missing = True
                take_piece(s, row, block, page)
    unpin_served(s)


@compiled
def take_piece(s, row, block, page):
    """Take a piece of a root chunk for a page: of 64 KiB if the block has all of these."""
    first = page & ~(c.BIG_PAGES - 1)
    count = c.BIG_PAGES
    size = c.BIG
    if first < row[c.FIRST] or first + c.BIG_PAGES > row[c.FIRST] + row[c.PAGES]:
        first = page
        count = 1
        size = c.SMALL
    piece = take_free(s, size, first, block)
    if piece == c.NOWHERE:
        pages = claim(s, c.BLOCK_PAGES, block)
        split_root(s, free_root(s), pages)
        piece = take_free(s, size, first, block)
    for each in range(first, first + count):
        s.home[each] = piece


@inlined
def note_empty(s, block):
    """Note that no page of a block is left on the device: its memory is the next to go."""
    if s.blocks[block, c.PAGES] == c.BLOCK_PAGES and s.blocks[block, c.CHARGED]:
        append(s.blocks, s.counters, block, c.UNUSED)


@from_python
def allocate(s, first, end):
    """Take device memory for pages placed there; managed blocks may be evicted."""
    while first < end:
        row = s.blocks[s.block_of[first]]
        stop = min(end, row[c.FIRST] + row[c.PAGES])
        if row[c.ADVICE] & c.DEVICE:
            claim(s, stop - first, c.NOWHERE)
        first = stop


@from_python
def free(s, first, end):
    """Free the pages: nothing is copied, and their device memory is released."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[c.FIRST] + row[c.PAGES])
        if row[c.ADVICE] & c.DEVICE:
            s.counters[c.USED] -= stop - first
        elif not row[c.ADVICE] & (c.PINNED | c.PREFERS_HOST):
            free_block(s, block)
        first = stop


@compiled
def free_block(s, block):
    """Free a managed block."""
    row = s.blocks[block]
    if row[c.PAGES] == c.BLOCK_PAGES:
        release(s, block)
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        piece = s.home[page]
        if piece != c.NOWHERE:
            if s.pieces[piece, PAGE] == page:
                give_back(s, piece)
            s.home[page] = c.NOWHERE
        s.pages[page] = 0
    row[c.RESIDENT] = row[c.FAULTED_PAGES] = 0
    if s.switches[c.DETECT_THRASHING]:
        forget_block(s, block)
        s.watched[block] = 0


@compiled
def discard(s, block):
    """Discard what a whole block holds: evicting it copies nothing."""
    row = s.blocks[block]
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        s.pages[page] = 0
    row[c.RESIDENT] = 0
    if row[c.CHARGED]:
        append(s.blocks, s.counters, block, c.DISCARDED)


@from_python
def discard_pages(s, first, end):
    """Discard what managed pages hold: it is not copied; blocks without other pages go next."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[c.FIRST] + row[c.PAGES])
        if not row[c.ADVICE] & (c.DEVICE | c.PINNED | c.PEER):
            for page in range(first, stop):
                row[c.RESIDENT] -= 1 if s.pages[page] & c.ON_GPU else 0
                s.pages[page] = 0
            if row[c.RESIDENT] == 0 and s.switches[c.GPUS] <= 1:
                discard(s, block)
            elif row[c.RESIDENT] == 0 and row[c.CHARGED]:  # other pages may be on other GPUs
                append(s.blocks, s.counters, block, c.DISCARDED)
        first = stop
