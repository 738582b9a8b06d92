"""Moving on the device: launches `move.cu`, the counterpart of `louvain_um.cpu.move`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.events import Event, Observer, ignore
from louvain_um.gpu.level import DeviceRun, GpuLevel, or_null
from louvain_um.gpu.move.arguments import CONTROL, SWEEPS, move_rule, new_control, queue_entries
from louvain_um.gpu.move.extended import ExtendedMove, types_of
from louvain_um.gpu.move.hub_tables import HubTables
from louvain_um.gpu.runtime.launch import Launcher, Struct, carve
from louvain_um.placement.memory.run_memory import RunMemory


@dataclass(frozen=True, slots=True)
class EndedSweep:
    """One sweep: vertices moved, and seconds from its end to the end of the last sweep."""

    moved: int
    seconds_ago: float


class MoveArrays(NamedTuple):
    """Arrays that exist while vertices move, or their addresses."""

    sizes: Any
    queue: Any
    proposed: Any
    active: Any
    next_active: Any


MOVING: Final = "moving"
"""All of them, of a small level."""


def move_arrays(
    memory: RunMemory,
    level: GpuLevel,
    queued: int = rules.SUB_ROUNDS,
    *,
    leiden: bool,
    joined: bool = False,
) -> MoveArrays:
    """Allocate a level's labels and totals; return the other arrays, for the caller to free."""
    n, empty = level.vertices, memory.empty
    # For Louvain, labels become the level's map; for Leiden, sub-communities do.
    name = f"labels.{level.cycle}.{level.number}"
    level.labels = empty(name, "community", n, np.uint32, short_lived=leiden)
    level.totals = empty("totals", "community", n, level.sums, short_lived=True)
    words = -(-n // 4) if level.byte_sizes else n
    entries = queue_entries(n, queued)
    flags = -(-n // 32)  # words, of a bit for each vertex
    lengths = MoveArrays(words, entries, entries, flags, flags)._asdict()
    if joined:
        sizes = {name: 4 * length for name, length in lengths.items()}
        return MoveArrays(**carve(memory, MOVING, sizes))
    return MoveArrays(
        sizes=empty("sizes", "community", words, np.uint32, short_lived=True),
        **{
            name: empty(name, "scratch", length, np.uint32)
            for name, length in lengths.items()
            if name != "sizes"
        },
    )


class MoveLaunch:
    """The move phase of a level, launched: all sweeps are one kernel."""

    def __init__(self, run: DeviceRun, level: GpuLevel, queued: int = rules.SUB_ROUNDS) -> None:
        self.memory, self.level = run.memory, level
        memory = run.memory
        arrays = move_arrays(memory, level, queued, leiden=run.leiden, joined=level.joined)
        extended = run.problem.extended
        launch = Launcher(
            level.source("move"), "move", types_of(level) if extended else level.types,
            most=level.most_blocks,
        )  # fmt: skip
        hubs = HubTables(memory, level, run.low_scratch)
        self.control = new_control(memory)
        rule = move_rule(memory, level, run.options, run.total, arrays)
        more = ExtendedMove(memory, run.problem, level, rule) if extended else None
        sweeps = Struct(
            SWEEPS,
            n=level.vertices, start=level.start, awake=level.awake, active=arrays.active,
            next_active=arrays.next_active, control=self.control,
            tolerance=rules.tolerance(level.number, run.options.effort),
            seed_salt=rules.seed_salt(run.options.seed),
            cycle=level.cycle, sub_rounds=rules.SUB_ROUNDS, max_iterations=rules.MAX_ITERATIONS,
            full_sweeps=rules.FULL_SWEEPS if level.start is None else 0,
            min_sweeps=rules.MIN_SWEEPS, queued=queued, summed=0,
        )  # fmt: skip
        launch(more.rule.argument if more else rule.argument, hubs.argument, sweeps.argument)
        if memory.mover:
            memory.mover.unmap_released()
        hubs.free()
        if more:
            more.free()
        memory.free(*([MOVING] if level.joined else MoveArrays._fields))

    def wait(self) -> tuple[MoveStats, list[EndedSweep]]:
        """Wait for the device; return what the sweeps found."""
        found = self.control.get().view(CONTROL)[0]
        self.memory.free("control")
        count = int(found["iterations"])
        ended, moved = found["ended"][:count].tolist(), found["moved"][:count].tolist()
        ago = ((ended[-1] - at) * 1e-9 for at in ended)
        sweeps = list(map(EndedSweep, moved, ago))
        moves, visited, gain = (int(found[key]) for key in ("total_moves", "visited", "total_gain"))
        self.level.read_again = int(found["read_again"])
        return MoveStats(count, moves, visited, gain), sweeps


def report_sweeps(observer: Observer, level: Any, sweeps: Iterable[EndedSweep]) -> None:
    """Report the sweeps over a level that have ended to an observer."""
    if observer is ignore:
        return
    for iteration, sweep in enumerate(sweeps):
        observer(
            Event(
                kind="iteration",
                phase="move",
                level=level.number,
                iteration=iteration,
                vertices=level.vertices,
                arcs=level.arcs,
                moved=sweep.moved,
                seconds_ago=sweep.seconds_ago,
            )
        )


def add_degrees(level: GpuLevel) -> None:
    """Fill the degrees of level 0 from its weights and loops."""
    Launcher(level.source("move"), "add_degrees", level.types, most=level.most_blocks)(
        np.int64(level.vertices), level.offsets, or_null(level.weights_argument),
        or_null(level.loops), level.degrees,
    )  # fmt: skip
