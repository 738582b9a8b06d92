"""Moving on the device: launches `move.cu`; `louvain_um.cpu.move` tells the steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.level import GpuLevel, or_null
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.launch import CONTROL, THREADS, HubTables, grid_for, new_control
from louvain_um.options import Options
from louvain_um.placement.memory.allocator import Allocator


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep: vertices moved, and seconds from its end to that of the last one."""

    moved: int
    seconds_ago: float


MOVE_ARRAYS: Final = ("sizes", "queue", "proposed", "active", "next_active")
"""Arrays that exist while vertices move."""


def move_arrays(memory: Allocator, options: Options, level: GpuLevel) -> tuple[Any, ...]:
    """Allocate a level's labels and totals; return `MOVE_ARRAYS`, for the caller to free."""
    n, empty = level.vertices, memory.empty
    # Labels are a level's map, unless sub-communities are.
    leiden = options.method == "leiden"
    name = f"labels.{level.cycle}.{level.number}"
    level.labels = empty(name, "community", n, np.uint32, short_lived=leiden)
    level.totals = empty("totals", "community", n, level.sums, short_lived=True)
    sizes = empty("sizes", "community", n, np.uint32, short_lived=True)
    queue, proposed = (empty(name, "scratch", n, np.uint32) for name in ("queue", "proposed"))
    active, next_active = (empty(name, "scratch", n, np.uint8) for name in MOVE_ARRAYS[3:])
    return sizes, queue, proposed, active, next_active


def move(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    low_scratch: bool = False,
) -> tuple[MoveStats, list[Sweep]]:
    """Sweep until the gain of a sweep falls below the level's tolerance.

    Leaves `labels` and `totals` on the level; whoever aggregates frees "totals".
    """
    n = level.vertices
    sizes, queue, proposed, active, next_active = move_arrays(memory, options, level)
    kernel = kernels.get("move", "move", level.types)
    blocks = grid_for(kernels, kernel, level)
    hubs = HubTables(memory, level, low_scratch)
    control = new_control(memory)
    seed_salt = rules.seed_salt(options.seed)
    restless = rules.FULL_SWEEPS if level.start is None else 0
    kernel(
        (blocks,),
        (THREADS,),
        (
            np.int64(n), level.offsets, level.targets, or_null(level.weights),
            or_null(level.degrees),
            or_null(level.start), level.labels, level.totals, sizes, queue, proposed,
            active, next_active,
            hubs.argument, control, np.float64(options.resolution / total), np.float64(total),
            np.uint32(options.seed), np.uint32(seed_salt), np.uint32(level.cycle),
            np.uint32(rules.SUB_ROUNDS), np.uint32(rules.MAX_ITERATIONS), np.uint32(restless),
            np.uint32(rules.MIN_SWEEPS), np.int64(rules.tolerance(level.number)),
        ),
    )  # fmt: skip
    found = control.get().view(CONTROL)[0]
    hubs.free()
    memory.free(*MOVE_ARRAYS, "control")
    count = int(found["iterations"])
    ended, gone = found["ended"][:count].tolist(), found["moved"][:count].tolist()
    sweeps = [Sweep(m, (ended[-1] - at) * 1e-9) for m, at in zip(gone, ended, strict=True)]
    moves, visited, gain = (int(found[key]) for key in ("total_moves", "visited", "total_gain"))
    return MoveStats(count, moves, visited, gain), sweeps


def add_degrees(kernels: Kernels, level: GpuLevel) -> None:
    """Fill the degrees of level 0 from its weights and loops."""
    kernel = kernels.get("move", "add_degrees", level.types)
    arguments = (level.offsets, or_null(level.weights), or_null(level.loops), level.degrees)
    blocks = grid_for(kernels, kernel, level)
    kernel((blocks,), (THREADS,), (np.int64(level.vertices), *arguments))
