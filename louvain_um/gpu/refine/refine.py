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

REFINING: Final = ("part totals", "part sizes", "cuts", "queue", "goals", "ties")
"""Arrays that are there while parts form."""


def refining_arrays(memory: Allocator, level: GpuLevel) -> tuple[Any, ...]:
    """Give a level parts; return the arrays of `REFINING`, for the caller to free."""
    n, empty = level.vertices, memory.empty
    name = f"parts.{level.cycle}.{level.number}"
    level.parts = empty(name, "community", n, np.uint32)
    part_totals = empty("part totals", "community", n, level.sums, brief=True)
    part_sizes = empty("part sizes", "community", n, np.uint32, brief=True)
    cuts = empty("cuts", "community", n, level.sums, brief=True)
    queue, goals = (empty(name, "scratch", n, np.uint32) for name in ("queue", "goals"))
    ties = empty("ties", "scratch", n, level.sums)
    return part_totals, part_sizes, cuts, queue, goals, ties


def refine(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    tight: bool = False,
) -> None:
    """Split communities into parts that hold together; leaves `parts` on the level."""
    n = level.vertices
    part_totals, part_sizes, cuts, queue, goals, ties = refining_arrays(memory, level)
    kernel = kernels.get("refine", "refine", level.types)
    blocks = grid_for(kernels, kernel, level)
    giants = HubTables(memory, level, tight)
    control = new_control(memory)
    salt = rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed)
    kernel(
        (blocks,),
        (THREADS,),
        (
            np.int64(n), level.offsets, level.targets, or_null(level.weights),
            or_null(level.degrees),
            level.labels, level.totals, level.parts, part_totals, part_sizes, cuts, queue, goals,
            ties, giants.argument, control, np.float64(options.resolution / total),
            np.uint32(options.seed), np.uint32(salt), np.uint32(rules.SUB_ROUNDS),
        ),
    )  # fmt: skip
    giants.free()
    memory.free(*REFINING, "control")
