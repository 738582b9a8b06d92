"""A batch of faults, as the driver fetches it from the waiting touches."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver.compiled import compiled
from louvain_um.profiling.simulator.driver.constants import BATCH_SIZE, FAULTS, WAITING

DIGITS = 256


@compiled
def sort_keys(keys, count, spare):
    """Sort the first `count` keys, eight bits at a time, unless already sorted."""
    differ = np.int64(0)
    falls = False
    for i in range(1, count):
        differ |= keys[i] ^ keys[0]
        falls |= keys[i] < keys[i - 1]
    if not falls:
        return
    digits, other = spare[:DIGITS], spare[DIGITS:]
    shift = 0
    while differ >> shift:
        digits[:] = 0
        for i in range(count):
            digits[(keys[i] >> shift) & (DIGITS - 1)] += 1
        before = 0
        for digit in range(DIGITS):
            here = digits[digit]
            digits[digit] = before
            before += here
        for i in range(count):
            digit = (keys[i] >> shift) & (DIGITS - 1)
            other[digits[digit]] = keys[i]
            digits[digit] += 1
        for i in range(count):
            keys[i] = other[i]
        shift += 8


@compiled
def gather_batch(s):
    """Fetch a batch from the waiting touches, sorted, one entry per page; return its length."""
    fetched = min(s.counters[WAITING], s.switches[BATCH_SIZE])
    s.counters[FAULTS] += fetched
    for entry in range(fetched):
        s.batch[entry] = s.queue[entry, 0] * 2 + (s.queue[entry, 1] & 1)
    sort_keys(s.batch, fetched, s.spare)
    kept = 0
    for entry in range(fetched):
        # Of reads and writes of one page the write, which sorts last, stands for all.
        if kept and s.batch[kept - 1] >> 1 == s.batch[entry] >> 1:
            kept -= 1
        s.batch[kept] = s.batch[entry]
        kept += 1
    return kept
