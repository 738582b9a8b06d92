"""What kernels of moving, refining and aggregating access, page by page, and what they wait for.

A step is replayed over the engine's own arrays, in chunks. Accesses within a chunk are counted,
not ordered: on a device its warps run concurrently. Each array that a step accesses in one way is
a slot, with a counter per page.

A small level takes the time of its chain of dependent steps, however little work each has: degree
bins one after another, with grid barriers between them. Where a barrier's memory lies on the host,
every block's arrival is a round trip over the bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.gpu.aggregate.limits import LIMITS, SLOTS, chunk_for, slots_for
from louvain_um.gpu.level import ARCS_A_BLOCK
from louvain_um.gpu.move.hub_tables import BLOCK_MAX
from louvain_um.placement.hardware import PAGE, SECTOR, THREADS, WARPS
from louvain_um.placement.machine.profiles import rates

RESIDENT: Final = 660
RESIDENT_SMALL: Final = 264
"""Most blocks of a grid, on a large and on a small level: 132 multiprocessors of an H200 with 5 and
2 blocks each."""

HUB_PLAN_READS: Final = 7
"""Reads by which a block plans one hub: its number, two member positions, and the arcs before each,
in two parts."""

BLOCK_ARCS: Final = 16384
"""Arcs of a community above which all blocks sum it (`sum_arcs.cuh`)."""

MOVE_SECONDS, AGGREGATE_SECONDS, AGGREGATE_SMALL_SECONDS = rates("host").values()
"""Host time of a level's phases: arrays, tables, arguments, reading back."""

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


# Slots of moving and refining; those of aggregating are below.
QUEUE, OFFSETS, DEGREES, OWN, TARGETS, WEIGHTS, LABELS, TOTALS, KEYS, SUMS, PROPOSED = range(11)
PROPOSED_READ, LABELS_WRITTEN, TOTALS_ADDED, SIZES_ADDED, NEXT_ACTIVE = range(11, 16)

MEMBERS, ROWS, ARCS, LOADS, NUMBERS, CHUNK_TARGETS, CHUNK_WEIGHTS = range(7)
STARTS, MEMBERS_WRITTEN, NUMBERS_READ, DEGREES_READ, DEGREES_ADDED, TABLE = range(7, 13)

FROM_TARGETS, FROM_WEIGHTS, TO_TARGETS, TO_WEIGHTS = range(4)

PAGE_BITS = PAGE.bit_length() - 1
SPREAD = np.uint32(0x9E3779B1)


class Counters(NamedTuple):
    """Counts of pages, slot after slot, and which pages of each slot have any."""

    counts: Any
    bases: Any  # by slot: where its counts begin
    low: Any  # by slot: first and last page counted
    high: Any
    last: Any  # by slot: last page that there is


class LevelArcs(NamedTuple):
    """The arcs of a level."""

    offsets: Any
    targets: Any


class Widths(NamedTuple):
    """Bytes of a weight, 0 without weights, and of a sum."""

    weight: int
    total: int


class Members(NamedTuple):
    """Communities: their numbers by vertex, members in order, and rows of the next level."""

    numbers: Any
    members: Any
    starts: Any
    places: Any  # where the rows begin in the chunk
    coarse_offsets: Any


@kernel(inline="always")
def note(counters, slot, at, amount):
    """Count `amount` at byte `at` of a slot's array."""
    page = at >> PAGE_BITS
    counters.counts[counters.bases[slot] + np.int64(min(np.uint64(page), counters.last[slot]))] += (
        amount
    )
    counters.low[slot] = min(counters.low[slot], page)
    counters.high[slot] = max(counters.high[slot], page)


@kernel()
def note_range(counters, slot, first, nbytes):
    """Count the bytes of all sectors that overlap a range."""
    at = first & ~(SECTOR - 1)
    end = (first + nbytes + SECTOR - 1) & ~(SECTOR - 1)
    while at < end:
        stop = min(end, ((at >> PAGE_BITS) + 1) << PAGE_BITS)
        note(counters, slot, at, stop - at)
        at = stop


@kernel()
def count_decisions(counters, widths, hubs, rows, labels, queue, begin, end):
    """Count the accesses of deciding for queue[begin:end]; what it decides does not matter."""
    weight, width = widths.weight, widths.total
    offsets, targets = rows.offsets, rows.targets
    hub_degree, most = hubs
    for i in range(begin, end):
        v = np.int64(queue[i])
        own = labels[v]
        note(counters, QUEUE, 4 * i, 4)
        note(counters, OFFSETS, 8 * v, 1)
        note(counters, DEGREES, width * v, 1)
        note(counters, OWN, 4 * v, 1)
        note(counters, PROPOSED, 4 * i, 4)
        low, high = offsets[v], offsets[v + 1]
        if low == high:
            continue
        note_range(counters, TARGETS, 4 * low, 4 * (high - low))
        if weight:
            note_range(counters, WEIGHTS, weight * low, weight * (high - low))
        sector = np.int64(-1)
        last = own
        slots = 2
        while slots < 2 * (high - low):
            slots *= 2
        slots = min(slots, most)
        for j in range(low, high):
            u = np.int64(targets[j])
            if u >> 3 != sector:
                sector = u >> 3
                note(counters, LABELS, 4 * u, 1)
            label = labels[u]
            if high - low > hub_degree:
                place = np.int64(np.uint32(label * SPREAD)) * slots >> 32
                note(counters, KEYS, 4 * place, 1)
                note(counters, SUMS, width * place, 1)
            if label != own and label != last:
                note(counters, TOTALS, width * np.int64(label), 1)
            last = label


@kernel()
def apply_moves(counters, widths, labels, queue, proposed, begin, end, stays):
    """Apply the moves of queue[begin:end] to `labels`; count the accesses."""
    width = widths.total
    for i in range(begin, end):
        note(counters, PROPOSED_READ, 4 * i, 4)
        target_label = proposed[i]
        if target_label == stays:
            continue
        v = np.int64(queue[i])
        own = np.int64(labels[v])
        labels[v] = target_label
        note(counters, LABELS_WRITTEN, 4 * v, 1)
        note(counters, DEGREES, width * v, 1)
        for c in (own, np.int64(target_label)):
            note(counters, TOTALS_ADDED, width * c, 1)
            note(counters, SIZES_ADDED, 4 * c, 1)


@kernel()
def count_activations(counters, rows, labels, queue, proposed, begin, end, stays):
    """Count the accesses of activating the neighbours of moved vertices in queue[begin:end]."""
    offsets, targets = rows.offsets, rows.targets
    for i in range(begin, end):
        note(counters, PROPOSED_READ, 4 * i, 4)
        target_label = proposed[i]
        if target_label == stays:
            continue
        v = np.int64(queue[i])
        low, high = offsets[v], offsets[v + 1]
        note(counters, OFFSETS, 8 * v, 1)
        note_range(counters, TARGETS, 4 * low, 4 * (high - low))
        sector = np.int64(-1)
        for j in range(low, high):
            u = np.int64(targets[j])
            if u >> 3 != sector:
                sector = u >> 3
                note(counters, LABELS, 4 * u, 1)
            if labels[u] != target_label:
                note(counters, NEXT_ACTIVE, u, 1)


@kernel()
def count_grouping(counters, widths, numbers, cursor, begin, end):
    """Count the accesses of grouping vertices begin … end by community."""
    width = widths.total
    for v in range(begin, end):
        c = np.int64(numbers[v])
        note(counters, NUMBERS_READ, 4 * v, 8)
        note(counters, DEGREES_READ, width * v, width)
        note(counters, STARTS, 4 * c, 1)
        note(counters, DEGREES_ADDED, width * c, 1)
        note(counters, MEMBERS_WRITTEN, 4 * cursor[c], 1)
        cursor[c] += 1


@kernel()
def longest_queue(numbers, communities):
    """Return the most warps, of 32 consecutive vertices, that share one community."""
    last = np.full(communities, -1, np.int64)
    queued = np.zeros(communities, np.int64)
    most = 0
    for v in range(len(numbers)):
        c = np.int64(numbers[v])
        if last[c] != v >> 5:
            last[c] = v >> 5
            queued[c] += 1
            most = max(most, queued[c])
    return most


@kernel()
def sum_rows(counters, widths, rows, groups, order, flight, quota, keys):
    """Let every worker sum about `quota` more arcs of its community; count the accesses."""
    weight, width = widths.weight, widths.total
    offsets, targets = rows.offsets, rows.targets
    numbers, starts = groups.numbers, groups.starts
    slots, large = keys
    last = len(order)
    workers = len(flight) // 2
    busy = False
    for worker in range(workers):
        done = 0
        while done < quota:
            c = flight[2 * worker]
            if c < 0:
                if flight[2 * workers] >= last:
                    break
                c = order[flight[2 * workers]]
                flight[2 * workers] += 1
                flight[2 * worker] = c
                flight[2 * worker + 1] = starts[c]
            m = flight[2 * worker + 1]
            hashed = slots > 0 and starts[c + 1] - starts[c] >= large
            while m < starts[c + 1] and done < quota:
                v = np.int64(groups.members[m])
                note(counters, MEMBERS, 4 * m, 4)
                note(counters, ROWS, 8 * v, 1)
                low, high = offsets[v], offsets[v + 1]
                done += high - low + 1
                m += 1
                if low == high:
                    continue
                note_range(counters, ARCS, 4 * low, 4 * (high - low))
                if weight:
                    note_range(counters, LOADS, weight * low, weight * (high - low))
                sector = np.int64(-1)
                for j in range(low, high):
                    u = np.int64(targets[j])
                    if u >> 3 != sector:
                        sector = u >> 3
                        note(counters, NUMBERS, 4 * u, 1)
                    if hashed:
                        place = np.int64(np.uint32(numbers[u] * SPREAD)) * slots >> 32
                        note(counters, TABLE, 8 * place, 1)
            flight[2 * worker + 1] = m
            if m == starts[c + 1]:
                flight[2 * worker] = -1
                at = groups.places[c]
                size = groups.coarse_offsets[c + 1] - groups.coarse_offsets[c]
                if size:
                    note_range(counters, CHUNK_TARGETS, 4 * at, 4 * size)
                    note_range(counters, CHUNK_WEIGHTS, width * at, width * size)
        busy |= flight[2 * worker] >= 0
    return busy or flight[2 * workers] < last


@kernel()
def compact_rows(counters, width, places, coarse_offsets, begin, end):
    """Count the accesses of copying the rows of communities begin … end out of the chunk."""
    for c in range(begin, end):
        size = coarse_offsets[c + 1] - coarse_offsets[c]
        if size:
            note_range(counters, FROM_TARGETS, 4 * places[c], 4 * size)
            note_range(counters, FROM_WEIGHTS, width * places[c], width * size)
            note_range(counters, TO_TARGETS, 4 * coarse_offsets[c], 4 * size)
            note_range(counters, TO_WEIGHTS, width * coarse_offsets[c], width * size)


@kernel()
def emit(counters, out):
    """Write the counts as runs (slot, first page, pages, amount) and clear them."""
    counts, bases, low, high = counters.counts, counters.bases, counters.low, counters.high
    rows = 0
    for slot in range(len(bases)):
        page = low[slot]
        base = bases[slot]
        while page <= high[slot]:
            first = counts[base + page]
            if first == 0:
                page += 1
                continue
            start, total = page, 0
            while page <= high[slot]:
                amount = counts[base + page]
                if 2 * amount < first or amount > 2 * first:
                    break
                total += amount
                counts[base + page] = 0
                page += 1
            pages = page - start
            more = total % pages
            for length, amount in ((more, total // pages + 1), (pages - more, total // pages)):
                if length:
                    out[rows, 0] = slot
                    out[rows, 1] = start
                    out[rows, 2] = length
                    out[rows, 3] = amount
                    rows += 1
                    start += length
        low[slot] = len(counts)
        high[slot] = -1
    return rows
