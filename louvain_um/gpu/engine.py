"""The CUDA engine: the order in which kernels run; the twin of `louvain_um.cpu.engine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.objectives.objective import Sums
from louvain_um.core.objectives.problem import Problem, problem_of, takes_extended_rule
from louvain_um.errors import OptionError
from louvain_um.events import Event, Observer, Phase, array_listener, ignore
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.aggregate import (
    LIMITS,
    Begun,
    aggregate,
    begin,
    prepare,
)
from louvain_um.gpu.forecast import Forecast
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.in_place import InPlace
from louvain_um.gpu.memory.level_room import LevelRoom
from louvain_um.gpu.memory.loading import adopt, cut, survey, upload
from louvain_um.gpu.memory.packed import Packer
from louvain_um.gpu.memory.run_plan import (
    check_host_room,
    plan_run,
    without_graph,
)
from louvain_um.gpu.memory.shape import Shape
from louvain_um.gpu.move.extended import (
    extended_sums,
    free_masses,
    free_second_totals,
    load_masses,
    sum_masses,
)
from louvain_um.gpu.move.move import move, tell_sweeps
from louvain_um.gpu.out_of_core.block_steps import move_blocks, refine_blocks
from louvain_um.gpu.out_of_core.vertex_blocks import VertexBlocks
from louvain_um.gpu.refine.refine import refine
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.setup import (
    aggregation_limits,
    compact_types,
    held_ballast,
    kernel_types,
    provenance,
)
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.machine.profiles import machine_for
from louvain_um.placement.memory.guard import peer_for, peer_room
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.block_cache import Traffic
from louvain_um.placement.planner import Plan

U32 = NDArray[np.uint32]


class GpuEngine:
    """Louvain and Leiden on the current CUDA device."""

    def __init__(self, options: Options, observer: Observer) -> None:
        self.options = options
        self.observer = observer
        self.total = 0
        self.problem: Problem
        self.plan: Plan
        self.memory: RunMemory
        self.blocks: VertexBlocks | None = None
        self.low_scratch = False
        self.limits = LIMITS
        self.in_place: InPlace
        self.first: GpuLevel
        self.current: GpuLevel
        self.path: list[GpuLevel] = []
        self.reaggregates = False
        self.shares_read: dict[str, float] = {}
        self.forecast = Forecast()
        self.room: LevelRoom
        self.shape: Shape
        self.peer: int | None = None
        self.ahead: Begun | None = None
        self.stack = ExitStack()

    def __enter__(self) -> GpuEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        with self.stack:
            if hasattr(self, "memory"):
                self.memory.close()

    def load(self, graph: Graph | DeviceGraph) -> GpuLevel:
        """Plan the run, lay out memory, and put the graph where the plan places it."""
        import cupy

        extended = takes_extended_rule(self.options)
        if extended and isinstance(graph, DeviceGraph):
            graph = graph.to_host()
        self.problem = problem_of(graph, self.options)
        self.total = graph.total_weight
        if isinstance(graph, DeviceGraph):
            # A kernel counts degrees for the plan; announce its compilation.
            kernels.prepare([("relabel", "")], self.observer)
        device = cupy.cuda.runtime.getDevice()
        machine, peer = machine_for(device), peer_for(self.options.peer_memory, device)
        packer = Packer(graph)
        if peer is not None:
            self.plan, shape = plan_run(
                graph, self.options, machine.with_peer(), survey=survey, packer=packer
            )
            peer = peer if peer_room(peer) >= self.plan.beyond_bytes else None
        if peer is None:
            self.plan, shape = plan_run(graph, self.options, machine, survey=survey, packer=packer)
        self.peer, self.shape = peer, shape
        self.observer(Event(kind="plan", phase="load", plan=self.plan))
        if extended and self.plan.out_of_core:
            raise OptionError(
                "device_budget",
                self.options.device_budget,
                "take memory='auto', raise device_budget, or use device='cpu'",
                problem="policies that move vertex blocks to the device and back work for "
                "modularity without constraints only",
            )
        compact = compact_types(self.plan, shape)
        pages = self.plan.pages is not None
        types, coarse = kernel_types(graph, LIMITS.small, extended=extended, pages=pages)
        self.compile(compact or types, *coarse)
        self.forecast.plan(self.plan)
        self.limits = aggregation_limits(self.plan, shape, LIMITS, self.options)
        self.reaggregates = shape.reaggregates
        unchanged = self.plan.in_core and not compact and not self.plan.pages
        given = graph if isinstance(graph, DeviceGraph) and unchanged else None
        layout = without_graph(self.plan) if given else self.plan.layout
        if peer is None:
            check_host_room(layout)
        self.stack.enter_context(held_ballast(self.plan, self.options, device))
        self.memory = RunMemory(
            layout,
            device,
            budget=self.plan.limit,
            out_of_core=self.plan.out_of_core,
            pages=self.plan.pages,
            peer=peer,
            listener=array_listener(self.observer),
        )
        self.low_scratch = self.plan.low_scratch
        if self.plan.out_of_core:
            self.compile(types, source="vertex_blocks")
            kernels.prepare([("vertex_blocks", "")], self.observer)
        if given:
            level = adopt(self.memory, given)
        else:
            level = upload(self.memory, graph, packer=packer, compact=compact, extended=extended)
        if extended and isinstance(graph, Graph):
            load_masses(self.memory, graph, self.problem, level)
        prepare(kernels, self.memory, level)
        if self.plan.out_of_core:
            self.blocks = cut(self.memory, self.plan, graph, level, device)
        level.hub_arcs = shape.hub_arcs
        level.byte_sizes = bool(compact) and shape.compacted().byte_sizes
        self.begin(level, self.plan)
        self.room.begin_cycle(level)
        return level

    def begin(self, level: GpuLevel, plan: Plan | None) -> None:
        """Begin with level 0, whose arrays are in memory, as a plan says if there is one."""
        arrays = plan.arrays if plan else ()
        self.in_place = InPlace(self.memory, self.observer, arrays, self.options.method)
        self.room = LevelRoom(self.memory, plan, self.limits, low_scratch=self.low_scratch)
        self.first = self.current = level

    def compile(self, *types: str, source: str = "") -> None:
        """Load the kernels for levels of these types, compiling them if needed."""
        sources = [source] if source else ["move", "aggregate", "relabel"]
        if not source and self.options.method == "leiden":
            sources.append("refine")
        units = [(source, each) for source in sources for each in dict.fromkeys(types)]
        if self.problem.extended:
            moving = ("move", "refine")
            units = [(s, f"{each}, Extended" if s in moving else each) for s, each in units]
        kernels.prepare([*units, ("relabel", "")], self.observer)

    def prepare_restart(self, path: list[GpuLevel]) -> None:
        """Begin to bring the input back to the device, beside what is read of a cycle."""
        self.room.expect_cycle(path[0])

    def restart(self, path: list[GpuLevel]) -> GpuLevel:
        """Return level 0 of the next cycle, its vertices in the communities of a path."""
        first = path[0]
        cycle = first.cycle + 1
        start = self.memory.empty(
            f"start.{cycle}.0", "community", first.vertices, np.uint32, short_lived=True
        )
        self.room.return_idle()
        relabel.compose(kernels, path, start)
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
        run = (kernels, self.memory, self.options, self.total, level)
        blocks = self.blocks if level.number == 0 else None
        begins = level.number == level.cycle == 0
        if begins:
            self.forecast.begin()
        if blocks:
            moved, sweeps = move_blocks(*run, blocks, self.low_scratch)
        else:
            queued = self.room.queued(level, "move")
            meanwhile = partial(self.go_ahead, level)
            moved, sweeps = move(*run, self.problem, self.low_scratch, queued, meanwhile)
        if not blocks:
            self.in_place.move(level, moved)
        if begins:
            self.forecast.moved(moved, level.arcs)
            # Where nothing follows from it, it is found while level 1 moves.
            if not self.keeps_layout:
                self.catch_up()
        tell_sweeps(self.observer, level.number, level.vertices, level.arcs, sweeps)
        return moved

    @property
    def lies_still(self) -> bool:
        """Whether everything is on the device, where it stays."""
        return self.plan.in_core and not self.plan.pages

    @property
    def keeps_layout(self) -> bool:
        """Whether no other layout is followed: all lies still, or pages are scheduled."""
        return self.lies_still or self.memory.mover is not None

    def catch_up(self) -> None:
        """Correct the plan by the first move phase, once; follow its layout where possible."""
        if self.forecast.uncorrected is None:
            return
        self.plan = self.room.plan = self.forecast.correct(
            self.plan, self.memory, choosing=not self.keeps_layout
        )

    def go_ahead(self, level: GpuLevel) -> None:
        """Use the time in which a level's vertices move."""
        self.catch_up()
        if level.number == level.cycle == 0:
            self.room.prepare(level, "refine" if self.options.method == "leiden" else "aggregate")
        if self.observer is not ignore or self.blocks or self.problem.extended:
            return
        # Those of whole communities take no sums along, as refining does.
        if not level.whole and self.begins_ahead(level) and not self.from_input(level):
            if self.options.method == "leiden":
                self.launch_refinement(level)
            self.memory.free("totals")
            self.ahead = begin(kernels, self.memory, level, self.limits)

    def begins_ahead(self, level: GpuLevel) -> bool:
        """Return whether what follows a level is launched before it is known whether it counts."""
        leiden, most = self.options.method == "leiden", max(level.vertices, level.arcs)
        if most <= self.limits.small:
            holds = self.room.holds_early(level, leiden=leiden)
            return (level.number > 0 or self.lies_still) and holds
        # Few arcs of many vertices are aggregated by one launch, whose arrays are long then.
        if level.arcs <= self.limits.small or not self.keeps_layout:
            return False
        # What moves of the input counts, however little. Numbering alone is soon done.
        certain = level.number == level.cycle == 0
        few = level.number > 0 and most <= self.limits.ahead
        if leiden and not certain and not few:
            return False
        return self.room.holds_early(level, leiden=leiden, at_once=False)

    def refine(self, level: GpuLevel) -> None:
        """Split communities into connected sub-communities."""
        if level.whole:
            self.discard_ahead()
            self.begin_step(level, "refine")
            relabel.components(kernels, self.memory, level)
            return
        if self.ahead:
            return
        # Read at most once per vertex.
        idle = self.live("totals", f"start.{level.cycle}.{level.number}")
        self.begin_step(level, "refine", idle)
        self.launch_refinement(level)

    def launch_refinement(self, level: GpuLevel) -> None:
        """Split communities into connected sub-communities, once pages are where they stay."""
        run = (kernels, self.memory, self.options, self.total, level)
        blocks = self.blocks if level.number == 0 else None
        if blocks:
            refine_blocks(*run, blocks, self.low_scratch)
        else:
            refine(*run, self.problem, self.low_scratch, self.room.queued(level, "refine"))
            self.in_place.refine(level)

    def aggregate(self, level: GpuLevel) -> GpuLevel:
        """Return the next level; vertices that share a label (or sub-community) become one."""
        self.memory.free(*self.live("totals"))
        free_second_totals(self.memory, level)
        if level.refined is not None and not (self.ahead and self.ahead.at_once):
            # The next level's start is made of labels, in order; what this one began with is over.
            tag = f"{level.cycle}.{level.number}"
            self.room.let_leave(*self.live(f"labels.{tag}", f"start.{tag}"))
        self.path = [*self.path[: level.number], level]
        blocks = self.blocks if level.number == 0 else None
        where = (blocks.ranges, blocks.need_range) if blocks else ()
        first, limits = self.first, self.limits
        again = self.ahead is None and self.from_input(level)
        rows = replace(first, number=level.number) if again else level
        shares = self.in_place.shares(rows)
        if again:
            before = self.path[:-1]
            coarse = reaggregate.from_input(
                kernels, self.memory, before, level, limits, self.begin_from_input
            )
            shares = self.shares_read
        else:
            ahead, self.ahead = self.ahead, None
            if ahead:
                if not ahead.at_once:
                    self.begin_step(level, "aggregate")
                coarse = ahead.finish()
            else:
                self.begin_step(level, "aggregate")
                coarse = aggregate(kernels, self.memory, level, limits, *where)
        sum_masses(kernels, self.memory, level, coarse)
        if self.options.method == "leiden":
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
        if level.number == level.cycle == 0:
            self.forecast.aggregated(self.plan, self.shape, coarse)
        return coarse

    def from_input(self, level: GpuLevel) -> bool:
        """Return whether the next level is made from the input's arcs (`reaggregate`)."""
        if self.blocks or self.problem.extended or self.options.method != "leiden":
            return False
        if self.memory.mover is None:
            return reaggregate.wanted(self.first, level, self.limits, self.reaggregates)
        return self.gives_way(level) and self.room.lacks_room(level)

    def gives_way(self, level: GpuLevel) -> bool:
        """Return whether a level's graph is freed, if the next one's has no room beside it."""
        leiden = self.options.method == "leiden" and not self.problem.extended
        return leiden and reaggregate.keeps_most(self.first, level, self.limits)

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
        self.discard_ahead()

    def discard_ahead(self) -> None:
        """Free what was launched for nothing while a level's vertices moved."""
        if self.ahead:
            self.ahead.discard()
            self.ahead = None

    def sums(self, level: GpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        if level.start_sums is not None:
            return level.start_sums
        if level.start is None:
            sums = Sums(level.inside, level.squares, level.vertices)
        else:
            self.room.map_all(level)
            sums = relabel.community_sums(kernels, self.memory, level)
            if not self.problem.extended:
                level.start_sums = sums
        return extended_sums(level, sums) if self.problem.extended else sums

    def split_disconnected(self, level: GpuLevel) -> None:
        """Make every connected component of a community a community of its own."""
        if level.offsets is None:
            # The next level gained nothing, and was built in this one's memory.
            before = self.path[: level.number]
            begin = self.begin_from_input
            reaggregate.restore(kernels, self.memory, before, level, self.limits, begin)
            self.room.map_all(level)
        level.start_sums = None
        if level.start is not None:
            relabel.split(kernels, self.memory, level, level.start)

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
        relabel.compose(kernels, path, labels)
        for level in path:
            self.memory.free(*self.live(*self.held(level)))
        relabel.number_by_size(kernels, self.memory, labels)
        return self.memory.values_of(labels)

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.memory.peak_bytes

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes of vertex blocks, or of pages, that the run moved between host and device."""
        moved = self.blocks.cache.traffic if self.blocks else Traffic()
        pages = self.memory.mover.copied if self.memory.mover else {"device": 0, "host": 0}
        return {
            "to_device": moved.to_device + pages["device"],
            "to_host": moved.to_host + pages["host"],
        }

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget."""
        self.catch_up()
        plan = {
            **self.forecast.summary,
            "kept": self.plan.kept,
            "device_bytes": self.plan.device_bytes,
            "packed": self.plan.compact,
            "target_bytes": self.shape.target_bytes if self.plan.compact else 4,
            "pages_a_warp": self.blocks.touch.factor if self.blocks else None,
        }
        overflowed = dict(self.memory.overflowed)
        return provenance(
            self.plan,
            overflowed=overflowed,
            peer_memory=None if self.peer is None else f"cuda:{self.peer}",
            plan=plan,
            traffic_bytes=self.traffic,
            read_in_place=self.in_place.summary(),
            touched_bytes=self.memory.ledger.peak_total,
        )
