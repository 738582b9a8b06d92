"""A level's graph made from the input's arcs, after the level before freed its own.

Leiden's refined communities are small: on power-law graphs level 1 has nearly as many arcs as the
input, and the graphs of levels 0, 1 and 2 together are the peak of a run. Level 1 therefore frees
its graph before level 2's is made in its place. Every vertex of level 2 is a group of the input's
vertices, too; there are about as many arcs to read, and every sum is the same. So does a later
level that still has nearly all arcs, such as those of random graphs.

In pages that change sides this goes for every level as large as such a level 1, if the next one's
rows find no room besides its own: the input has a copy on the host, in fewer bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.gpu.aggregate.aggregate import in_chunks
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation
from louvain_um.gpu.aggregate.limits import AggregationLimits
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.in_place import InPlace
from louvain_um.gpu.memory.level_room import LevelRoom
from louvain_um.gpu.preparation import Prepared
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.relabel.relabel import Join
from louvain_um.placement.memory.run_memory import RunMemory

REAGGREGATE_ABOVE: Final = 0.7
"""Share of the input's arcs above which level 1 frees its graph."""

REAGGREGATE_LATER: Final = 0.8
"""The same of later levels: so many arcs, with weights of a byte, take the bytes of the input's."""

GRAPH: Final = ("offsets", "targets", "weights", "loops", "degrees")
"""Arrays of a level's graph."""


class FromInput:
    """Decides which levels of a run are made from the input's arcs, and makes them."""

    def __init__(self, prepared: Prepared, room: LevelRoom, in_place: InPlace) -> None:
        self.prepared, self.room, self.in_place = prepared, room, in_place
        self.run, self.memory = prepared.run, prepared.run.memory
        self.first = prepared.level
        self.path: list[GpuLevel] = []
        self.shares: dict[str, float] = {}

    def wanted(self, level: GpuLevel) -> bool:
        """Return whether the level after this one is to be made from the input's arcs."""
        if self.prepared.blocks or self.run.problem.extended or not self.run.leiden:
            return False
        if self.memory.mover:
            return self.gives_way(level) and self.room.lacks_room(level)
        return self.outgrows(level)

    def outgrows(self, level: GpuLevel) -> bool:
        """Return whether a level is too large for its region, and the next one would be."""
        regions, planned = self.run.limits.region_arcs, self.prepared.planned
        if regions is None:
            return False
        outgrown = (planned and planned.shape.reaggregates) or level.arcs > regions[0]
        keeps = level.number == 1 or level.arcs > REAGGREGATE_LATER * self.first.arcs
        return bool(outgrown and keeps and self.gives_way(level))

    def gives_way(self, level: GpuLevel) -> bool:
        """Return whether a level's graph is freed, if the next one's has no room as well."""
        if not self.run.leiden or self.run.problem.extended:
            return False
        large = max(level.vertices, level.arcs) > self.run.limits.small
        return level.number > 0 and large and level.arcs > REAGGREGATE_ABOVE * self.first.arcs

    def make(self, level: GpuLevel) -> GpuLevel:
        """Return the level after this one; `shares` are of the arcs read those on the host."""
        return from_input(self.memory, self.path[:-1], level, self.run.limits, self.begin)

    def restore(self, level: GpuLevel) -> None:
        """Make the graph of a level again, in whose memory the next one was made."""
        before = self.path[: level.number]
        restore(self.memory, before, level, self.run.limits, self.begin)
        self.room.map_all(level)

    def begin(self, source: GpuLevel) -> None:
        """Let kernels read the input's arcs, to make a later level of them."""
        self.room.begin_from_input(source, self.path[-1])
        self.shares = self.in_place.shares(source)


def give_back(memory: RunMemory, level: GpuLevel, names: Sequence[str] = GRAPH) -> None:
    """Free those arrays of a level's graph that exist."""
    memory.discard(*(f"{name}.{level.tag}" for name in names))
    for name in names:
        setattr(level, name, None)


def from_input(
    memory: RunMemory,
    path: Sequence[GpuLevel],
    level: GpuLevel,
    limits: AggregationLimits,
    make_room: Callable[[GpuLevel], None],
) -> GpuLevel:
    """Return the next level, made from the input's arcs; frees this one's graph."""
    first, numbers = path[0], level.refined
    k = number_refined(memory, level)
    arcs, region = level.arcs, level.region
    # In regions, degrees belong to another group, where the freed bytes would not be used.
    give_back(memory, level, GRAPH if memory.mover else GRAPH[:-1])
    # As if the input were in the other region: the next level is where this one was.
    source = replace(first, number=level.number, region=3 - region)
    make_room(source)
    source.refined = through = followed(memory, path, numbers)
    # The next level has no more arcs than this one.
    limits = replace(limits, region_arcs=(arcs, arcs))
    coarse = from_numbers(memory, source, through, k, limits)
    memory.free("through")
    return Join(memory, level, numbers).finish(coarse)


def followed(memory: RunMemory, path: Sequence[GpuLevel], numbers: Any) -> Any:
    """Return the number of each of the input's vertices on the level after a path and its next."""
    n = path[0].vertices
    through = memory.empty("through", "scratch", n, np.uint32)
    before = path[0].numbers
    for map_ in (*(level.numbers for level in path[1:]), numbers):
        relabel.run("follow", n, map_, before, through)
        before = through
    return through


def restore(
    memory: RunMemory,
    path: Sequence[GpuLevel],
    level: GpuLevel,
    limits: AggregationLimits,
    make_room: Callable[[GpuLevel], None],
) -> None:
    """Make the graph of a level again, after `from_input` freed it; arguments as there."""
    give_back(memory, level)
    first, through = path[0], path[0].numbers
    source = replace(first, number=level.number - 1)
    make_room(source)
    if len(path) > 1:
        through = followed(memory, path[:-1], path[-1].numbers)
    source.refined = through
    made = from_numbers(memory, source, through, level.vertices, limits)
    if len(path) > 1:
        memory.free("through")
    level.tag, level.region, level.arcs = made.tag, made.region, made.arcs
    for name in GRAPH:
        setattr(level, name, getattr(made, name))


def number_refined(memory: RunMemory, level: GpuLevel) -> int:
    """Renumber refined communities in the order of their labels; return how many there are."""
    refined = level.refined
    aggregation = Aggregation(memory, level)
    aggregation.set(numbers=refined, label_bound=level.vertices)
    ranks = aggregation.scratch("ranks", level.vertices + 1, np.uint32)
    aggregation.launch("number_labels")
    k = int(aggregation.read()["vertices"])
    relabel.run("follow", level.vertices, ranks, refined, refined)
    aggregation.close()
    return k


def from_numbers(
    memory: RunMemory, source: GpuLevel, numbers: Any, k: int, limits: AggregationLimits
) -> GpuLevel:
    """Return the level after `source`, whose vertex v becomes number `numbers[v]`, below k."""
    aggregation = Aggregation(memory, source)
    aggregation.set(numbers=numbers, map=numbers)
    return in_chunks(aggregation, source, limits, k)
