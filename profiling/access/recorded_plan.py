"""The plan of a recorded run, from what its recording says: its peak, and what `auto` decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from louvain_um.core.array_spec import ArraySpec
from louvain_um.errors import LouvainUmError, MemoryBudgetError
from louvain_um.options import Method
from louvain_um.placement.decision import Declare
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.model.graph_kinds import kind_of
from louvain_um.placement.planner import Plan, make_plan
from louvain_um.placement.policy.policy import AUTO, Policy
from louvain_um.placement.program import Program
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.solver import solve
from louvain_um.placement.units import size
from louvain_um.profiling.simulator.trace import Trace

if TYPE_CHECKING:
    from louvain_um.gpu.memory.shape import Shape

MOST_COUNT: Final = 1 << 48
"""Bound of what a recording says of its graph."""


def peak_of(trace: Trace) -> int:
    """Return the in-core footprint in bytes, of which budgets and oversubscription are shares."""
    if trace.about is None:
        return trace.peak_bytes
    return device_bytes_in_core(_declarer(trace.about)(False), apart=True)


def explain_peak(trace: Trace) -> str:
    """Return what 100 % of device memory is for a recording, in a sentence."""
    peak = size(peak_of(trace))
    if trace.about is None:
        return (
            f"100 % of device memory is {peak}, the peak of the recorded arrays in whole blocks of "
            "2 MiB"
        )
    reserve = ", the rest is reserve that the run did not touch"
    return (
        f"100 % of device memory is {peak}, the in-core footprint that louvain-um plan --read "
        f"states; the recorded arrays take {size(trace.peak_bytes)}"
        f"{reserve if trace.peak_bytes <= peak_of(trace) else ', in whole blocks of 2 MiB'}"
    )


def plan_of(about: Mapping[str, Any], policy: Policy, machine: Machine, capacity: int) -> Plan:
    """Return the plan that the program itself makes, from what a recording says of its graph."""
    from louvain_um.gpu.memory.array_specs import declare_out_of_core

    shape = _shape(about)
    return make_plan(
        _declarer(about),
        policy,
        machine,
        capacity,
        skew=about["skew"],
        max_degree=shape.max_degree,
        source="host",
        out_of_core=lambda low_scratch: declare_out_of_core(
            replace(shape, low_scratch=low_scratch)
        ),
    )


def _declarer(about: Mapping[str, Any]) -> Declare:
    """Return what declares the arrays of a run, with low scratch or not."""
    from louvain_um.gpu.memory.array_specs import declare

    shape = _shape(about)
    return lambda low: declare(replace(shape, low_scratch=low))


def _shape(about: Mapping[str, Any]) -> Shape:
    """Return what the sizes of a recorded run's arrays follow from."""
    from louvain_um.gpu.memory.shape import Shape

    known = dict(about)
    try:
        for name, value in known.items():
            if name != "method" and value is not None and not 0 <= float(value) < MOST_COUNT:
                raise ValueError(name)
        if known["method"] not in get_args(Method):
            raise ValueError("method")
        if known.get("sum_bytes", 8) not in (4, 8):
            raise ValueError("sum_bytes")
        skew = known.pop("skew") * known["vertices"] / max(known["arcs"], 1)
        return Shape.from_record(known | {"kind": kind_of(skew).name, "skew": skew})
    except (KeyError, TypeError, ValueError):
        raise LouvainUmError(
            "the recording's data of its graph is damaged; record the graph again"
        ) from None


def program_placements(program: Program, machine: Machine, capacity: int) -> dict[str, str]:
    """Return the placements that `auto` decides for another program's arrays."""
    if capacity <= 0:
        raise MemoryBudgetError(1, 0, remedy="lower the oversubscription")
    found = solve(ProgramCost(program=program, machine=machine), capacity)
    return {name: str(where) for name, where in found.items()}


def auto_placements(
    arrays: tuple[ArraySpec, ...], machine: Machine, capacity: int
) -> dict[str, str]:
    """Return the placements that `auto` plans for arrays on a machine of such a capacity."""
    if capacity <= 0:
        raise MemoryBudgetError(1, 0, remedy="lower the oversubscription")
    targets = [array for array in arrays if array.role == "targets" and array.level == 0]
    arcs = max(1, sum(array.size for array in targets))
    read = targets[0].accesses if targets else {}
    visited = read.get(("move", "stream"), arcs) / arcs
    plan = make_plan(
        lambda low_scratch: arrays, AUTO, machine, capacity, visited=visited, free=capacity
    )  # fmt: skip
    return {array.name: str(placed(array, plan.chosen)) for array in arrays}
