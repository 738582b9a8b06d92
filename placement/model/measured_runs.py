"""Predicts the time of a run, before it begins, from measured runs on similar graphs.

The time of an arc differs tenfold between kinds of graph, mostly by how often levels visit it, how
fast levels shrink and how many cycles follow. Degrees, and samples of the surroundings of vertices,
tell such graphs apart. The time is interpolated between measured graphs by kernel ridge regression:
each has a weight, and counts more the more similar it is. `benchmarks/predictions.py` measures
graphs, fits the weights, and judges them on kinds that were left out; `machine/h200.toml` holds
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from louvain_um.placement.machine.profiles import FITTED, H200
from louvain_um.placement.model.forecast import OUTSIDE
from louvain_um.placement.model.workload import (
    Facts,
    LocalStructure,
    Workload,
    seconds_in_core,
)

MEASURED: Final[Any] = FITTED["measured_runs"]

Basis = Literal["size", "samples", "sweeps"]
"""What predicted seconds follow from: a size alone, samples too, or measured sweeps of level 0."""

SQUARES_OFFSET: Final = 0.01
"""Added to a probability of squares: smaller ones differ by chance."""

LEAST_MEETING: Final = 1e-5
"""Least probability that walks meet: smaller ones differ by chance."""


def features(structure: LocalStructure, vertices: int, arcs: int, skew: float) -> tuple[float, ...]:
    """Return three logarithms that tell graphs apart: of degree, squares and meetings of walks.

    `vertices` are those with arcs; `skew` is the sum of their squared degrees, divided by `arcs`.
    """
    squares, collisions = structure
    degree = arcs / max(vertices, 1)
    # Walks meet by chance more often if fewer vertices hold the arcs.
    meeting = max(collisions - skew / arcs, LEAST_MEETING)
    return math.log(degree), math.log(squares + SQUARES_OFFSET), math.log(degree * meeting)


def expected_seconds(
    found: Sequence[float], arcs: int, method: str, fitted: Any = MEASURED
) -> float:
    """Return seconds in core on an H200 of a graph with these features: of arcs, and of steps.

    A sweep and a level take some time however small they are.
    """
    at = [(x - mean) / spread for x, mean, spread in zip(found, *fitted["scale"], strict=True)]
    near = [
        math.exp(
            -sum((x - y) ** 2 for x, y in zip(at, graph, strict=True)) / fitted["kernel_width"]
        )
        for graph in fitted["graphs"]
    ]

    def interpolated(mean: float, slopes: Sequence[float], weights: Sequence[float]) -> float:
        return math.exp(mean + _product(at, slopes) + _product(near, weights))

    of = fitted[method]
    return arcs * interpolated(**of["arcs"]) + interpolated(**of["steps"])


def relative_time(work: Workload, facts: Facts) -> float | None:
    """Return the time in core of graphs like one, relative to its kind's; None if not sampled.

    Rates of other machines scale both alike.
    """
    if facts.structure is None or facts.skew is None:
        return None
    found = features(facts.structure, work.vertices - work.isolated, work.arcs, facts.skew)
    stages = seconds_in_core(work.kind, work.vertices, work.arcs, H200, work.method, work.visited)
    of_kind = sum(seconds for stage, seconds in stages.items() if stage not in OUTSIDE)
    return expected_seconds(found, work.arcs, work.method) / of_kind


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(one, other, strict=True))


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Seconds of the algorithm: without loading the graph and fetching labels."""

    low: float
    expected: float
    high: float

    def __contains__(self, seconds: float) -> bool:
        return self.low <= seconds <= self.high


def time_range(expected: float, in_core: float, method: str, basis: Basis) -> TimeRange:
    """Return the range in which nine of ten runs end, given the seconds expected and in core."""
    if basis == "sweeps":  # of runs in budgets, too
        of = MEASURED["corrected"][method]
        return TimeRange(of["low"] * expected, expected, of["high"] * expected)
    of = MEASURED[method] if basis == "samples" else MEASURED["unsampled"]
    more = max(expected / in_core, 1.0) ** MEASURED["budget_exponent"] if in_core else 1.0
    return TimeRange(of["low"] / more * expected, expected, of["high"] * more * expected)
