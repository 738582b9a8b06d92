"""What the kernels of a run would return to the host, recorded from the CPU engine."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.hierarchy import MoveStats, detect
from louvain_um.core.numbering import sum_of_squares
from louvain_um.core.objective import Sums
from louvain_um.cpu.engine import CpuEngine
from louvain_um.gpu.memory.graph_stats import DegreeStats

I64 = NDArray[np.int64]


@dataclass
class CommunityArcs:
    """Arcs of each community before aggregation, and after it without and with inner arcs."""

    arcs: I64
    outer: I64
    whole: I64

    def kept(self, partial):
        return self.whole if partial else self.outer


@dataclass
class RangeStep:
    """A range of vertices: its communities, their rows, and the pairs of communities joined."""

    communities: I64
    rows: CommunityArcs
    pairs: Any


@dataclass
class Step:
    """One recorded aggregation: sizes that follow from arrays of the CPU engine."""

    communities: int
    kept: int
    inside: int
    squares: int
    total: int
    max_degree: int
    rows: CommunityArcs
    pairs: Any = None
    offsets: Any = None
    so_far: list[RangeStep] = field(default_factory=list)

    def part(self, first, last):
        k, (sources, targets) = self.communities, self.pairs
        low, high = self.offsets[first], self.offsets[last]
        numbers = self.numbers[first:last]
        names, own = np.unique(numbers, return_inverse=True)
        arcs = np.bincount(own, np.diff(self.offsets[first : last + 1])).astype(np.int64)
        joined = np.unique(sources[low:high].astype(np.int64) * k + targets[low:high])
        sizes = np.bincount(np.searchsorted(names, joined // k), minlength=len(names))
        return RangeStep(names, CommunityArcs(arcs, sizes, sizes), joined)

    @property
    def numbers(self):
        return self._numbers

    def append(self, part):
        self.so_far.append(part)

    def merged(self):
        k, arcs = self.communities, np.zeros(self.communities, np.int64)
        for part in self.so_far:
            np.add.at(arcs, part.communities, part.rows.whole)
        joined = self.joined()
        inner = joined // k == joined % k
        whole = np.bincount(joined // k, minlength=k)
        return CommunityArcs(arcs, np.bincount(joined[~inner] // k, minlength=k), whole)

    def joined(self):
        """Return the pairs of communities that the rows so far join, each once."""
        pairs = [part.pairs for part in self.so_far]
        return np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)

    def merge(self):
        rows, joined = self.merged(), self.joined()
        self.so_far = [RangeStep(np.arange(self.communities), rows, joined)]

    def forget(self):
        self.so_far, self.pairs = [], None


@dataclass
class Script:
    """All that a run reads back, in order; `inside`, `squares` and `max_degree` are level 0's.

    `goes_on` has, for each of `moves`, whether the level is aggregated; all are where it is empty.
    """

    vertices: int
    inside: int = 0
    squares: int = 0
    max_degree: int = 0
    survey: DegreeStats | None = None
    communities: int = 0
    moves: list[MoveStats] = field(default_factory=list)
    goes_on: list[bool] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)
    sums: list[Sums] = field(default_factory=list)

    def next_move(self):
        """Return what moving on a level brings, and whether the level is aggregated."""
        return self.moves.pop(0), self.goes_on.pop(0) if self.goes_on else True

    @property
    def step(self):
        return self.steps[0]


class Recorder(CpuEngine):
    """The CPU engine, recording a script of its steps."""

    script: Script

    def load(self, graph):
        level = super().load(graph)
        self.script.inside = 2 * int(level.loops.sum())
        self.script.squares = sum_of_squares(level.degrees)
        self.script.max_degree = level.max_degree
        return level

    def move(self, level):
        self.script.moves.append(super().move(level))
        self.script.goes_on.append(False)
        return self.script.moves[-1]

    def aggregate(self, level):
        offsets, targets = level.offsets, level.targets
        coarse = super().aggregate(level)
        self.script.goes_on[-1] = True
        k, numbers = coarse.vertices, level.numbers
        degrees = np.diff(offsets)
        arcs = np.bincount(numbers, degrees, k).astype(np.int64)
        kept = np.diff(coarse.offsets)
        step = Step(
            communities=k,
            kept=len(coarse.targets),
            inside=2 * int(coarse.loops.sum()),
            squares=sum_of_squares(coarse.degrees),
            total=int(coarse.degrees.sum()),
            max_degree=coarse.max_degree,
            rows=CommunityArcs(arcs, kept, kept),
            offsets=offsets.copy(),
        )
        if level.number == 0:
            step.pairs = np.repeat(numbers, degrees), numbers[targets]
            step._numbers = numbers.copy()
        self.script.steps.append(step)
        return coarse

    def sums(self, level):
        sums = super().sums(level)
        if level.start is not None:
            self.script.sums.append(sums)
        return sums


def recorded(graph, options):
    cpu = Recorder(options, lambda event: None)
    cpu.script = Script(graph.n_vertices)
    found = detect(cpu, graph, options, cpu.host.observer)
    cpu.script.communities = found.n_communities
    return cpu.script
