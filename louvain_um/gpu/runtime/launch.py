"""What moving and refining need on the device: a grid, tables for hubs, a control block."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.runtime.compile import Kernel, Kernels
from louvain_um.gpu.runtime.structs import Struct, address, layout, pointers
from louvain_um.placement.memory.run_memory import RunMemory

THREADS: Final = 256
"""Threads of a block (`bins.cuh`)."""

BINS: Final = 7
"""Degree bins (`bins.cuh`)."""

ARCS_A_BLOCK: Final = 2048
"""Arcs of a level per block of its grid: a barrier of fewer blocks takes less time."""

ARCS_A_SLOT: Final = 8
LOW_SCRATCH_ARCS_A_SLOT: Final = 32
"""Arcs of the level per slot of the tables of hubs.

With low scratch there are fewer slots, and hubs are decided in more batches.
"""

SMALL_LEVEL_ARCS_A_SLOT: Final = 4
SMALL_LEVEL_SLOTS: Final = 1 << 21
"""The same for small levels, up to so many slots: these cost little memory."""

HUB_ARCS_A_SLOT: Final = 1.6
LOW_SCRATCH_HUB_ARCS_A_SLOT: Final = 8
"""Arcs of hubs per slot, at least.

Hubs take one to two slots per arc, and a unit more each; an eighth of them is in a sub-round, and
sub-rounds may have more. With low scratch, a fifth of that.
"""

PARTITION_ARCS: Final = 1024
"""Arcs of a hub per partition, at least, but for hubs of one (`partitions.cuh`)."""

QUEUE_BLOCK: Final = 1 << 16
MOST_QUEUED: Final = 8566
"""Of any 2¹⁶ vertices from a multiple of that on, at most so many are in one of 8 sub-rounds,
whatever the salt: counted for all 2³² hashes, of which a salt permutes such blocks."""

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
        ("read_again", np.uint64),
    ]
)
"""`Control` of bins.cuh."""


HUB_TABLES: Final = layout(
    **pointers("keys", "sums"), capacity=np.uint64,
    **pointers("slots", "fills", "drains", "own_weights", "partials"),
)  # fmt: skip
"""`HubTables` of hubs.cuh."""

HUB_CHOICE: Final = layout(choice=layout(score=np.float64, community=np.uint32), weight=np.uint64)
"""`HubChoice` of hubs.cuh."""


def grid_for(kernels: Kernels, kernel: Kernel, level: GpuLevel) -> int:
    """Return the number of blocks to launch for a level: at most those resident at once."""
    resident = kernels.resident_blocks(kernel, THREADS)
    return max(1, min(resident, (level.arcs + level.vertices) // ARCS_A_BLOCK))


def queued_at_once(vertices: int, *, low_scratch: bool) -> int:
    """Return how many sub-rounds of a level are queued at a time."""
    return 1 if low_scratch and vertices > QUEUE_BLOCK else rules.SUB_ROUNDS


def queue_entries(vertices: int, queued: int) -> int:
    """Return the most vertices that are queued at a time."""
    if queued == rules.SUB_ROUNDS:
        return vertices
    return min(vertices, queued * MOST_QUEUED * -(-vertices // QUEUE_BLOCK))


def hub_table_sizes(
    vertices: int,
    arcs: int,
    max_degree: int,
    sum_bytes: int,
    *,
    low_scratch: bool = False,
    hub_arcs: int | None = None,
) -> tuple[int, int]:
    """Return the most hubs a level can have at once, and the slots of their tables."""
    block_max = BLOCK_MAX[sum_bytes]
    if max_degree <= block_max:
        return 0, 0
    needed = 2 << (max_degree - 1).bit_length()
    hub_arcs = arcs if hub_arcs is None else hub_arcs
    slots = arcs // (LOW_SCRATCH_ARCS_A_SLOT if low_scratch else ARCS_A_SLOT)
    most = hub_arcs / (LOW_SCRATCH_HUB_ARCS_A_SLOT if low_scratch else HUB_ARCS_A_SLOT)
    slots = min(slots, int(most))
    small = min(SMALL_LEVEL_SLOTS, arcs // SMALL_LEVEL_ARCS_A_SLOT, int(hub_arcs / HUB_ARCS_A_SLOT))
    return min(vertices, hub_arcs // block_max), max(needed, small, slots)


def hub_arrays(count: int, slots: int, sums: Any) -> dict[str, tuple[int, np.dtype[Any]]]:
    """Return length and type of each array of the tables of hubs."""
    words = HUB_CHOICE.itemsize // 8
    found: dict[str, tuple[int, Any]] = {
        "keys": (slots, np.uint32),
        "sums": (slots, sums),
        "slots": (count + 1, np.uint64),
        "fills": (count + 1, np.uint32),
        "drains": (count + 1, np.uint32),
        "own_weights": (count + 1, sums),
        "partials": (words * (slots // PARTITION_ARCS + count), np.uint64),
    }
    return {name: (length, np.dtype(kind)) for name, (length, kind) in found.items()}


def hub_bytes(count: int, slots: int, sum_bytes: int) -> int:
    """Return the bytes of these arrays."""
    arrays = hub_arrays(count, slots, np.uint32 if sum_bytes == 4 else np.uint64)
    return sum(length * kind.itemsize for length, kind in arrays.values())


@cache
def no_hub_tables() -> Any:
    """Return what kernels take for a level without hubs."""
    nothing = dict.fromkeys(HUB_TABLES.names or (), None) | {"capacity": 0}
    return Struct(HUB_TABLES, **nothing).argument


class HubTables:
    """Tables in global memory, for vertices whose arcs exceed shared memory: see hubs.cuh."""

    def __init__(self, memory: RunMemory, level: GpuLevel, low_scratch: bool = False) -> None:
        self.memory = memory
        sums = np.dtype(level.sums)
        size = level.vertices, level.arcs, level.max_degree, sums.itemsize
        count, slots = hub_table_sizes(*size, low_scratch=low_scratch, hub_arcs=level.hub_arcs)
        self.names: list[str] = []
        if not slots:
            # Null pointers: small levels are many, and an allocation takes as long as a barrier.
            self.argument = no_hub_tables()
            return
        wanted = hub_arrays(count, slots, sums)
        self.names = [f"hub_{'choices' if name == 'partials' else name}" for name in wanted]
        arrays = [
            memory.empty(name, "hash", *size)
            for name, size in zip(self.names, wanted.values(), strict=True)
        ]
        keys, table, *others = arrays
        names = HUB_TABLES.names or ()
        values = (keys, table, slots // 2 * 2, *others)
        self.argument = Struct(HUB_TABLES, **dict(zip(names, values, strict=True))).argument

    def free(self) -> None:
        """Free the memory."""
        self.memory.free(*self.names)


JOINED: Final = 1 << 16
"""Vertices of a level above the first up to which arrays that come and go together are one: such
levels are many, and the device waits while the host allocates."""

PART: Final = 256
"""Bytes to whose multiples parts of an array are aligned."""


def joins(level: GpuLevel) -> bool:
    """Return whether arrays of a level that come and go together are parts of one (`carve`)."""
    return level.number > 0 and level.vertices <= JOINED


def carve(memory: RunMemory, name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the addresses of parts, of so many bytes each, of one array of scratch memory."""
    found, end = {}, 0
    for part, nbytes in sizes.items():
        found[part] = end
        end += -(-nbytes // PART) * PART
    begin = address(memory.empty(name, "scratch", end, np.uint8))
    return {part: begin + at for part, at in found.items()}


def new_control(memory: RunMemory, name: str = "control") -> Any:
    """Return a zeroed control block; free it by name."""
    control = memory.empty(name, "scratch", CONTROL.itemsize, np.uint8)
    control.data.memset_async(0, control.nbytes)
    return control
