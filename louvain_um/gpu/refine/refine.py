"""Leiden's refinement on the device: launches `refine.cu`, the counterpart of `cpu.refine`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.gpu.level import DeviceRun, GpuLevel, or_null
from louvain_um.gpu.move.arguments import new_control, queue_entries, refine_rule
from louvain_um.gpu.move.extended import refine_arrays, types_of
from louvain_um.gpu.move.hub_tables import HubTables
from louvain_um.gpu.relabel.relabel import new_sums
from louvain_um.gpu.runtime.launch import Launcher, Struct, carve
from louvain_um.options import Options
from louvain_um.placement.memory.run_memory import RunMemory

REFINE_ARRAYS: Final = (
    "refined_totals", "refined_sizes", "queue", "proposed", "weight_to_target",
)  # fmt: skip
"""Arrays that exist during refinement."""

REFINING: Final = "refining"
"""All of them, of a small level."""


def start_refinement(
    memory: RunMemory,
    level: GpuLevel,
    options: Options,
    total: int,
    queued: int = rules.SUB_ROUNDS,
    *,
    joined: bool = False,
) -> Struct:
    """Allocate a level's `refined`, and `REFINE_ARRAYS` for the caller to free; return the rule."""
    n, empty = level.vertices, memory.empty
    entries = queue_entries(n, queued)
    name = f"refined.{level.cycle}.{level.number}"
    level.refined = empty(name, "community", n, np.uint32)
    arrays: Any
    if joined:
        width = np.dtype(level.sums).itemsize
        lengths = 2 * width * n, n, 4 * entries, 4 * entries, width * entries
        arrays = carve(memory, REFINING, dict(zip(REFINE_ARRAYS, lengths, strict=True))).values()
    else:
        arrays = (
            empty("refined_totals", "community", 2 * n, level.sums, short_lived=True),
            empty("refined_sizes", "community", n, np.uint8, short_lived=True),
            empty("queue", "scratch", entries, np.uint32),
            empty("proposed", "scratch", entries, np.uint32),
            empty("weight_to_target", "scratch", entries, level.sums),
        )
    names = "parts", "sub_sizes", *REFINE_ARRAYS[2:]
    return refine_rule(level, options, total, **dict(zip(names, arrays, strict=True)))


def refine(run: DeviceRun, level: GpuLevel, queued: int = rules.SUB_ROUNDS) -> None:
    """Split communities into connected sub-communities; leaves `refined` on the level."""
    memory, extended = run.memory, run.problem.extended
    rule = start_refinement(memory, level, run.options, run.total, queued, joined=level.joined)
    names: list[str] = []
    if extended:
        rule, names = refine_arrays(memory, run.problem, level, rule)
    else:
        level.found_sums = new_sums(memory)
    launch = Launcher(
        "refine", "refine", types_of(level) if extended else level.types, most=level.most_blocks
    )
    hubs = HubTables(memory, level, run.low_scratch)
    control = new_control(memory, "refine_control")
    launch(
        rule.argument, hubs.argument, np.int64(level.vertices), np.uint32(queued), control,
        or_null(level.loops), or_null(level.found_sums),
    )  # fmt: skip
    if memory.mover:
        memory.mover.unmap_released()
    hubs.free()
    memory.free(*([REFINING] if level.joined else REFINE_ARRAYS), *names, "refine_control")
