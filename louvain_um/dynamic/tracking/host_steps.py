"""The steps of a tracker on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import hierarchy, rules
from louvain_um.core.hierarchy import search
from louvain_um.core.numbering import add_masses, sum_of_squares
from louvain_um.cpu.dynamic import inherit
from louvain_um.cpu.dynamic import split as splitting
from louvain_um.cpu.engine import CpuEngine
from louvain_um.cpu.level import CpuLevel
from louvain_um.dynamic.batches.changes import Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking.following import BatchReport, FollowOptions, Mode, NamedPartition
from louvain_um.dynamic.tracking.identity import (
    BEFORE,
    HOST,
    NONE,
    NOW,
    ArrayMemory,
    Differences,
    numbered,
)
from louvain_um.events import ignore
from louvain_um.graph.row_view import RowView
from louvain_um.options import Options
from louvain_um.results.communities import Communities

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Marks = NDArray[np.bool_]

FOLLOWING_CYCLE = 1
"""Cycle of the sweeps that follow a change: the salts of a run that continues, not of a first one.
"""

RELEASED = -inf
"""What the first level of a renewal has to surpass: anything.

Freed vertices are to find communities again, and what comes of it is compared with what there was.
"""

WHOLLY = np.uint64(1 << 63)
"""Added to the turnover of vertices of parts that fell off: all of their arcs count."""


NO_STATE: tuple[U32, U64, Marks] = (
    np.zeros(0, np.uint32), np.zeros(0, np.uint64), np.zeros(0, np.bool_),
)  # fmt: skip


class HostSteps:
    """The steps of a batch on the CPU; `following.Steps` documents them."""

    memory: ArrayMemory = HOST
    nbytes = 0
    # Of the batch that is followed.
    view: Any
    change: Any
    whole: Any
    marks: Any
    next_touched: Any
    next_members: Any
    report: BatchReport

    def __init__(
        self,
        graph: DynamicGraph,
        options: FollowOptions,
        saved: tuple[U32, U64, Marks] | None = None,
    ) -> None:
        self.graph, self.options = graph, options
        self.names, self.touched, self.alive = saved or NO_STATE
        degrees = graph.degrees[: len(self.names)]
        self.sizes, self.masses = members_of(self.names, self.alive, degrees)

    def begin(
        self, change: Change | None, before: NamedPartition | None, report: BatchReport
    ) -> None:
        """Carry a partition to the changed graph, and mark the vertices that are to move."""
        self.view, self.report, self.next_members = self.graph.view(), report, None
        n = self.view.n_vertices
        self.marks, self.next_touched = np.zeros(n, np.bool_), np.zeros(n, np.uint64)
        if change is None or before is None:
            return
        self.change = change.to_host()
        columns = self.change.u, self.change.v, self.change.before, self.change.after
        names = np.concatenate([before.names, np.arange(len(before.names), n, dtype=np.uint32)])
        inside, turnover = inherit.add_changes(*columns, names)
        self.whole = replace(before, names=names, inside=before.inside + int(inside))
        self.next_touched[: len(self.touched)] = self.touched
        inherit.mark_changes(*columns, names, self.marks, self.next_touched)
        report.turnover, report.changed = int(turnover), change.changed_weight

    def split_loosened(self) -> None:
        """Split off the parts of communities that removed edges held."""
        self.whole, fell = split_loosened(self.view, self.whole, self.change, self.report)
        self.marks |= fell
        self.report.marked = int(np.count_nonzero(self.marks))
        self.report.split = int(np.count_nonzero(fell))
        self.next_touched[fell] |= WHOLLY

    def move(self) -> NamedPartition:
        """Let vertices move as the mode says."""
        return MOVES[self.options.mode](self)

    def move_marked(self) -> NamedPartition:
        """Move what the batch marked, and what that activates."""
        names = self.whole.names
        if self.marks.any() and self.view.total_weight:
            engine, level = loaded(self.view, replace(self.options.run, method="louvain"))
            rounds = rules.FRONTIER_SUB_ROUNDS
            level = replace(level, start=names, active=self.marks, sub_rounds=rounds)
            stats = engine.move(level)
            self.report.arcs_visited += stats.arcs_visited
            self.report.moves += stats.moves
            names = level.labels
        return self._moved(names)

    def move_with_levels(self) -> NamedPartition:
        """Move marked vertices, then aggregate and continue, as Louvain does."""
        run = replace(self.options.run, method="louvain")
        found = run_cycle(self.view, self.whole.names, self.marks, run, self.report)
        return found or self._moved(self.whole.names)

    def move_screened(self) -> NamedPartition:
        """Mark neighbours and communities of changed vertices, too (Zarayeneh et al. 2021)."""
        wide, names, view = self.marks.copy(), self.whole.names, self.view
        communities = np.zeros(len(names), np.bool_)
        for v in np.flatnonzero(self.marks):
            wide[view.targets[view.begins[v] : view.ends[v]]] = True
        communities[names[self.marks]] = True
        self.marks = wide | communities[names]
        return self.move_with_levels()

    def move_all(self) -> NamedPartition:
        """Start Louvain from the communities before, every vertex active."""
        self.marks = np.ones(len(self.marks), np.bool_)
        return self.move_with_levels()

    def renew(self, found: NamedPartition, waiting: int) -> NamedPartition | None:
        """Free touched vertices and run a cycle from there; None where it gained nothing."""
        share = self.options.renew * self.view.degrees.astype(np.float64)
        freed = (self.next_touched > 0) & (self.next_touched.astype(np.float64) >= share)
        start = found.names.copy()
        inherit.release(start, freed, np.empty(len(start), np.uint32))
        self.next_touched[freed] = 0
        run = self.options.run, self.report, RELEASED
        return run_cycle(self.view, start, freed, *run, renews=True)

    def detect(self, waiting: int = 0) -> NamedPartition:
        """Return the communities of a run from single vertices."""
        return detect(self.view, self.options.of_runs(self.options.run), self.report)

    def split_left(self, found: NamedPartition) -> NamedPartition:
        """Split the communities of those whose communities others left."""
        n, whole = len(found.names), self.whole.names
        left, flags = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        left[whole[found.names != whole]] = True
        flags[found.names[left[whole]]] = True
        return self._split(found, flags)

    def split_all(self, found: NamedPartition) -> NamedPartition:
        """Split all communities into their connected parts."""
        return self._split(found, np.ones(len(found.names), np.bool_))

    def are_alone(self, vertices: U32, found: NamedPartition) -> bool:
        """Return whether some vertices are communities of one member each."""
        flags = np.zeros(len(found.names), np.bool_)
        flags[vertices] = True
        alone = bool((found.names[vertices] == vertices).all())
        return alone and int(np.count_nonzero(flags[found.names])) == len(vertices)

    def forget_touched(self) -> None:
        """Begin anew to count what turns."""
        self.next_touched = np.zeros(self.view.n_vertices, np.uint64)

    def list_differing(self, found: NamedPartition, waiting: int) -> Differences:
        """List the vertices whose community has another name than before the batch."""
        names, degrees, n, old_n = found.names, self.view.degrees, len(found.names), len(self.names)
        alive = self.graph.alive
        self.next_members = alive, *members_of(names, alive, degrees)
        listed = np.empty(n, np.int64)
        listed = listed[: inherit.list_differing(self.names, names, self.alive, alive, listed)]
        known = listed < old_n
        before, living = np.full(len(listed), NONE, np.int64), NOW * alive[listed].astype(np.int64)
        before[known] = self.names[listed[known]]
        living[known] += BEFORE * self.alive[listed[known]]
        concerned, current, old = numbered(names[listed].astype(np.int64), before, n)
        sums = np.zeros((4, len(concerned)), np.int64)
        of_old = concerned < old_n
        for k, values in enumerate(self.next_members[1:]):
            sums[k] = values[concerned]
        for k, values in enumerate((self.sizes, self.masses)):
            sums[2 + k, of_old] = values[concerned[of_old]]
        return Differences(
            vertices=listed.astype(np.uint32), current=current, old=old, living=living,
            members=np.ones(len(listed), np.int64), degrees=degrees[listed], names=concerned,
            sums=sums,
        )  # fmt: skip

    def keep(self, found: NamedPartition) -> NamedPartition:
        """Make a partition the one that the next batch begins with."""
        if self.next_members is None:  # of a first one
            alive = self.graph.alive
            self.next_members = alive, *members_of(found.names, alive, self.view.degrees)
        self.names, self.touched = found.names, self.next_touched
        self.alive, self.sizes, self.masses = self.next_members
        self.abandon()
        return found

    def abandon(self) -> None:
        """Leave all as it was: nothing was written over."""
        for name in ("view", "change", "whole", "marks", "next_touched", "next_members"):
            setattr(self, name, None)

    def guarded(self) -> AbstractContextManager[None]:
        """Return what a batch is followed in: it may be interrupted."""
        return nullcontext()

    def room(self, held: int) -> None:
        """Return None: no budget limits the host's memory."""

    def _moved(self, labels: U32) -> NamedPartition:
        """Return the partition of labels reached by moves, with its sums."""
        view, before = self.view, self.whole
        weights = np.zeros(0, np.uint32) if view.weights is None else view.weights
        rows = view.begins, view.ends
        gained = inherit.add_moved(rows, view.targets, weights, before.names, labels)
        names = named(labels)
        squares = squares_of(view, names)
        return NamedPartition(names=names, inside=before.inside + int(gained), squares=squares)

    def _split(self, found: NamedPartition, flags: Marks) -> NamedPartition:
        """Split flagged communities into their connected parts."""
        names = split_flagged(self.view, found.names, flags, self.report)
        return replace(found, names=names, squares=squares_of(self.view, names))


MOVES: Final[dict[Mode, Callable[[HostSteps], NamedPartition]]] = {
    "follow": HostSteps.move_marked,
    "frontier": HostSteps.move_with_levels,
    "screening": HostSteps.move_screened,
    "naive": HostSteps.move_all,
    "static": HostSteps.detect,
}


def members_of(names: U32, alive: Marks, degrees: I64) -> tuple[I64, I64]:
    """Return living members and their degrees by name."""
    sizes, masses = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    inherit.add_members(names, alive, degrees, sizes, masses)
    return sizes, masses


def named(labels: U32) -> U32:
    """Return labels with every community named after its smallest member."""
    names = labels.copy()
    inherit.name_by_smallest(names, np.empty(len(names), np.uint32))
    return names


def loaded(view: RowView, options: Options) -> tuple[CpuEngine, CpuLevel]:
    """Return an engine and the graph as its level 0."""
    engine = CpuEngine(options, ignore)
    return engine, replace(engine.load(view), cycle=FOLLOWING_CYCLE)


def partition_of(view: RowView, labels: U32) -> NamedPartition:
    """Return a partition with its sums, from a pass over the arcs."""
    names = named(labels)
    engine, level = loaded(view, Options(device="cpu"))
    sums = engine.sums(replace(level, start=names))
    return NamedPartition(names=names, inside=sums.inside, squares=sums.squares)


def squares_of(view: RowView, names: U32) -> int:
    """Return Σ degree_c² over communities, from a pass over the vertices."""
    totals = np.zeros(len(names), np.int64)
    add_masses(view.degrees, names, totals)
    return sum_of_squares(totals)


def split_flagged(view: RowView, names: U32, flags: Marks, report: BatchReport) -> U32:
    """Return names in which the flagged communities are their connected parts."""
    if not flags.any():
        return names
    names, rows = names.copy(), (view.begins, view.ends)
    scratch = np.empty(len(names), np.uint32)
    read = splitting.split_flagged(rows, view.targets, names, flags, scratch)
    report.arcs_checked += int(read)
    return names


def split_loosened(
    view: RowView, partition: NamedPartition, change: Change, report: BatchReport
) -> tuple[NamedPartition, Marks]:
    """Return a partition without the parts that a batch separated, and the vertices of these."""
    names, rows, n = partition.names, (view.begins, view.ends), len(partition.names)
    edges = change.u, change.v, change.after
    flags, fell = np.zeros(n, np.uint8), np.zeros(n, np.bool_)
    of_graph = rows, view.targets, names, flags
    report.arcs_checked += int(splitting.loosen(*edges, *of_graph))
    if not flags.any():
        return partition, fell
    anchors, parts = np.empty(n, np.uint32), np.full(n, splitting.NONE)
    splitting.find_anchors(rows, names, flags, anchors)
    report.arcs_checked += int(splitting.search_ends(*edges, *of_graph, anchors, parts))
    fallen = flags == splitting.FALLEN
    found = split_flagged(view, names, fallen, report)
    taken, renamed = found.copy(), found != names
    splitting.take_off(taken, fallen[names], parts, anchors, fell)
    return replace(partition, names=taken), fell | renamed


def run_cycle(
    view: RowView,
    start: U32,
    marks: Marks | None,
    options: Options,
    report: BatchReport,
    best: float | None = None,
    *,
    renews: bool = False,
) -> NamedPartition | None:
    """Run one cycle of levels from given communities; None where it gained nothing."""
    engine, level = loaded(view, options)
    run = hierarchy.LevelLoop(engine, options, hierarchy.Stopwatch(ignore), renews)
    level = replace(level, start=start, active=marks)
    run.best = run.quality(level)[0] if best is None else best
    path = run.cycle(level, FOLLOWING_CYCLE)
    if len(path) == 1:
        return None
    report.arcs_visited += sum(level.arcs_visited for level in run.levels)
    sums = engine.sums(path[-1])
    return NamedPartition(
        names=named(engine.compose(path)), inside=sums.inside, squares=sums.squares
    )


def detect(view: RowView, options: Options, report: BatchReport) -> NamedPartition:
    """Return the communities of a run from single vertices."""

    def run(options: Options) -> Communities:
        return hierarchy.detect(CpuEngine(options, ignore), view, options, ignore)

    found = search(run, options)
    report.arcs_visited += sum(level.arcs_visited for level in found.levels)
    return partition_of(view, found.labels)
