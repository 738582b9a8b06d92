"""Seconds of a run under a layout, stage by stage, with every term separate, and their range.

The time of an arc differs tenfold between kinds of graph, mostly by how often levels visit it, how
fast levels shrink and how many cycles follow. Degrees, and samples of the surroundings of vertices,
distinguish such graphs. The time in core is interpolated between measured graphs by kernel ridge
regression: each has a weight, and counts more the more similar it is. `benchmarks/predictions.py`
measures graphs, fits the weights, and judges them on kinds that were left out; `machine/h200.toml`
holds them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from louvain_um.core.array_spec import ArraySpec, Stage
from louvain_um.placement.layout import HELD_BLOCKS, ArenaSpec, placed
from louvain_um.placement.machine.profiles import FITTED, H200, rate
from louvain_um.placement.migration.pages import page_bytes
from louvain_um.placement.model.cost import (
    GIVEN_FILL,
    LOW_SCRATCH_AGGREGATE,
    PACKED_MOVE,
    PACKING,
    REMAPPED,
    TAKEN,
    WHOLE,
    add,
    arrival_seconds,
    copying_rate,
    launches,
    overlaps,
    remote_seconds,
    together,
    transfer_seconds,
)
from louvain_um.placement.model.workload import (
    Facts,
    LocalStructure,
    Workload,
    seconds_in_core,
    sweeps,
)
from louvain_um.placement.policy.policy import Placement, Policy

STEP_SECONDS: Final = rate("block_step")
"""Host time per block of a pass, to find missing blocks, move them and launch."""

OUTSIDE: Final[tuple[Stage, ...]] = ("load", "fetch")
"""Stages that the algorithm's seconds exclude: loading the graph, fetching the labels."""

MEASURED: Final[Any] = FITTED["measured_runs"]

Basis = Literal["size", "samples", "sweeps"]
"""What predicted seconds follow from: a size alone, samples too, or measured sweeps of level 0."""

SQUARES_OFFSET: Final = 0.01
"""Added to a probability of squares: smaller ones differ by chance."""

LEAST_MEETING: Final = 1e-5
"""Least probability that walks meet: smaller ones differ by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageForecast:
    """Seconds by stage and cause."""

    core: Mapping[Stage, float]
    remote: Mapping[Stage, float] = field(default_factory=dict)
    sorted_rows: Mapping[Stage, float] = field(default_factory=dict)
    out_of_core: Mapping[Stage, float] = field(default_factory=dict)
    arrival: Mapping[Stage, float] = field(default_factory=dict)
    blocks: int = 1

    @property
    def stages(self) -> dict[Stage, float]:
        """Seconds of each stage."""
        names = add((self.core, self.remote, self.out_of_core, self.arrival))
        return {
            stage: self._at_work(stage)
            + self.out_of_core.get(stage, 0.0)
            + self.arrival.get(stage, 0.0)
            for stage in names
        }

    def _at_work(self, stage: Stage) -> float:
        sorted_rows = self.sorted_rows.get(stage, 0.0)
        return together(
            self.core.get(stage, 0.0), self.remote.get(stage, 0.0) - sorted_rows, sorted_rows
        )

    @property
    def seconds(self) -> float:
        """Seconds of the algorithm: all stages but loading and fetching."""
        return sum(s for stage, s in self.stages.items() if stage not in OUTSIDE)

    def scaled(self, stages: Mapping[Stage, float]) -> StageForecast:
        """Return a forecast in which each stage takes so many times as long."""
        scaled: dict[str, Any] = {
            name: {stage: stages[stage] * s for stage, s in getattr(self, name).items()}
            for name in ("core", "remote", "sorted_rows", "out_of_core", "arrival")
        }
        return replace(self, **scaled)


def coming(layout: Sequence[ArenaSpec], out_of_core: Mapping[str, int]) -> float:
    """Return the share of out-of-core arenas that is not on the device at a time."""
    size = sum(spec.capacity for spec in layout if spec.name in out_of_core)
    return 1 - sum(out_of_core.values()) / size if size else 0.0


def forecast(
    arrays: Sequence[ArraySpec],
    policy: Policy,
    layout: Sequence[ArenaSpec],
    out_of_core: Mapping[str, int],
    work: Workload,
    *,
    low_scratch: bool = False,
    limit: int | None = None,
) -> StageForecast:
    """Return the seconds of a run under a layout; `out_of_core` arenas move in blocks."""
    machine, degree = work.machine, work.mean_degree
    in_blocks = [spec for spec in layout if spec.name in out_of_core]
    size, room = sum(spec.capacity for spec in in_blocks), sum(out_of_core.values())
    scales = work.scales(
        arrays,
        coming=coming(layout, out_of_core),
        low_scratch=low_scratch,
        in_pages=limit is not None,
    )
    later = Placement("device") if limit is None else _place_of_coarse_arcs(arrays, limit)

    def remote_of(array: ArraySpec) -> dict[Stage, float]:
        where = later if array.holds_coarse_arcs and limit else placed(array, policy)
        found = remote_seconds(array, where, machine, degree, scales)
        return {stage: work.bus_scale * seconds for stage, seconds in found.items()}

    remote = add(map(remote_of, arrays))
    sorted_rows = add(remote_of(array) for array in arrays if overlaps(array, machine))
    moved, blocks = dict[Stage, float](), 1
    if in_blocks:
        # Every second pass goes backwards, so that the last blocks of a pass are reused.
        once = sum(
            transfer_seconds(s.capacity - out_of_core[s.name], s.placement, machine)
            for s in in_blocks
        )
        blocks = launches(size, room // HELD_BLOCKS)
        once = work.bus_scale * once + blocks * STEP_SECONDS
        often = sweeps(work.kind, work.method)
        moved = {stage: times * once for stage, times in often.items() if times}
    if limit is not None:
        written = _staged_bytes(arrays, policy, limit)
        both_ways = 1 / machine.remote_bandwidth + 1 / machine.copy_to_device
        paging = REMAPPED * _changing_bytes(arrays, limit) / page_bytes(limit)
        moved["aggregate"] = (
            moved.get("aggregate", 0.0) + work.bus_scale * written * both_ways + paging
        )
    separate = {name for spec in layout for name in spec.members or ()}
    arrival = add(
        _arrival(spec, _given(spec, arrays, separate), work, out_of_core=spec.name in out_of_core)
        for spec in layout
    )
    core = dict(work.core)
    if any(a.role == "heads" for a in arrays):
        arrival = add((arrival, {"load": _packing_seconds(arrays, work)}))
        core |= {s: PACKED_MOVE * core.get(s, 0.0) for s in ("move", "refine")}
    if low_scratch:
        core["aggregate"] = LOW_SCRATCH_AGGREGATE * core.get("aggregate", 0.0)
    return StageForecast(
        core=core,
        remote=remote,
        sorted_rows=sorted_rows,
        out_of_core=moved,
        arrival=arrival,
        blocks=blocks,
    )


def _coarse_arcs_bytes(arrays: Sequence[ArraySpec]) -> float:
    """Return the bytes of level 1's arcs, as expected."""
    return TAKEN * sum(a.nbytes for a in arrays if a.holds_coarse_arcs and a.level == 1)


def _place_of_coarse_arcs(arrays: Sequence[ArraySpec], limit: int) -> Placement:
    """Return where level 1's arcs are once its vertices move: the input's leave for them."""
    others = sum(
        a.nbytes
        for a in arrays
        if "coarse" in a.stages and not a.holds_input_arcs and not a.holds_coarse_arcs
    )
    share = max(0.0, limit - others) / max(_coarse_arcs_bytes(arrays), 1.0)
    return Placement("device") if share >= 1 else Placement("split", TAKEN * share)


def _staged_bytes(arrays: Sequence[ArraySpec], policy: Policy, limit: int) -> float:
    """Return the bytes of level 1's arcs that find no room on the device while they are made."""
    held = sum(
        placed(a, policy).on_device * a.nbytes
        for a in arrays
        if "aggregate" in a.stages and not a.holds_coarse_arcs and (a.level or not a.estimated)
    )
    return max(0.0, _coarse_arcs_bytes(arrays) - max(0.0, limit - held))


def _changing_bytes(arrays: Sequence[ArraySpec], limit: int) -> float:
    """Return the bytes of the device that change hands, pages of level 0's arcs for level 1's."""
    whole = sum(a.nbytes for a in arrays if not a.estimated and "aggregate" in a.stages)
    return min(_coarse_arcs_bytes(arrays), max(0.0, whole + _coarse_arcs_bytes(arrays) - limit))


def _packing_seconds(arrays: Sequence[ArraySpec], work: Workload) -> float:
    """Return seconds of packing, on the host; a graph on the device is copied there and back."""
    packing = work.arcs / PACKING
    if work.source == "host":
        return packing
    coming = sum(a.nbytes for a in arrays if a.group == "graph" and "load" in a.stages)
    targets = [a for a in arrays if a.holds_input_arcs and a.role == "targets"]
    going = coming + sum((WHOLE - a.itemsize) * a.size for a in targets)
    return packing + (going + coming) / copying_rate(work.machine)


def _given(spec: ArenaSpec, arrays: Sequence[ArraySpec], separate: Collection[str]) -> int:
    """Return the bytes of an arena that exist already when the run begins."""
    if spec.group not in ("graph", None):
        return 0
    inside = (
        array.nbytes
        for array in arrays
        if array.group == "graph"
        and "load" in array.stages
        and (array.name not in separate if spec.members is None else array.name in spec.members)
    )
    return min(sum(inside), spec.capacity)


def _arrival(
    spec: ArenaSpec, given: int, work: Workload, *, out_of_core: bool
) -> dict[Stage, float]:
    """Return seconds until an arena's bytes are there: those of the graph, and fresh ones."""
    on_host, machine = work.source == "host", work.machine
    by_touch = spec.placement.kind in ("managed", "read_mostly")
    # What is moved by page faults or in blocks is first written on the host.
    written = given / GIVEN_FILL if on_host and (by_touch or out_of_core) else 0.0
    if out_of_core:
        return {"load": written}
    came = arrival_seconds(given, spec.placement, machine, given=on_host)
    made = arrival_seconds(spec.capacity - given, spec.placement, machine, given=False)
    return add(
        (
            {"load": written},
            {"move" if by_touch and on_host else "load": work.bus_scale * came},
            {"move" if by_touch else "load": work.bus_scale * made},
        )
    )


def corrected(
    work: Workload, visited: Sequence[int], seconds: float, expected: StageForecast
) -> Workload:
    """Return the work as its first sweeps of level 0 show it to be."""
    seen = sum(visited)
    if not seen or seconds <= 0 or not work.arcs:
        return work
    share = seen / (work.visited * work.arcs)
    predicted = share * expected.stages.get("move", 0.0)
    ratio = seconds / predicted if predicted else 1.0
    core, bus = expected.core.get("move", 0.0), expected.remote.get("move", 0.0)
    bus += expected.out_of_core.get("move", 0.0)
    total = float(seen)
    if len(visited) > 1 and visited[-2]:
        shrinking = min(visited[-1] / visited[-2], 0.9)
        total += visited[-1] * shrinking / (1 - shrinking)
    return replace(
        work,
        corrected=True,
        visited=total / work.arcs,
        core_scale=work.core_scale * (ratio if core >= bus else 1.0),
        bus_scale=work.bus_scale * (ratio if bus > core else 1.0),
    )


def features(structure: LocalStructure, vertices: int, arcs: int, skew: float) -> tuple[float, ...]:
    """Return three logarithms that distinguish graphs: of degree, squares and meetings of walks."""
    # `vertices` are those with arcs; `skew` is the sum of their squared degrees, divided by `arcs`.
    squares, collisions = structure
    degree = arcs / max(vertices, 1)
    # Walks meet by chance more often if fewer vertices hold the arcs.
    meeting = max(collisions - skew / arcs, LEAST_MEETING)
    return math.log(degree), math.log(squares + SQUARES_OFFSET), math.log(degree * meeting)


def expected_seconds(
    found: Sequence[float], arcs: int, method: str, fitted: Any = MEASURED
) -> float:
    """Return seconds in core on an H200 of a graph with these features: of arcs, and of steps."""
    # A sweep and a level take some time however small they are.
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
    """Return the time in core of graphs like one, relative to its kind's; None if not sampled."""
    # Rates of other machines scale both alike.
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
