"""Arrays allocated and freed while the program runs."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from louvain_um.profiling.simulator.driver.compiled import compiled
from louvain_um.profiling.simulator.driver.constants import (
    ADVICE,
    CHARGED,
    DEVICE,
    FIRST,
    NOWHERE,
    PAGES,
    PINNED,
    PREFERS_HOST,
    USED,
)
from louvain_um.profiling.simulator.driver.eviction import make_room, release


@compiled
def allocate(s, first, end):
    """Take device memory for pages placed there; managed blocks may be evicted."""
    while first < end:
        row = s.blocks[s.block_of[first]]
        stop = min(end, row[FIRST] + row[PAGES])
        if row[ADVICE] & DEVICE:
            make_room(s, stop - first, NOWHERE)
        first = stop


@compiled
def free(s, first, end):
    """Free the pages: nothing is copied, and their device memory is released."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[FIRST] + row[PAGES])
        if row[ADVICE] & DEVICE:
            s.counters[USED] -= stop - first
        elif not row[ADVICE] & (PINNED | PREFERS_HOST):
            if row[CHARGED]:
                release(s, block)
            for page in range(first, stop):
                s.pages[page] = 0
        first = stop
