"""Sorting in place, in memory that is given."""

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import compiled


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
    digits, other = spare[: c.DIGITS], spare[c.DIGITS :]
    shift = 0
    while differ >> shift:
        digits[:] = 0
        for i in range(count):
            digits[(keys[i] >> shift) & (c.DIGITS - 1)] += 1
        before = 0
        for digit in range(c.DIGITS):
            here = digits[digit]
            digits[digit] = before
            before += here
        for i in range(count):
            digit = (keys[i] >> shift) & (c.DIGITS - 1)
            other[digits[digit]] = keys[i]
            digits[digit] += 1
        for i in range(count):
            keys[i] = other[i]
        shift += 8
