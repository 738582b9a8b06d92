"""Leiden's refinement on the device: launches `refine.cu`; see `louvain_um.cpu.refine`."""

from __future__ import annotations

import numpy as np

from louvain_um import rules
from louvain_um.gpu.compile import Kernels
from louvain_um.gpu.launch import THREADS, Giants, grid_for, new_control
from louvain_um.gpu.level import GpuLevel, or_null
from louvain_um.options import Options
from louvain_um.placement.allocator import Allocator


def refine(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    tight: bool = False,
) -> None:
    """Split communities into parts that hold together; leaves `parts` on the level."""
    n, empty = level.vertices, memory.empty
    tag = f"{level.cycle}.{level.number}"
    level.parts = empty(f"parts.{tag}", "community", n, np.uint32)
    part_totals = empty("part totals", "community", n, level.sums, brief=True)
    part_sizes = empty("part sizes", "community", n, np.uint32, brief=True)
    cuts = empty("cuts", "community", n, level.sums, brief=True)
    queue = empty("queue", "scratch", n, np.uint32)
    goals = empty("goals", "scratch", n, np.uint32)
    ties = empty("ties", "scratch", n, level.sums)
    kernel = kernels.get("refine", "refine", level.types)
    blocks = grid_for(kernels, kernel, level)
    giants = Giants(memory, level, tight)
    control = new_control(memory)
    salt = rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed)
    kernel(
        (blocks,),
        (THREADS,),
        (
            np.int64(n), level.offsets, level.targets, or_null(level.weights), level.degrees,
            level.labels, level.totals, level.parts, part_totals, part_sizes, cuts, queue, goals,
            ties, giants.argument, control, np.float64(options.resolution / total),
            np.uint32(options.seed), np.uint32(salt), np.uint32(rules.SUB_ROUNDS),
        ),
    )  # fmt: skip
    giants.free()
    memory.free("part totals", "part sizes", "cuts", "queue", "goals", "ties", "control")
