"""The CUDA engine: the order in which kernels run; the counterpart of `louvain_um.cpu.engine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.objective import Problem, Sums
from louvain_um.events import Observer, Phase, ignore
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.aggregate import Begun, aggregate, begin
from louvain_um.gpu.forecast import Forecast
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import DeviceRun, GpuLevel
from louvain_um.gpu.memory.in_place import InPlace
from louvain_um.gpu.memory.level_room import LevelRoom
from louvain_um.gpu.move.extended import (
    extended_sums,
    free_masses,
    free_second_totals,
    sum_masses,
)
from louvain_um.gpu.move.move import MoveLaunch, report_sweeps
from louvain_um.gpu.out_of_core.block_steps import move_blocks, refine_blocks
from louvain_um.gpu.preparation import Prepared, prepare_run
from louvain_um.gpu.refine.refine import refine
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.runtime.device import name_of
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.block_cache import Traffic
from louvain_um.placement.planner import Plan

U32 = NDArray[np.uint32]


class GpuEngine:
    """Louvain and Leiden on the current CUDA device."""

    def __init__(self, options: Options, observer: Observer) -> None:
        self.options = options
        self.observer = observer
        self.prepared: Prepared
        self.run: DeviceRun
        self.plan: Plan | None = None
        self.memory: RunMemory
        self.in_place: InPlace
        self.room: LevelRoom
        self.forecast = Forecast()
        self.first: GpuLevel
        self.current: GpuLevel
        self.path: list[GpuLevel] = []
        self.shares_read: dict[str, float] = {}
        self.early: Begun | None = None
        self.stack = ExitStack()

    def __enter__(self) -> GpuEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stack.close()

    @property
    def problem(self) -> Problem:
        """What the run is to find."""
        return self.run.problem

    def load(self, graph: Graph | DeviceGraph) -> GpuLevel:
        """Prepare a run on a graph; return level 0."""
        return self.begin(prepare_run(graph, self.options, self.observer, self.stack))

    def begin(self, prepared: Prepared) -> GpuLevel:
        """Begin with level 0 of a prepared run."""
        self.prepared = prepared
        self.run, level = prepared.run, prepared.level
        self.memory = self.run.memory
        if prepared.planned:
            self.plan = prepared.planned.plan
            self.forecast.plan(self.plan)
        arrays = self.plan.arrays if self.plan else ()
        self.in_place = InPlace(self.memory, self.observer, arrays, self.options.method)
        limits, scratch = self.run.limits, self.run.low_scratch
        self.room = LevelRoom(self.memory, self.plan, limits, low_scratch=scratch)
        self.first = self.current = level
        self.room.begin_cycle(level)
        return level

    def prepare_restart(self, path: list[GpuLevel]) -> None:
        """Begin to bring the input back to the device, while a cycle's results are read."""
        self.room.expect_cycle(path[0])

    def restart(self, path: list[GpuLevel]) -> GpuLevel:
        """Return level 0 of the next cycle, its vertices in the communities of a path."""
        first = path[0]
        cycle = first.cycle + 1
        start = self.memory.empty(
            f"start.{cycle}.0", "community", first.vertices, np.uint32, short_lived=True
        )
        self.room.return_idle()
        relabel.compose(path, start)
        for level in path:
            # Already copied to the host; `start` composes them.
            self.memory.free(*self.live(*self.held(level)))
            level.labels = level.numbers = None
        # A last level that gained nothing may have left its start communities.
        self.memory.free(*self.live(f"start.{first.cycle}.{len(path)}"))
        self.room.begin_cycle(first)
        self.first = replace(
            first, cycle=cycle, start=start, start_sums=None,
            refined=None, labels=None, numbers=None,
        )  # fmt: skip
        self.current = self.first
        return self.first

    def live(self, *names: str) -> list[str]:
        """Return those of these arrays that exist."""
        return [name for name in names if name in self.memory.live]

    def held(self, level: GpuLevel) -> list[str]:
        """Return the names of arrays that a level keeps until the end of its cycle."""
        tag = f"{level.cycle}.{level.number}"
        names = [f"{name}.{tag}" for name in ("labels", "refined", "start")]
        return names if level.number else [*names[:2], f"start.{level.cycle}.0"]

    def max_degree(self, level: GpuLevel) -> int:
        """Return the largest number of arcs of a vertex."""
        return level.max_degree

    def move(self, level: GpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        blocks = self.prepared.blocks if level.number == 0 else None
        begins = level.number == level.cycle == 0
        if begins:
            self.forecast.begin()
        if blocks:
            moved, sweeps = move_blocks(self.run, level, blocks)
        else:
            moves = MoveLaunch(self.run, level, self.room.queued(level, "move"))
            self.use_move_time(level)
            moved, sweeps = moves.wait()
            self.in_place.move(level, moved)
        if begins:
            self.forecast.moved(moved, level.arcs)
            # Where nothing follows from it, it is found while level 1 moves.
            if not self.keeps_layout:
                self.correct_plan()
        report_sweeps(self.observer, level, sweeps)
        return moved

    @property
    def stays_on_device(self) -> bool:
        """Whether everything is on the device, where it stays."""
        return self.plan is None or (self.plan.in_core and not self.plan.pages)

    @property
    def keeps_layout(self) -> bool:
        """Whether no other layout is followed: all stays on the device, or pages are scheduled."""
        return self.stays_on_device or self.memory.mover is not None

    def correct_plan(self) -> None:
        """Correct the plan by the first move phase, once; follow its layout where possible."""
        if self.plan and self.forecast.uncorrected is not None:
            self.plan = self.room.plan = self.forecast.correct(
                self.plan, self.memory, choosing=not self.keeps_layout
            )

    def use_move_time(self, level: GpuLevel) -> None:
        """Use the time in which a level's vertices move."""
        self.correct_plan()
        if level.number == level.cycle == 0:
            self.room.prepare(level, "refine" if self.run.leiden else "aggregate")
        if self.observer is not ignore or self.prepared.blocks or self.problem.extended:
            return
        # Levels of whole communities have no sums from refinement.
        if not level.whole and self.launches_early(level) and not self.from_input(level):
            if self.run.leiden:
                self.launch_refinement(level)
            self.memory.free("totals")
            self.early = begin(self.memory, level, self.run.limits)

    def launches_early(self, level: GpuLevel) -> bool:
        """Return whether what follows a level is launched before it is known whether it counts."""
        limits, leiden, most = self.run.limits, self.run.leiden, max(level.vertices, level.arcs)
        if most <= limits.small:
            holds = self.room.holds_early(level, leiden=leiden)
            return (level.number > 0 or self.stays_on_device) and holds
        # Few arcs of many vertices are aggregated by one launch, whose arrays are long then.
        if level.arcs <= limits.small or not self.keeps_layout:
            return False
        # What moves of the input counts, however little. Numbering alone is soon done.
        certain = level.number == level.cycle == 0
        few = level.number > 0 and most <= limits.early
        if leiden and not certain and not few:
            return False
        return self.room.holds_early(level, leiden=leiden, at_once=False)

    def refine(self, level: GpuLevel) -> None:
        """Split communities into connected sub-communities."""
        if level.whole:
            self.discard_early()
            self.begin_step(level, "refine")
            relabel.components(self.memory, level)
            return
        if self.early:
            return
        # Read at most once per vertex.
        idle = self.live("totals", f"start.{level.cycle}.{level.number}")
        self.begin_step(level, "refine", idle)
        self.launch_refinement(level)

    def launch_refinement(self, level: GpuLevel) -> None:
        """Split communities into connected sub-communities, once pages are where they stay."""
        blocks = self.prepared.blocks if level.number == 0 else None
        if blocks:
            refine_blocks(self.run, level, blocks)
        else:
            refine(self.run, level, self.room.queued(level, "refine"))
            self.in_place.refine(level)

    def aggregate(self, level: GpuLevel) -> GpuLevel:
        """Return the next level; vertices that share a label (or sub-community) become one."""
        self.memory.free(*self.live("totals"))
        free_second_totals(self.memory, level)
        if level.refined is not None and not (self.early and self.early.at_once):
            # The next level's start is made of labels, in order; what this one began with is over.
            tag = f"{level.cycle}.{level.number}"
            self.room.let_leave(*self.live(f"labels.{tag}", f"start.{tag}"))
        self.path = [*self.path[: level.number], level]
        blocks = self.prepared.blocks if level.number == 0 else None
        first, limits = self.first, self.run.limits
        again = self.early is None and self.from_input(level)
        rows = replace(first, number=level.number) if again else level
        shares = self.in_place.shares(rows)
        if again:
            before = self.path[:-1]
            coarse = reaggregate.from_input(
                self.memory, before, level, limits, self.begin_from_input
            )
            shares = self.shares_read
        else:
            early, self.early = self.early, None
            if not (early and early.at_once):
                self.begin_step(level, "aggregate")
            coarse = early.finish() if early else aggregate(self.memory, level, limits, blocks)
        sum_masses(self.memory, level, coarse)
        if self.run.leiden:
            # The next level's start communities replace labels; maps are made of sub-communities.
            self.memory.free(f"labels.{level.cycle}.{level.number}")
            level.labels = None
        self.current = coarse
        after = self.in_place.shares(rows)
        if not blocks:
            between = {name: (shares.get(name, 0.0) + share) / 2 for name, share in after.items()}
            self.in_place.aggregate(rows, coarse, between)
        if level.number == 0:
            self.begin_step(coarse, "move", self.live(*self.held(level)[:2]))
        if level.number == level.cycle == 0 and self.plan and self.prepared.planned:
            self.forecast.aggregated(self.plan, self.prepared.planned.shape, coarse)
        return coarse

    def from_input(self, level: GpuLevel) -> bool:
        """Return whether the next level is made from the input's arcs (`reaggregate`)."""
        if self.prepared.blocks or self.problem.extended or not self.run.leiden:
            return False
        if self.memory.mover is None:
            planned = self.prepared.planned
            reaggregates = planned is not None and planned.shape.reaggregates
            return reaggregate.wanted(self.first, level, self.run.limits, reaggregates)
        return self.gives_way(level) and self.room.lacks_room(level)

    def gives_way(self, level: GpuLevel) -> bool:
        """Return whether a level's graph is freed, if the next one's has no room as well."""
        leiden = self.run.leiden and not self.problem.extended
        return leiden and reaggregate.keeps_most(self.first, level, self.run.limits)

    def begin_from_input(self, source: GpuLevel) -> None:
        """Let kernels read the input's arcs, to make a later level of them."""
        self.room.begin_from_input(source, self.path[-1])
        self.shares_read = self.in_place.shares(source)

    def begin_step(self, level: GpuLevel, step: Phase, idle: Sequence[str] = ()) -> None:
        """Place a level's graph for a step that begins; `idle` arrays are not read in it."""
        self.room.begin(level, step, idle, backs_up=not self.gives_way(level))

    def discard_move(self, level: GpuLevel) -> None:
        """Free temporaries after a move phase without moves."""
        self.memory.free(*self.live("totals"))
        free_second_totals(self.memory, level)
        self.discard_early()

    def discard_early(self) -> None:
        """Free what was launched for nothing while a level's vertices moved."""
        if self.early:
            self.early.discard()
            self.early = None

    def sums(self, level: GpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        if level.start_sums is not None:
            return level.start_sums
        if level.start is None:
            sums = Sums(level.inside, level.squares, level.vertices)
        else:
            self.room.map_all(level)
            sums = relabel.community_sums(self.memory, level)
            if not self.problem.extended:
                level.start_sums = sums
        return extended_sums(level, sums) if self.problem.extended else sums

    def split_disconnected(self, level: GpuLevel) -> None:
        """Make every connected component of a community a community of its own."""
        if level.offsets is None:
            # The next level gained nothing, and was built in this one's memory.
            before = self.path[: level.number]
            begin = self.begin_from_input
            reaggregate.restore(self.memory, before, level, self.run.limits, begin)
            self.room.map_all(level)
        level.start_sums = None
        if level.start is not None:
            relabel.split(self.memory, level, level.start)

    def release(self, level: GpuLevel) -> None:
        """Free the graph of a level; the input's, which every cycle needs, stays."""
        if level.number == 0:
            # Its start communities matter only while no later level is better.
            self.memory.free(*self.live(f"start.{level.cycle}.0"))
            level.start = level.start_sums = None
            return
        reaggregate.give_back(self.memory, level)
        free_masses(self.memory, level)
        idle = self.live(*self.held(level))
        if level is self.current:
            self.room.let_leave(*idle)
        else:
            self.begin_step(self.current, "move", idle)

    def coarse_vertices(self, path: list[GpuLevel]) -> tuple[U32, ...]:
        """Return each level's map to the next, on the host."""
        if path[0].cycle == 0:
            self.forecast.cycle_ended()
        return tuple(self.memory.values_of(level.numbers) for level in path[:-1])

    def coarse_labels(self, path: list[GpuLevel]) -> tuple[U32, ...]:
        """Return, for each level but the first, the communities its vertices start in."""
        starts = (level.start for level in path[1:] if level.start is not None)
        return tuple(map(self.memory.values_of, starts))

    def labels(self, path: list[GpuLevel]) -> U32:
        """Return the communities of the input's vertices, numbered by size, on the host."""
        if path[-1].number:
            reaggregate.give_back(self.memory, path[-1])
        labels = self.memory.empty("labels", "community", path[0].vertices, np.uint32)
        self.room.return_idle()
        relabel.compose(path, labels)
        for level in path:
            self.memory.free(*self.live(*self.held(level)))
        relabel.number_by_size(self.memory, labels, path[-1].vertices)
        return self.memory.values_of(labels)

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.memory.peak_bytes

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes of vertex blocks, or of pages, that the run moved between host and device."""
        blocks = self.prepared.blocks
        moved = blocks.cache.traffic if blocks else Traffic()
        pages = self.memory.mover.copied if self.memory.mover else {"device": 0, "host": 0}
        return {
            "to_device": moved.to_device + pages["device"],
            "to_host": moved.to_host + pages["host"],
        }

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget."""
        import cupy

        self.correct_plan()
        planned, plan, blocks = self.prepared.planned, self.plan, self.prepared.blocks
        assert planned is not None
        assert plan is not None
        predicted = {
            **self.forecast.summary,
            "kept": plan.kept,
            "device_bytes": plan.device_bytes,
            "packed": plan.compact,
            "target_bytes": planned.shape.target_bytes if plan.compact else 4,
            "pages_a_warp": blocks.touch.factor if blocks else None,
        }
        device = cupy.cuda.Device().id
        return {
            "device": f"cuda:{device} ({name_of(device)})",
            "policy": plan.policy,
            "placements": {group: str(where) for group, where in plan.placements.items()},
            "budget_bytes": plan.budget,
            "overflowed": dict(self.memory.overflowed),
            "peer_memory": None if planned.peer is None else f"cuda:{planned.peer}",
            "plan": predicted,
            "traffic_bytes": self.traffic,
            "read_in_place": self.in_place.summary(),
            "touched_bytes": self.memory.ledger.peak_total,
            "threads": None,
        }
