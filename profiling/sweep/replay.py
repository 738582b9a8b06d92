"""One point of a sweep: a recorded program replayed under a policy on a machine."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from louvain_um.core.ledger import GROUPS
from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Placement, Policy
from louvain_um.profiling.access.out_of_core import in_vertex_blocks
from louvain_um.profiling.access.recorded_plans import (
    auto_placements,
    declared,
    peak_of,
    plan_of,
    program_of,
    program_placements,
)
from louvain_um.profiling.simulator import Driver, Simulation, simulate
from louvain_um.profiling.simulator.driver.constants import (
    BIG_PAGES,
    BLOCK_BYTES,
    BLOCK_PAGES,
    PAGE_BYTES,
)
from louvain_um.profiling.simulator.layout import lay_out, placements_of
from louvain_um.profiling.simulator.trace import Trace

FIGURES: Final = (
    "seconds", "least_seconds", "most_seconds", "bytes_to_device", "bytes_to_host",
    "bytes_remote", "fault_groups", "faults", "evictions",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is replayed: a policy, and device memory as a fraction of the in-core footprint.

    `oversubscription` is the fraction of the in-core footprint withheld, in percent: the machine
    has (1 − oversubscription / 100) × `peak_of` bytes. Unless it is 0, the trace's reserve is not
    the program's. The policy is what `find_policy` takes. With `peer`, what does not fit lies in
    the memory of another GPU of the same kind where `auto` or a split says so.
    """

    graph: str
    policy: str | Path | Policy
    oversubscription: float
    gpu: str
    peer: bool = False

    def capacity(self, peak: int, reserved: int = 0) -> int:
        """Return the bytes of device memory for a program with this peak."""
        # As the budget of a measured run, to the byte.
        share = float(100 - Decimal(str(self.oversubscription))) / 100
        left = int(share * peak)
        return max(0, left - reserved) if self.oversubscription else left


FinishedReplays = dict[tuple[str, float, str], Simulation | MemoryBudgetError]
"""Finished replays of one recording by policy, oversubscription and machine; an error if the policy
cannot run."""


def replay(
    trace: Trace,
    point: Point,
    machine: Machine,
    *,
    driver: Driver | None = None,
    known: FinishedReplays | None = None,
    record: bool = False,
) -> tuple[dict[str, Any], Simulation | None]:
    """Return a row of a sweep's results, and the simulation unless the policy cannot run.

    With `record` the simulation of a policy other than `auto` has its events.

    The run has at most what the machine has, as in a plan: `budget_bytes` of the row is never more
    than `machine_bytes`.

    `auto` is the plan's choice alone; what is best in hindsight is a row of its own
    (`louvain_um.profiling.sweep.replay_tables.in_hindsight`).
    """
    policy = find_policy(point.policy)
    peak = peak_of(trace)
    capacity = point.capacity(peak, trace.reserved)
    if not point.oversubscription and (driver is None or driver.eviction != "program"):
        # Without oversubscription all is there, however small blocks lie in root chunks.
        capacity = max(capacity, trace.peak_bytes + shared_bytes(trace))
    capacity = min(capacity, machine.bytes_for_runs)
    known = {} if known is None else known
    row: dict[str, Any] = {
        "graph": point.graph,
        "policy": policy.name,
        "oversubscription": point.oversubscription,
        "gpu": point.gpu,
        "evidence": "modelled",
        "peak_bytes": peak,
        "budget_bytes": capacity,
        "machine_bytes": machine.bytes_for_runs,
        "chosen": None,
        "seconds_of_plan": None,
    }
    key = (policy.name, point.oversubscription, point.gpu)
    if key not in known:
        try:
            known[key] = run(
                trace, policy, machine, capacity, driver, peer=point.peer, record=record
            )
        except MemoryBudgetError as error:  # whose frames hold the simulation: kept is a new one
            known[key] = _of_machine(error, machine)
    simulation = known[key]
    if isinstance(simulation, MemoryBudgetError):
        row |= {"reason": str(simulation), "feasible": False}
        return row | dict.fromkeys(FIGURES), None
    if policy.name == AUTO.name:
        row |= {"chosen": "plan", "seconds_of_plan": simulation.seconds}
    terms = {f"seconds_{name}": value for name, value in simulation.costs.items()}
    return row | {"reason": None, **simulation.summary(), **terms}, simulation


def shared_bytes(trace: Trace) -> int:
    """Return the bytes of root chunks that small blocks of a trace share at most."""
    ends = sum(-(-(array.pages % BLOCK_PAGES) // BIG_PAGES) * BIG_PAGES for array in trace.arrays)
    return (-(-ends // BLOCK_PAGES) + 2) * BLOCK_BYTES  # pieces and device arrays leave gaps


def _of_machine(error: MemoryBudgetError, machine: Machine) -> MemoryBudgetError:
    """Return an error with a remedy that helps where the machine has less than is needed."""
    remedy = error.remedy
    if error.needed > machine.bytes_for_runs:
        remedy = f"machine {machine.name} has no more: name another machine or memory policy"
    return MemoryBudgetError(error.needed, error.budget, error.largest, remedy)


def run(
    trace: Trace,
    policy: str | Path | Policy,
    machine: Machine | str | Path,
    capacity: int,
    driver: Driver | None = None,
    *,
    peer: bool = False,
    record: bool = False,
) -> Simulation:
    """Simulate a trace under a policy; "auto" uses the plan for this capacity, in bytes.

    With `record`, single events are kept, but not of "auto".

    With `Driver(eviction="program")` this program runs within a budget: it moves blocks of level 0
    itself, and its plan may refuse the run. Otherwise the driver evicts.

    Raises
    ------
    OptionError
        `eviction="program"` needs a recording of this program, or the policy places arrays on a
        peer without one.
    MemoryBudgetError
        The policy needs more device memory than there is.

    Examples
    --------
    >>> from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
    >>> from louvain_um.profiling.access.recorded_plans import trace_of
    >>> from louvain_um.profiling.sweep.replay import run
    >>> data = ProgramArray(name="data", shape=1 << 20, reads=Stream(5), from_host=1)
    >>> trace = trace_of(Program(name="scan", arrays=[data], phases=[Phase(name="go", passes=5)]))
    >>> run(trace, "auto", "p4000", trace.peak_bytes // 2).total("evictions")
    0
    """
    if not isinstance(machine, Machine):
        machine = load_machine(machine)
    policy = find_policy(policy)
    of_plan = machine.with_peer() if peer else machine
    placements: dict[str, Any] = {}
    if policy.name != AUTO.name:
        placements = dict(placements_of(trace.arrays, policy))
        of_plan.refuse_peer(map(Placement.parse, placements.values()))
    plan = None
    if driver is not None and driver.eviction == "program":
        if trace.about is None:
            raise OptionError(
                "eviction",
                "program",
                "record the graph again, or let the driver evict",
                problem='eviction="program" needs a recording with the data of a plan',
            )
        plan = plan_of(trace.about, policy, of_plan, capacity)  # refuses what a run does
    if policy.name == AUTO.name:
        return _planned(trace, machine, capacity, driver, peer=peer)
    if plan is not None:
        held = sum(plan.out_of_core.values())
        if plan.out_of_core:
            trace, placements = in_vertex_blocks(
                trace, placements, held, plan.transfer_mode or "fault"
            )
        # The plan fits; a recording's scratch, which is not as small, must not overflow it.
        layout = lay_out(trace.arrays, placements, steps=trace.steps, pooled=True)
        away = sum(array.nbytes for array in trace.arrays if array.holds_input_arcs) if held else 0
        capacity = max(capacity, layout.pages * PAGE_BYTES - away + held + BLOCK_BYTES)
    return simulate(
        trace, machine, placements=placements, capacity=capacity, driver=driver, peer=peer,
        record=record,
    )  # fmt: skip


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
                refusal = error
        if room <= 1:
            raise refusal
        # The plan packs arrays into arenas; here each begins a block of its own. With a byte, all
        # lies on the host.
        room = max(1, room - max(BLOCK_BYTES, refusal.needed - capacity))
