"""The level loop, the same for every engine, and several runs of it for one result.

An engine implements the steps on its kind of level. The loop decides, from exact sums alone,
which level to keep and when to stop, so that engines cannot disagree.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import rules
from louvain_um.core.numbering import agreement
from louvain_um.core.objective import Objective, Problem, Sums
from louvain_um.errors import OptionError
from louvain_um.events import Event, Observer, Phase, ignore
from louvain_um.graph.graph import Graph
from louvain_um.options import Options, is_whole
from louvain_um.results.communities import Communities, Level
from louvain_um.results.quality import modularity

L = TypeVar("L")

MOST_RUNS: Final = 1000

Run = Callable[[Options], Communities]
"""One detection of a graph that does not change."""

COMBINED: Final = 10
"""Runs from single vertices that `effort="best"` combines with the best result so far."""


@dataclass(frozen=True, slots=True)
class MoveStats:
    """Statistics of a level's move phase."""

    iterations: int
    moves: int
    arcs_visited: int
    gain: int


class Engine(Protocol[L]):
    """The steps of the algorithm on one kind of hardware."""

    @property
    def problem(self) -> Problem:
        """What the run is to find; known once a graph is loaded."""

    def load(self, graph: Any) -> L:
        """Return level 0; its vertices start where the problem says."""

    def prepare_restart(self, path: list[L]) -> None:
        """Begin what `restart` will need, while the results of a cycle are read."""

    def restart(self, path: list[L]) -> L:
        """Return level 0 of the next cycle, its vertices in the communities of a path."""

    def discard_move(self, level: L) -> None:
        """Free temporaries after a move phase without moves."""

    def max_degree(self, level: L) -> int:
        """Return the largest number of arcs of a vertex of the input."""

    def move(self, level: L) -> MoveStats:
        """Move vertices between communities until a sweep's gain falls below the tolerance."""

    def refine(self, level: L) -> None:
        """Split communities into connected sub-communities, the vertices of the next level."""

    def aggregate(self, level: L) -> L:
        """Return the next level, its vertices starting in the communities found by moving."""

    def sums(self, level: L) -> Sums:
        """Return the sums of the communities a level starts in."""

    def split_disconnected(self, level: L) -> None:
        """Make every connected component of a community a community of its own."""

    def release(self, level: L) -> None:
        """Free the graph of a level, except the input's, which every cycle needs."""

    def coarse_vertices(self, path: list[L]) -> tuple[NDArray[np.uint32], ...]:
        """Return each level's map to the next."""

    def coarse_labels(self, path: list[L]) -> tuple[NDArray[np.uint32], ...]:
        """Return, for each level but the first, the communities its vertices start in."""

    def labels(self, path: list[L]) -> NDArray[np.uint32]:
        """Return the communities of the input's vertices, numbered by size."""

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
        observed = self.observer is not ignore
        if observed:
            self.observer(Event(kind="start", phase=phase, **where))
        since = time.perf_counter()
        result = step(*args)
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - since
        if observed:
            self.observer(Event(kind="end", phase=phase, **where))
        return result


@dataclass(slots=True)
class LevelLoop:
    """The state of one detection between levels."""

    engine: Engine[Any]
    options: Options
    watch: Stopwatch
    renews: bool = False
    joins: bool = False
    best: float = 0.0
    gained: float = 0.0
    input_arcs: int = 0
    skewed: bool = False
    levels: list[Level] = field(default_factory=list)

    def quality(self, level: Any) -> tuple[float, int]:
        """Return value and number of the communities a level starts in."""
        sums = self.engine.sums(level)
        return self.objective.value(sums), sums.communities

    @property
    def objective(self) -> Objective:
        """What is maximised."""
        return self.engine.problem.objective

    @property
    def level_allowed(self) -> bool:
        """Whether another level is allowed."""
        limit = self.options.max_level
        return limit is None or len(self.levels) < limit

    def cycle(self, level: Any, number: int) -> list[Any]:
        """Run levels until one gains no more than the threshold; return those that gained."""
        path = [level]
        self.input_arcs = level.arcs
        self.skewed = self.engine.max_degree(level) ** 2 > self.input_arcs
        while self.level_allowed:
            coarse = self.step(level, number, len(path) - 1)
            if coarse is None:
                break
            path.append(coarse)
            self.engine.release(level)
            level = coarse
            least = self.options.threshold * (rules.RENEWAL_FACTOR if self.renews else 1)
            forced = self.joins or self.refines_start(number, len(path) - 2)
            if self.gained <= least and not forced:
                break
        if self.options.method == "leiden" and len(path) > 1:
            self.engine.split_disconnected(level)
            self.best, communities = self.quality(level)
            self.levels[-1] = replace(
                self.levels[-1], modularity=self.best, communities=communities
            )
        return path

    def refines_start(self, cycle: int, number: int) -> bool:
        """Whether a level must be refined although it gains nothing."""
        if self.renews:
            return number == 0
        given = self.engine.problem.start is not None and self.options.method == "leiden"
        return given and cycle == number == 0

    def may_join(self, level: Any) -> bool:
        """Whether one more level, of whole communities, follows a level that gains too little."""
        if not (self.renews and self.levels and self.options.method == "leiden"):
            return False
        return not self.joins and self.levels[-1].communities < level.vertices

    def gained_enough(self, moved: MoveStats, cycle: int, number: int) -> bool:
        """Whether a move phase gained enough for aggregation to follow."""
        given = self.options.n_iterations is not None
        factor = 1 if given else rules.min_gain_factor(cycle, number)
        if self.renews:
            factor = rules.RENEWAL_FACTOR
        return rules.as_modularity(moved.gain) > self.options.threshold * factor

    def step(self, level: Any, cycle: int, number: int) -> Any:
        """Move, refine and aggregate; return the next level, or None if nothing was gained."""
        engine, watch, since = self.engine, self.watch, time.perf_counter()
        vertices, arcs = level.vertices, level.arcs
        where = {"level": number, "vertices": vertices, "arcs": arcs, "modularity": self.best}
        leiden = self.options.method == "leiden"
        if leiden and number > 0 and (self.skewed or self.renews):
            level.whole = arcs > rules.MOST_KEPT * self.input_arcs
        if leiden and rules.keeps_whole(cycle, self.options.effort):
            level.whole = True
        moved: MoveStats = watch.run("move", engine.move, level, **where)
        enough = moved.moves > 0 and (not self.levels or self.gained_enough(moved, cycle, number))
        self.joins = not enough and self.may_join(level)
        if self.joins:
            level.whole = True
        forced = self.joins or self.refines_start(cycle, number)
        if not forced and not enough:
            engine.discard_move(level)
            self.gained = 0.0
            return None
        if self.options.method == "leiden":
            watch.run("refine", engine.refine, level, **where)
        coarse = watch.run("aggregate", engine.aggregate, level, **where)
        value, communities = self.quality(coarse)
        self.gained = (value - self.best) / self.objective.unit
        if self.gained < 0 or (self.gained == 0 and not forced):
            engine.release(coarse)
            return None
        self.best = value
        self.levels.append(
            Level(
                cycle=cycle,
                vertices=vertices,
                arcs=arcs,
                communities=communities,
                modularity=value,
                iterations=moved.iterations,
                arcs_visited=moved.arcs_visited,
                seconds=time.perf_counter() - since,
            )
        )
        return coarse


def detect(engine: Engine[Any], graph: Any, options: Options, observer: Observer) -> Communities:
    """Run the level loop of Louvain or Leiden on an engine, in cycles."""
    run = LevelLoop(engine, options, Stopwatch(observer))
    level = run.watch.run("load", engine.load, graph)
    if options.method == "leiden" and engine.problem.start is not None:
        engine.split_disconnected(level)
    run.best = run.quality(level)[0]
    path = [level]
    maps, coarse_labels = list[NDArray[np.uint32]](), list[NDArray[np.uint32]]()
    # Whoever sets a number of cycles gets them as long as they improve the result.
    given = engine.problem.start is not None or options.n_iterations is not None
    cycles = rules.cycles(options.method, options.effort, options.n_iterations)
    cycles = cycles if run.objective.total else 0
    for number in range(cycles):
        if number:
            level = engine.restart(path)
        before = run.best
        path = run.cycle(level, number)
        if len(path) == 1:
            break
        least = options.threshold * rules.cycle_gain_factor(number, given)
        gained = (run.best - before) / run.objective.unit
        goes_on = gained > least and run.level_allowed and number + 1 < cycles
        if goes_on:
            engine.release(path[-1])
            engine.prepare_restart(path)
        maps.extend(run.watch.run("fetch", engine.coarse_vertices, path))
        coarse_labels.extend(run.watch.run("fetch", engine.coarse_labels, path))
        if not goes_on:
            break
    labels = run.watch.run("fetch", engine.labels, path)
    run.watch.seconds["total"] = time.perf_counter() - run.watch.started
    is_modularity = run.objective.name != "cpm"
    return Communities(
        graph=graph if isinstance(graph, Graph) else None,
        labels=labels,
        maps=tuple(maps),
        coarse_labels=tuple(coarse_labels),
        levels=tuple(run.levels),
        modularity=run.best if is_modularity else modularity_of(graph, labels),
        objective=run.objective.name,
        value=run.best,
        resolution=options.resolution,
        method=options.method,
        timings=run.watch.seconds,
        memory=dict(engine.peak_bytes),
        provenance={
            **engine.provenance,
            "seed": options.seed,
            "objective": options.objective,
            "options": options.settings() | given_digests(engine.problem),
        },
    )


def given_digests(problem: Problem) -> dict[str, str | None]:
    """Return hashes of initial communities and fixed vertices, to be saved with labels."""
    given = {"initial": problem.start, "fixed": problem.fixed}
    return {
        name: None if array is None else hashlib.sha256(array.tobytes()).hexdigest()[:32]
        for name, array in given.items()
    }


def modularity_of(graph: Any, labels: NDArray[np.uint32]) -> float:
    """Return Newman's modularity of labels, of a signed graph its own, at resolution 1."""
    signed = isinstance(graph, Graph) and graph.kind == "signed"
    return modularity(graph, labels, objective="signed" if signed else "modularity")


def refuse_count(name: str, value: object, low: int, high: int) -> None:
    """Raise an OptionError for anything but a whole number from `low` to `high`."""
    if not is_whole(value):
        raise OptionError(name, value, "must be a whole number")
    if not low <= int(value) <= high:
        raise OptionError(name, value, f"must lie in {low} … {high}")


def seeds_of(runs: int, first: int, name: str = "runs") -> range:
    """Return the seeds of so many runs, whose number a parameter of that name is."""
    refuse_count(name, runs, 1, MOST_RUNS)
    if not is_whole(first) or first < 0:
        raise OptionError("seed", first, "must lie in 0 … 2^32 - 1")
    if first + runs > 2**32:
        raise OptionError("seed", first, f"must leave room for {runs} seeds below 2^32")
    return range(first, first + runs)


def search(run: Run, options: Options) -> Communities:
    """Return the best result of the seeds of a run, the first of equal ones; see `Options`."""
    if options.best_of == 1 and options.effort != "best":
        return run(options)  # which records them
    seconds, memory = dict[str, float](), dict[str, int]()

    def counted(options: Options) -> Communities:
        found = run(options)
        for phase, taken in found.timings.items():
            seconds[phase] = seconds.get(phase, 0.0) + taken
        for group, nbytes in found.memory.items():
            memory[group] = max(memory.get(group, 0), nbytes)
        return found

    seeds = range(options.seed, options.seed + options.best_of)
    each = (replace(options, seed=seed, best_of=1) for seed in seeds)
    if options.effort == "best":
        best = max((combine(counted, one) for one in each), key=value_of)
    else:
        best = max(map(counted, each), key=value_of)
    asked = {**best.provenance.get("options", {}), **options.settings()}
    provenance = {**best.provenance, "options": asked}
    return replace(best, timings=dict(seconds), memory=dict(memory), provenance=provenance)


def combine(run: Run, options: Options) -> Communities:
    """Return the best of results that start where the best one and a new run agree."""
    # Communities that both have in common stay together at first; where they differ,
    # sub-communities are free to move as wholes (Ovelgönne and Geyer-Schulz 2012: core groups).
    plain, quick, full = parts(options)
    best = first = run(plain)
    for number in range(1, COMBINED + 1):
        seed = rules.seed_of_part(options.seed, number)
        start = agreement(best.labels, run(replace(quick, seed=seed)).labels)
        best = max(best, run(replace(plain, initial=start, seed=seed)), key=value_of)
    best = max(best, run(replace(full, initial=best.labels)), key=value_of)
    given = {"seed": options.seed, "options": first.provenance.get("options", {})}
    return replace(best, provenance={**best.provenance, **given})


def parts(options: Options) -> tuple[Options, Options, Options]:
    """Return the options of combined runs: those that count, those that cut, and the last one."""
    plain = replace(options, effort="default", n_iterations=3)
    quick = replace(plain, effort="fast", n_iterations=2, method="louvain")
    return plain, quick, replace(plain, n_iterations=options.n_iterations or -1)


def value_of(found: Communities) -> float:
    """Return the value of the objective."""
    assert found.value is not None
    return found.value
