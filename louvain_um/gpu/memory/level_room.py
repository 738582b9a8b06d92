"""The room that a level has on the device: what each step works with, and what stays there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Final

import numpy as np

from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.events import Phase
from louvain_um.gpu.aggregate.coarse_rows import MOST_VERTICES
from louvain_um.gpu.aggregate.limits import LIMITS, AggregationLimits, chunk_for
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.shape import ROUNDING, SMALL, begun_at_once_bytes
from louvain_um.gpu.move.arguments import queue_entries, queued_at_once
from louvain_um.gpu.move.hub_tables import hub_bytes, hub_table_sizes
from louvain_um.gpu.runtime.kernel_list import PACKED_OFFSETS32
from louvain_um.placement.detection_plan import Plan
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.mover import Mover, Needs

IN_PAGES: Final = ("offsets", "degrees", "weights", "targets")
"""Arrays of a level's graph that may have pages of their own, those first that vertices look up,
then those of fewer bytes per arc, of which a read over the bus brings fewer that are used."""

IDLE_SHARE: Final = 3
"""Share, 1 / 3, of idle memory for chunks of new rows; the rest is for the rows themselves."""

HEAVY_BYTES: Final = 0.25
"""Bytes per arc that addresses of new rows are reserved for in front of short weights."""


def lists_rows(level: GpuLevel) -> bool:
    """Whether aggregation reads in order where a level's rows begin (`first_arc`)."""
    return level.compact == PACKED_OFFSETS32


def in_pages(level: GpuLevel) -> list[str]:
    """Return the names of arrays of a coarse level's graph that may have pages of their own."""
    return [f"{name}.{level.tag}" for name in IN_PAGES] if level.number else []


@dataclass(slots=True)
class LevelRoom:
    """Reports to the mover what steps on a level need; without one, all stays where it is."""

    memory: RunMemory
    plan: InitVar[Plan | None]
    limits: AggregationLimits
    low_scratch: bool
    on_host: dict[Phase, int] = field(init=False)

    def __post_init__(self, plan: Plan | None) -> None:
        # Before the run: it waits for what the host does between two steps.
        steps: tuple[Phase, ...] = ("move", "refine", "aggregate")
        paged = plan if self.mover else None
        self.on_host = {step: work_bytes_on_host(paged, step) if paged else 0 for step in steps}

    @property
    def mover(self) -> Mover | None:
        """What moves pages."""
        return self.memory.mover

    def begin(
        self, level: GpuLevel, step: Phase, idle: Sequence[str] = (), *, backs_up: bool = True
    ) -> None:
        """Place a level's graph for a step that begins; `idle` arrays are not read in it."""
        self.let_leave(*idle)
        if self.mover:
            least = self.work_bytes(level, step)
            needs = Needs(
                least=least,
                arrays=in_pages(level),
                in_order=step == "aggregate" and lists_rows(level),
                backs_up=backs_up,
            )
            self.mover.begin(step, level.number, needs)

    def begin_from_input(self, source: GpuLevel, level: GpuLevel) -> None:
        """Let kernels read the input's arcs, to make a later level of them."""
        if not self.mover:
            return
        if not self.limits.short_weights:
            width = 4 + np.dtype(source.sums).itemsize
        elif source.weights is not None:
            width = 6
        else:  # targets that may not fit take 24 bits (`new_rows`)
            width = 4 if level.vertices <= MOST_VERTICES else 5
        least = self.work_bytes(source, "aggregate")
        needs = Needs(
            least=least, reads_input=True, in_order=lists_rows(source), row_bytes=width * level.arcs
        )
        self.mover.begin("aggregate", level.number, needs)

    def begin_cycle(self, level: GpuLevel) -> None:
        """Bring the input's arcs to the device, where level 0 of a cycle is to move."""
        if self.mover:
            self.mover.begin_cycle(self.work_bytes(level, "move"))

    def expect_cycle(self, level: GpuLevel) -> None:
        """Begin to bring the input's arcs back while the host reads what a cycle found."""
        if self.mover:
            start = level.vertices * np.dtype(np.uint32).itemsize
            self.mover.start_return(self.work_bytes(level, "move") + start)

    def let_leave(self, *idle: str) -> None:
        """Let live arrays leave the device that are not read until the end of a cycle."""
        if self.mover:
            self.mover.let_leave(*(name for name in idle if name in self.memory.live))

    def return_idle(self) -> None:
        """Bring arrays back that were not read, since all of them are now."""
        if self.mover:
            self.mover.return_idle()

    def map_all(self, level: GpuLevel) -> None:
        """Let kernels read all of a level's graph, also what left while it was written."""
        if self.mover:
            self.mover.map_all(in_pages(level))

    def prepare(self, level: GpuLevel, step: Phase) -> None:
        """Use the time in which level 0 moves to map what the next step and new rows will need."""
        if not self.mover:
            return
        short = 1 if level.weights is None else 2
        rows = [int(width * level.arcs) for width in (short + HEAVY_BYTES, 4)]
        least, more = self.work_bytes(level, step), 0
        if step == "refine":  # sub-communities stay
            kept = level.vertices * np.dtype(np.uint32).itemsize
            least = max(least, kept + self.work_bytes(level, "aggregate"))
            idle = max(0, self.mover.room.idle - least)
            more = min(more_for_chunks(level, self.limits), idle // IDLE_SHARE)
        self.mover.prepare(least, more, rows)

    def work_bytes(self, level: GpuLevel, step: Phase) -> int:
        """Return the bytes of the device that a step on a level works with; 0 without pages."""
        if self.mover is None:
            return 0
        found = work_bytes(level, step, self.limits, low_scratch=self.low_scratch)
        return found if level.number else max(0, found - self.on_host[step])

    def lacks_room(self, level: GpuLevel) -> bool:
        """Whether the device has no room for as many arcs again as a level has."""
        least = self.work_bytes(level, "aggregate")
        return bool(self.mover and self.mover.lacks_room(in_pages(level), least))

    def queued(self, level: GpuLevel, step: Phase) -> int:
        """Return how many sub-rounds to queue at a time: in pages, as many as there is room for."""
        if self.mover is None:
            return queued_at_once(level.vertices, low_scratch=self.low_scratch)
        free = self.mover.room.spare - self.work_bytes(level, step)
        return queued_within(level, step, free)

    def holds_early(self, level: GpuLevel, *, leiden: bool, at_once: bool = True) -> bool:
        """Return whether nothing leaves for what is launched while a level's vertices move."""
        if self.mover is None:
            return True
        scratch = self.low_scratch
        needed = early_bytes(level, leiden=leiden, low_scratch=scratch, at_once=at_once)
        return needed <= self.mover.largest_gap


def work_bytes(
    level: GpuLevel, step: Phase, limits: AggregationLimits = LIMITS, *, low_scratch: bool = False
) -> int:
    """Return the bytes that moving, refining or aggregating a level works with at least, about."""
    n, sums = level.vertices, np.dtype(level.sums).itemsize
    if step == "aggregate":
        leiden = level.refined is not None
        chunk = chunk_for(level.arcs, limits, width=sums, leiden=leiden)
        slots = min(level.arcs // limits.arcs_a_slot, limits.most_slots)
        # The next level has half as many vertices, or fewer: each is a group of some.
        per_vertex = 8 + (16 + 2 * sums) // 2
        arcs = min(chunk, level.arcs)
        rows = n // 2 * arcs // max(1, level.arcs)  # of a chunk, which are noted
        return per_vertex * n + (4 + sums) * (arcs * 5 // 4 + slots + rows) + 4 * SMALL
    hubs = hub_table_sizes(
        n, level.arcs, level.max_degree, sums, low_scratch=low_scratch, hub_arcs=level.hub_arcs
    )
    tables = (4 + sums) * hubs.slots + (40 + sums) * hubs.hubs
    entries = queue_entries(n, queued_at_once(n, low_scratch=True))
    if step == "refine":
        return (5 + 2 * sums) * n + (8 + sums) * entries + tables + 4 * SMALL
    labels = 5 if level.byte_sizes else 8
    return (labels + sums) * n + n // 4 + 8 * entries + tables + 4 * SMALL


def more_for_chunks(level: GpuLevel, limits: AggregationLimits) -> int:
    """Return by how many bytes chunks of refined communities are larger if they may be."""
    arcs, sums = level.arcs, np.dtype(level.sums).itemsize
    unbounded = replace(limits, most_chunk=arcs)
    most = min(chunk_for(arcs, unbounded, width=sums, leiden=True), arcs)
    least = min(chunk_for(arcs, limits, width=sums, leiden=True), arcs)
    return (4 + sums) * (most - least) * 5 // 4


def queued_within(level: GpuLevel, step: Phase, nbytes: int) -> int:
    """Return how many sub-rounds to queue at a time, given bytes in addition to `work_bytes`."""
    each = 8 + (np.dtype(level.sums).itemsize if step == "refine" else 0)
    n, found = level.vertices, queued_at_once(level.vertices, low_scratch=True)
    most = queue_entries(n, found) + nbytes // each
    while found < SUB_ROUNDS and queue_entries(n, 2 * found) <= most:
        found *= 2
    return found


def early_bytes(
    level: GpuLevel, *, leiden: bool, low_scratch: bool = False, at_once: bool = True
) -> int:
    """Return the bytes of all arrays of what is launched early for a level."""
    n, arcs, sums = level.vertices, level.arcs, np.dtype(level.sums).itemsize
    refining = 0
    if leiden:
        hubs = hub_table_sizes(
            n, arcs, level.max_degree, sums, low_scratch=low_scratch, hub_arcs=level.hub_arcs
        )
        refining = (13 + 3 * sums) * n + hub_bytes(hubs, sums)
    if not at_once:
        return refining + 4 * (n + 1) + ROUNDING
    return refining + begun_at_once_bytes(n, arcs, sums)


LASTING: Final = ("targets", "weights", "offsets", "loops", "degrees", "start")
"""Roles of arrays of level 0 that are there before a step begins."""


def work_bytes_on_host(plan: Plan, step: Phase) -> int:
    """Return the bytes of what a step on level 0 works with that its plan leaves on the host."""
    mine = [a for a in plan.arrays if step in a.stages and a.role not in LASTING]
    return sum(
        a.nbytes - int(plan.placement_of(a.name).on_device * a.nbytes)
        for a in mine
        if not a.level and not a.estimated
    )
