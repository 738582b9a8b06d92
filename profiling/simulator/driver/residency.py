"""Where a page goes when it faults, and detection of pages that thrash."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import compiled, emit, inlined, now

# Outcomes of a fault: the page migrates to the faulting processor; it is duplicated there; it
# stays and is mapped over the bus; it goes to its preferred location and is mapped over the bus.
MIGRATE = 0
DUPLICATE = 1
STAY = 2
PREFER = 3

_LAST_TIME = 0
_LAST_PROCESSOR = 1
_EVENTS = 2
_THROTTLES = 3
_PINNED_UNTIL = 4


class Advice(NamedTuple):
    """What was advised of a page; processors are ON_HOST and ON_GPU, 0 is none."""

    preferred: Any
    accessed_by: Any  # bits of processors
    duplicates: Any  # DISABLED, UNSET or ENABLED


DISABLED = 0
UNSET = 1
ENABLED = 2


@inlined
def advice_of(bits):
    """Return the advice of a block's bits."""
    preferred = c.ON_HOST if bits & c.PREFERS_HOST else c.ON_GPU if bits & c.PREFERS_GPU else 0
    accessed_by = c.ON_GPU if bits & c.ACCESSED_BY else 0
    return Advice(preferred, accessed_by, ENABLED if bits & c.READ_MOSTLY else UNSET)


@inlined
def choose(processor, bits, advice, pin, reads, coherent, counted):
    """Return what becomes of a page that a processor accesses; the first matching rule wins.

    `pin` is where a thrashing page is pinned, `counted` whether access counters ask, which count
    as readers.
    """
    where = bits & c.BOTH
    duplicated = where == c.BOTH and advice.duplicates != DISABLED and pin == 0
    if advice.duplicates == ENABLED or duplicated:
        return DUPLICATE if reads else MIGRATE
    if advice.preferred == processor:
        return MIGRATE
    if pin != 0:
        return MIGRATE if pin == processor else STAY
    # Over PCIe, the host does not reach the GPU's memory.
    reaches = processor == c.ON_GPU or coherent
    if where == 0:
        return PREFER if advice.preferred != 0 and reaches else MIGRATE
    if where & processor:
        return MIGRATE
    if advice.accessed_by & processor and reaches and not counted:
        return STAY
    if advice.preferred != 0 and reaches:
        return PREFER
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
