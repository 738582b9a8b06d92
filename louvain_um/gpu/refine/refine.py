"""Leiden's refinement on the device: launches `refine.cu`; see `louvain_um.cpu.refine`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.gpu.level import GpuLevel, or_null
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.launch import THREADS, HubTables, grid_for, new_control
from louvain_um.options import Options
from louvain_um.placement.memory.allocator import Allocator

REFINE_ARRAYS: Final = (
    "refined_totals", "refined_sizes", "external_weight", "queue", "proposed", "weight_to_target",
)  # fmt: skip
"""Arrays that exist during refinement."""


def refine_arrays(memory: Allocator, level: GpuLevel) -> tuple[Any, ...]:
    """Allocate a level's `refined`; return `REFINE_ARRAYS`, for the caller to free."""
    n, empty = level.vertices, memory.empty
    name = f"refined.{level.cycle}.{level.number}"
    level.refined = empty(name, "community", n, np.uint32)
    sub_totals = empty("refined_totals", "community", n, level.sums, short_lived=True)
    sub_sizes = empty("refined_sizes", "community", n, np.uint32, short_lived=True)
    external_weight = empty("external_weight", "community", n, level.sums, short_lived=True)
    queue, proposed = (empty(name, "scratch", n, np.uint32) for name in ("queue", "proposed"))
    weight_to_target = empty("weight_to_target", "scratch", n, level.sums)
    return sub_totals, sub_sizes, external_weight, queue, proposed, weight_to_target


def refine(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    low_scratch: bool = False,
) -> None:
    """Split communities into connected sub-communities; leaves `refined` on the level."""
    n = level.vertices
    sub_totals, sub_sizes, external_weight, queue, proposed, weight_to_target = refine_arrays(
        memory, level
    )
    kernel = kernels.get("refine", "refine", level.types)
    blocks = grid_for(kernels, kernel, level)
    hubs = HubTables(memory, level, low_scratch)
    control = new_control(memory)
    salt = rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed)
    kernel(
        (blocks,),
        (THREADS,),
        (
            np.int64(n), level.offsets, level.targets, or_null(level.weights),
            or_null(level.degrees),
            level.labels, level.totals, level.refined, sub_totals, sub_sizes,
            external_weight, queue, proposed, weight_to_target,
            hubs.argument, control, np.float64(options.resolution / total),
            np.uint32(options.seed), np.uint32(salt), np.uint32(rules.SUB_ROUNDS),
        ),
    )  # fmt: skip
    hubs.free()
    memory.free(*REFINE_ARRAYS, "control")
