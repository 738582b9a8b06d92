"""What the kernels of `aggregate.cu` take: arguments, the arrays behind them, launches."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from louvain_um.core.ledger import Group
from louvain_um.gpu.aggregate.coarse_rows import CoarseRows
from louvain_um.gpu.aggregate.limits import (
    BOUNDS,
    Limits,
    chunk_for,
    heavy_slots,
    reserved,
    slots_of,
    stretch_for,
    tables,
)
from louvain_um.gpu.level import GpuLevel, next_region, tag_after
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.launch import THREADS, grid_for
from louvain_um.placement.memory.allocator import Allocator

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
"""`State` of group_members.cuh."""

ARGUMENTS: Final = (
    "n", "k", "labels", "distinct", "base", "chunk", "reserve", "narrow", "partial", "shift",
    "begin", "resume", "capacity", "wide",
    "offsets", "targets", "weights", "loops", "degrees", "numbers", "map", "ranks", "names",
    "members", "starts", "low", "whole", "rooms", "room_targets", "room_weights", "new_offsets",
    "new_targets", "new_weights", "new_loops", "new_degrees", "block_bin", "hub_bin", "keys",
    "sums", "state", "partials",
)  # fmt: skip
"""Fields of `Arguments` of group_members.cuh; each takes 8 bytes."""

STRUCT: Final = np.dtype((np.void, 8 * len(ARGUMENTS)))
"""`Arguments` as one opaque value: CuPy inspects every field of a structured one per launch."""

ALIGNED: Final = 256
"""Bytes to whose multiples parts of an array are aligned."""


class Aggregation:
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
        self.values = dict.fromkeys(ARGUMENTS, 0)
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
        packed = np.frombuffer(struct.pack(f"{len(ARGUMENTS)}Q", *self.values.values()), STRUCT)
        kernel((blocks,), (THREADS,), (packed.reshape(()),))

    def read(self) -> Any:
        """Wait for the device and return its `State`."""
        return self.state.get().view(STATE)[0]

    def group(self, k: int) -> None:
        """List the members of communities 0 … k − 1."""
        n = self.level.vertices
        shift = stretch_for(self.level.max_degree)
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
        self.set(chunk=chunk_for(arcs, limits, leiden=self.level.refined is not None))
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
        block_bin, hub_bin, slots = tables(
            width, self.values["k"], distinct, int(state["widest_room"]), self.level.arcs
        )
        if slots:
            slots = slots_of(slots, self.level.arcs, limits)
        self.scratch("block_bin", block_bin, np.uint32)
        self.scratch("hub_bin", hub_bin, np.uint32)
        self.scratch("keys", slots, np.uint32, "hash")
        self.scratch("sums", slots, sums, "hash")
        self.set(capacity=slots)

    def write(self, rows: CoarseRows, room: int, base: int = 0) -> Any:
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


def new_rows(
    memory: Allocator, level: GpuLevel, limits: Limits, room: int, total: int
) -> CoarseRows:
    """Return room for the next level's arcs: `room` at most, which weigh `total`."""
    capacity = min(room_after(level, limits), room)
    wide = heavy_slots(total, capacity, np.dtype(level.sums).itemsize, limits)
    return CoarseRows(memory, tag_after(level), "graph", capacity, level.sums, wide)


def room_after(level: GpuLevel, limits: Limits) -> int:
    """Return the arcs that there is room for on the next level, at first."""
    if limits.region_arcs is not None:
        own = limits.region_arcs[next_region(level) - 1]
        # What one level left of both is not all in one piece.
        left = (sum(limits.region_arcs) - level.arcs) // 8 * 7 if level.number else 0
        return max(own, min(int(limits.coarse_share * level.arcs), left))
    return reserved(level.arcs, level.number, leiden=level.refined is not None, kept=limits.kept)


def squares(state: Any) -> int:
    """Return a sum of 128 bits from its three parts."""
    low, middle, high = state["squares"].tolist()
    return int(low + (middle << 32) + (high << 64))


def _address(array: Any) -> int:
    address: int = 0 if array is None else array.data.ptr
    return address
