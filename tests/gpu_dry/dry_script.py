"""What kernels of a run would tell the host: recorded from the CPU engine, or made up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.hierarchy import MoveStats, Sums, detect
from louvain_um.cpu.engine import CpuEngine
from louvain_um.cpu.level import CpuLevel
from louvain_um.gpu.memory.degree_stats import DegreeStats
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.quality import sum_of_squares

I64 = NDArray[np.int64]


@dataclass
class Rows:
    """Rows to add up: arcs of each community, those left without and with inner ones."""

    arcs: I64
    outer: I64
    whole: I64

    def kept(self, partial: bool) -> I64:
        """Return the arcs left of each."""
        return self.whole if partial else self.outer


@dataclass
class Range:
    """A range of vertices: its communities, their rows, and which pairs they join."""

    communities: I64
    rows: Rows
    pairs: Any


@dataclass
class Step:
    """One aggregation, as recorded: sizes that follow from arrays of the CPU engine."""

    communities: int
    kept: int
    inside: int
    squares: int
    total: int
    widest: int
    rows: Rows
    pairs: Any = None
    offsets: Any = None
    so_far: list[Range] = field(default_factory=list)

    def part(self, first: int, last: int) -> Range:
        """Return the rows of a range of vertices."""
        k, (sources, targets) = self.communities, self.pairs
        low, high = self.offsets[first], self.offsets[last]
        numbers = self.numbers[first:last]
        names, own = np.unique(numbers, return_inverse=True)
        arcs = np.bincount(own, np.diff(self.offsets[first : last + 1])).astype(np.int64)
        joined = np.unique(sources[low:high].astype(np.int64) * k + targets[low:high])
        sizes = np.bincount(np.searchsorted(names, joined // k), minlength=len(names))
        return Range(names, Rows(arcs, sizes, sizes), joined)

    @property
    def numbers(self) -> Any:
        """uint32[n]: community of each vertex."""
        return self._numbers

    def append(self, part: Range) -> None:
        """Add the rows of a range to those so far."""
        self.so_far.append(part)

    def merged(self) -> Rows:
        """Return the rows so far, by community."""
        k, arcs = self.communities, np.zeros(self.communities, np.int64)
        for part in self.so_far:
            np.add.at(arcs, part.communities, part.rows.whole)
        joined = self.joined()
        inner = joined // k == joined % k
        whole = np.bincount(joined // k, minlength=k)
        return Rows(arcs, np.bincount(joined[~inner] // k, minlength=k), whole)

    def joined(self) -> Any:
        """Return the pairs of communities that the rows so far join, each once."""
        pairs = [part.pairs for part in self.so_far]
        return np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)

    def merge(self) -> None:
        """Leave one row a community."""
        rows, joined = self.merged(), self.joined()
        self.so_far = [Range(np.arange(self.communities), rows, joined)]

    def forget(self) -> None:
        """Let go of what only this step needs."""
        self.so_far, self.pairs = [], None


@dataclass
class Script:
    """All that a run reads back, in order; `inside`, `squares` and `widest` are level 0's."""

    vertices: int
    inside: int = 0
    squares: int = 0
    widest: int = 0
    survey: DegreeStats | None = None
    communities: int = 0
    moves: list[MoveStats] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)
    sums: list[Sums] = field(default_factory=list)

    @property
    def step(self) -> Any:
        """The aggregation at work."""
        return self.steps[0]


class Recorder(CpuEngine):
    """The CPU engine, which writes a script of what it does."""

    script: Script

    def load(self, graph: Graph) -> CpuLevel:
        level = super().load(graph)
        self.script.inside = 2 * int(level.loops.sum())
        self.script.squares = sum_of_squares(level.degrees)
        self.script.widest = level.max_degree
        return level

    def move(self, level: CpuLevel) -> MoveStats:
        self.script.moves.append(super().move(level))
        return self.script.moves[-1]

    def aggregate(self, level: CpuLevel) -> CpuLevel:
        offsets, targets = level.offsets, level.targets
        coarse = super().aggregate(level)
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
            widest=coarse.max_degree,
            rows=Rows(arcs, kept, kept),
            offsets=offsets.copy(),
        )
        if level.number == 0:
            step.pairs = np.repeat(numbers, degrees), numbers[targets]
            step._numbers = numbers.copy()
        self.script.steps.append(step)
        return coarse

    def sums(self, level: CpuLevel) -> Sums:
        sums = super().sums(level)
        if level.start is not None:
            self.script.sums.append(sums)
        return sums


def recorded(graph: Graph, options: Options) -> Script:
    """Return the script of a run on the CPU."""
    cpu = Recorder(options, lambda event: None)
    cpu.script = Script(graph.n_vertices)
    found = detect(cpu, graph, options, cpu.observer)
    cpu.script.communities = found.n_communities
    return cpu.script
