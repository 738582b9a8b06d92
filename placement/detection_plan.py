"""The plan of a run: what was decided, the figures that follow, and corrections during the run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage, peak_bytes
from louvain_um.core.ledger import GROUPS, Group
from louvain_um.errors import OptionError
from louvain_um.options import Budget
from louvain_um.placement.hardware import seconds as readable
from louvain_um.placement.hardware import size
from louvain_um.placement.layout import (
    ArenaSpec,
    device_bytes,
    device_bytes_in_core,
    group_placement,
    most_arcs,
    placed,
)
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.migration.room import PageBudget
from louvain_um.placement.model.cost import HIDDEN, blocking_factor, launches
from louvain_um.placement.model.forecast import (
    OUTSIDE,
    Basis,
    StageForecast,
    TimeRange,
    corrected,
    forecast,
    relative_time,
    time_range,
)
from louvain_um.placement.model.remaining import Found, Remaining
from louvain_um.placement.model.workload import (
    ONE_RUN,
    UNTIL_NOTHING,
    Facts,
    SearchCourse,
    Workload,
    work_for,
)
from louvain_um.placement.policy.auto import (
    Candidate,
    DeclaredRun,
    Form,
    Request,
    best_of,
    candidate,
    choose,
)
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Placement, Policy
from louvain_um.placement.reasons import Reason, explain, notes, refusal

if TYPE_CHECKING:
    import pandas as pd

INTEGERS: Final = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
"""Types by bytes of an element; arrays of records are counted in bytes."""

REPLAN_FROM: Final = 50
"""Replan during a run only if the remaining time exceeds so many times the planning time: the
device waits meanwhile."""

RANGE_NOTES: Final[Mapping[Basis, str]] = {
    "size": "graphs of this size differ, and none was sampled",
    "samples": "nine of ten graphs with similar degrees and samples took this long",
    "sweeps": "nine of ten runs took this long, by the measured sweeps of level 0",
}
"""What ranges of seconds depend on."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan:
    """Placements, memory and predicted time of a run, decided before anything is allocated."""

    choice: Candidate
    work: Workload
    request: Request
    planning_seconds: float = 0.0
    course: SearchCourse = ONE_RUN
    relative_time: float | None = None
    """Time of graphs like this one, relative to its kind's; None if it was not sampled."""

    def __repr__(self) -> str:
        return f"Plan({self.policy}: {self.verdict})"

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Arrays of the run."""
        return self.choice.form.arrays

    @property
    def chosen(self) -> Policy:
        """The policy, or what `auto` chose."""
        return self.choice.policy

    @property
    def layout(self) -> tuple[ArenaSpec, ...]:
        """Arenas."""
        return self.choice.layout

    @property
    def out_of_core(self) -> Mapping[str, int]:
        """Bytes on the device of arenas that move in blocks."""
        return self.choice.fitted.out_of_core

    @property
    def device_bytes(self) -> int:
        """Bytes of the device that the run occupies."""
        return self.choice.fitted.occupied

    @property
    def low_scratch(self) -> bool:
        """Whether scratch is as small as can be."""
        return self.choice.form.low_scratch

    @property
    def compact(self) -> bool:
        """Whether the input takes fewer bytes."""
        return self.choice.form.compact

    @property
    def in_pages(self) -> bool:
        """Whether arrays lie in pages that change sides."""
        return self.choice.in_pages

    @property
    def expected(self) -> StageForecast:
        """Seconds by stage and cause."""
        return self._of_search(self._one_run)

    @property
    def _one_run(self) -> StageForecast:
        """The forecast of one run with the default options."""
        return self._scaled_to_samples(self.choice.expected)

    def _scaled_to_samples(self, of_kind: StageForecast) -> StageForecast:
        """Return the forecast of a graph's kind, scaled to the time of graphs like this one."""
        if self.relative_time is None:
            return of_kind
        every = dict.fromkeys(STAGES, self.relative_time)
        return of_kind.scaled(every | dict.fromkeys(OUTSIDE, 1.0))

    def _of_search(self, one: StageForecast, cycles: int | None = None) -> StageForecast:
        """Return the forecast of a search whose runs with the default cycles are one like this."""
        if self.course == ONE_RUN:
            return one
        return one.scaled(self.course.stages(self.work, cycles))

    @property
    def like(self) -> str:
        """The package's policy that `auto` followed, if it did."""
        return self.choice.like

    @property
    def kept(self) -> tuple[float, float, float] | None:
        """Share of the arcs that level 1 may keep: low, expected, high."""
        return self.request.declared.kept

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self.chosen.name

    @property
    def budget(self) -> int | None:
        """Bytes of the device that the run may occupy; None if no budget was given."""
        return self.request.budget

    @property
    def limit(self) -> int:
        """Usable bytes of the device: the budget, or less if the device has less."""
        return self.request.limit

    @cached_property
    def peak_bytes(self) -> dict[Group, int]:
        """Most bytes that each group holds at any one stage, wherever they live."""
        return peak_bytes(self.arrays)

    @cached_property
    def placements(self) -> dict[Group, Placement]:
        """Placement of each group; a split where its arrays differ."""
        limit = self.limit if self.in_pages else None
        return {group: group_placement(self.arrays, self.chosen, group, limit) for group in GROUPS}

    @cached_property
    def _by_name(self) -> dict[str, ArraySpec]:
        return {array.name: array for array in self.arrays}

    @cached_property
    def bytes_by_stage(self) -> dict[Stage, int]:
        """Bytes of all arrays that are alive in each stage, wherever they live."""
        return {s: sum(a.nbytes for a in self.arrays if s in a.stages) for s in STAGES}

    @property
    def seconds(self) -> float:
        """Predicted seconds of the algorithm: without loading the graph and fetching labels."""
        return self.expected.seconds

    @property
    def seconds_in_core(self) -> float:
        """Predicted seconds with everything in plain device memory, fit or not."""
        return self._of_search(self._in_core).seconds

    @property
    def _in_core(self) -> StageForecast:
        """The forecast of one run with the default options in core."""
        return self._scaled_to_samples(StageForecast(core=self.work.core))

    @property
    def stage_seconds(self) -> dict[Stage, float]:
        """Predicted seconds of each stage, "load" and "fetch" included."""
        return self.expected.stages

    @cached_property
    def in_core_bytes(self) -> int:
        """Bytes of the device that the run takes in core: 100 % of budgets and oversubscription."""
        form = self.choice.form
        plain = not form.low_scratch and not form.compact
        arrays = form.arrays if plain else self.request.declared.arrays(False)
        return device_bytes_in_core(arrays, separate=True)

    @cached_property
    def device_in_core(self) -> int:
        """Bytes of the device with which everything would be there, scratch as small as can be."""
        arrays = self.arrays if self.low_scratch else self.request.declared.arrays(True)
        return device_bytes_in_core(arrays, joint=True)

    @property
    def fits(self) -> bool:
        """Whether everything could be in plain device memory within the limit."""
        least = min(device_bytes_in_core(self.arrays), self.device_in_core)
        if self.policy == AUTO.name and self.request.declared.compact:
            least = min(
                least, device_bytes_in_core(self.request.declared.compact(True), joint=True)
            )
        return least <= self.limit

    def placement_of(self, name: str) -> Placement:
        """Return where an array goes, by the name it was declared with."""
        return placed(self._by_name[name], self.chosen)

    def is_host_resident(self, name: str) -> bool:
        """Whether an array, or some of it, stays on the host: the paper's isHostResident."""
        return self.placement_of(name).on_device < 1

    @property
    def in_core(self) -> bool:
        """Whether everything is in plain device memory."""
        return all(spec.placement.kind == "device" for spec in self.layout)

    @property
    def pages(self) -> PageBudget | None:
        """Bytes of pages that change sides during the run; None if none do."""
        if not self.in_pages:
            return None
        separate = [
            s for s in self.layout if not (s.in_pages or s.on_demand) and s.group is not None
        ]
        fixed = sum(device_bytes(s.placement, s.capacity) for s in separate)
        shared = sum(s.capacity for s in self.layout if s.group is None)
        # Two levels, each with as many arcs as level 1 at most, while one is made of the other.
        kept = self.kept[2] if self.kept else 1.0
        arcs = [a for a in self.arrays if a.holds_coarse_arcs and a.level == 1]
        whole = int(2 * int(kept * self.work.arcs) * sum(a.itemsize for a in arcs))
        device = self.limit - fixed
        # Members of communities may leave for the rows that are made of them.
        leaving = sum(a.nbytes for a in self.arrays if a.role == "members")
        later = max(0, whole - (device - shared)) + device // 4 + leaving + self._on_demand
        return PageBudget(device=device, later=later)

    @property
    def transfer_mode(self) -> Literal["fault", "prefetch"] | None:
        """How blocks get to the device: by page faults of a kernel, or by prefetching."""
        kinds = {spec.placement.kind for spec in self.layout if spec.name in self.out_of_core}
        return None if not kinds else "prefetch" if kinds == {"prefetched"} else "fault"

    @property
    def launches(self) -> int:
        """Launches per pass over level 0: one for each vertex block."""
        return max(1, self.blocks)

    @property
    def launches_before(self) -> int:
        """The same if everything were copied to the device, part by part."""
        return launches(self.in_core_bytes - 1, self.limit)  # what fits exactly takes one

    @property
    def blocks(self) -> int:
        """Launches per pass over level 0: ⌊bytes mapped to the device ÷ bytes available⌋ + 1."""
        return self.expected.blocks

    @property
    def blocking(self) -> int:
        """Initial number of pages (1 … 10) per warp of the kernel that faults blocks in."""
        paged = sum(spec.capacity for spec in self.layout if spec.name in self.out_of_core)
        return blocking_factor(paged, self.work.machine)

    @property
    def host_bytes(self) -> int:
        """Bytes of host memory that the device can read in place."""
        return sum(
            spec.capacity - device_bytes(spec.placement, spec.capacity)
            for spec in self.layout
            if not spec.in_pages
        ) + sum(spec.capacity for spec in self.layout if spec.in_pages)

    @property
    def beyond_bytes(self) -> int:
        """Bytes of host memory, or of a peer's, that the run may take at any one time."""
        later = self.pages.later - self._on_demand if self.pages else 0
        return self.host_bytes + later

    @property
    def _on_demand(self) -> int:
        """Bytes of the host that arrays take when they are made."""
        return sum(
            spec.capacity - device_bytes(spec.placement, spec.capacity)
            for spec in self.layout
            if spec.on_demand
        )

    @cached_property
    def cliff_arcs(self) -> int:
        """Arcs of the largest graph of this shape that runs in core within the limit."""
        return most_arcs(self._at, self.limit) if self.work.arcs else 0

    def _at(self, arcs: int) -> Sequence[ArraySpec]:
        if self.request.declared.at is not None:
            return self.request.declared.at(arcs)
        scale = arcs / self.work.arcs
        return [
            a if a.device_only else replace(a, size=-int(a.size * scale // -1))
            for a in self.request.declared.arrays(True)
        ]

    @cached_property
    def reasons(self) -> dict[Group, Reason]:
        """Why each group lives where it does: φ, τ, σ and a sentence."""
        return explain(self.choice, self.work, self.limit, self.placements)

    @property
    def _basis(self) -> Basis:
        """What the predicted seconds follow from."""
        if self.work.corrected:
            return "sweeps"
        return "size" if self.relative_time is None else "samples"

    @cached_property
    def seconds_range(self) -> TimeRange:
        """Seconds of the algorithm: low, expected, high."""
        one = self._one_run
        found = time_range(one.seconds, self._in_core.seconds, self.work.method, self._basis)
        if self.course != ONE_RUN:
            cycles = UNTIL_NOTHING if self.course.cycles == -1 else (None, None, None)
            times = [self._of_search(one, each).seconds / one.seconds for each in cycles]
            times[::2] = (
                time * end for time, end in zip(times[::2], self.course.ends, strict=True)
            )
            found = TimeRange(
                found.low * times[0], found.expected * times[1], found.high * times[2]
            )
        return found

    def remaining(self, found: Found) -> Remaining:
        """Return what follows from level 1: how long the run takes."""
        limit = self.limit if self.in_pages else None
        arc = sum(a.itemsize for a in self.arrays if a.holds_coarse_arcs and a.level == 1)
        return Remaining(work=self.work, limit=limit, arc_bytes=arc, found=found)

    @property
    def range_note(self) -> str:
        """The range of seconds, and what it depends on."""
        found = self.seconds_range
        text = f"{readable(found.low)} to {readable(found.high)}"
        return f"{text}: {RANGE_NOTES[self._basis]}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures are based on."""
        found, course = notes(self.choice, self.work, self.request), self.course
        if course.runs != 1:
            found += (
                f"a search takes as long as {self.runs:.1f} runs with the default options, one "
                "after the other, and the memory of one",
            )
        if course.cycles == -1 or course.ends != ONE_RUN.ends:
            low, _, high = UNTIL_NOTHING
            last = replace(course, cycles=-1)
            usual = last.expected(self.work.kind.methods[self.work.method].cycles)
            where = "" if last == course else "in the last run, "
            found += (
                f"{where}until nothing improves, graphs took {low} to {high} cycles; {usual} are "
                "expected",
            )
        return found

    @property
    def runs(self) -> float:
        """The time, relative to that of one run with the default options."""
        return self.expected.seconds / self._one_run.seconds

    @property
    def verdict(self) -> str:
        """The plan in one sentence."""
        took = readable(self.seconds)
        whole = self.in_core and self.policy in (AUTO.name, "device")
        # In pages, arcs give way where the device does not hold all that may be needed.
        least = self.in_core_bytes if self.in_pages else self.device_in_core
        if whole and least <= self.limit:
            small = ", with scratch as small as possible" if self.low_scratch else ""
            return f"Runs in core within {size(self.limit)}{small}: about {took}."
        times = self.seconds / self.seconds_in_core if self.seconds_in_core else 1.0
        if self.in_core_bytes <= self.limit:
            fits = "Would fit in core"
        elif self.fits:
            fits = "Would fit in core at its smallest, with what is expected of coarse levels"
        else:
            needs = f"Needs {size(self.in_core_bytes)} in core"
            fits = f"{needs}, more than the {size(self.limit)} available"
        return (
            f"{fits}. Under {self.policy}: about {took} "
            f"({times:.1f} times as long as in core), with {size(self.device_bytes)} on the device."
        )

    def corrected(self, visited: Sequence[int], seconds: float, *, choosing: bool = True) -> Plan:
        """Return the plan, corrected by the first sweeps of level 0.

        Parameters
        ----------
        visited : sequence of int
            Arcs that each sweep visited so far, or those of all sweeps as one figure, if moving
            is over.
        seconds : float
            Their time.
        choosing : bool
            Whether "auto" may choose another layout.

        Returns
        -------
        Plan
            With corrected predictions; under "auto", with another layout if that pays for the
            rest of the run.
        """
        work = corrected(self.work, visited, seconds, self.choice.expected)
        expected = forecast(
            self.arrays,
            self.chosen,
            self.layout,
            self.out_of_core,
            work,
            low_scratch=self.low_scratch,
            limit=self.limit if self.in_pages else None,
        )
        choice = replace(self.choice, expected=expected)
        updated = replace(self, work=work, choice=choice, relative_time=None)
        done = min(1.0, sum(visited) / max(work.visited * work.arcs, 1.0))
        left = _left_seconds(updated, done)
        fixed = not choosing or self.request.policy.name != AUTO.name
        if fixed or left < REPLAN_FROM * self.planning_seconds:
            return updated
        other = replace(plan_for(self.request, work), course=self.course)
        pays = _left_seconds(other, done) + _transfer_seconds(updated, other) < left
        return other if pays else updated

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON holds it, in bytes and seconds.

        ``louvain-um plan --json`` prints this. `runs` is the time of a search (``effort``,
        ``n_iterations``, ``best_of``) relative to that of one run with the default options.
        """
        work, found = self.work, self.seconds_range
        return {
            "schema": 1,
            "vertices": work.vertices,
            "arcs": work.arcs,
            "method": work.method,
            "machine": work.machine.name,
            "kind": work.kind.name,
            "policy": self.policy,
            "budget_bytes": self.budget,
            "limit_bytes": self.limit,
            "in_core_bytes": self.in_core_bytes,
            "fits": self.fits,
            "runs": self.runs,
            "seconds": self.seconds,
            "seconds_in_core": self.seconds_in_core,
            "seconds_range": [found.low, found.expected, found.high],
            "stage_seconds": self.stage_seconds,
            "seconds_by_cause": {
                "computing": dict(self.expected.core),
                "bus": dict(self.expected.remote),
                "blocks": dict(self.expected.out_of_core),
                "arrival": dict(self.expected.arrival),
            },
            "inputs": {
                "visited": work.visited,
                "mean_degree": work.mean_degree,
                "widest": work.max_degree or None,
                "passes_in_blocks": work.passes,
                "hidden": HIDDEN,
                "source": work.source,
                "core_scale": work.core_scale,
                "bus_scale": work.bus_scale,
                "machine": work.machine.to_dict(),
            },
            "cliff_arcs": self.cliff_arcs,
            "peak_bytes": self.peak_bytes,
            "stage_bytes": self.bytes_by_stage,
            "device_bytes": self.device_bytes,
            "host_bytes": self.host_bytes,
            "placements": {group: str(self.placements[group]) for group in GROUPS},
            "reasons": {
                group: {
                    name: getattr(reason, name)
                    for name in ("phi", "tau", "sigma", "net", "sentence")
                }
                for group, reason in self.reasons.items()
            },
            "tight": self.low_scratch,
            "packed": self.compact,
            "blocks": self.blocks,
            "launches": {"before": self.launches_before, "after": self.launches},
            "blocking": self.blocking,
            "paged": dict(self.out_of_core),
            "layout": [
                {
                    "name": spec.name,
                    "group": spec.group,
                    "bytes": spec.capacity,
                    "placement": str(spec.placement),
                    "members": None if spec.members is None else list(spec.members),
                    "on_demand": spec.on_demand,
                }
                for spec in self.layout
            ],
            "arrays": [
                {
                    "name": array.name,
                    "group": array.group,
                    "dtype": _dtype(array.itemsize),
                    "bytes": array.nbytes,
                    "phases": list(array.stages),
                    "placement": str(placed(array, self.chosen)),
                }
                for array in self.arrays
            ],
            "notes": list(self.notes),
            "verdict": self.verdict,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per array: the entries of ``to_dict()["arrays"]``.

        Columns are ``name``, ``group``, ``dtype``, ``bytes``, ``phases`` and ``placement``.

        Examples
        --------
        >>> import louvain_um as lu
        >>> frame = lu.plan(n_vertices=1000, n_arcs=8000, machine="h200").to_frame()
        >>> frame.set_index("name").loc["labels", ["group", "placement"]].tolist()
        ['community', 'device']
        """
        from louvain_um.results.display import require_pandas

        frame: pd.DataFrame = require_pandas().DataFrame(self.to_dict()["arrays"])
        return frame


def _dtype(itemsize: float) -> str:
    """Return the type of an array's elements; packed targets have none, of different widths."""
    if itemsize % 1:
        return "packed"
    return INTEGERS.get(int(itemsize), f"V{int(itemsize)}")


def plan_for(request: Request, work: Workload, default: Form | None = None) -> Plan:
    """Return the plan of a request; `default` are its arrays with default scratch, if at hand."""
    since = time.perf_counter()
    declared, policy, limit = request.declared, request.policy, request.limit
    form = declared.form(False) if default is None else default

    def auto() -> Candidate:
        return choose(declared, form, work, limit, request.free)

    if policy.name == AUTO.name:
        found = auto()
    else:
        found = candidate(policy, form, work, limit, out_of_core=declared.out_of_core(False))
        if found.fitted.out_of_core or not found.fitted.within(limit):
            low_scratch, more = declared.form(True), declared.out_of_core(True)
            small = candidate(policy, low_scratch, work, limit, out_of_core=more)
            found = best_of((small, found), limit) or small
    if not found.fitted.within(limit):
        raise refusal(found, request, work.max_degree, auto)
    took = time.perf_counter() - since
    return Plan(choice=found, work=work, request=request, planning_seconds=took)


def _left_seconds(plan: Plan, done: float) -> float:
    """Return the seconds of a run after a share of its moving on level 0."""
    return plan.seconds - done * plan.stage_seconds.get("move", 0.0)


def _transfer_seconds(plan: Plan, other: Plan) -> float:
    """Return the seconds of moving a plan's arenas to where another plan places them."""
    machine = plan.work.machine
    there = {spec.name: device_bytes(spec.placement, spec.capacity) for spec in plan.layout}
    moved = [device_bytes(s.placement, s.capacity) - there.get(s.name, 0) for s in other.layout]
    arriving = sum(nbytes for nbytes in moved if nbytes > 0)
    leaving = -sum(nbytes for nbytes in moved if nbytes < 0)
    return arriving / machine.prefetch_to_device + leaving / machine.prefetch_to_host


def make_plan(
    declared: DeclaredRun,
    policy: str | Policy,
    machine: Machine,
    budget: Budget | int | str | None = None,
    facts: Facts | None = None,
    *,
    free: int | None = None,
    managed: bool = True,
) -> Plan:
    """Decide where every array of a run will live, and predict what that costs."""
    chosen = find_policy(policy)
    _refuse_of_others(chosen)
    default = declared.form(False)
    machine.refuse_peer(placed(array, chosen) for array in default.arrays)
    asked = Budget.parse(budget)
    fraction = asked.fraction is not None
    allowed = asked.resolve(device_bytes_in_core(default.arrays, separate=True) if fraction else 0)
    there = machine.bytes_for_runs if free is None else free
    request = Request(
        declared=declared,
        policy=chosen,
        budget=allowed,
        limit=there if allowed is None else min(allowed, there),
        free=there if managed else 0,
    )
    facts = facts or Facts()
    work = work_for(default.arrays, machine, facts)
    return replace(plan_for(request, work, default), relative_time=relative_time(work, facts))


def _refuse_of_others(policy: Policy) -> None:
    """Raise `OptionError` if a policy places arrays of other programs alone."""
    names = [*policy.groups, *policy.roles]
    if names and policy == replace(policy, placements={}, arrays={}):
        raise OptionError(
            remedy=f"policy {policy.name} places nothing of Louvain or Leiden: its groups and "
            f"roles ({', '.join(names)}) are of other programs; say where one of "
            f"{', '.join(GROUPS)} lives, or use memory='device'"
        )
