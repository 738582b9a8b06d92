"""Hash tables in global memory for hubs, whose arcs exceed a block's table (`hubs.cuh`)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.runtime.launch import Struct, layout, pointers
from louvain_um.placement.memory.run_memory import RunMemory

BLOCK_MAX: Final = {4: 2048, 8: 1024}
"""Most arcs of a vertex that a block's shared table holds, by size of the sums in bytes."""

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

MAX_PARTITIONS: Final = 1024
"""The most partitions of a hub."""

HUB_TABLES: Final = layout(
    **pointers("keys", "sums"), capacity=np.uint64,
    **pointers("slots", "fills", "drains", "own_weights", "partials"),
)  # fmt: skip
"""`HubTables` of hubs.cuh."""

HUB_CHOICE: Final = layout(choice=layout(score=np.float64, community=np.uint32), weight=np.uint64)
"""`HubChoice` of hubs.cuh."""


class HubSizes(NamedTuple):
    """The most hubs that a level can have at once, and the slots of their tables."""

    hubs: int
    slots: int


def hub_table_sizes(
    vertices: int,
    arcs: int,
    max_degree: int,
    sum_bytes: int,
    *,
    low_scratch: bool = False,
    hub_arcs: int | None = None,
) -> HubSizes:
    """Return what the hubs of a level take."""
    block_max = BLOCK_MAX[sum_bytes]
    if max_degree <= block_max:
        return HubSizes(0, 0)
    # Others fit in addition to the largest hub, so that batches are few, unless memory is scarce.
    needed = 2 << (max_degree - 1).bit_length()
    if low_scratch:
        needed = slots_of_hub(max_degree, block_max)
    hub_arcs = arcs if hub_arcs is None else hub_arcs
    slots = arcs // (LOW_SCRATCH_ARCS_A_SLOT if low_scratch else ARCS_A_SLOT)
    most = hub_arcs / (LOW_SCRATCH_HUB_ARCS_A_SLOT if low_scratch else HUB_ARCS_A_SLOT)
    slots = min(slots, int(most))
    small = min(SMALL_LEVEL_SLOTS, arcs // SMALL_LEVEL_ARCS_A_SLOT, int(hub_arcs / HUB_ARCS_A_SLOT))
    return HubSizes(min(vertices, hub_arcs // block_max), max(needed, small, slots))


def slots_of_hub(arcs: int, block_max: int) -> int:
    """Return the slots of a hub, an even number: `partitioned_slots` of `partitions.cuh`."""
    units = -(-arcs // block_max)
    partitions = 1 << (min(max(arcs // PARTITION_ARCS, 1), MAX_PARTITIONS).bit_length() - 1)
    return -(-units * (block_max + partitions) // 2) * 2


def hub_arrays(hubs: HubSizes, sums: Any) -> dict[str, tuple[int, np.dtype[Any]]]:
    """Return length and type of each array of the tables of hubs."""
    (count, slots), words = hubs, HUB_CHOICE.itemsize // 8
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


def hub_bytes(hubs: HubSizes, sum_bytes: int) -> int:
    """Return the bytes of these arrays."""
    arrays = hub_arrays(hubs, np.uint32 if sum_bytes == 4 else np.uint64)
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
        hubs = hub_table_sizes(*size, low_scratch=low_scratch, hub_arcs=level.hub_arcs)
        self.names: list[str] = []
        if not hubs.slots:
            # Null pointers: small levels are many, and an allocation takes as long as a barrier.
            self.argument = no_hub_tables()
            return
        wanted = hub_arrays(hubs, sums)
        self.names = [f"hub_{'choices' if name == 'partials' else name}" for name in wanted]
        arrays = [
            memory.empty(name, "hash", *size)
            for name, size in zip(self.names, wanted.values(), strict=True)
        ]
        keys, table, *others = arrays
        names = HUB_TABLES.names or ()
        values = (keys, table, hubs.slots // 2 * 2, *others)
        self.argument = Struct(HUB_TABLES, **dict(zip(names, values, strict=True))).argument

    def free(self) -> None:
        """Free the memory."""
        self.memory.free(*self.names)
