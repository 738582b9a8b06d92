"""A partition that follows a changing graph: one batch carries it from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import hierarchy, rules
from louvain_um.core.community_sums import add_masses, sum_of_squares
from louvain_um.core.objective import Objective, Sums
from louvain_um.cpu import follow
from louvain_um.cpu.engine import CpuEngine
from louvain_um.cpu.level import CpuLevel
from louvain_um.dynamic.change import Change
from louvain_um.events import ignore
from louvain_um.graph.row_view import RowView
from louvain_um.options import Options

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
"""Added to what turned at vertices of parts that fell off: all of their arcs count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Communities of the vertices of a graph, each named after its smallest member."""

    names: U32
    inside: int
    squares: int

    @classmethod
    def of(cls, view: RowView, labels: U32) -> Self:
        """Return a partition with its sums, from a pass over the arcs."""
        names = named(labels)
        engine, level = loaded(view, Options(device="cpu"))
        sums = engine.sums(replace(level, start=names))
        return cls(names=names, inside=sums.inside, squares=sums.squares)

    def quality(self, total: int, resolution: float) -> float:
        """Return the modularity."""
        objective = Objective(name="modularity", resolution=resolution, total=total, norm=total)
        return objective.value(Sums(self.inside, self.squares, communities=0))


@dataclass(slots=True)
class Work:
    """What carrying a partition along cost: arcs of vertices that decided, arcs otherwise read."""

    arcs_visited: int = 0
    arcs_checked: int = 0
    moves: int = 0


def named(labels: U32) -> U32:
    """Return labels with every community named after its smallest member."""
    names = labels.copy()
    follow.name_by_smallest(names, np.empty(len(names), np.uint32))
    return names


def loaded(view: RowView, options: Options) -> tuple[CpuEngine, CpuLevel]:
    """Return an engine and the graph as its level 0."""
    engine = CpuEngine(options, ignore)
    return engine, replace(engine.load(view), cycle=FOLLOWING_CYCLE)


def squares_of(view: RowView, names: U32) -> int:
    """Return Σ degree_c² over communities, from a pass over the vertices."""
    totals = np.zeros(len(names), np.int64)
    add_masses(view.degrees, names, totals)
    return sum_of_squares(totals)


def carry(partition: Partition, change: Change, n_vertices: int) -> tuple[Partition, int]:
    """Return a partition with the sums of the changed graph, and the weight that changed."""
    new = np.arange(len(partition.names), n_vertices, dtype=np.uint32)
    names = np.concatenate([partition.names, new])
    columns = change.u, change.v, change.before, change.after
    inside, turned = follow.add_changes(*columns, names)
    carried = replace(partition, names=names, inside=partition.inside + int(inside))
    return carried, int(turned)


def split(view: RowView, partition: Partition, flags: Marks, work: Work) -> Partition:
    """Return a partition in which the flagged communities are their connected parts."""
    if not flags.any():
        return partition
    names = partition.names.copy()
    scratch = np.empty(len(names), np.uint32)
    work.arcs_checked += int(
        follow.split_flagged((view.begins, view.ends), view.targets, names, flags, scratch)
    )
    return replace(partition, names=names)


def split_loosened(
    view: RowView, partition: Partition, change: Change, work: Work
) -> tuple[Partition, Marks]:
    """Return a partition without the parts that a batch separated, and the vertices of these."""
    n, rows = len(partition.names), (view.begins, view.ends)
    edges = change.u, change.v, change.after
    flags, fell = np.zeros(n, np.uint8), np.zeros(n, np.bool_)
    of_graph = rows, view.targets, partition.names, flags
    work.arcs_checked += int(follow.loosen(*edges, *of_graph))
    if not flags.any():
        return partition, fell
    anchors, parts = np.empty(n, np.uint32), np.full(n, follow.NONE)
    follow.find_anchors(rows, partition.names, flags, anchors)
    work.arcs_checked += int(follow.search_ends(*edges, *of_graph, anchors, parts))
    fallen = flags == follow.FALLEN
    found = split(view, partition, fallen, work)
    names, renamed = found.names.copy(), found.names != partition.names
    follow.take_off(names, fallen[partition.names], parts, anchors, fell)
    return replace(partition, names=names), fell | renamed


def move_marked(
    view: RowView, partition: Partition, marks: Marks, options: Options, work: Work
) -> Partition:
    """Let marked vertices move, and those that their moves activate."""
    names = partition.names
    if marks.any() and view.total_weight:
        engine, level = loaded(view, options)
        rounds = rules.FRONTIER_SUB_ROUNDS
        level = replace(level, start=names, active=marks, sub_rounds=rounds)
        stats = engine.move(level)
        work.arcs_visited += stats.arcs_visited
        work.moves += stats.moves
        names = level.labels
    return moved(view, partition, names, work)


def moved(view: RowView, partition: Partition, labels: U32, work: Work) -> Partition:
    """Return the partition of labels reached by moves, with its sums."""
    weights = np.zeros(0, np.uint32) if view.weights is None else view.weights
    rows = view.begins, view.ends
    change = follow.add_moved(rows, view.targets, weights, partition.names, labels)
    names = named(labels)
    inside = partition.inside + int(change)
    return Partition(names=names, inside=inside, squares=squares_of(view, names))


def run_cycle(
    view: RowView,
    start: U32 | None,
    marks: Marks | None,
    options: Options,
    work: Work,
    best: float | None = None,
    *,
    renews: bool = False,
) -> Partition | None:
    """Run one cycle of levels from given communities; None where it gained nothing."""
    engine, level = loaded(view, options)
    run = hierarchy.Run(engine, options, hierarchy.Stopwatch(ignore), renews)
    cycle = 0 if start is None else FOLLOWING_CYCLE
    level = replace(level, cycle=cycle, start=start, active=marks)
    run.best = run.quality(level)[0] if best is None else best
    path = run.cycle(level, cycle)
    if len(path) == 1:
        return None
    work.arcs_visited += sum(level.arcs_visited for level in run.levels)
    sums = engine.sums(path[-1])
    return Partition(names=named(engine.compose(path)), inside=sums.inside, squares=sums.squares)


def to_free(view: RowView, touched: U64, share: float) -> Marks:
    """Return of which vertices such a share of the weight has turned; see `Followed.touched`."""
    return (touched > 0) & (touched.astype(np.float64) >= share * view.degrees.astype(np.float64))


def renew(
    view: RowView, partition: Partition, freed: Marks, options: Options, work: Work
) -> Partition | None:
    """Free vertices from their communities and run a cycle from there."""
    start = partition.names.copy()
    follow.release(start, freed, np.empty(len(start), np.uint32))
    return run_cycle(view, start, freed, options, work, RELEASED, renews=True)


def detect(view: RowView, options: Options, work: Work) -> Partition:
    """Return the communities of a run from single vertices."""
    found = hierarchy.detect(CpuEngine(options, ignore), view, options, ignore)
    work.arcs_visited += sum(level.arcs_visited for level in found.levels)
    return Partition.of(view, found.labels)
