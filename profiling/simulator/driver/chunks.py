"""Device memory: root chunks of 2 MiB, their lists, and the pieces of those that blocks share.

A whole block of 2 MiB has a root chunk, under its own number. Smaller blocks share root chunks,
which are numbered after the blocks: each is split into pieces of 64 KiB, some of them into pages.
"""

from __future__ import annotations

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import compiled, inlined

# Columns of a piece. Pieces of 64 KiB come first, then those of 4 KiB.
BEFORE = 0  # in the list of free pieces
AFTER = 1
PAGE = 2  # the first page that lies there, FREE or SPLIT
TAKEN = 3  # of a split piece: pages in use

FREE = -1
SPLIT = -2


# The lists are touched on every hit under some policies, so they take two arrays, not the state:
# handing all of it over would cost more than the work.


@inlined
def unlink(blocks, counters, chunk):
    """Take a root chunk out of its list."""
    kind = blocks[chunk, c.LISTED]
    if kind == c.NOWHERE:
        return
    before, after = blocks[chunk, c.PREV], blocks[chunk, c.NEXT]
    if before == c.NOWHERE:
        counters[c.HEADS + kind] = after
    else:
        blocks[before, c.NEXT] = after
    if after == c.NOWHERE:
        counters[c.TAILS + kind] = before
    else:
        blocks[after, c.PREV] = before
    blocks[chunk, c.LISTED] = c.NOWHERE


@inlined
def append(blocks, counters, chunk, kind):
    """Put a root chunk at the end of a list, to be evicted last of it."""
    unlink(blocks, counters, chunk)
    tail = counters[c.TAILS + kind]
    blocks[chunk, c.PREV] = tail
    blocks[chunk, c.NEXT] = c.NOWHERE
    blocks[chunk, c.LISTED] = kind
    if tail == c.NOWHERE:
        counters[c.HEADS + kind] = chunk
    else:
        blocks[tail, c.NEXT] = chunk
    counters[c.TAILS + kind] = chunk


@inlined
def note_used(blocks, counters, chunk):
    """Put a root chunk at the end of the list of used ones."""
    held = blocks[chunk, c.ADVICE] & c.HELD
    append(blocks, counters, chunk, c.HELD_BACK if held else c.ORDINARY)


@compiled
def unpin_served(s):
    """Put the root chunks that gave pieces to the block being served among those in use."""
    while s.counters[c.HEADS + c.SERVED] != c.NOWHERE:
        note_used(s.blocks, s.counters, s.counters[c.HEADS + c.SERVED])


@compiled
def pinned_pages(s):
    """Return how many pages the root chunks hold that gave pieces to the block being served."""
    pages = 0
    chunk = s.counters[c.HEADS + c.SERVED]
    while chunk != c.NOWHERE:
        pages += s.blocks[chunk, c.CHARGED]
        chunk = s.blocks[chunk, c.NEXT]
    return pages


@inlined
def release(s, chunk):
    """Free the device memory of a root chunk."""
    row = s.blocks[chunk]
    unlink(s.blocks, s.counters, chunk)
    s.counters[c.USED] -= row[c.CHARGED]
    row[c.CHARGED] = row[c.RESIDENT] = row[c.USES] = row[c.TOUCHED] = 0


@inlined
def root_of(s, piece):
    """Return the root chunk of a piece."""
    slots = s.counters[c.ROOTS] * c.LEAVES
    if piece < slots:
        return s.counters[c.BLOCKS] + piece // c.LEAVES
    return s.counters[c.BLOCKS] + (piece - slots) // c.BLOCK_PAGES


@inlined
def pages_of(s, piece):
    """Return a piece's first piece of 4 KiB."""
    return s.counters[c.ROOTS] * c.LEAVES + piece * c.BIG_PAGES


@inlined
def slot_of(s, piece):
    """Return the piece of 64 KiB that one of 4 KiB belongs to."""
    return (piece - s.counters[c.ROOTS] * c.LEAVES) // c.BIG_PAGES


@compiled
def add_free(s, piece, size):
    """Put a piece at the end of the list of free ones of its size."""
    head, tail = c.FREE_HEADS + size, c.FREE_TAILS + size
    last = s.counters[tail]
    s.pieces[piece, BEFORE], s.pieces[piece, AFTER] = last, c.NOWHERE
    s.pieces[piece, PAGE] = FREE
    if last == c.NOWHERE:
        s.counters[head] = piece
    else:
        s.pieces[last, AFTER] = piece
    s.counters[tail] = piece


@compiled
def remove_free(s, piece, size):
    """Take a piece out of the list of free ones of its size."""
    before, after = s.pieces[piece, BEFORE], s.pieces[piece, AFTER]
    if before == c.NOWHERE:
        s.counters[c.FREE_HEADS + size] = after
    else:
        s.pieces[before, AFTER] = after
    if after == c.NOWHERE:
        s.counters[c.FREE_TAILS + size] = before
    else:
        s.pieces[after, BEFORE] = before


@compiled
def split_root(s, chunk, pages):
    """Make free pieces of a fresh root chunk, of so many pages."""
    row = s.blocks[chunk]
    row[c.ADVICE] = 0
    row[c.CHARGED] = pages
    first = (chunk - s.counters[c.BLOCKS]) * c.LEAVES
    for slot in range(first, first + pages // c.BIG_PAGES):
        add_free(s, slot, c.BIG)


@compiled
def free_root(s):
    """Return a root chunk for small blocks that is not in use."""
    chunk = s.counters[c.BLOCKS]
    while s.blocks[chunk, c.CHARGED]:
        chunk += 1
    return chunk


@compiled
def take_free(s, size, page, block):
    """Give a free piece to a page of a block; return it, or NOWHERE if there is none."""
    if size == c.SMALL and s.counters[c.FREE_HEADS + c.SMALL] == c.NOWHERE:
        slot = s.counters[c.FREE_HEADS + c.BIG]
        if slot == c.NOWHERE:
            return slot
        remove_free(s, slot, c.BIG)
        s.pieces[slot, PAGE], s.pieces[slot, TAKEN] = SPLIT, 0
        for each in range(pages_of(s, slot), pages_of(s, slot) + c.BIG_PAGES):
            add_free(s, each, c.SMALL)
    piece = s.counters[c.FREE_HEADS + size]
    if piece == c.NOWHERE:
        return piece
    remove_free(s, piece, size)
    s.pieces[piece, PAGE] = page
    if size == c.SMALL:
        s.pieces[slot_of(s, piece), TAKEN] += 1
    chunk = root_of(s, piece)
    row = s.blocks[chunk]
    row[c.RESIDENT] += c.BIG_PAGES if size == c.BIG else 1
    row[c.ADVICE] |= s.blocks[block, c.ADVICE] & c.HELD
    s.blocks[block, c.CHUNK] = chunk
    append(s.blocks, s.counters, chunk, c.SERVED)
    return piece


@compiled
def give_back(s, piece):
    """Free a piece; a root chunk of which none is in use is freed, too."""
    chunk = root_of(s, piece)
    row = s.blocks[chunk]
    slot = piece
    if piece >= s.counters[c.ROOTS] * c.LEAVES:
        slot = slot_of(s, piece)
        row[c.RESIDENT] -= 1
        s.pieces[slot, TAKEN] -= 1
        add_free(s, piece, c.SMALL)
        if s.pieces[slot, TAKEN] == 0:
            for each in range(pages_of(s, slot), pages_of(s, slot) + c.BIG_PAGES):
                remove_free(s, each, c.SMALL)
            add_free(s, slot, c.BIG)
    else:
        row[c.RESIDENT] -= c.BIG_PAGES
        add_free(s, slot, c.BIG)
    if row[c.RESIDENT] == 0:
        drop_root(s, chunk)
    else:
        note_used(s.blocks, s.counters, chunk)


@compiled
def drop_root(s, chunk):
    """Free a shared root chunk with all its pieces."""
    first = (chunk - s.counters[c.BLOCKS]) * c.LEAVES
    for slot in range(first, first + s.blocks[chunk, c.CHARGED] // c.BIG_PAGES):
        if s.pieces[slot, PAGE] == FREE:
            remove_free(s, slot, c.BIG)
        elif s.pieces[slot, PAGE] == SPLIT:
            for each in range(pages_of(s, slot), pages_of(s, slot) + c.BIG_PAGES):
                if s.pieces[each, PAGE] == FREE:
                    remove_free(s, each, c.SMALL)
    release(s, chunk)
