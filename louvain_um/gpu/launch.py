"""What every kernel that decides needs: a grid, tables for the widest vertices, a control."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.gpu.compile import Kernel, Kernels
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory import DeviceAllocator

THREADS: Final = 256
"""Threads of a block (`decide.cuh`)."""

ARCS_A_BLOCK: Final = 2048
"""Arcs of a level for each block of its grid: a small level waits for fewer blocks."""

GIANT_SHARE: Final = 0.25
"""Bytes a level's tables for giants may take, for each arc and at least 16 MiB in all."""

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
        ("visited", np.uint64),
        ("iterations", np.uint64),
    ]
)
"""`Control` of decide.cuh."""


class Giants(NamedTuple):
    """Tables in global memory, one for each of the first blocks."""

    keys: Any
    sums: Any
    slots: np.uint32
    blocks: np.uint32


def grid_for(kernels: Kernels, kernel: Kernel, level: GpuLevel) -> int:
    """Return the number of blocks to launch for a level: at most what is resident at once."""
    resident = kernels.resident_blocks(kernel, THREADS)
    return max(1, min(resident, (level.arcs + level.vertices) // ARCS_A_BLOCK))


def giant_tables(memory: DeviceAllocator, level: GpuLevel, blocks: int) -> Giants:
    """Return empty tables for vertices too wide for shared memory; free them by `free_giants`."""
    size = np.dtype(level.sums).itemsize
    if level.widest <= BLOCK_MAX[size]:
        slots, count = 1, 1
    else:
        slots = 2 << (level.widest - 1).bit_length()
        room = max(16 << 20, int(GIANT_SHARE * level.arcs))
        count = max(1, min(blocks, room // (slots * (4 + size))))
    keys = memory.empty("giant keys", "hash", slots * count, np.uint32)
    sums = memory.empty("giant sums", "hash", slots * count, level.sums)
    keys.fill(0xFFFFFFFF)
    sums.fill(0)
    return Giants(keys, sums, np.uint32(slots), np.uint32(count))


def free_giants(memory: DeviceAllocator) -> None:
    """Give the tables back."""
    memory.free("giant keys", "giant sums")


def new_control(memory: DeviceAllocator) -> Any:
    """Return a zeroed control block; free it by name."""
    control = memory.empty("control", "scratch", CONTROL.itemsize, np.uint8)
    control.fill(0)
    return control
