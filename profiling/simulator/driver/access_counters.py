"""Access counters: what is read over the bus often enough migrates to the device."""

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import charge
from louvain_um.profiling.simulator.driver.migration import bring_along, put_on_gpu
from louvain_um.profiling.simulator.driver.prefetcher import add_neighbours
from louvain_um.profiling.simulator.driver.residency import advice_of, choose
from louvain_um.profiling.simulator.driver.sorting import sort_keys
from louvain_um.profiling.simulator.driver.state import compiled, emit, from_python, inlined, spend
from louvain_um.profiling.simulator.driver.thrashing import PINNED_ON, note_moves

LINE_BYTES = 128
"""Of a streamed page, each line counts as one access."""


@inlined
def count_remote(blocks, counters, notices, block, page, accesses, threshold):
    """Count accesses over the bus in a block's counter; at the threshold, notify the driver."""
    before = blocks[block, c.REMOTE_USES]
    blocks[block, c.REMOTE_USES] = before + accesses
    blocks[block, c.REGIONS] |= np.int64(1) << ((page & (c.BLOCK_PAGES - 1)) // c.BIG_PAGES)
    noticed = counters[c.NOTIFIED]
    if before < threshold <= before + accesses and noticed < len(notices):
        notices[noticed] = page
        counters[c.NOTIFIED] = noticed + 1


@inlined
def accesses_of(way, amount):
    """Return how often a touch counts: as single accesses, or by line of a stream."""
    return amount if way > c.WRITE else (amount + LINE_BYTES - 1) // LINE_BYTES


@compiled
def want_counted(s, block, page, regions, whole):
    """Mark as FAULTED what a notification asks for: regions of 64 KiB in which accesses were.

    Unless the host's memory of the block is one piece, only the region of the page is.
    """
    row = s.blocks[block]
    if row[c.ADVICE] & (c.PINNED | c.DEVICE) or s.pages[page] & c.BOTH != c.ON_HOST:
        return
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    if not whole:
        regions = np.int64(1) << ((page - base) // c.BIG_PAGES)
    coherent = s.switches[c.COHERENT] != 0
    for each in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        bits = s.pages[each]
        asked = (regions >> ((each - base) // c.BIG_PAGES)) & 1
        if not asked or bits & c.BOTH != c.ON_HOST:
            continue
        pin = 0
        if s.switches[c.DETECT_THRASHING]:
            pin = s.thrash[each, PINNED_ON]
        if choose(c.ON_GPU, bits, advice_of(row[c.ADVICE]), pin, True, coherent, True) & c.ON_GPU:
            s.want[each - base] = c.FAULTED


@compiled
def bring_counted(s, block):
    """Bring the FAULTED pages of a block to the GPU, and those that density adds."""
    row = s.blocks[block]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    mostly = (row[c.ADVICE] & c.READ_MOSTLY) != 0
    asked = 0
    for offset in range(c.BLOCK_PAGES):
        asked += s.want[offset] == c.FAULTED
    if asked == 0:
        return
    spend(s, c.FAULT, s.rates[c.PER_SERVICE])
    add_neighbours(s, block, c.ON_GPU, False)
    if s.switches[c.DETECT_THRASHING]:
        note_moves(s, block, c.ON_GPU)
    charge(s, block)
    counted = 0
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        if s.want[page - base] == c.FAULTED:
            s.want[page - base] = 0
            copied, _ = put_on_gpu(s, block, page, mostly)
            counted += copied
    rows, density = bring_along(s, row, mostly)
    spend(s, c.MIGRATE, s.rates[c.PER_BYTE_IN] * (counted + density) * c.PAGE_BYTES)
    s.totals[row[c.OWNER], c.T_IN_COUNTED] += counted * c.PAGE_BYTES
    s.totals[row[c.OWNER], c.T_IN_DENSITY] += density * c.PAGE_BYTES
    if counted:
        emit(s, c.K_HTOD, row[c.FIRST], counted * c.PAGE_BYTES, 1, c.C_COUNTED)
    if density:
        emit(s, c.K_HTOD, row[c.FIRST], density * c.PAGE_BYTES, rows, c.C_PREFETCH)


@from_python
def serve_notices(s):
    """Serve the notifications that have come, by address; their counters begin anew."""
    count = s.counters[c.NOTIFIED]
    s.counters[c.NOTIFIED] = 0
    sort_keys(s.notices, count, s.spare)
    for notice in range(count):
        page = s.notices[notice]
        block = s.block_of[page]
        row = s.blocks[block]
        want_counted(s, block, page, row[c.REGIONS], row[c.PAGES] == c.BLOCK_PAGES)
        row[c.REMOTE_USES] = row[c.REGIONS] = 0
        bring_counted(s, block)
