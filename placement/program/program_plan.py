"""The plan of a program: where each array lives, what that takes, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from louvain_um.options import Budget
from louvain_um.placement.hardware import seconds, size
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.model.cost import Estimate, blocking_factor, launches
from louvain_um.placement.policy.find import find_policy, refuse_misspelt
from louvain_um.placement.policy.policy import AUTO, Placement, Policy
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.program import Program
from louvain_um.placement.program.solver import device_bytes, held_by_phase, refuse_beyond, solve

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramPlan:
    """What was decided for a program; `print` shows it as a table.

    Parameters
    ----------
    cost : ProgramCost
        The program, the machine, and what was measured of them.
    placements : mapping of str to Placement
        By name of the array.
    policy : str
    budget : int or None
        Bytes of the device that were allowed.
    limit : int
        Usable bytes of the device: the budget, or less if the device has less.
    blocking : int, optional
        Pages per warp that the policy names.
    launches : int
        Of each kernel, since arrays that it takes by rows are on the device slice by slice:
        k = ⌊Σ bytes mapped to the device ÷ capacity⌋ + 1. `program` has slices of these arrays.
    declared_bytes : int
        Of the device, for everything, where `program` has slices; else 0.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.placement.program import Gather, Program, ProgramArray, Stream
    >>> ranks = Program(name="pagerank", arrays=[
    ...     ProgramArray(name="targets", shape=10**8, reads=Stream(passes=20), from_host=1),
    ...     ProgramArray(name="rank", shape=10**7, dtype="f4", reads=Gather(2e9))])
    >>> plan = lu.plan(ranks, device_budget="30%", machine="h200")
    >>> str(plan.placements["rank"]), plan.fits, plan.device_bytes["run"] <= plan.limit
    ('device', False, True)
    """

    cost: ProgramCost
    placements: Mapping[str, Placement]
    policy: str
    budget: int | None
    limit: int
    blocking: int | None = None
    launches: int = 1
    declared_bytes: int = 0
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def program(self) -> Program:
        """The program."""
        return self.cost.program

    @property
    def bytes_by_phase(self) -> dict[str, int]:
        """Bytes of all arrays that live in each phase."""
        return self.program.bytes_by_phase

    @property
    def in_core_bytes(self) -> int:
        """Bytes of the device with which everything would be there: 100 % of budgets."""
        return self.declared_bytes or self.program.peak_bytes

    @property
    def launches_before(self) -> int:
        """Launches of each kernel if everything were copied to the device, part by part."""
        return launches(self.in_core_bytes - 1, self.limit)  # what fits exactly takes one

    @cached_property
    def device_bytes(self) -> dict[str, int]:
        """Most bytes of the device that are taken in each phase."""
        return held_by_phase(self.program, self.placements)

    @cached_property
    def peak_bytes(self) -> dict[str, int]:
        """Most bytes that each group holds in any one phase, wherever they live."""
        groups = dict.fromkeys(array.group for array in self.program.arrays)
        return {
            group: max(
                sum(
                    array.held
                    for array in self.program.arrays
                    if array.group == group and phase.name in self.program.phases_of(array)
                )
                for phase in self.program.phases
            )
            for group in groups
        }

    @cached_property
    def phase_seconds(self) -> dict[str, float]:
        """Predicted seconds of each phase."""
        return self.cost.phases(self.placements)

    @cached_property
    def arrival_seconds(self) -> dict[str, float]:
        """Predicted seconds of moving each array between host and device."""
        arrays = self.program.arrays
        return {a.name: self.cost.arrival(a, self.placements[a.name]) for a in arrays}

    @property
    def seconds(self) -> float:
        """Predicted seconds of the program, moving included; NaN if it is not timed."""
        if not self.program.timed:
            return nan
        return sum(self.phase_seconds.values()) + sum(self.arrival_seconds.values())

    @property
    def fits(self) -> bool:
        """Whether everything could be in device memory."""
        return self.in_core_bytes <= self.limit

    @cached_property
    def reasons(self) -> dict[str, Estimate]:
        """φ, τ and σ of keeping each array on the host."""
        found = {}
        for array in self.program.arrays:
            mine = device_bytes(array, self.placements[array.name])
            held = max((self.device_bytes[p] for p in self.program.phases_of(array)), default=0)
            room = self.limit - held + mine
            found[array.name] = self.cost.estimate(array, self.placements, room)
        return found

    def placement_of(self, name: str) -> Placement:
        """Return where an array lives."""
        return self.placements[name]

    def is_host_resident(self, name: str) -> bool:
        """Whether an array, or some of it, stays on the host: the paper's isHostResident."""
        return self.placements[name].on_device < 1

    def pages_per_warp(self, *names: str) -> int:
        """Return how many pages of some arrays a warp should go over at a time (`blocked_for`).

        Parameters
        ----------
        *names : str
            What a kernel reads in order; names of no array do not count.

        Returns
        -------
        int
            0 if none of them is in host memory, or comes from there on demand.
        """
        arrays = [array for array in self.program.arrays if array.name in names]
        if self.cost.machine.beyond != "host" or not any(
            self.is_host_resident(array.name) or self.placements[array.name].kind == "managed"
            for array in arrays
        ):
            return 0
        if self.blocking is not None:
            return self.blocking
        return blocking_factor(max(array.nbytes for array in arrays), self.cost.machine)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON holds it, in bytes and seconds; None for what is not timed."""
        timed = self.program.timed
        return {
            "schema": 1,
            "program": self.program.name,
            "machine": self.cost.machine.name,
            "policy": self.policy,
            "budget_bytes": self.budget,
            "limit_bytes": self.limit,
            "in_core_bytes": self.in_core_bytes,
            "fits": self.fits,
            "launches": {"before": self.launches_before, "after": self.launches},
            "seconds": self.seconds if timed else None,
            "phase_seconds": self.phase_seconds if timed else None,
            "arrival_seconds": self.arrival_seconds if timed else None,
            "measured_seconds": dict(self.measured),
            "peak_bytes": self.peak_bytes,
            "phase_bytes": self.bytes_by_phase,
            "device_bytes": self.device_bytes,
            "arrays": [
                {
                    "name": array.name,
                    "group": array.group,
                    "role": array.role,
                    "dtype": str(array.dtype),
                    "shape": list(array.shape if isinstance(array.shape, tuple) else ()),
                    "bytes": array.nbytes,
                    "phases": list(self.program.phases_of(array)),
                    "placement": str(self.placements[array.name]),
                    **{
                        term: getattr(self.reasons[array.name], term) if timed else None
                        for term in ("phi", "tau", "sigma")
                    },
                }
                for array in self.program.arrays
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per array.

        Its columns are those of ``to_dict()["arrays"]``: ``name``, ``group``, ``role``, ``dtype``,
        ``shape``, ``bytes``, ``phases``, ``placement``, and ``phi``, ``tau``, ``sigma`` in seconds;
        then ``arrival_seconds``, if the program is timed.
        """
        from louvain_um.results.display import require_pandas

        frame: pd.DataFrame = require_pandas().DataFrame(self.to_dict()["arrays"])
        if self.program.timed:
            frame["arrival_seconds"] = frame["name"].map(self.arrival_seconds)
        return frame

    def __str__(self) -> str:
        timed = self.program.timed
        rows = [["array", "group", "bytes", "lives in", *(["φ − τ − σ"] * timed), "phases"]]
        for array in self.program.arrays:
            net = [seconds(self.reasons[array.name].net)] if timed else []
            phases = ", ".join(self.program.phases_of(array))
            where = str(self.placements[array.name])
            rows.append([array.name, array.group, size(array.nbytes), where, *net, phases])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        held = max(self.device_bytes.values())
        last = (
            f"{self.program.name} under {self.policy}: {size(held)} of the device at most, "
            f"{size(self.limit)} allowed"
        )
        if self.launches > 1:
            last += f"; {self.launches} launches of each kernel"
        if timed:
            last += f"; about {seconds(self.seconds)}"
        return "\n".join([*lines, f"{last} on {self.machine_name}"])

    @property
    def machine_name(self) -> str:
        """Name of the machine that was predicted for."""
        return self.cost.machine.name

    def __repr__(self) -> str:
        what = (
            seconds(self.seconds) if self.program.timed else size(max(self.device_bytes.values()))
        )
        return f"ProgramPlan({self.program.name}: {self.policy}, {what})"


def plan_program(
    program: Program,
    machine: Machine,
    memory: str | Path | Policy = "auto",
    budget: Budget | int | str | None = None,
    *,
    free: int | None = None,
    managed: bool = True,
) -> ProgramPlan:
    """Decide where every array of a program will live, and predict what that takes."""
    policy = find_policy(memory)
    allowed = Budget.parse(budget).resolve(program.peak_bytes)
    there = machine.bytes_for_runs if free is None else free
    limit = there if allowed is None else min(allowed, there)
    declared, rounds = program.peak_bytes, 1
    cost = ProgramCost(program=program, machine=machine)
    if policy.name == AUTO.name:
        placements = solve(cost, limit, managed=managed)
    else:
        arrays = program.arrays
        refuse_misspelt(policy, groups=[a.group for a in arrays], roles=[a.role for a in arrays])
        placements = {
            a.name: Placement("device") if a.on_device
            else policy.placement_in(a.name, a.group, a.role)
            for a in program.arrays
        }  # fmt: skip
        program, rounds = in_launches(program, placements, limit)
        refuse_beyond(program, placements, limit)
        cost = replace(cost, program=program)
    return ProgramPlan(
        cost=cost,
        placements=placements,
        policy=policy.name,
        budget=allowed,
        limit=limit,
        blocking=policy.pages_per_warp,
        launches=rounds,
        declared_bytes=declared if rounds > 1 else 0,
    )


LEAST_SLICE: Final = 256
"""Items of a slice at least, and what their number is a multiple of."""


def in_launches(
    program: Program, placements: Mapping[str, Placement], limit: int
) -> tuple[Program, int]:
    """Return the program with slices of the arrays that do not fit whole, and launches a kernel."""
    cut = [a for a in program.arrays if a.by_rows]
    beyond, mapped = max(held_by_phase(program, placements).values()), sum(a.held for a in cut)
    capacity = limit - (beyond - mapped)
    items = capacity // sum(a.itemsize for a in cut) // LEAST_SLICE * LEAST_SLICE if cut else 0
    there = all(placements[a.name].kind == "device" for a in cut)
    if beyond <= limit or items < LEAST_SLICE or not there:
        return program, 1
    rounds = launches(mapped, capacity)
    small = {
        a.name: replace(a, shape=items, from_host=a.by_rows * a.size / items) for a in cut
    }  # fmt: skip
    return replace(
        program,
        arrays=[small.get(a.name, a) for a in program.arrays],
        phases=[replace(p, launches=p.launches * rounds) for p in program.phases],
    ), rounds
