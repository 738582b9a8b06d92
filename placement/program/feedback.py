"""Corrections of a program's plan by what its first runs showed: times and counted accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Event
from louvain_um.placement.program.program import (
    Access,
    Atomic,
    Gather,
    Program,
    ProgramArray,
    Stream,
)
from louvain_um.placement.program.program_plan import ProgramPlan
from louvain_um.placement.program.solver import solve

MEASURABLE: Final = 1e-4
"""Seconds of a phase's run from which its measured time corrects predictions: below, launches and
waiting for the host are measured."""


def with_time(
    plan: ProgramPlan, phase: str, seconds: float, *, counted: bool = False
) -> ProgramPlan:
    """Return a plan whose predictions for a phase are those measured in one run of it."""
    about = plan.program.phase(phase)
    predicted = plan.cost.phase_seconds(about, plan.placements) / max(1.0, about.passes)
    if seconds < MEASURABLE or predicted <= 0:
        return plan
    measured = {**plan.measured, phase: seconds}
    if counted:
        if seconds <= predicted:
            return replace(plan, measured=measured)
        operations = seconds * max(1.0, about.passes) * plan.cost.machine.operation_rate
        phases = [
            replace(each, operations=operations) if each.name == phase else each
            for each in plan.program.phases
        ]
        cost = replace(plan.cost, program=replace(plan.program, phases=phases))
        return replace(plan, cost=cost, measured=measured)
    scale = plan.cost.scale.get(phase, 1.0) * seconds / predicted
    cost = replace(plan.cost, scale={**plan.cost.scale, phase: scale})
    return replace(plan, cost=cost, measured=measured)


def with_counts(
    array: ProgramArray,
    program: Program,
    phase: str,
    reads: Sequence[Access],
    writes: Sequence[Access],
) -> ProgramArray:
    """Return an array with the accesses of a phase replaced by those counted in one run of it."""
    passes = max(1.0, program.phase(phase).passes)
    kept: dict[str, dict[str, Any]] = {"reads": {}, "writes": {}}
    for other in program.phases_of(array):
        for access, written in program.accesses(array, other):
            if other != phase:
                kept["writes" if written else "reads"].setdefault(other, []).append(access)
    kept["reads"][phase] = [each.times(passes) for each in reads]
    kept["writes"][phase] = [each.times(passes) for each in writes]
    return replace(array, reads=kept["reads"], writes=kept["writes"])


def reconsidered(
    plan: ProgramPlan, program: Program, runs: Mapping[str, int], *, managed: bool
) -> ProgramPlan:
    """Return a plan for the runs to come, with arrays moved where that pays."""
    left = {p.name: _left(p.passes, runs.get(p.name, 0)) for p in program.phases}
    coming = replace(plan.cost, program=program, left=left, here=dict(plan.placements))
    found = solve(coming, plan.limit, managed=managed)
    # A move between placements of one side gains nothing that is known here.
    placements = {
        name: found[name] if found[name].on_device != where.on_device else where
        for name, where in plan.placements.items()
    }
    return replace(plan, cost=replace(plan.cost, program=program), placements=placements)


def _left(passes: float, done: int) -> float:
    """Return which part of a phase's runs is to come; beyond those declared, as many again."""
    return (passes - done) / passes if passes > done else 1.0


EVEN: Final = 0.5
"""Variance of the counts of pages divided by their mean, below which an array is streamed: 0 if
each pass reads every page as often, 1 or more if accesses fall on pages at random."""


class Counter(Protocol):
    """Counts accesses of kernels while it is entered: an access tracer."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def observe(self, event: Event) -> None:
        """Take note of an array or a phase."""

    def result(self) -> Any:
        """Return what was counted."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Accesses of one array, by elements: reads, writes, atomics, and those of each page."""

    reads: float
    writes: float
    atomics: float
    pages: NDArray[Any]

    @property
    def even(self) -> bool:
        """Whether the pages in use were accessed equally often: the array was streamed."""
        pages = np.asarray(self.pages, np.float64)
        # The last page is seldom whole.
        inside = pages[:-1][pages[:-1] > 0] if len(pages) > 1 else pages
        return not len(inside) or bool(inside.var() < EVEN * max(float(inside.mean()), 1e-300))

    def accesses(self, size: int) -> tuple[list[Access], list[Access]]:
        """Return what was read and written, as passes where the array was streamed."""
        share = float((np.asarray(self.pages) > 0).mean()) if len(self.pages) else 1.0
        even = self.even

        def made(count: float) -> list[Access]:
            if not count or not size:
                return []
            if even:
                return [Stream(float(count) / (size * share), share)]
            return [Gather(float(count), share)]

        reads = made(self.reads)
        if self.atomics:
            reads.append(Atomic(float(self.atomics), share))
        return reads, made(self.writes)


def counted(result: Any) -> dict[str, Counted]:
    """Return what a counter's result holds, by array."""
    by_page: Mapping[str, NDArray[Any]] = {
        page.array: np.asarray(page.counts).sum(axis=1, dtype=np.float64)
        for page in result.maps
        if page.kind == "access"
    }
    found = {}
    for name, uses in result.counts.items():
        pages: Sequence[float] | NDArray[Any] = by_page.get(name, np.empty(0))
        found[name] = Counted(
            float(uses.reads), float(uses.writes), float(uses.atomics), np.asarray(pages)
        )
    return found
