"""How levels are aggregated: chunks of rows, hash tables, and memory for the next level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from louvain_um.gpu.memory import packed
from louvain_um.placement.hardware import WARPS
from louvain_um.placement.machine.profiles import rates

BOUNDS: Final = 65
"""One more than the most chunks (BOUND_COUNT of arguments.cuh)."""

SLOTS: Final = {4: 4096, 8: 2048}
"""Slots of a block's table in shared memory, by size of the sums in bytes."""

SAMPLED: Final = 1 << 11
SHARE_UNITS: Final = 1 << 16
"""Rows that are sampled to estimate the next level's arcs, and units of the share of its arcs that
one keeps (`arguments.cuh`)."""

RANGE_SHIFT: Final = 10
"""Members per 64-bit sum, as a power of two: `ArcsBefore` of arguments.cuh."""

KEPT: Final = rates("kept")
"""Arcs that the next level's arrays hold at first, as a share of a level's; where a level keeps
more, its arrays grow."""

REFINED_CHUNK: Final = 1 << 26
"""Most arcs of a chunk for which refined communities get half as many chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationLimits:
    """Which levels are aggregated how."""

    small: int = 1 << 19
    early: int = 1 << 22
    chunk: int = 1 << 23
    chunks: int = 8
    arcs_a_slot: int = 16
    most_slots: int = 1 << 62
    kept: float | None = None
    region_arcs: tuple[int, int] | None = None
    coarse_share: float = 0.0
    short_weights: tuple[int, ...] = packed.widths(weighted=False)
    most_chunk: int = 1 << 62


LIMITS: Final = AggregationLimits()

LOW_SCRATCH: Final = AggregationLimits(chunk=1 << 20, chunks=64)
"""For runs that do not fit otherwise; see `low_scratch_limits`."""

LOW_SCRATCH_CHUNKS: Final = 128
LOW_SCRATCH_ARCS_A_SLOT: Final = 64
"""Chunks and tables of every level follow from level 0's arcs, so that coarse levels need not
make do with smaller ones."""


def low_scratch_limits(arcs: int) -> AggregationLimits:
    """Return the limits of a run on so many arcs that does not fit with the default ones."""
    chunk, slots = (
        max(LOW_SCRATCH.chunk, arcs // LOW_SCRATCH_CHUNKS),
        arcs // LOW_SCRATCH_ARCS_A_SLOT,
    )
    return replace(LOW_SCRATCH, chunk=chunk, most_slots=slots)


CHUNK_SHARE: Final = 16
TABLES_SHARE: Final = 32
"""Shares of a small device that chunks and tables take, 1 / 16 and 1 / 32, or less: what does not
find room then is read over the bus, while more chunks cost little (`chunk_for`)."""


def limits_within(limits: AggregationLimits, nbytes: int, width: int) -> AggregationLimits:
    """Return limits for a device of so many bytes that does not hold everything."""
    chunk, slots = (nbytes // share // (4 + width) for share in (CHUNK_SHARE, TABLES_SHARE))
    return replace(
        limits, most_chunk=max(chunk, LOW_SCRATCH.chunk), most_slots=min(limits.most_slots, slots)
    )


def rows_expected(room: int, kept: int, arcs: int) -> int:
    """Return how many arcs the next level is expected to have at most."""
    share = kept // max(min(arcs, SAMPLED), 1)
    # Nearly three times the standard error of so many shares, which is a ninetieth at most.
    return min(room, arcs * share // SHARE_UNITS + arcs // 32)


def chunk_with_rows(
    least: int, most: int, free: int, rows: int, arc_bytes: tuple[int, int], *, shrinks: bool
) -> int:
    """Return the arcs of a chunk, as many as have room besides new rows."""
    each, new = arc_bytes
    left = free - new * rows
    if shrinks and left < each * least:
        left += rows
    # A chunk may have more arcs by those of a community, and arrays take whole pages.
    return max(least, min(most, left // each * 7 // 8))


def slots_of(needed: int, arcs: int, limits: AggregationLimits) -> int:
    """Return the slots of all tables of hubs; the largest hub needs so many."""
    return max(needed, min(arcs // limits.arcs_a_slot, limits.most_slots))


def slots_for(communities: int) -> int:
    """Return the slots of a table for so many distinct communities (`hash_table.cuh`)."""
    return 32 if communities <= 16 else 2 << (communities - 1).bit_length()


def reserved(arcs: int, number: int, *, leiden: bool, kept: float | None = None) -> int:
    """Return how many arcs the arrays of the level after level `number` hold at first."""
    if kept is None:
        kept = KEPT["leiden_later" if number else "leiden"] if leiden else KEPT["louvain"]
    return int(arcs * kept)


def chunk_for(arcs: int, limits: AggregationLimits, *, width: int, leiden: bool) -> int:
    """Return the arcs of a chunk; a chunk may exceed this by the arcs of one community."""
    chunks = min(limits.chunks, BOUNDS - 1)
    even = -(-arcs // chunks)
    if leiden:
        even = max(even, min(-(-arcs // max(chunks // 2, 1)), REFINED_CHUNK))
    even = -(-even * 8 // (4 + width))
    least = -(-arcs // (BOUNDS - 1))
    return max(min(max(limits.chunk, even), limits.most_chunk), least, 1)


def range_shift_for(max_degree: int) -> int:
    """Return how many members, as a power of two, may share a 64-bit sum (`ArcsBefore`)."""
    # Fewer than 2³² arcs may lie between the first and the last of them.
    return min(RANGE_SHIFT, ((2**32 - 1) // max(max_degree, 1) + 1).bit_length() - 1)


class WeightForm(NamedTuple):
    """Bytes of a weight, and entries for heavy arcs: none where weights have the type of sums."""

    width: int
    heavy_slots: int


def weights_for(total: int, capacity: int, width: int, widths: tuple[int, ...]) -> WeightForm:
    """Return the form of weights in which all take least."""
    ways = [(width * capacity, WeightForm(width, 0))]
    for short in widths:
        slots = packed.slots_for(total, short)
        nbytes = packed.head_bytes(slots) + short * capacity
        ways.append((nbytes, WeightForm(short, slots)))
    return min(ways)[-1]


class SumTables(NamedTuple):
    """Entries of the bins of communities that blocks and the grid sum, and slots of all tables."""

    block_bin: int
    hub_bin: int
    slots: int


def tables(width: int, k: int, neighbour_bound: int, max_arcs: int, arcs: int) -> SumTables:
    """Return what communities too large for a warp take."""
    # The fewest arcs with which a table of a warp or a block can turn out too small.
    block = SLOTS[width] // 4 * 3
    warp = block // WARPS
    slots = slots_for(min(neighbour_bound, max_arcs)) if max_arcs >= block else 0
    return SumTables(min(k, arcs // warp) + 1, min(k, arcs // block) + 1, slots)
