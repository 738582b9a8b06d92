"""One point of a sweep: a recorded program replayed under a policy on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from louvain_um.core.array_spec import ArraySpec
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import LouvainUmError, MemoryBudgetError, OptionError
from louvain_um.options import Method
from louvain_um.placement.decision import Declare
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.machine_files import load_machine
from louvain_um.placement.model.graph_kinds import kind_of
from louvain_um.placement.planner import Plan, make_plan
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy
from louvain_um.placement.program import Program
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.solver import solve
from louvain_um.placement.units import size
from louvain_um.profiling.access.declare import declared, program_of
from louvain_um.profiling.access.out_of_core import in_vertex_blocks
from louvain_um.profiling.simulator import Driver, Simulation, simulate
from louvain_um.profiling.simulator.driver.constants import BLOCK_BYTES, PAGE_BYTES
from louvain_um.profiling.simulator.layout import lay_out, placements_of
from louvain_um.profiling.simulator.trace import Trace

if TYPE_CHECKING:
    from louvain_um.gpu.memory.shape import Shape

FIGURES: Final = (
    "seconds", "bytes_to_device", "bytes_to_host", "bytes_remote", "fault_groups", "faults",
    "evictions",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is replayed: a policy, and device memory as a fraction of the in-core footprint.

    `oversubscription` is the fraction of the in-core footprint withheld, in percent: the machine
    has (1 − oversubscription / 100) × `peak_of` bytes. Unless it is 0, `reserved` of them are not
    available to the program. The policy is what `find_policy` takes. With `peer`, what does not fit
    lies in the memory of another GPU of the same kind where `auto` or a split says so.
    """

    graph: str
    policy: str | Path | Policy
    oversubscription: float
    gpu: str
    reserved: int = 0
    peer: bool = False

    def capacity(self, peak: int) -> int:
        """Return the bytes of device memory for a program with this peak."""
        # As the budget of a measured run, to the byte.
        share = float(100 - Decimal(str(self.oversubscription))) / 100
        left = int(share * peak)
        return max(0, left - self.reserved) if self.oversubscription else left


MOST_COUNT: Final = 1 << 48
"""Bound of what a recording says of its graph."""

FinishedReplays = dict[tuple[str, float, str], Simulation | None]
"""Finished replays of one recording by policy, oversubscription and machine; None if the policy
cannot run."""


def replay(
    trace: Trace,
    point: Point,
    machine: Machine,
    *,
    driver: Driver | None = None,
    known: FinishedReplays | None = None,
) -> tuple[dict[str, Any], Simulation | None]:
    """Return a row of a sweep's results, and the simulation unless the policy cannot run.

    `auto` is the plan's choice alone; what is best in hindsight is a row of its own
    (`louvain_um.profiling.sweep.replay_tables.in_hindsight`).
    """
    policy = find_policy(point.policy)
    peak = peak_of(trace)
    capacity = point.capacity(peak)
    if not point.oversubscription and (driver is None or driver.eviction != "program"):
        # Without oversubscription all is there, also arrays that the driver gives whole blocks.
        capacity = max(capacity, trace.peak_bytes)
    known = {} if known is None else known
    row: dict[str, Any] = {
        "graph": point.graph,
        "policy": policy.name,
        "oversubscription": point.oversubscription,
        "gpu": point.gpu,
        "evidence": "modelled",
        "peak_bytes": peak,
        "budget_bytes": capacity,
        "chosen": None,
        "seconds_of_plan": None,
    }

    def tried(policy: Policy) -> Simulation | None:
        key = (policy.name, point.oversubscription, point.gpu)
        if key not in known:
            try:
                known[key] = run(trace, policy, machine, capacity, driver, peer=point.peer)
            except MemoryBudgetError as error:
                known[key] = None
                row["reason"] = str(error)
        return known[key]

    row["reason"] = None
    simulation = tried(policy)
    if policy.name == AUTO.name and simulation is not None:
        row |= {"chosen": "plan", "seconds_of_plan": simulation.seconds}
    if simulation is None:
        row["reason"] = row["reason"] or "needs more device memory than there is"
        return row | {"feasible": False, **dict.fromkeys(FIGURES)}, None
    terms = {f"seconds_{name}": value for name, value in simulation.costs.items()}
    return row | {"reason": None, **simulation.summary(), **terms}, simulation


def run(
    trace: Trace,
    policy: str | Path | Policy,
    machine: Machine | str | Path,
    capacity: int,
    driver: Driver | None = None,
    *,
    peer: bool = False,
) -> Simulation:
    """Simulate a trace under a policy; "auto" uses the plan for this capacity, in bytes.

    With `Driver(eviction="program")` this program runs within a budget: it moves blocks of level 0
    itself, and its plan may refuse the run. Otherwise the driver evicts.

    Raises
    ------
    OptionError
        `eviction="program"` needs a recording of this program.
    MemoryBudgetError
        The policy needs more device memory than there is.

    Examples
    --------
    >>> from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
    >>> from louvain_um.profiling.access.declared_trace import trace_of
    >>> from louvain_um.profiling.sweep.replay import run
    >>> data = ProgramArray(name="data", shape=1 << 20, reads=Stream(5), from_host=1)
    >>> trace = trace_of(Program(name="scan", arrays=[data], phases=[Phase(name="go", passes=5)]))
    >>> run(trace, "auto", "p4000", trace.peak_bytes // 2).total("evictions")
    0
    """
    if not isinstance(machine, Machine):
        machine = load_machine(machine)
    policy = find_policy(policy)
    if policy.name != AUTO.name:
        placements: dict[str, Any] = dict(placements_of(trace.arrays, policy))
        if driver is not None and driver.eviction == "program":
            if trace.about is None:
                raise OptionError(
                    "eviction",
                    "program",
                    "record the graph again, or let the driver evict",
                    problem='eviction="program" needs a recording with the data of a plan',
                )
            of_plan = machine.with_peer() if peer else machine
            plan = plan_of(trace.about, policy, of_plan, capacity)
            held = sum(plan.out_of_core.values())
            if plan.out_of_core:
                trace, placements = in_vertex_blocks(
                    trace, placements, held, plan.transfer_mode or "fault"
                )
            # The plan fits; a recording's scratch, which is not as small, must not overflow it.
            layout = lay_out(trace.arrays, placements, steps=trace.steps)
            away = (
                sum(array.nbytes for array in trace.arrays if array.holds_input_arcs) if held else 0
            )
            capacity = max(capacity, layout.pages * PAGE_BYTES - away + held + BLOCK_BYTES)
        return simulate(
            trace, machine, placements=placements, capacity=capacity, driver=driver, peer=peer,
            record=False,
        )  # fmt: skip
    return _planned(trace, machine, capacity, driver, peer=peer)


def peak_of(trace: Trace) -> int:
    """Return the in-core footprint in bytes, of which budgets and oversubscription are shares.

    It is what a plan states as `Plan.in_core_bytes`, as for the budget of a measured run. It
    includes reserves that a run does not touch, so that the recorded arrays take less. Of a
    program without a plan, such as the thesis's or a session's, it is the peak of the recorded
    arrays.
    """
    if trace.about is None:
        return trace.peak_bytes
    return device_bytes_in_core(_declarer(trace.about)(False), apart=True)


def explain_peak(trace: Trace) -> str:
    """Return what 100 % of device memory is for a recording, in a sentence."""
    peak = size(peak_of(trace))
    if trace.about is None:
        return f"100 % of device memory is {peak}, the peak of the recorded arrays"
    reserve = ", the rest is reserve that the run did not touch"
    return (
        f"100 % of device memory is {peak}, the in-core footprint that louvain-um plan --read "
        f"states; the recorded arrays take {size(trace.peak_bytes)}"
        f"{reserve if trace.peak_bytes <= peak_of(trace) else ', in whole blocks of 2 MiB'}"
    )


def plan_of(about: Mapping[str, Any], policy: Policy, machine: Machine, capacity: int) -> Plan:
    """Return the plan that the program itself makes, from what a recording says of its graph.

    Raises
    ------
    MemoryBudgetError
        The policy needs more device memory than there is.
    """
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


def _planned(
    trace: Trace, machine: Machine, capacity: int, driver: Driver | None, *, peer: bool
) -> Simulation:
    """Simulate what the plan chooses; what it leaves to the driver lives plainly if it fits."""
    room = capacity
    others = any(array.group not in GROUPS for array in trace.arrays)
    program = program_of(trace) if others else None
    arrays = () if others else declared(trace)
    of_plan = machine.with_peer() if peer else machine
    while True:
        if program is not None:
            placements = program_placements(program, of_plan, room)
        else:
            placements = auto_placements(arrays, of_plan, room)
        plain = {n: "device" if where == "managed" else where for n, where in placements.items()}
        for tried in (plain, placements):
            try:
                return simulate(
                    trace, machine, placements=tried, capacity=capacity, driver=driver,
                    peer=peer, record=False,
                )  # fmt: skip
            except MemoryBudgetError as error:
                missing = error.needed - capacity
        # The plan packs arrays into arenas; here each begins a block of its own.
        room -= max(BLOCK_BYTES, missing)
        if room <= 0:
            raise MemoryBudgetError(capacity + missing, capacity, [])


def program_placements(program: Program, machine: Machine, capacity: int) -> dict[str, str]:
    """Return the placements that `auto` decides for another program's arrays.

    Raises
    ------
    MemoryBudgetError
        There is no device memory at all.
    """
    if capacity <= 0:
        raise MemoryBudgetError(1, 0, remedy="lower the oversubscription")
    found = solve(ProgramCost(program=program, machine=machine), capacity)
    return {name: str(where) for name, where in found.items()}


def auto_placements(
    arrays: tuple[ArraySpec, ...], machine: Machine, capacity: int
) -> dict[str, str]:
    """Return the placements that `auto` plans for arrays on a machine of such a capacity.

    Raises
    ------
    MemoryBudgetError
        There is no device memory at all.
    """
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
