"""What every kernel that decides needs: a grid, tables for the widest vertices, a control."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.runtime.compile import Kernel, Kernels
from louvain_um.placement.memory.allocator import Allocator

THREADS: Final = 256
"""Threads of a block (`decide.cuh`)."""

ARCS_A_BLOCK: Final = 2048
"""Arcs of a level for each block of its grid: a small level waits for fewer blocks."""

ARCS_A_SLOT: Final = 8
LOW_SCRATCH_ARCS_A_SLOT: Final = 32
"""The tables for hubs have a slot for so many arcs of the level.

A run with low scratch has fewer, and serves hubs in more batches.
"""

SMALL_ARCS_A_SLOT: Final = 4
HUB_SLOTS: Final = 1 << 21
"""Small levels have a slot for so many arcs, up to so many slots: they have room to spare."""

WIDE_ARCS_A_SLOT: Final = 1.6
LOW_SCRATCH_WIDE_ARCS_A_SLOT: Final = 8
"""No more slots than one for so many arcs of hubs: two to four slots an arc, an eighth of them in
a sub-round and a quarter more to be safe; or, in a run with low scratch, a fifth of that."""

DRAIN_SLOTS: Final = 16 * THREADS
"""Slots a block empties at a time (`hubs.cuh`)."""

BLOCK_MAX: Final = {4: 2048, 8: 1024}
"""Most arcs of a vertex that a block's shared table holds, by size of the sums in bytes."""

CONTROL: Final = np.dtype(
    [
        ("barrier", np.uint32, 2),
        ("counts", np.uint32, 32 * 7),
        ("work", np.uint32, 32 * 7),
        ("gain", np.int64, 2),
        ("moves", np.uint64, 2),
        ("total_moves", np.uint64),
        ("total_gain", np.int64),
        ("visited", np.uint64),
        ("iterations", np.uint64),
        ("batch_end", np.uint64),
        ("round_begin", np.uint32),
        ("tail", np.uint32),
        ("ended", np.uint64, 128),
        ("moved", np.uint64, 128),
    ]
)
"""`Control` of decide.cuh."""


HUB_TABLES: Final = np.dtype(
    [
        (name, np.uint64)
        for name in ("keys", "sums", "capacity", "slots", "fills", "drains", "homes", "partials")
    ]
)
"""`HubTables` of hubs.cuh."""


def grid_for(kernels: Kernels, kernel: Kernel, level: GpuLevel) -> int:
    """Return the number of blocks to launch for a level: at most what is resident at once."""
    resident = kernels.resident_blocks(kernel, THREADS)
    return max(1, min(resident, (level.arcs + level.vertices) // ARCS_A_BLOCK))


def hub_table_sizes(
    vertices: int,
    arcs: int,
    widest: int,
    sum_bytes: int,
    *,
    low_scratch: bool = False,
    wide: int | None = None,
) -> tuple[int, int]:
    """Return the most hubs a level can have at once, and the slots of their tables.

    `wide` is how many arcs hubs have, at most; None where that is not known.
    """
    block_max = BLOCK_MAX[sum_bytes]
    if widest <= block_max:
        return 0, 0
    needed = 2 << (widest - 1).bit_length()
    wide = arcs if wide is None else wide
    slots = arcs // (LOW_SCRATCH_ARCS_A_SLOT if low_scratch else ARCS_A_SLOT)
    arcs_a_slot = LOW_SCRATCH_WIDE_ARCS_A_SLOT if low_scratch else WIDE_ARCS_A_SLOT
    slots = min(slots, int(wide / arcs_a_slot))
    small = min(HUB_SLOTS, arcs // SMALL_ARCS_A_SLOT, int(wide / WIDE_ARCS_A_SLOT))
    return min(vertices, wide // block_max), max(needed, small, slots)


class HubTables:
    """Memory for vertices too wide for shared memory: `HubTables` of hubs.cuh.

    `argument` is the struct that kernels take; `free` gives the memory back.
    """

    def __init__(self, memory: Allocator, level: GpuLevel, low_scratch: bool = False) -> None:
        self.memory = memory
        sums = np.dtype(level.sums)
        size = level.vertices, level.arcs, level.max_degree, sums.itemsize
        count, slots = hub_table_sizes(*size, low_scratch=low_scratch, wide=level.hub_arcs)
        units = slots // DRAIN_SLOTS + count
        wanted: tuple[tuple[str, int, Any], ...] = (
            ("hub_keys", slots, np.uint32),
            ("hub_sums", slots, sums),
            ("hub_slots", count + 1, np.uint64),
            ("hub_fills", count + 1, np.uint32),
            ("hub_drains", count + 1, np.uint32),
            ("hub_own_weights", count + 1, sums),
            ("hub_choices", 2 * units, np.uint64),
        )
        self.names = [name for name, _, _ in wanted]
        arrays = [memory.empty(name, "hash", size, dtype) for name, size, dtype in wanted]
        arrays[0].fill(0xFFFFFFFF)
        arrays[1].fill(0)
        keys, table, *others = (np.uint64(array.data.ptr) for array in arrays)
        self.argument = np.array((keys, table, np.uint64(slots), *others), HUB_TABLES)

    def free(self) -> None:
        """Give the memory back."""
        self.memory.free(*self.names)


def new_control(memory: Allocator) -> Any:
    """Return a zeroed control block; free it by name."""
    control = memory.empty("control", "scratch", CONTROL.itemsize, np.uint8)
    control.fill(0)
    return control
