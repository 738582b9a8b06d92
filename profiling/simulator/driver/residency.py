"""Where a page goes when it faults, and detection of pages that thrash."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import compiled, emit, inlined, now

# Outcomes of a fault: the page migrates to the faulting processor; it is duplicated there; it
# stays and is mapped over the bus; it goes to its preferred location and is mapped over the bus.
MIGRATE = 0
DUPLICATE = 1
STAY = 2
PREFER = 3

HOST_PROCESSOR = 1
GPU_PROCESSOR = 2

_LAST_TIME = 0
_LAST_PROCESSOR = 1
_EVENTS = 2
_THROTTLES = 3
_PINNED_UNTIL = 4


@inlined
def choose_for_gpu(bits, advice, writes, pinned):
    """Return the outcome of a GPU fault on a page; the first matching rule wins."""
    if advice & c.READ_MOSTLY and not writes:
        return DUPLICATE
    if bits & c.BOTH == c.BOTH and writes:
        return MIGRATE
    if advice & c.PREFERS_GPU:
        return MIGRATE
    if pinned:
        return STAY
    if bits & c.BOTH == 0:
        return PREFER if advice & c.PREFERS_HOST else MIGRATE
    if advice & c.ACCESSED_BY:
        return STAY
    if advice & c.PREFERS_HOST:
        return PREFER
    return MIGRATE


@compiled
def choose_for_host(bits, advice, writes, coherent):
    """Return the outcome of a host fault on a page; only a coherent host can map it remotely."""
    if advice & c.READ_MOSTLY and not writes:
        return DUPLICATE
    if bits & c.BOTH == c.BOTH and writes:
        return MIGRATE
    if advice & c.PREFERS_HOST:
        return MIGRATE
    if bits & c.BOTH == 0:
        return PREFER if advice & c.PREFERS_GPU and coherent else MIGRATE
    if advice & c.PREFERS_GPU and coherent:
        return STAY
    return MIGRATE


@inlined
def watch(s, block, page, processor):
    """Record a fault for thrashing detection; return whether the page is now pinned to the host."""
    if s.switches[c.DETECT_THRASHING] == 0:
        return False
    time = now(s)
    row = s.thrash[page]
    if row[_PINNED_UNTIL] > time:
        return True
    if row[_LAST_PROCESSOR] != 0:
        if time - row[_LAST_TIME] > s.switches[c.THRASH_WINDOW]:
            row[_EVENTS] = 0
            row[_THROTTLES] = 0
        elif row[_LAST_PROCESSOR] != processor:
            row[_EVENTS] += 1
    row[_LAST_TIME] = time
    row[_LAST_PROCESSOR] = processor
    if row[_EVENTS] < s.switches[c.THRASH_EVENTS]:
        return False
    totals = s.totals[s.blocks[block, c.OWNER]]
    if row[_EVENTS] == s.switches[c.THRASH_EVENTS] and row[_THROTTLES] == 0:
        totals[c.T_THRASHING] += 1
        emit(s, c.K_THRASHING, page, c.PAGE_BYTES, 1, c.C_COHERENCE)
    row[_THROTTLES] += 1
    if row[_THROTTLES] <= s.switches[c.THRASH_THROTTLES]:
        totals[c.T_THROTTLING] += 1
        emit(s, c.K_THROTTLING, page, c.PAGE_BYTES, 1, c.C_COHERENCE)
        return False
    s.counters[c.PINS] += 1 if row[_PINNED_UNTIL] == 0 else 0
    row[_PINNED_UNTIL] = time + s.switches[c.THRASH_PIN]
    row[_EVENTS] = 0
    row[_THROTTLES] = 0
    return True


@compiled
def unpin(s):
    """Remove expired pins, and their mappings over the bus."""
    if s.counters[c.PINS] == 0:
        return
    time = now(s)
    for page in range(len(s.thrash)):
        row = s.thrash[page]
        if row[_PINNED_UNTIL] == 0 or row[_PINNED_UNTIL] > time:
            continue
        row[_PINNED_UNTIL] = 0
        s.counters[c.PINS] -= 1
        if not s.blocks[s.block_of[page], c.ADVICE] & c.ACCESSED_BY:
            s.pages[page] &= ~np.uint8(c.MAP_REMOTE)


@compiled
def is_pinned(s, page):
    """Return whether a page is pinned for thrashing, which keeps the prefetcher off it."""
    return s.switches[c.DETECT_THRASHING] != 0 and s.thrash[page, _PINNED_UNTIL] > now(s)
