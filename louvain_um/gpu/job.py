"""What the kernels of `aggregate.cu` take: arguments, the arrays behind them, launches."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from louvain_um.gpu import narrow
from louvain_um.gpu.compile import Kernels
from louvain_um.gpu.launch import THREADS, grid_for
from louvain_um.gpu.level import GpuLevel, home_after, tag_after
from louvain_um.gpu.newrows import Rows
from louvain_um.ledger import Group
from louvain_um.placement.allocator import Allocator

BOUNDS: Final = 65
"""Bounds of chunks that the device knows: one more than there may be chunks."""

SLOTS: Final = {4: 4096, 8: 2048}
"""Slots of a block's table in shared memory, by size of the sums in bytes."""

STATE: Final = np.dtype(
    [
        ("barrier", np.uint32, 2),
        ("tickets", np.uint32, 4),
        *(
            (name, np.uint64)
            for name in (
                "vertices", "room", "widest_room", "chunk_room", "arcs", "widest", "inside",
                "total", "written", "next", "filled",
            )
        ),
        ("squares", np.uint64, 3),
        ("bounds", np.uint64, BOUNDS),
        ("room_at", np.uint64, BOUNDS),
    ]
)  # fmt: skip
"""`State` of grouping.cuh."""

JOB: Final = (
    "n", "k", "labels", "distinct", "base", "chunk", "reserve", "narrow", "partial", "shift",
    "begin", "resume", "capacity", "wide",
    "offsets", "targets", "weights", "loops", "degrees", "numbers", "map", "ranks", "names",
    "members", "starts", "low", "whole", "rooms", "room_targets", "room_weights", "new_offsets",
    "new_targets", "new_weights", "new_loops", "new_degrees", "middles", "giants", "keys", "sums",
    "state", "partials",
)  # fmt: skip
"""`Job` of grouping.cuh; each field takes 8 bytes."""

PACKED: Final = np.dtype((np.void, 8 * len(JOB)))
"""A `Job` as CuPy takes it fastest: it looks at every field of a structure at each launch."""

ALIGNED: Final = 256
"""Bytes to whose multiples parts of an array are aligned."""

STRETCH: Final = 10
"""Members, as a power of two, that share a sum of 64 bits: `Before` of grouping.cuh."""

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
        The tables of giants have a slot for so many arcs of the level, but no more than that,
        and so many at least as the widest community needs.
    kept : float, optional
        Share of a level's arcs that the next has room for at first, instead of `KEPT`.
    homes : (int, int), optional
        Arcs that the two homes of levels (`reserve.py`) have room for at first, instead.
    later : float
        Share of the arcs of level 1 or more that the next has room for, if both homes
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
    homes: tuple[int, int] | None = None
    later: float = 0.0
    narrow: bool = True


LIMITS: Final = Limits()

TIGHT: Final = Limits(chunk=1 << 20, chunks=64)
"""For runs that do not fit otherwise; see `tight_limits`."""

LATER_CHUNKS: Final = 128
LATER_SLOTS: Final = 64
"""A tight run's later levels have chunks and tables that are small for level 0, not for them: with
some of LFR 24 on the host, its level of 29 M arcs is added up in 14 ms; it took 24."""


def tight_limits(arcs: int) -> Limits:
    """Return how levels are aggregated in a run on so many arcs that does not fit otherwise."""
    chunk, slots = max(TIGHT.chunk, arcs // LATER_CHUNKS), arcs // LATER_SLOTS
    return replace(TIGHT, chunk=chunk, most_slots=slots)


def slots_of(needed: int, arcs: int, limits: Limits) -> int:
    """Return the slots of the tables of giants, of which one needs so many."""
    return max(needed, min(arcs // limits.arcs_a_slot, limits.most_slots))


def slots_for(communities: int) -> int:
    """Return the slots of a table for so many distinct communities (`table.cuh`)."""
    return 32 if communities <= 16 else 2 << (communities - 1).bit_length()


def reserved(arcs: int, number: int, *, leiden: bool, kept: float | None = None) -> int:
    """Return the arcs that there is room for on the level after level `number`, at first.

    Examples
    --------
    >>> from louvain_um.gpu.job import reserved
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


class Job:
    """Arguments of the kernels, and the arrays behind them.

    Parameters
    ----------
    level : GpuLevel
        Whose arcs are added up.
    """

    def __init__(self, kernels: Kernels, memory: Allocator, level: GpuLevel) -> None:
        self.kernels = kernels
        self.memory = memory
        self.level = level
        self.names: list[str] = []
        self.partials = 0
        self.values = dict.fromkeys(JOB, 0)
        self.state = self.scratch("state", STATE.itemsize, np.uint8)
        self.state.data.memset_async(0, STATE.itemsize)
        given = ("offsets", "targets", "weights", "loops", "degrees")
        self.set(n=level.vertices, **{name: getattr(level, name) for name in given})

    def set(self, **values: Any) -> None:
        """Set arguments: numbers, arrays, or None for a null pointer."""
        for name, value in values.items():
            self.values[name] = value if isinstance(value, int) else _address(value)

    def scratch(self, name: str, size: int, dtype: Any, group: Group = "scratch") -> Any:
        """Return an array that `close` frees, set as the argument of its name."""
        array = self.memory.empty(f"aggregate {name}", group, size, dtype)
        self.names.append(f"aggregate {name}")
        self.set(**{name: array})
        return array

    def carve(self, **sizes: int) -> None:
        """Set arguments to parts, of so many bytes, of one array that `close` frees."""
        rounded = {name: -(-size // ALIGNED) * ALIGNED for name, size in sizes.items()}
        whole = self.memory.empty("aggregate", "scratch", sum(rounded.values()), np.uint8)
        self.names.append("aggregate")
        at = _address(whole)
        for name, size in rounded.items():
            self.values[name] = at
            at += size

    def drop(self, *names: str) -> None:
        """Free arrays before the end."""
        for name in names:
            self.names.remove(f"aggregate {name}")
            self.memory.free(f"aggregate {name}")

    def close(self) -> None:
        """Free what is left."""
        self.memory.free(*self.names)
        self.names.clear()

    def prepare(self, name: str) -> tuple[Any, int]:
        """Return a kernel and its grid; there is a partial sum for each block of it."""
        kernel = self.kernels.get("aggregate", name, self.level.types)
        return kernel, grid_for(self.kernels, kernel, self.level)

    def launch(self, name: str) -> None:
        """Run a kernel, with room for a partial sum of each block."""
        kernel, blocks = self.prepare(name)
        if not self.values["partials"] or 0 < self.partials < blocks:
            if self.partials:
                self.drop("partials")
            self.scratch("partials", blocks, np.uint64)
            self.partials = blocks
        packed = np.frombuffer(struct.pack(f"{len(JOB)}Q", *self.values.values()), PACKED)
        kernel((blocks,), (THREADS,), (packed.reshape(()),))

    def read(self) -> Any:
        """Wait for the device and return its `State`."""
        return self.state.get().view(STATE)[0]

    def group(self, k: int) -> None:
        """List the members of communities 0 … k − 1."""
        n = self.level.vertices
        shift = stretch_for(self.level.widest)
        if not self.values["members"]:
            self.scratch("members", n + 1, np.uint32)
        self.scratch("starts", k + 1, np.uint32)
        self.scratch("low", n + 1, np.uint32)
        self.scratch("whole", (n >> shift) + 1, np.int64)
        self.set(k=k, shift=shift)
        self.launch("group_members")

    def lay_out(self, limits: Limits) -> Any:
        """Lay out room for the rows; return the state."""
        arcs, k = self.level.arcs, self.values["k"]
        self.set(chunk=chunk_for(arcs, limits, leiden=self.level.parts is not None))
        self.scratch("rooms", k + 1, np.uint32)
        self.launch("lay_out")
        state = self.read()
        # Communities without arcs are nobody's neighbours; who summed no members does not know.
        self.set(distinct=int(state["filled"]) or self.values["distinct"])
        return state

    def make_room(self, state: Any, limits: Limits) -> None:
        """Ask for what adding up a chunk takes."""
        sums, distinct = self.level.sums, self.values["distinct"]
        width = np.dtype(sums).itemsize
        self.scratch("room_targets", int(state["chunk_room"]), np.uint32)
        self.scratch("room_weights", int(state["chunk_room"]), sums)
        middles, giants, slots = tables(
            width, self.values["k"], distinct, int(state["widest_room"]), self.level.arcs
        )
        if slots:
            slots = slots_of(slots, self.level.arcs, limits)
        self.scratch("middles", middles, np.uint32)
        self.scratch("giants", giants, np.uint32)
        self.scratch("keys", slots, np.uint32, "hash")
        self.scratch("sums", slots, sums, "hash")
        self.set(capacity=slots)

    def write(self, rows: Rows, room: int, base: int = 0) -> Any:
        """Write new rows of `room` arcs at most behind `base` arcs; return the state."""
        most, begin, resume = base + room, 0, 0
        while True:
            self.set(
                base=base, reserve=rows.capacity, begin=begin, resume=resume,
                narrow=int(rows.wide > 0), wide=rows.wide,
                new_targets=rows.targets, new_weights=rows.weights,
            )  # fmt: skip
            self.launch("sum_arcs")
            state = self.read()
            if int(state["next"]) == BOUNDS:
                return state
            base, begin, resume = int(state["written"]), int(state["next"]), 1
            rows.grow(min(most, max(int(state["arcs"]), 2 * rows.capacity)), base)


def stretch_for(widest: int) -> int:
    """Return how many members, as a power of two, may share a sum: `Before` of grouping.cuh."""
    # Fewer than 2³² arcs may lie between the first and the last of them.
    return min(STRETCH, ((2**32 - 1) // max(widest, 1) + 1).bit_length() - 1)


def slots_for_wide(total: int, capacity: int, width: int, limits: Limits) -> int:
    """Return the entries for heavy arcs; 0 where weights of a byte would save nothing.

    Parameters
    ----------
    total, capacity : int
        What all arcs weigh, and how many there may be.
    width : int
        Bytes of a sum.
    """
    slots = narrow.slots_for(total)
    saved = capacity * (width - 1)
    return slots if limits.narrow and narrow.head_bytes(slots) < saved else 0


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
    middles, giants, slots : int
        Communities for a block, and for the grid; slots of the largest giant's table.
    """
    # The fewest arcs with which a table of a warp or a block can turn out too small.
    block = SLOTS[width] // 4 * 3
    warp = block // 8
    slots = slots_for(min(distinct, widest)) if widest >= block else 0
    return min(k, arcs // warp) + 1, min(k, arcs // block) + 1, slots


def new_rows(memory: Allocator, level: GpuLevel, limits: Limits, room: int, total: int) -> Rows:
    """Return room for the next level's arcs: `room` at most, which weigh `total`."""
    capacity = min(room_after(level, limits), room)
    wide = slots_for_wide(total, capacity, np.dtype(level.sums).itemsize, limits)
    return Rows(memory, tag_after(level), "graph", capacity, level.sums, wide)


def room_after(level: GpuLevel, limits: Limits) -> int:
    """Return the arcs that there is room for on the next level, at first."""
    if limits.homes is not None:
        own = limits.homes[home_after(level) - 1]
        # What one level left of both is not all in one piece.
        left = (sum(limits.homes) - level.arcs) // 8 * 7 if level.number else 0
        return max(own, min(int(limits.later * level.arcs), left))
    return reserved(level.arcs, level.number, leiden=level.parts is not None, kept=limits.kept)


def squares(state: Any) -> int:
    """Return a sum of 128 bits from its three parts."""
    low, middle, high = state["squares"].tolist()
    return int(low + (middle << 32) + (high << 64))


def _address(array: Any) -> int:
    address: int = 0 if array is None else array.data.ptr
    return address
