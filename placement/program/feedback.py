"""Corrections of a program's plan by what its first runs showed: times and counted accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from louvain_um.placement.program.accesses import Access
from louvain_um.placement.program.plan import ProgramPlan
from louvain_um.placement.program.program import Program, ProgramArray
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
