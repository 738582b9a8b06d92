"""A recorded program under a policy on a machine with so much memory: one point of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from louvain_um.arrays import STAGES, Declared, Stage, Use
from louvain_um.errors import LouvainUmError, MemoryBudgetError
from louvain_um.ledger import GROUPS
from louvain_um.placement.layout import placed
from louvain_um.placement.machine import Machine
from louvain_um.placement.plan import make_plan
from louvain_um.placement.policy import AUTO, Policy, find_policy
from louvain_um.profiling.simulator import Driver, Simulation, simulate
from louvain_um.profiling.simulator.constants import BLOCK_BYTES
from louvain_um.profiling.simulator.touches import Way
from louvain_um.profiling.simulator.trace import Allocate, Free, Launch, Trace

FIGURES: Final = (
    "seconds", "bytes_to_device", "bytes_to_host", "bytes_remote", "fault_groups", "faults",
    "evictions",
)  # fmt: skip

USES: Final[dict[Way, Use]] = {
    Way.READ: "stream",
    Way.WRITE: "stream",
    Way.GATHER: "gather",
    Way.SCATTER: "gather",
    Way.ATOMIC: "atomic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is to be replayed: a policy, and memory as a share of the program's peak.

    `oversubscription` is in percent: the machine has (1 − it) × the peak. Of these, where any
    memory is taken away, `reserved` bytes are not the program's.
    """

    graph: str
    policy: str
    oversubscription: float
    gpu: str
    reserved: int = 0

    def capacity(self, peak: int) -> int:
        """Return the bytes of device memory, for a program with such a peak."""
        left = round((1 - self.oversubscription / 100) * peak)
        return max(0, left - self.reserved) if self.oversubscription else left


Known = dict[tuple[str, float, str], Simulation | None]
"""Runs of one recording that are known already, by policy, oversubscription and machine; None
where the policy cannot run."""

RIVALS: Final = ("base", *(f"adv{number}" for number in range(1, 10)))
"""Policies that `auto` is tried against on a recording."""


def replay(
    trace: Trace,
    point: Point,
    machine: Machine,
    *,
    driver: Driver | None = None,
    known: Known | None = None,
) -> tuple[dict[str, Any], Simulation | None]:
    """Return a row of a sweep's results, and the simulation unless the policy cannot run.

    `auto` is the plan's choice or, where the recording shows one of the thesis's policies to be
    faster, that one: the row tells which (`chosen`) and what the plan's alone takes
    (`seconds_of_plan`).
    """
    peak = trace.peak_bytes
    known = {} if known is None else known
    row: dict[str, Any] = {
        "graph": point.graph,
        "policy": point.policy,
        "oversubscription": point.oversubscription,
        "gpu": point.gpu,
        "evidence": "modelled",
        "peak_bytes": peak,
        "budget_bytes": point.capacity(peak),
        "chosen": None,
        "seconds_of_plan": None,
    }

    def tried(policy: str) -> Simulation | None:
        key = (policy, point.oversubscription, point.gpu)
        if key not in known:
            try:
                known[key] = run(trace, find_policy(policy), machine, point.capacity(peak), driver)
            except MemoryBudgetError as error:
                known[key] = None
                row["reason"] = str(error)
        return known[key]

    row["reason"] = None
    found = tried(point.policy)
    if point.policy == AUTO.name:
        if found is not None:
            row |= {"chosen": "plan", "seconds_of_plan": found.seconds}
        for rival in RIVALS:
            other = tried(rival)
            if other is not None and (found is None or other.seconds < found.seconds):
                found, row["chosen"] = other, rival
    if found is None:
        row["reason"] = row["reason"] or "needs more device memory than there is"
        return row | {"feasible": False, **dict.fromkeys(FIGURES)}, None
    terms = {f"seconds_{name}": value for name, value in found.costs.items()}
    return row | {"reason": None, **found.summary(), **terms}, found


def run(
    trace: Trace, policy: Policy, machine: Machine, capacity: int, driver: Driver | None = None
) -> Simulation:
    """Simulate a trace under a policy; "auto" is what the plan chooses for this capacity.

    Raises
    ------
    MemoryBudgetError
        The policy needs more device memory than there is.
    """
    if policy.name != AUTO.name:
        placements = {
            array.name: str(policy.placement_of(array.name, array.group)) for array in trace.arrays
        }
        return simulate(
            trace, machine, placements=placements, capacity=capacity, driver=driver, record=False
        )
    arrays, room = declared(trace), capacity
    while True:
        placements = chosen(arrays, machine, room)
        try:
            return simulate(
                trace, machine, placements=placements, capacity=capacity, driver=driver,
                record=False,
            )  # fmt: skip
        except MemoryBudgetError as error:
            # The plan packs arrays into arenas; here each begins a block of its own.
            room -= max(BLOCK_BYTES, error.needed - capacity)
            if room <= 0:
                raise


def chosen(arrays: tuple[Declared, ...], machine: Machine, capacity: int) -> dict[str, str]:
    """Return the placements that `auto` plans for arrays on a machine of such a capacity."""
    size = {array.name: array.size for array in arrays}
    seen = {array.name: array.touches for array in arrays}
    arcs = max(1, size.get("targets.0", 0))
    visited = seen.get("targets.0", {}).get(("move", "stream"), arcs) / arcs
    plan = make_plan(
        lambda tight: arrays, AUTO, machine, capacity, visited=visited, free=capacity
    )  # fmt: skip
    return {array.name: str(placed(array, plan.chosen)) for array in arrays}


def declared(trace: Trace) -> tuple[Declared, ...]:
    """Return a trace's arrays as an engine declares its own: when alive, how often touched."""
    later = {step.array for step in trace.steps if isinstance(step, Allocate)}
    alive = set(range(len(trace.arrays))) - later
    stages: list[set[Stage]] = [set() for _ in trace.arrays]
    touches: list[dict[tuple[Stage, Use], float]] = [{} for _ in trace.arrays]
    for number in alive:
        stages[number].add("load")
    for step in trace.steps:
        if isinstance(step, Allocate):
            alive.add(step.array)
        elif isinstance(step, Free):
            alive.discard(step.array)
        elif isinstance(step, Launch):
            stage = stage_of(step)
            for number in alive:
                stages[number].add(stage)
            t = step.touches
            sums = np.zeros((len(trace.arrays), len(Way)))
            np.add.at(sums, (t.array, t.way), t.length * t.amount)
            for number, way in zip(*np.nonzero(sums), strict=True):
                use = USES[Way(way)]
                count = sums[number, way]
                count /= trace.arrays[number].itemsize if use == "stream" else 1
                key = (stage, use)
                touches[number][key] = touches[number].get(key, 0.0) + float(count)
    return tuple(
        Declared(
            name=array.name,
            group=array.group,
            itemsize=array.itemsize,
            size=-(-array.nbytes // array.itemsize),
            stages=tuple(stage for stage in STAGES if stage in stages[number]),
            touches=touches[number],
        )
        for number, array in enumerate(trace.arrays)
    )


def stage_of(step: Launch) -> Stage:
    """Return the stage of a run that a launch belongs to."""
    if step.level > 0:
        return "coarse"
    return next((stage for stage in STAGES if stage == step.phase), "move")


def groups(trace: Trace, graph: str, base: Simulation | None, rate: float) -> list[dict[str, Any]]:
    """Return peak, accesses and faults of each group: a sweep's table of groups.

    `base` is the run whose faults are told, at an oversubscription of `rate` percent.
    """
    arrays = declared(trace)
    faults = base.by_group() if base is not None else {}
    rows = []
    for group in GROUPS:
        mine = [array for array in arrays if array.group == group]
        held = max(
            (sum(a.nbytes for a in mine if stage in a.stages) for stage in STAGES), default=0
        )
        rows.append(
            {
                "graph": graph,
                "group": group,
                "peak_bytes": held,
                "accesses": round(sum(sum(a.touches.values()) for a in mine)),
                "gpu_faults": faults.get(group, {}).get("faults", 0) if base else None,
                "policy": "base",
                "oversubscription": rate,
                "evidence": "modelled",
            }
        )
    return rows


def iterations(trace: Trace, graph: str, found: Simulation, rate: float) -> list[dict[str, Any]]:
    """Return the seconds of each sweep, refinement and aggregation: a table of iterations."""
    rows: list[dict[str, Any]] = []
    last: tuple[Any, ...] | None = None
    for step, seconds in zip(trace.steps, found.launch_seconds.tolist(), strict=True):
        if not isinstance(step, Launch):
            continue
        place = (step.phase, step.level, step.iteration)
        if place != last:
            rows.append(
                {
                    "graph": graph, "oversubscription": rate, "number": len(rows) + 1,
                    "seconds": 0.0, "policy": "base", "phase": step.phase, "level": step.level,
                    "iteration": step.iteration, "evidence": "modelled",
                }
            )  # fmt: skip
            last = place
        rows[-1]["seconds"] += seconds
    return rows


def parse_rates(text: str) -> tuple[float, ...]:
    """Return oversubscriptions in percent, as in "0,10,30".

    Raises
    ------
    LouvainUmError
        Not a list of numbers of at least 0 and below 100.

    Examples
    --------
    >>> from louvain_um.profiling.replays import parse_rates
    >>> parse_rates("0, 12.5,70%")
    (0.0, 12.5, 70.0)
    """
    try:
        rates = tuple(float(part.strip().rstrip("%")) for part in text.split(","))
    except ValueError:
        rates = ()
    if not rates or not all(0 <= rate < 100 for rate in rates):
        raise LouvainUmError(
            f"oversubscription is a list of percentages from 0 to below 100, like 0,10,30; "
            f"not {text!r}"
        )
    return tuple(dict.fromkeys(rates))


def parse_policies(text: str) -> tuple[str, ...]:
    """Return names of policies, as in "base,adv2"; "all" stands for the thesis's ten and auto.

    Raises
    ------
    OptionError
        There is no such policy.
    """
    every = ("base", *(f"adv{i}" for i in range(1, 10)), AUTO.name)
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = tuple(dict.fromkeys(n for name in names for n in (every if name == "all" else (name,))))
    for name in found or ("",):
        find_policy(name)
    return found


def best(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which policy was fastest at each oversubscription, in a line a graph and machine."""
    lines = []
    places = dict.fromkeys((row["graph"], row["gpu"], row["evidence"]) for row in rows)
    for place in places:
        found: dict[float, Mapping[str, Any]] = {}
        for row in rows:
            if row["feasible"] and (row["graph"], row["gpu"], row["evidence"]) == place:
                rate = row["oversubscription"]
                # What auto took over from another policy is as fast: it is named first.
                order = (row["seconds"], row["policy"] != AUTO.name)
                if rate not in found or order < (found[rate]["seconds"], True):
                    found[rate] = row
        graph, gpu, evidence = place
        told = [f"{row['policy']} at {rate:g} %" for rate, row in sorted(found.items())]
        lines.append(f"{graph} on {gpu}, {evidence}: fastest {', '.join(told) or 'none'}")
    return "\n".join(lines)
