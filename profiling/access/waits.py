"""Latencies of kernels besides their accesses: dependent steps, barriers, contention, the host.

A small level takes the time of its chain of dependent steps, however little work each has: degree
bins one after another, with grid barriers between them. Where a barrier's memory lies on the host,
every block's arrival is a round trip over the bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.gpu.aggregate.limits import LIMITS, SLOTS, chunk_for, slots_for
from louvain_um.gpu.level import ARCS_A_BLOCK
from louvain_um.gpu.move.hub_tables import BLOCK_MAX
from louvain_um.placement.hardware import THREADS, WARPS

RESIDENT: Final = 660
RESIDENT_SMALL: Final = 264
"""Most blocks of a grid, on a large and on a small level: 132 multiprocessors of an H200 with 5 and
2 blocks each."""

HUB_PLAN_READS: Final = 7
"""Reads by which a block plans one hub: its number, two member positions, and the arcs before each,
in two parts."""

BLOCK_ARCS: Final = 16384
"""Arcs of a community above which all blocks sum it (`sum_arcs.cuh`)."""

MOVE_SECONDS: Final = 290e-6
"""Host time of a level's move phase: arrays, tables, arguments, reading back. Fitted to an earlier
version on an H200; one sweep of 57 vertices takes 330 to 355 µs, its steps included
(`gpu_detect_h200.json`, stencil150)."""

AGGREGATE_SECONDS: Final = 400e-6
AGGREGATE_SMALL_SECONDS: Final = 160e-6
"""The same for aggregation, five launches on a large level, one on a small one: 245 µs for 954 arcs
of 94 vertices, its steps included (same file, stencil150)."""

SWEEP_END_STEPS: Final = 3
"""Steps of a sweep besides its sub-rounds: the queue, in two, and the gain."""

APPLY_STEPS: Final = 1
ACTIVATE_STEPS: Final = 3
"""Steps of a sub-round besides deciding: applying moves, and activating neighbours by three degree
bins."""

HUB_STEPS: Final = 4
"""Steps of deciding for hubs: tables are laid out, filled, emptied, and compared."""


def sweep_steps(degrees: Any, starts: Any, sum_bytes: int, *, activates: bool) -> int:
    """Return the length of a sweep's chain of dependent steps."""
    widest = BLOCK_MAX[sum_bytes]
    edges = np.array([4, 8, 16, 32, widest // WARPS, widest])
    steps = SWEEP_END_STEPS
    for r in range(SUB_ROUNDS):
        classes = np.unique(np.searchsorted(edges, degrees[starts[r] : starts[r + 1]]))
        if len(classes):
            hubs = HUB_STEPS - 1 if classes[-1] == len(edges) else 0
            steps += len(classes) + hubs + APPLY_STEPS + (ACTIVATE_STEPS if activates else 0)
    return steps


@dataclass(frozen=True, slots=True)
class AggregationWaits:
    """What aggregating a level waits for."""

    chain: int
    arrivals: int
    claims: int
    plan_reads: int
    seconds: float


def blocks_for(items: int, most: int = RESIDENT) -> int:
    """Return the blocks of a grid for a number of arcs and vertices."""
    return max(1, min(most, items // ARCS_A_BLOCK))


def aggregation_waits(
    n: int, arcs: Any, kept: Any, sum_bytes: int, *, coarse: bool = False
) -> AggregationWaits:
    """Return what aggregating a level waits for, by the steps of `aggregate.cu`."""
    k, total = len(arcs), int(arcs.sum())
    small = total <= LIMITS.small and (coarse or n <= LIMITS.small)
    blocks = blocks_for(n + total, RESIDENT_SMALL if small else RESIDENT)
    chunks = 1
    if not small:
        rooms = int(np.minimum(arcs, k).sum())
        chunks = max(1, -(-rooms // chunk_for(total, LIMITS, width=sum_bytes, leiden=False)))
    limit = SLOTS[sum_bytes] // 4 * 3
    hub = (arcs > BLOCK_ARCS) | (kept > limit)
    block_bin = int(((arcs > limit // WARPS * 2) & (arcs <= BLOCK_ARCS)).sum())
    hubs = int(hub.sum())
    slots = np.array([slots_for(int(min(a, k))) for a in arcs[hub]], np.int64)
    found = batches_of(slots, total)
    batches = max(len(found), min(chunks, hubs))
    plan_reads = sum(min(THREADS, hubs - begin) for begin, _ in found) * HUB_PLAN_READS * blocks
    barriers = 15 + 5 * chunks + 3 * batches + (4 - 4 * chunks if small else 0)
    warps = blocks * WARPS
    share = max(1, min(32, k // chunks // (warps * 8)))
    claims = -(-k // share) + chunks * (warps + blocks) + 3 * block_bin + hubs + 4 * blocks
    return AggregationWaits(
        chain=barriers,
        arrivals=barriers * blocks if blocks > 1 else 0,
        claims=claims,
        plan_reads=plan_reads,
        seconds=AGGREGATE_SMALL_SECONDS if small else AGGREGATE_SECONDS,
    )


def batches_of(slots: Any, arcs: int) -> list[tuple[int, int]]:
    """Return the ranges of hubs that are summed together, as first and end."""
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
