"""Where a page goes when it faults, and detection of pages that thrash."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator.driver.compiled import compiled, inlined
from louvain_um.profiling.simulator.driver.constants import (
    ACCESSED_BY,
    ADVICE,
    BOTH,
    DETECT_THRASHING,
    MAP_REMOTE,
    OWNER,
    PAGE_BYTES,
    PINS,
    PREFERS_GPU,
    PREFERS_HOST,
    READ_MOSTLY,
    T_THRASHING,
    T_THROTTLING,
    THRASH_EVENTS,
    THRASH_PIN,
    THRASH_THROTTLES,
    THRASH_WINDOW,
)
from louvain_um.profiling.simulator.driver.state import emit, now

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

_THRASHING = int(Kind.THRASHING)
_THROTTLING = int(Kind.THROTTLING)
_COHERENCE = int(Cause.COHERENCE)


@inlined
def choose_for_gpu(bits, advice, writes, pinned):
    """Return the outcome of a GPU fault on a page; the first matching rule wins."""
    if advice & READ_MOSTLY and not writes:
        return DUPLICATE
    if bits & BOTH == BOTH and writes:
        return MIGRATE
    if advice & PREFERS_GPU:
        return MIGRATE
    if pinned:
        return STAY
    if bits & BOTH == 0:
        return PREFER if advice & PREFERS_HOST else MIGRATE
    if advice & ACCESSED_BY:
        return STAY
    if advice & PREFERS_HOST:
        return PREFER
    return MIGRATE


@compiled
def choose_for_host(bits, advice, writes, coherent):
    """Return the outcome of a host fault on a page; only a coherent host can map it remotely."""
    if advice & READ_MOSTLY and not writes:
        return DUPLICATE
    if bits & BOTH == BOTH and writes:
        return MIGRATE
    if advice & PREFERS_HOST:
        return MIGRATE
    if bits & BOTH == 0:
        return PREFER if advice & PREFERS_GPU and coherent else MIGRATE
    if advice & PREFERS_GPU and coherent:
        return STAY
    return MIGRATE


@inlined
def watch(s, block, page, processor):
    """Record a fault for thrashing detection; return whether the page is now pinned to the host."""
    if s.switches[DETECT_THRASHING] == 0:
        return False
    time = now(s)
    row = s.thrash[page]
    if row[_PINNED_UNTIL] > time:
        return True
    if row[_LAST_PROCESSOR] != 0:
        if time - row[_LAST_TIME] > s.switches[THRASH_WINDOW]:
            row[_EVENTS] = 0
            row[_THROTTLES] = 0
        elif row[_LAST_PROCESSOR] != processor:
            row[_EVENTS] += 1
    row[_LAST_TIME] = time
    row[_LAST_PROCESSOR] = processor
    if row[_EVENTS] < s.switches[THRASH_EVENTS]:
        return False
    totals = s.totals[s.blocks[block, OWNER]]
    if row[_EVENTS] == s.switches[THRASH_EVENTS] and row[_THROTTLES] == 0:
        totals[T_THRASHING] += 1
        emit(s, _THRASHING, page, PAGE_BYTES, 1, _COHERENCE)
    row[_THROTTLES] += 1
    if row[_THROTTLES] <= s.switches[THRASH_THROTTLES]:
        totals[T_THROTTLING] += 1
        emit(s, _THROTTLING, page, PAGE_BYTES, 1, _COHERENCE)
        return False
    s.counters[PINS] += 1 if row[_PINNED_UNTIL] == 0 else 0
    row[_PINNED_UNTIL] = time + s.switches[THRASH_PIN]
    row[_EVENTS] = 0
    row[_THROTTLES] = 0
    return True


@compiled
def unpin(s):
    """Remove expired pins, and their mappings over the bus."""
    if s.counters[PINS] == 0:
        return
    time = now(s)
    for page in range(len(s.thrash)):
        row = s.thrash[page]
        if row[_PINNED_UNTIL] == 0 or row[_PINNED_UNTIL] > time:
            continue
        row[_PINNED_UNTIL] = 0
        s.counters[PINS] -= 1
        if not s.blocks[s.block_of[page], ADVICE] & ACCESSED_BY:
            s.pages[page] &= ~np.uint8(MAP_REMOTE)


@compiled
def is_pinned(s, page):
    """Return whether a page is pinned for thrashing, which keeps the prefetcher off it."""
    return s.switches[DETECT_THRASHING] != 0 and s.thrash[page, _PINNED_UNTIL] > now(s)
