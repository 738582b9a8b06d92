"""A small hash table that adds up weights by community, one for each thread.

Its size follows the largest number of neighbours, not the graph: 12 bytes a slot, at most four
slots a neighbour. `keys` holds a community in each used slot and EMPTY elsewhere; `sums` is valid
where a key stands; `used` lists the used slots, so that clearing costs only what was used.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np
from numba import njit

EMPTY = np.uint32(0xFFFFFFFF)
MULTIPLIER = np.uint32(0x9E3779B1)


@njit(nogil=True, cache=True, inline="always")
def bits_for(neighbours):
    """Return log2 of the number of slots that a vertex with so many neighbours uses."""
    bits = 2
    while (1 << bits) < 2 * neighbours:
        bits += 1
    return bits


@njit(nogil=True, cache=True, inline="always")
def first_slot(community, bits):
    """Return the slot where a search for `community` begins, among the first 2^bits."""
    return np.int64(np.uint32(np.uint32(community) * MULTIPLIER) >> np.uint32(32 - bits))


@njit(nogil=True, cache=True, inline="always")
def slot_of(keys, community, bits):
    """Return the slot where `community` stands or may be put, among the first 2^bits."""
    mask = (1 << bits) - 1
    slot = first_slot(community, bits)
    while keys[slot] != EMPTY and keys[slot] != community:
        slot = (slot + 1) & mask
    return slot
