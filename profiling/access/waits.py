"""What kernels wait for besides their touches: each other, steps that follow, and the host.

A small level takes as long as its steps follow each other, however little each has to do: classes
of vertices, one after another, and barriers of the grid between them. Where a barrier's memory lies
on the host, every block's arrival is a round trip over the bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.gpu.aggregate.limits import LIMITS, SLOTS, chunk_for, slots_for
from louvain_um.gpu.runtime.launch import ARCS_A_BLOCK, BLOCK_MAX, THREADS

RESIDENT: Final = 660
RESIDENT_SMALL: Final = 264
"""Blocks of a grid at most, of a large level and of a small one: 132 processors of an H200 with 5
and 2 blocks each."""

WARPS: Final = THREADS // 32
LOOKS: Final = 7
"""Reads of a block for each hub it plans: its number, two places of members, and the arcs before
each, in two parts."""

BLOCK_ARCS: Final = 32768
"""Arcs of a community beyond which all blocks add it up (`sum_arcs.cuh`)."""

MOVE_SECONDS: Final = 290e-6
"""What the host takes to have a level's vertices moved: arrays, tables, arguments, reading back.
Measured: 374 µs for one sweep of a level of 57 vertices, whose steps take 85
(`gpu_detect_h200.json`, stencil150)."""

ADD_SECONDS: Final = 400e-6
ADD_SMALL_SECONDS: Final = 160e-6
"""The same for aggregation, a large level by five launches, a small one by one: 410 µs for 850 arcs
and 88,366 vertices, 268 for 954 and 94, steps among it (the same, rmat18 and stencil150)."""

ENDS: Final = 3
"""Steps of a sweep beside its sub-rounds: its queue, in two, and what it gained."""

APPLY: Final = 1
WAKE: Final = 3
"""Steps of a sub-round beside deciding: to move, and to wake neighbours, by three widths."""

HUBS: Final = 4
"""Steps that deciding for the widest takes: tables are laid out, filled, emptied, and compared."""


def sweep_steps(degrees: Any, starts: Any, sum_bytes: int, *, wakes: bool) -> int:
    """Return how many steps of a sweep follow each other.

    Parameters
    ----------
    degrees : int64[queued]
        Of the queued vertices, sub-round by sub-round.
    starts : int64[sub_rounds + 1]
        Where each sub-round's begin.
    sum_bytes : int
        Of a sum of weights.
    wakes : bool
        Whether a moved vertex activates its neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.profiling.access.waits import sweep_steps
    >>> sweep_steps(np.array([3, 4, 20, 3]), [0, 3, 4, 4, 4, 4, 4, 4, 4], 4, wakes=False)
    8
    """
    widest = BLOCK_MAX[sum_bytes]
    edges = np.array([4, 8, 16, 32, widest // WARPS, widest])
    steps = ENDS
    for r in range(SUB_ROUNDS):
        classes = np.unique(np.searchsorted(edges, degrees[starts[r] : starts[r + 1]]))
        if len(classes):
            hubs = HUBS - 1 if classes[-1] == len(edges) else 0
            steps += len(classes) + hubs + APPLY + (WAKE if wakes else 0)
    return steps


@dataclass(frozen=True, slots=True)
class AggregationWaits:
    """What aggregating a level waits for.

    Parameters
    ----------
    chain : int
        Steps that follow each other.
    arrivals : int
        Arrivals of blocks at barriers, one after the other.
    claims : int
        Additions to the counters by which warps and blocks take up communities.
    looks : int
        Reads with which every block plans the same batches of hubs.
    seconds : float
        Of the host.
    """

    chain: int
    arrivals: int
    claims: int
    looks: int
    seconds: float


def blocks_for(items: int, most: int = RESIDENT) -> int:
    """Return the blocks of a grid for so many arcs and vertices."""
    return max(1, min(most, items // ARCS_A_BLOCK))


def aggregation_waits(n: int, arcs: Any, kept: Any, sum_bytes: int) -> AggregationWaits:
    """Return what aggregating a level waits for, by the steps of `aggregate.cu`.

    Parameters
    ----------
    n : int
        Vertices.
    arcs, kept : int64[k]
        Arcs of each community's members, and of its row on the next level.
    sum_bytes : int
        Of a sum of weights.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.profiling.access.waits import aggregation_waits
    >>> aggregation_waits(100, np.array([300, 200]), np.array([1, 1]), 4).arrivals
    0
    """
    k, total = len(arcs), int(arcs.sum())
    small = max(n, total) <= LIMITS.small
    blocks = blocks_for(n + total, RESIDENT_SMALL if small else RESIDENT)
    chunks = 1
    if not small:
        rooms = int(np.minimum(arcs, k).sum())
        chunks = max(1, -(-rooms // chunk_for(total, LIMITS, leiden=False)))
    limit = SLOTS[sum_bytes] // 4 * 3
    hub = (arcs > BLOCK_ARCS) | (kept > limit)
    block_bin = int(((arcs > limit // WARPS * 2) & (arcs <= BLOCK_ARCS)).sum())
    hubs = int(hub.sum())
    slots = np.array([slots_for(int(min(a, k))) for a in arcs[hub]], np.int64)
    found = batches_of(slots, total)
    batches = max(len(found), min(chunks, hubs))
    looks = sum(min(THREADS, hubs - begin) for begin, _ in found) * LOOKS * blocks
    barriers = 15 + 5 * chunks + 3 * batches + (4 - 4 * chunks if small else 0)
    warps = blocks * WARPS
    share = max(1, min(32, k // chunks // (warps * 8)))
    claims = -(-k // share) + chunks * (warps + blocks) + 2 * block_bin + hubs + 4 * blocks
    return AggregationWaits(
        chain=barriers,
        arrivals=barriers * blocks if blocks > 1 else 0,
        claims=claims,
        looks=looks,
        seconds=ADD_SMALL_SECONDS if small else ADD_SECONDS,
    )


def batches_of(slots: Any, arcs: int) -> list[tuple[int, int]]:
    """Return the hubs, first and one behind the last, that are summed at one time.

    `slots` are those of each one's table, of which there is room for one in so many `arcs`.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.profiling.access.waits import batches_of
    >>> batches_of(np.array([64, 32, 32, 64]), 1600)
    [(0, 2), (2, 4)]
    """
    if not len(slots):
        return []
    room = max(int(slots.max()), arcs // LIMITS.arcs_a_slot)
    found: list[tuple[int, int]] = []
    begin = 0
    while begin < len(slots):
        fit = int(np.searchsorted(np.cumsum(slots[begin : begin + THREADS]), room, side="right"))
        found.append((begin, begin + fit))
        begin += fit
    return found
