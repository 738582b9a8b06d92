"""A small hash table per thread that sums weights by community.

Its size follows the largest number of neighbours, not the graph: 12 bytes per slot, at most four
slots per neighbour. `keys` holds a community in each used slot and EMPTY elsewhere; `sums` is
valid in used slots; `used` lists them, so that clearing costs only what was used.

Most of an engine's time is spent here, waiting for labels at random addresses and for mispredicted
branches. So a vertex takes two passes without branches that depend on labels. `collect` fetches the
labels of all neighbours and keeps those of other communities (in `names`, their weights in
`loads`); `add` puts these into the table. A vertex whose neighbours all share its community ends
after the first pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import prefetch

EMPTY = np.uint32(0xFFFFFFFF)
MULTIPLIER = np.uint32(0x9E3779B1)
LEAST_BITS = 8
"""log2 of the fewest slots: 3 KiB fit the first-level cache, and few neighbours seldom collide."""
PREFETCHED = 4
"""Number of vertices between the one at work and the one whose arcs are prefetched."""


class Table(NamedTuple):
    """The arrays of a table: of one thread, or of all threads, a row each."""

    keys: NDArray[np.uint32]
    sums: NDArray[np.int64]
    used: NDArray[np.uint32]
    names: NDArray[np.uint32]
    loads: NDArray[Any]


def slots_for(neighbours: int) -> int:
    """Return the number of slots of a table for `neighbours` neighbours."""
    return 1 << max(LEAST_BITS, (2 * neighbours - 1).bit_length())


@kernel(inline="always")
def bits_for(neighbours):
    """Return log2 of the number of slots for `neighbours` neighbours."""
    bits = LEAST_BITS
    while (1 << bits) < 2 * neighbours:
        bits += 1
    return bits


@kernel(forceinline=True)
def of_thread(tables, t):
    """Return the table of a thread."""
    return Table(tables.keys[t], tables.sums[t], tables.used[t], tables.names[t], tables.loads[t])


@kernel(forceinline=True)
def fetch_row(begins, targets, v):
    """Prefetch 17 to 32 arcs of a vertex that is processed soon."""
    prefetch(targets, begins[v])
    prefetch(targets, begins[v] + 16)


@kernel(forceinline=True)
def collect(labels, targets, low, high, own, names):
    """Keep in `names` the labels of targets[low:high] other than `own`; return how many."""
    count = np.uint32(0)
    for j in range(low, high):
        label = labels[targets[np.uint64(j)]]
        names[count] = label
        count = np.uint32(count + np.uint32(label != own))
    return count


@kernel(forceinline=True)
def collect_weighted(labels, targets, weights, low, high, own, names, loads):
    """Do as `collect`, with the weights in `loads`; return those of `own` and the rest."""
    count = np.uint32(0)
    inside, outside = np.int64(0), np.int64(0)
    for j in range(low, high):
        label = labels[targets[np.uint64(j)]]
        weight = weights[np.uint64(j)]
        names[count] = label
        loads[count] = weight
        count = np.uint32(count + np.uint32(label != own))
        inside += np.int64(weight) * np.int64(label == own)
        outside += np.int64(weight)
    return count, inside, outside - inside


@kernel(forceinline=True)
def add(keys, sums, used, names, loads, count, bits, n_used):
    """Add the first `count` of the names to the table; return how many slots are in use."""
    weighted = len(loads) > 0
    mask = np.uint32((1 << bits) - 1)
    shift = np.uint32(32 - bits)
    n_used = np.uint32(n_used)
    for k in range(count):
        name = names[k]
        slot = np.uint32(np.uint32(name * MULTIPLIER) >> shift)
        there = keys[slot]
        # One comparison for "taken by another": a second branch would often be mispredicted.
        while min(there ^ EMPTY, there ^ name) != 0:
            slot = np.uint32(slot + np.uint32(1)) & mask
            there = keys[slot]
        used[n_used] = slot
        n_used = np.uint32(n_used + np.uint32(there == EMPTY))
        keys[slot] = name
        weight = np.int64(loads[k]) if weighted else np.int64(1)
        sums[slot] = sums[slot] * np.int64(there != EMPTY) + weight
    return n_used
