"""How levels are aggregated: chunks of rows, hash tables, and memory for the next level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from louvain_um.gpu.memory import short_weights

BOUNDS: Final = 65
"""One more than the most chunks (BOUND_COUNT of arguments.cuh)."""

SLOTS: Final = {4: 4096, 8: 2048}
"""Slots of a block's table in shared memory, by size of the sums in bytes."""

SAMPLED: Final = 1 << 11
SHARE_UNITS: Final = 1 << 16
"""Rows that are sampled to estimate the next level's arcs, and units of the share of its arcs that
one keeps (`arguments.cuh`)."""

STRETCH: Final = 10
"""Members per 64-bit sum, as a power of two: `ArcsBefore` of arguments.cuh."""

KEPT: Final = {"louvain": 1 / 3, "leiden": 1.0, "leiden later": 3 / 4}
"""Arcs that the next level's arrays hold at first, as a share of a level's.

Measured: R-MAT keeps .32 of its arcs (Louvain), .97 and then .68 (Leiden). Where a level keeps
more, its arrays grow.
"""

REFINED_CHUNK: Final = 1 << 26
"""Most arcs of a chunk for which refined communities get half as many chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Which levels are aggregated how.

    Parameters
    ----------
    small : int
        Levels of at most so many vertices and arcs take one launch and one read-back.
    ahead : int
        Levels after the input of at most so many vertices and arcs are refined before it is known
        what moved, if nothing leaves the device for it: for nothing at the end of a cycle.
        Refinement reads every arc twice, so many about as fast as the host launches it otherwise.
    chunk, chunks : int
        Arcs of a chunk: at least `chunk`, or the level's divided by `chunks`, which is at most
        64; by half of it for refined communities, unless that exceeds `REFINED_CHUNK`. Of sums
        of 64 bits, two thirds of what the level's arcs make it, which take as many bytes.
    arcs_a_slot, most_slots : int
        The tables of hubs have one slot per `arcs_a_slot` arcs of the level, at most
        `most_slots`, and at least what the largest community needs.
    kept : float, optional
        Share of a level's arcs that the next level's arrays hold at first, instead of `KEPT`.
    region_arcs : (int, int), optional
        Arcs that the two regions for coarse levels (`louvain_um.gpu.memory.coarse_memory`)
        hold at first, instead.
    coarse_share : float
        Share of the arcs of level 1 or later that the next level's arrays hold, if both
        regions together have that much: 0 unless they are adjacent.
    short_weights : tuple of int
        Bytes that weights may take (`louvain_um.gpu.memory.short_weights`), instead of those
        of sums.
    most_chunk : int
        Most arcs of a chunk, if there are not too many chunks then, and no memory would lie idle:
        chunks of refined communities are larger where it would (`chunk_beside`).
    """

    small: int = 1 << 19
    ahead: int = 1 << 22
    chunk: int = 1 << 23
    chunks: int = 8
    arcs_a_slot: int = 16
    most_slots: int = 1 << 62
    kept: float | None = None
    region_arcs: tuple[int, int] | None = None
    coarse_share: float = 0.0
    short_weights: tuple[int, ...] = short_weights.widths(weighted=False)
    most_chunk: int = 1 << 62


LIMITS: Final = Limits()

LOW_SCRATCH: Final = Limits(chunk=1 << 20, chunks=64)
"""For runs that do not fit otherwise; see `low_scratch_limits`."""

LOW_SCRATCH_CHUNKS: Final = 128
LOW_SCRATCH_ARCS_A_SLOT: Final = 64
"""Chunks and tables of every level follow from level 0's arcs, so that coarse levels need not
make do with smaller ones."""


def low_scratch_limits(arcs: int) -> Limits:
    """Return the limits of a run on so many arcs that does not fit with the default ones."""
    chunk, slots = (
        max(LOW_SCRATCH.chunk, arcs // LOW_SCRATCH_CHUNKS),
        arcs // LOW_SCRATCH_ARCS_A_SLOT,
    )
    return replace(LOW_SCRATCH, chunk=chunk, most_slots=slots)


CHUNK_SHARE: Final = 16
TABLES_SHARE: Final = 32
"""Shares of a small device that chunks and tables take, 1 / 16 and 1 / 32, or less: what does not
find room beside them is read over the bus, while more chunks cost little (`chunk_for`)."""


def limits_within(limits: Limits, nbytes: int, width: int) -> Limits:
    """Return limits for a device of so many bytes that does not hold everything.

    Parameters
    ----------
    limits : Limits
    nbytes : int
    width : int
        Bytes of a sum.
    """
    chunk, slots = (nbytes // share // (4 + width) for share in (CHUNK_SHARE, TABLES_SHARE))
    return replace(
        limits,
        most_chunk=max(chunk, LOW_SCRATCH.chunk),
        most_slots=min(limits.most_slots, slots),
    )


def rows_expected(room: int, kept: int, arcs: int) -> int:
    """Return how many arcs the next level is expected to have at most.

    Parameters
    ----------
    room : int
        Those that it has at most.
    kept : int
        Sum of the shares of their arcs that sampled rows keep, in units of 1 / `SHARE_UNITS`.
    arcs : int
        Arcs of the level, which is sampled evenly by arcs.

    Examples
    --------
    >>> from louvain_um.gpu.aggregate.limits import SAMPLED, SHARE_UNITS, rows_expected
    >>> quarter = SAMPLED * SHARE_UNITS // 4
    >>> [rows_expected(room, quarter, 6_400_000) for room in (5_000_000, 400_000)]
    [1800000, 400000]
    """
    share = kept // max(min(arcs, SAMPLED), 1)
    # Nearly three times the standard error of so many shares, which is a ninetieth at most.
    return min(room, arcs * share // SHARE_UNITS + arcs // 32)


def chunk_beside(
    least: int, most: int, free: int, rows: int, arc_bytes: tuple[int, int], *, shrinks: bool
) -> int:
    """Return the arcs of a chunk, as many as have room beside new rows.

    Parameters
    ----------
    least, most : int
        Arcs of a chunk: at least, wherever there is room for them, and at most.
    free : int
        Bytes for both.
    rows : int
        Arcs of the new rows.
    arc_bytes : (int, int)
        Bytes of an arc of a chunk, and of a new row.
    shrinks : bool
        Whether new rows may take a byte less for each arc, if little is free.

    Examples
    --------
    >>> from louvain_um.gpu.aggregate.limits import chunk_beside
    >>> [chunk_beside(100, 1000, free, 800, (8, 5), shrinks=True) for free in (3900, 8000, 99_000)]
    [100, 437, 1000]
    """
    each, new = arc_bytes
    left = free - new * rows
    if shrinks and left < each * least:
        left += rows
    # A chunk may have more arcs by those of a community, and arrays take whole pages.
    return max(least, min(most, left // each * 7 // 8))


def slots_of(needed: int, arcs: int, limits: Limits) -> int:
    """Return the slots of all tables of hubs; the largest hub needs so many."""
    return max(needed, min(arcs // limits.arcs_a_slot, limits.most_slots))


def slots_for(communities: int) -> int:
    """Return the slots of a table for so many distinct communities (`hash_table.cuh`)."""
    return 32 if communities <= 16 else 2 << (communities - 1).bit_length()


def reserved(arcs: int, number: int, *, leiden: bool, kept: float | None = None) -> int:
    """Return how many arcs the arrays of the level after level `number` hold at first.

    Examples
    --------
    >>> from louvain_um.gpu.aggregate.limits import reserved
    >>> reserved(900, 0, leiden=False), reserved(900, 0, leiden=True), reserved(900, 1, leiden=True)
    (300, 900, 675)
    """
    if kept is None:
        kept = KEPT["leiden later" if number else "leiden"] if leiden else KEPT["louvain"]
    return int(arcs * kept)


def chunk_for(arcs: int, limits: Limits, *, width: int, leiden: bool) -> int:
    """Return the arcs of a chunk; a chunk may exceed this by the arcs of one community.

    A sum takes `width` bytes. Chunks cost barriers and idle blocks: on an H200, eight instead of
    four cost Louvain .5 to 1.3 % of its time, but Leiden 5 % of 280 ms (`gpu_chunks.json`, by an
    earlier version).
    """
    chunks = min(limits.chunks, BOUNDS - 1)
    even = -(-arcs // chunks)
    if leiden:
        even = max(even, min(-(-arcs // max(chunks // 2, 1)), REFINED_CHUNK))
    even = -(-even * 8 // (4 + width))
    least = -(-arcs // (BOUNDS - 1))
    return max(min(max(limits.chunk, even), limits.most_chunk), least, 1)


def stretch_for(max_degree: int) -> int:
    """Return how many members, as a power of two, may share a 64-bit sum (`ArcsBefore`)."""
    # Fewer than 2³² arcs may lie between the first and the last of them.
    return min(STRETCH, ((2**32 - 1) // max(max_degree, 1) + 1).bit_length() - 1)


def weights_for(total: int, capacity: int, width: int, widths: tuple[int, ...]) -> tuple[int, int]:
    """Return the bytes of a weight with which all take least, and the entries for heavy arcs.

    Parameters
    ----------
    total, capacity : int
        Total weight of the arcs, and the most arcs there may be.
    width : int
        Bytes of a sum: what weights take that are not short, without entries.
    widths : tuple of int
        Bytes that short weights may take.

    Examples
    --------
    >>> from louvain_um.gpu.aggregate.limits import weights_for
    >>> [weights_for(total, 1000, 4, (1, 2)) for total in (3000, 300_000, 300_000_000)]
    [(1, 15), (2, 6), (4, 0)]
    """
    ways = [(width * capacity, width, 0)]
    for short in widths:
        slots = short_weights.slots_for(total, short)
        ways.append((short_weights.head_bytes(slots) + short * capacity, short, slots))
    return min(ways)[1:]


def tables(
    width: int, k: int, neighbour_bound: int, max_arcs: int, arcs: int
) -> tuple[int, int, int]:
    """Return the entries of bins and tables for communities too large for a warp.

    Parameters
    ----------
    width : int
        Bytes of a sum.
    k, neighbour_bound, max_arcs, arcs : int
        Communities, neighbours of one, most arcs of one, and arcs of all; or upper bounds.

    Returns
    -------
    block_bin, hub_bin, slots : int
        Communities that blocks and that the grid may sum; slots of the largest hub's table.
    """
    # The fewest arcs with which a table of a warp or a block can turn out too small.
    block = SLOTS[width] // 4 * 3
    warp = block // 8
    slots = slots_for(min(neighbour_bound, max_arcs)) if max_arcs >= block else 0
    return min(k, arcs // warp) + 1, min(k, arcs // block) + 1, slots
