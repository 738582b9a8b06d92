"""The CUDA engine: the order in which kernels run; the counterpart of `louvain_um.cpu.engine`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.objective import Problem, Sums, takes_extended_rule
from louvain_um.events import Observer, Phase, ignore
from louvain_um.gpu.aggregate.aggregate import Begun, aggregate, begin
from louvain_um.gpu.aggregate.reaggregate import FromInput, give_back
from louvain_um.gpu.followed_plan import FollowedPlan
from louvain_um.gpu.level import DeviceRun, GpuLevel
from louvain_um.gpu.memory.in_place import InPlace
from louvain_um.gpu.memory.level_room import LevelRoom
from louvain_um.gpu.move.extended import extended_sums, free_masses, free_second_totals, sum_masses
from louvain_um.gpu.move.move import MoveLaunch, report_sweeps
from louvain_um.gpu.out_of_core.vertex_blocks import move_blocks, refine_blocks
from louvain_um.gpu.preparation import Prepared, prepare_rows, prepare_run
from louvain_um.gpu.refine.refine import refine
from louvain_um.gpu.relabel import relabel
from louvain_um.options import Options
from louvain_um.placement.detection_plan import Plan
from louvain_um.placement.memory.run_memory import RunMemory

U32 = NDArray[np.uint32]


class GpuEngine:
    """Louvain and Leiden on the current CUDA device."""

    def __init__(self, options: Options, observer: Observer) -> None:
        self.options = options
        self.observer = observer
        self.prepared: Prepared
        self.run: DeviceRun
        self.memory: RunMemory
        self.followed: FollowedPlan
        self.in_place: InPlace
        self.room: LevelRoom
        self.from_input: FromInput
        self.early: EarlyWork
        self.current: GpuLevel
        self.input: Prepared
        self.ready: Prepared | None = None
        self.stack = ExitStack()

    def __enter__(self) -> GpuEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stack.close()

    @property
    def problem(self) -> Problem:
        """What the run is to find."""
        return self.run.problem

    @property
    def plan(self) -> Plan | None:
        """The plan that the run follows; None if all is on devices, where it stays."""
        return self.followed.plan

    def load(self, graph: Any, *, starts_joined: bool = False) -> GpuLevel:
        """Prepare a run on a graph; return level 0, which may get communities to start in."""
        prepared, self.ready = self.ready, None
        if prepared is None:
            given = graph, self.options, self.observer, self.stack
            if hasattr(graph, "linked"):
                prepared = prepare_rows(*given)
            else:
                prepared = prepare_run(*given, starts_joined=starts_joined)
        self.input = replace(prepared, level=replace(prepared.level))
        return self.begin(prepared)

    def takes(self, options: Options) -> bool:
        """Return whether the input is as another run takes it; if so, `load` prepares nothing."""
        mine = self.options
        # Options with arrays cannot be compared.
        if takes_extended_rule(options) or takes_extended_rule(mine):
            return False
        if replace(options, seed=mine.seed) != mine or not self.followed.stays_on_device:
            return False
        self.memory.discard("labels")
        self.options = options
        self.ready = replace(self.input, run=replace(self.run, options=options))
        return True

    def begin(self, prepared: Prepared) -> GpuLevel:
        """Begin with level 0 of a prepared run."""
        self.prepared = prepared
        self.run, self.current = prepared.run, prepared.level
        self.memory = self.run.memory
        self.followed = FollowedPlan(prepared)
        arrays = self.plan.arrays if self.plan else ()
        self.in_place = InPlace(self.memory, self.observer, arrays, self.options.method)
        limits, scratch = self.run.limits, self.run.low_scratch
        self.room = LevelRoom(self.memory, self.plan, limits, low_scratch=scratch)
        self.from_input = FromInput(prepared, self.room, self.in_place)
        self.early = EarlyWork(self.followed, self.room, self.from_input)
        self.room.begin_cycle(self.current)
        return self.current

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
            self.memory.discard(*level.lasting)
            level.labels = level.numbers = None
        # A last level that gained nothing may have left its start communities.
        self.memory.discard(f"start.{first.cycle}.{len(path)}")
        self.room.begin_cycle(first)
        self.from_input.first = self.current = replace(
            first, cycle=cycle, start=start, start_sums=None,
            refined=None, labels=None, numbers=None,
        )  # fmt: skip
        return self.current

    def max_degree(self, level: GpuLevel) -> int:
        """Return the largest number of arcs of a vertex."""
        return level.max_degree

    def move(self, level: GpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        blocks = self.prepared.blocks if level.number == 0 else None
        begins = level.number == level.cycle == 0
        if begins:
            self.followed.begin()
        if blocks:
            moved, sweeps = move_blocks(self.run, level, blocks)
        else:
            moves = MoveLaunch(self.run, level, self.room.queued(level, "move"))
            self.use_move_time(level)
            moved, sweeps = moves.wait()
            self.in_place.move(level, moved)
        if begins:
            self.followed.moved(moved, level.arcs)
        report_sweeps(self.observer, level, sweeps)
        return moved

    def use_move_time(self, level: GpuLevel) -> None:
        """Use the time in which a level's vertices move."""
        self.followed.correct()
        if level.number == level.cycle == 0:
            self.room.prepare(level, "refine" if self.run.leiden else "aggregate")
        self.early.launch(level, self.launch_refinement)

    def refine(self, level: GpuLevel) -> None:
        """Split communities into connected sub-communities."""
        if level.whole:
            self.early.discard()
            self.begin_step(level, "refine")
            relabel.components(self.memory, level)
            return
        if self.early.begun:
            return
        # Read at most once per vertex.
        self.begin_step(level, "refine", ["totals", level.lasting.start])
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
        self.memory.discard("totals")
        free_second_totals(self.memory, level)
        early, from_input = self.early.take(), self.from_input
        if level.refined is not None and not (early and early.at_once):
            # The next level's start is made of labels, in order; what this one began with is over.
            self.room.let_leave(level.lasting.labels, level.lasting.start)
        from_input.path = [*from_input.path[: level.number], level]
        blocks = self.prepared.blocks if level.number == 0 else None
        rows = level
        if early is None and from_input.wanted(level):
            rows = replace(from_input.first, number=level.number)
            coarse = from_input.make(level)
            shares = from_input.shares
        else:
            shares = self.in_place.shares(rows)
            if not (early and early.at_once):
                self.begin_step(level, "aggregate")
            limits = self.run.limits
            coarse = early.finish() if early else aggregate(self.memory, level, limits, blocks)
        sum_masses(self.memory, level, coarse)
        if self.run.leiden:
            # The next level's start communities replace labels; maps are made of sub-communities.
            self.memory.free(level.lasting.labels)
            level.labels = None
        self.current = coarse
        if not blocks:
            self.in_place.aggregate(rows, coarse, shares)
        if level.number == 0:
            self.begin_step(coarse, "move", level.lasting[:2])
        if level.number == level.cycle == 0:
            self.followed.aggregated(coarse)
        return coarse

    def begin_step(self, level: GpuLevel, step: Phase, idle: Sequence[str] = ()) -> None:
        """Place a level's graph for a step that begins; `idle` arrays are not read in it."""
        self.room.begin(level, step, idle, backs_up=not self.from_input.gives_way(level))

    def discard_move(self, level: GpuLevel) -> None:
        """Free temporaries after a move phase without moves."""
        self.memory.discard("totals")
        free_second_totals(self.memory, level)
        self.early.discard()

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
            self.from_input.restore(level)
        level.start_sums = None
        if level.start is not None:
            relabel.split(self.memory, level, level.start)

    def release(self, level: GpuLevel) -> None:
        """Free the graph of a level; the input's, which every cycle needs, stays."""
        if level.number == 0:
            # Its start communities matter only while no later level is better.
            self.memory.discard(level.lasting.start)
            level.start = level.start_sums = None
            return
        give_back(self.memory, level)
        free_masses(self.memory, level)
        if level is self.current:
            self.room.let_leave(*level.lasting)
        else:
            self.begin_step(self.current, "move", level.lasting)

    def coarse_vertices(self, path: list[GpuLevel]) -> tuple[U32, ...]:
        """Return each level's map to the next, on the host."""
        if path[0].cycle == 0:
            self.followed.cycle_ended()
        return tuple(self.memory.values_of(level.numbers) for level in path[:-1])

    def coarse_labels(self, path: list[GpuLevel]) -> tuple[U32, ...]:
        """Return, for each level but the first, the communities its vertices start in."""
        starts = (level.start for level in path[1:] if level.start is not None)
        return tuple(map(self.memory.values_of, starts))

    def labels(self, path: list[GpuLevel]) -> U32:
        """Return the communities of the input's vertices, numbered by size, on the host."""
        if path[-1].number:
            give_back(self.memory, path[-1])
        labels = self.memory.empty("labels", "community", path[0].vertices, np.uint32)
        self.room.return_idle()
        relabel.compose(path, labels)
        for level in path:
            self.memory.discard(*level.lasting)
        relabel.number_by_size(self.memory, labels, path[-1].vertices)
        return self.memory.values_of(labels)

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.memory.peak_bytes

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget."""
        return self.followed.provenance(self.in_place)


class EarlyWork:
    """Launches refinement and aggregation of a level early, where it costs little to discard."""

    def __init__(self, followed: FollowedPlan, room: LevelRoom, from_input: FromInput) -> None:
        self.followed, self.room, self.from_input = followed, room, from_input
        self.run = followed.prepared.run
        self.begun: Begun | None = None

    def launch(self, level: GpuLevel, refine: Callable[[GpuLevel], None]) -> None:
        """Launch what follows a level, if it may be; `refine` launches its refinement."""
        run = self.run
        if run.observer is not ignore or self.followed.prepared.blocks or run.problem.extended:
            return
        # Levels of whole communities have no sums from refinement.
        if not level.whole and self.allowed(level) and not self.from_input.wanted(level):
            if run.leiden:
                refine(level)
            run.memory.free("totals")
            self.begun = begin(run.memory, level, run.limits)

    def allowed(self, level: GpuLevel) -> bool:
        """Return whether what follows a level may be discarded, and finds room."""
        limits, leiden, most = self.run.limits, self.run.leiden, max(level.vertices, level.arcs)
        if most <= limits.small:
            holds = self.room.holds_early(level, leiden=leiden)
            return (level.number > 0 or self.followed.stays_on_device) and holds
        # Few arcs of many vertices are aggregated by one launch, whose arrays are long then.
        if level.arcs <= limits.small or not self.followed.keeps_layout:
            return False
        # What moves of the input counts, however little. Numbering alone is soon done.
        certain = level.number == level.cycle == 0
        few = level.number > 0 and most <= limits.early
        if leiden and not certain and not few:
            return False
        return self.room.holds_early(level, leiden=leiden, at_once=False)

    def take(self) -> Begun | None:
        """Return what was launched for the level that continues, if anything."""
        begun, self.begun = self.begun, None
        return begun

    def discard(self) -> None:
        """Free what was launched and is not needed."""
        if begun := self.take():
            begun.discard()
