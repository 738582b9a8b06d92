"""The level loop, the same for every engine: move, coarsen, until nothing improves.

An engine offers the steps on its own kind of level; the loop decides, from exact sums alone,
which level to keep and when to stop, so that no two engines can disagree.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.communities import Communities, Level
from louvain_um.events import Event, Observer, Phase
from louvain_um.graph import Graph
from louvain_um.options import Options
from louvain_um.quality import modularity_of_sums

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Sums:
    """Exact integers from which the modularity of a partition follows.

    Parameters
    ----------
    inside : int
        Weight of arcs inside communities, both directions, loops twice.
    squares : int
        Σ degree_c² over communities.
    communities : int
        How many there are.
    """

    inside: int
    squares: int
    communities: int


@dataclass(frozen=True, slots=True)
class Moved:
    """What moving on one level did: sweeps, vertices moved, arcs visited."""

    iterations: int
    moves: int
    arcs_visited: int


class Engine(Protocol[L]):
    """The steps of the algorithm on one kind of hardware.

    A level `L` holds a graph and the community its vertices start in.
    """

    def load(self, graph: Graph) -> L:
        """Return level 0, every vertex alone."""

    def size(self, level: L) -> tuple[int, int]:
        """Return vertices and arcs of a level."""

    def move(self, level: L, number: int) -> Moved:
        """Move vertices between communities until the gain dries up."""

    def refine(self, level: L, number: int) -> None:
        """Split what moving found into parts that hold together, one vertex each next level."""

    def aggregate(self, level: L, number: int) -> L:
        """Return the next level, its vertices starting in the communities moving found."""

    def sums(self, level: L) -> Sums:
        """Return the sums of the communities a level starts in."""

    def split(self, level: L) -> None:
        """Make every connected part of a community a community of its own."""

    def release(self, level: L) -> None:
        """Free a level's graph; its map to the next level stays."""

    def finish(self, path: list[L]) -> tuple[NDArray[np.uint32], tuple[NDArray[np.uint32], ...]]:
        """Return labels of the input's vertices, numbered by size, and each level's map."""

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget, threads."""


class Stopwatch:
    """Times phases and announces them to an observer."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.seconds: dict[str, float] = {}
        self.started = time.perf_counter()

    def run(self, phase: Phase, step: Any, *args: Any, **where: Any) -> Any:
        """Call ``step(*args)`` as a phase."""
        self.observer(Event(kind="start", phase=phase, **where))
        since = time.perf_counter()
        result = step(*args)
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - since
        self.observer(Event(kind="end", phase=phase, **where))
        return result


def detect(engine: Engine[Any], graph: Graph, options: Options, observer: Observer) -> Communities:
    """Run the level loop of Louvain or Leiden on an engine."""
    watch = Stopwatch(observer)
    total = graph.total_weight

    def quality(sums: Sums) -> float:
        return modularity_of_sums(sums.inside, sums.squares, total, options.resolution)

    level = watch.run("load", engine.load, graph)
    path, levels = [level], list[Level]()
    best = quality(engine.sums(level))
    while total and (options.max_level is None or len(levels) < options.max_level):
        since = time.perf_counter()
        number = len(levels)
        vertices, arcs = engine.size(level)
        where = {"level": number, "vertices": vertices, "arcs": arcs, "modularity": best}
        moved: Moved = watch.run("move", engine.move, level, number, **where)
        if options.method == "leiden":
            watch.run("refine", engine.refine, level, number, **where)
        coarse = watch.run("aggregate", engine.aggregate, level, number, **where)
        sums = engine.sums(coarse)
        value = quality(sums)
        gained, best = value - best, max(value, best)
        if gained <= 0:
            engine.release(coarse)
            break
        levels.append(
            Level(
                vertices=vertices,
                arcs=arcs,
                communities=sums.communities,
                modularity=value,
                iterations=moved.iterations,
                arcs_visited=moved.arcs_visited,
                seconds=time.perf_counter() - since,
            )
        )
        path.append(coarse)
        engine.release(level)
        level = coarse
        if gained <= options.threshold:
            break
    if options.method == "leiden":
        engine.split(path[-1])
        best = quality(engine.sums(path[-1]))
    labels, maps = engine.finish(path)
    watch.seconds["total"] = time.perf_counter() - watch.started
    return Communities(
        graph=graph,
        labels=labels,
        maps=maps,
        levels=tuple(levels),
        modularity=best,
        resolution=options.resolution,
        method=options.method,
        timings=watch.seconds,
        memory=dict(engine.peak_bytes),
        provenance={**engine.provenance, "seed": options.seed},
    )
