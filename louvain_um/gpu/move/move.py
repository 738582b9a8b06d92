"""Moving on the device: launches `move.cu`; the twin of `louvain_um.cpu.move`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.objectives.problem import Problem
from louvain_um.events import Event, Observer, ignore
from louvain_um.gpu.level import GpuLevel, or_null
from louvain_um.gpu.move.extended import MoveArrays, types_of
from louvain_um.gpu.move.structs import SWEEPS, move_rule
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.launch import (
    CONTROL,
    THREADS,
    HubTables,
    carve,
    grid_for,
    joins,
    new_control,
    queue_entries,
)
from louvain_um.gpu.runtime.structs import Struct
from louvain_um.options import Options
from louvain_um.placement.memory.run_memory import RunMemory


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep: vertices moved, and seconds from its end to the end of the last sweep."""

    moved: int
    seconds_ago: float


MOVE_ARRAYS: Final = ("sizes", "queue", "proposed", "active", "next_active")
"""Arrays that exist while vertices move."""

MOVING: Final = "moving"
"""All of them, of a small level."""


def move_arrays(
    memory: RunMemory,
    options: Options,
    level: GpuLevel,
    queued: int = rules.SUB_ROUNDS,
    *,
    joined: bool = False,
) -> tuple[Any, ...]:
    """Allocate a level's labels and totals; return `MOVE_ARRAYS`, for the caller to free."""
    n, empty = level.vertices, memory.empty
    # For Louvain, labels become the level's map; for Leiden, sub-communities do.
    leiden = options.method == "leiden"
    name = f"labels.{level.cycle}.{level.number}"
    level.labels = empty(name, "community", n, np.uint32, short_lived=leiden)
    level.totals = empty("totals", "community", n, level.sums, short_lived=True)
    words = -(-n // 4) if level.byte_sizes else n
    entries = queue_entries(n, queued)
    flags = -(-n // 32)  # words, of a bit for each vertex
    if joined:
        lengths = tuple(4 * count for count in (words, entries, entries, flags, flags))
        return tuple(carve(memory, MOVING, dict(zip(MOVE_ARRAYS, lengths, strict=True))).values())
    sizes = empty("sizes", "community", words, np.uint32, short_lived=True)
    queue, proposed = (empty(name, "scratch", entries, np.uint32) for name in MOVE_ARRAYS[1:3])
    active, next_active = (empty(name, "scratch", flags, np.uint32) for name in MOVE_ARRAYS[3:])
    return sizes, queue, proposed, active, next_active


def move(
    kernels: Kernels,
    memory: RunMemory,
    options: Options,
    total: int,
    level: GpuLevel,
    problem: Problem,
    low_scratch: bool = False,
    queued: int = rules.SUB_ROUNDS,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[MoveStats, list[Sweep]]:
    """Sweep until the gain of a sweep falls below the level's tolerance."""
    joined = joins(level)
    arrays = move_arrays(memory, options, level, queued, joined=joined)
    sizes, queue, proposed, active, next_active = arrays
    types = types_of(level) if problem.extended else level.types
    kernel = kernels.get("move", "move", types)
    blocks = grid_for(kernels, kernel, level)
    hubs = HubTables(memory, level, low_scratch)
    control = new_control(memory)
    rule = move_rule(level, options, total, sizes, queue, proposed)
    extended = MoveArrays(memory, problem, level, rule) if problem.extended else None
    argument = rule.argument if extended is None else extended.rule.argument
    sweeps = Struct(
        SWEEPS,
        n=level.vertices, start=level.start, awake=level.awake, active=active,
        next_active=next_active, control=control, tolerance=rules.tolerance(level.number),
        seed_salt=rules.seed_salt(options.seed), cycle=level.cycle, sub_rounds=rules.SUB_ROUNDS,
        max_iterations=rules.MAX_ITERATIONS,
        full_sweeps=rules.FULL_SWEEPS if level.start is None else 0,
        min_sweeps=rules.MIN_SWEEPS, queued=queued, summed=0,
    )  # fmt: skip
    kernel((blocks,), (THREADS,), (argument, hubs.argument, sweeps.argument))
    if memory.mover:
        memory.mover.unmap_released()
    hubs.free()
    if extended is not None:
        extended.free()
    memory.free(*([MOVING] if joined else MOVE_ARRAYS))
    meanwhile()
    found = control.get().view(CONTROL)[0]
    memory.free("control")
    count = int(found["iterations"])
    ended, moved = found["ended"][:count].tolist(), found["moved"][:count].tolist()
    done = [Sweep(m, (ended[-1] - at) * 1e-9) for m, at in zip(moved, ended, strict=True)]
    moves, visited, gain = (int(found[key]) for key in ("total_moves", "visited", "total_gain"))
    level.read_again = int(found["read_again"])
    return MoveStats(count, moves, visited, gain), done


def tell_sweeps(
    observer: Observer, number: int, vertices: int, arcs: int, sweeps: Iterable[Sweep]
) -> None:
    """Tell an observer of the sweeps over a level that have ended."""
    if observer is ignore:
        return
    for iteration, sweep in enumerate(sweeps):
        observer(
            Event(
                kind="iteration",
                phase="move",
                level=number,
                iteration=iteration,
                vertices=vertices,
                arcs=arcs,
                moved=sweep.moved,
                seconds_ago=sweep.seconds_ago,
            )
        )


def add_degrees(kernels: Kernels, level: GpuLevel) -> None:
    """Fill the degrees of level 0 from its weights and loops."""
    kernel = kernels.get("move", "add_degrees", level.types)
    arguments = (
        level.offsets,
        or_null(level.weights_argument),
        or_null(level.loops),
        level.degrees,
    )
    blocks = grid_for(kernels, kernel, level)
    kernel((blocks,), (THREADS,), (np.int64(level.vertices), *arguments))
