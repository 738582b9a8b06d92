"""How long a run is predicted to take: before it, after level 0, and after its first cycle."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.shape import Shape
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.model.remaining import Found, Remaining, TimeRange
from louvain_um.placement.planner import Plan


@dataclass(slots=True)
class Forecast:
    """What is known so far."""

    before: float | None = None
    range: TimeRange | None = None
    corrected: float | None = None
    uncorrected: tuple[MoveStats, float] | None = None
    remaining: Remaining | None = None
    after_cycle_0: float | None = None
    began: float = 0.0
    visited: float = 0.0

    def plan(self, plan: Plan) -> None:
        """Note what a plan predicts."""
        self.before, self.range = plan.seconds, plan.seconds_range

    def begin(self) -> None:
        """Note that the first move phase begins."""
        self.began = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the first move phase began."""
        return time.perf_counter() - self.began

    def moved(self, moved: MoveStats, arcs: int) -> None:
        """Note that the first move phase, on so many arcs, is over."""
        self.uncorrected = moved, self.elapsed
        self.visited = moved.arcs_visited / max(arcs, 1)

    def correct(self, plan: Plan, memory: RunMemory, *, choosing: bool) -> Plan:
        """Correct a plan by the first move phase, once; return the one that memory follows."""
        if self.uncorrected is None:
            return plan
        (moved, seconds), self.uncorrected = self.uncorrected, None
        visited = [moved.arcs_visited]
        found = plan.corrected(visited, seconds, choosing=choosing)
        if found.layout != plan.layout:
            if found.compact == plan.compact and memory.arenas.follow(found.layout):
                plan = found
            else:
                found = plan.corrected(visited, seconds, choosing=False)
        self.corrected = found.seconds
        return plan

    def aggregated(self, plan: Plan, shape: Shape, coarse: GpuLevel) -> None:
        """Predict what follows from level 1."""
        sums = coarse.start_sums
        found = Found(
            seconds=self.elapsed,
            visited=self.visited,
            arcs=coarse.arcs,
            vertices=coarse.vertices,
            communities=coarse.vertices if sums is None else sums.communities,
            isolated=shape.isolated,
            skew=shape.skew,
            max_degree=shape.max_degree or 0,
        )
        self.remaining = plan.remaining(found)

    def cycle_ended(self) -> None:
        """Predict how long further cycles take: the first one is over."""
        if self.remaining:
            self.after_cycle_0 = self.remaining.after_cycle(self.elapsed)

    @property
    def summary(self) -> dict[str, Any]:
        """What was predicted, and when, for the result's `provenance`."""
        known = self.range
        return {
            "seconds": self.before,
            "seconds_range": known and [known.low, known.expected, known.high],
            "seconds_corrected": self.corrected,
            "seconds_after_level_0": self.remaining and self.remaining.seconds,
            "seconds_after_cycle_0": self.after_cycle_0,
        }
