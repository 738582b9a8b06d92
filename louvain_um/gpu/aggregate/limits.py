"""How levels are aggregated: chunks of rows, tables, and the room that the next level gets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from louvain_um.gpu.memory import weights8

BOUNDS: Final = 65
"""Bounds of chunks that the device knows: one more than there may be chunks."""

SLOTS: Final = {4: 4096, 8: 2048}
"""Slots of a block's table in shared memory, by size of the sums in bytes."""

STRETCH: Final = 10
"""Members, as a power of two, that share a sum of 64 bits: `Before` of group_members.cuh."""

KEPT: Final = {"louvain": 1 / 3, "leiden": 1.0, "leiden later": 3 / 4}
"""Room for the arcs of the next level, by those of a level.

Measured: R-MAT keeps .32 of its arcs (Louvain), .97 and then .68 (Leiden). A level that keeps
more is moved to a larger room when that shows.
"""

PARTS_CHUNK: Final = 1 << 26
"""Arcs of a chunk beyond which parts have as many chunks as communities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Which levels are aggregated how.

    Parameters
    ----------
    small : int
        Levels of at most so many vertices and arcs take one launch and one read-back.
    chunk, chunks : int
        Arcs whose rows have room at a time: so many at least, or the level's divided by
        `chunks`, which are at most 64; where parts are aggregated, by half as many, unless
        that is more than `PARTS_CHUNK`.
    arcs_a_slot, most_slots : int
        The tables of hubs have a slot for so many arcs of the level, but no more than that,
        and so many at least as the widest community needs.
    kept : float, optional
        Share of a level's arcs that the next has room for at first, instead of `KEPT`.
    region_arcs : (int, int), optional
        Arcs that the two regions for coarse levels (`coarse_memory.py`) have room for at
        first, instead.
    coarse_share : float
        Share of the arcs of level 1 or more that the next has room for, if both regions
        together have that much: 0 unless they lie side by side.
    narrow : bool
        Whether weights may be bytes (`narrow.py`).
    """

    small: int = 1 << 19
    chunk: int = 1 << 23
    chunks: int = 8
    arcs_a_slot: int = 16
    most_slots: int = 1 << 62
    kept: float | None = None
    region_arcs: tuple[int, int] | None = None
    coarse_share: float = 0.0
    narrow: bool = True


LIMITS: Final = Limits()

LOW_SCRATCH: Final = Limits(chunk=1 << 20, chunks=64)
"""For runs that do not fit otherwise; see `low_scratch_limits`."""

LATER_CHUNKS: Final = 128
LATER_SLOTS: Final = 64
"""With low scratch, chunks and tables of coarse levels are small for level 0, not for them: with
some of LFR 24 on the host, its level of 29 M arcs is added up in 14 ms; it took 24."""


def low_scratch_limits(arcs: int) -> Limits:
    """Return how levels are aggregated in a run on so many arcs that does not fit otherwise."""
    chunk, slots = max(LOW_SCRATCH.chunk, arcs // LATER_CHUNKS), arcs // LATER_SLOTS
    return replace(LOW_SCRATCH, chunk=chunk, most_slots=slots)


def slots_of(needed: int, arcs: int, limits: Limits) -> int:
    """Return the slots of the tables of hubs, of which one needs so many."""
    return max(needed, min(arcs // limits.arcs_a_slot, limits.most_slots))


def slots_for(communities: int) -> int:
    """Return the slots of a table for so many distinct communities (`hash_table.cuh`)."""
    return 32 if communities <= 16 else 2 << (communities - 1).bit_length()


def reserved(arcs: int, number: int, *, leiden: bool, kept: float | None = None) -> int:
    """Return the arcs that there is room for on the level after level `number`, at first.

    Examples
    --------
    >>> from louvain_um.gpu.aggregate.limits import reserved
    >>> reserved(900, 0, leiden=False), reserved(900, 0, leiden=True), reserved(900, 1, leiden=True)
    (300, 900, 675)
    """
    if kept is None:
        kept = KEPT["leiden later" if number else "leiden"] if leiden else KEPT["louvain"]
    return int(arcs * kept)


def chunk_for(arcs: int, limits: Limits, *, leiden: bool) -> int:
    """Return the arcs whose rows have room at a time; a community's more may be added.

    Chunks cost barriers and idle blocks, about .1 ms each on an H200: eight instead of four
    cost Louvain .5 to 1.2 % of its time, but Leiden 5 % of 280 ms (`gpu_chunks.json`).
    """
    chunks = min(limits.chunks, BOUNDS - 1)
    even = -(-arcs // chunks)
    if leiden:
        even = max(even, min(-(-arcs // max(chunks // 2, 1)), PARTS_CHUNK))
    return max(limits.chunk, even, 1)


def stretch_for(widest: int) -> int:
    """Return how many members, as a power of two, may share a sum (`Before`)."""
    # Fewer than 2³² arcs may lie between the first and the last of them.
    return min(STRETCH, ((2**32 - 1) // max(widest, 1) + 1).bit_length() - 1)


def heavy_slots(total: int, capacity: int, width: int, limits: Limits) -> int:
    """Return the entries for heavy arcs; 0 where weights of a byte would save nothing.

    Parameters
    ----------
    total, capacity : int
        What all arcs weigh, and how many there may be.
    width : int
        Bytes of a sum.
    """
    slots = weights8.slots_for(total)
    saved = capacity * (width - 1)
    return slots if limits.narrow and weights8.head_bytes(slots) < saved else 0


def tables(width: int, k: int, distinct: int, widest: int, arcs: int) -> tuple[int, int, int]:
    """Return the entries that lists and tables need, for communities too large for a warp.

    Parameters
    ----------
    width : int
        Bytes of a sum.
    k, distinct, widest, arcs : int
        Communities, neighbours that one may have, most arcs of one, and arcs of all; or more.

    Returns
    -------
    block_bin, hubs, slots : int
        Communities for a block, and for the grid; slots of the largest hub's table.
    """
    # The fewest arcs with which a table of a warp or a block can turn out too small.
    block = SLOTS[width] // 4 * 3
    warp = block // 8
    slots = slots_for(min(distinct, widest)) if widest >= block else 0
    return min(k, arcs // warp) + 1, min(k, arcs // block) + 1, slots
