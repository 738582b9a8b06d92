"""The plan of a run: the decision, its reasons, and corrections during the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from louvain_um.core.array_spec import ArraySpec
from louvain_um.core.ledger import Group
from louvain_um.placement.arena_spec import device_bytes
from louvain_um.placement.decision import Decision, Request
from louvain_um.placement.model.forecast import corrected, forecast
from louvain_um.placement.model.remaining import Found, Remaining, TimeRange, time_range
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.plan_data import frame_of_arrays, plain_data
from louvain_um.placement.policy.auto import choose
from louvain_um.placement.policy.candidate import Candidate, best_of, candidate
from louvain_um.placement.policy.policy import AUTO
from louvain_um.placement.reasons import Reason, explain, notes, verdict
from louvain_um.placement.refusal import refusal
from louvain_um.placement.units import seconds as readable

if TYPE_CHECKING:
    import pandas as pd

REPLAN_FROM: Final = 50
"""Replan during a run only if the remaining time exceeds so many times the planning time: the
device waits meanwhile."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan(Decision):
    """Placements, memory and predicted time of a run, decided before anything is allocated."""

    def __repr__(self) -> str:
        return f"Plan({self.policy}: {self.verdict})"

    @cached_property
    def reasons(self) -> dict[Group, Reason]:
        """Why each group lives where it does: φ, τ, σ and a sentence."""
        return explain(self)

    @cached_property
    def seconds_range(self) -> TimeRange:
        """Seconds of the algorithm: low, expected, high, by what coarse levels may keep."""
        kept = self.request.kept or (0.02, 0.3, 1.0)
        limit = self.limit if self.in_pages else None
        found = time_range(self.expected, self.work, kept, limit=limit, arc_bytes=self._arc_bytes)
        # Of a graph whose launches take longest, the plan's own figure counts them level by level.
        low, high = min(found.low, self.seconds), max(found.high, self.seconds)
        return TimeRange(low, found.expected, high)

    def remaining(self, found: Found) -> Remaining:
        """Return what follows from level 1: how long the run takes."""
        limit = self.limit if self.in_pages else None
        return Remaining(work=self.work, limit=limit, arc_bytes=self._arc_bytes, found=found)

    @property
    def _arc_bytes(self) -> float:
        """Bytes of an arc of a coarse level."""
        return sum(a.itemsize for a in self.arrays if a.holds_coarse_arcs and a.level == 1)

    @property
    def range_note(self) -> str:
        """The range of seconds, and what it depends on."""
        found, kept = self.seconds_range, self.request.kept
        text = f"{readable(found.low)} to {readable(found.high)}, by what level 1 keeps of the arcs"
        if kept is None:
            return f"{text}, of which a size alone tells nothing"
        shares = " to ".join(f"{100 * share:.0f} %" for share in (kept[0], kept[2]))
        return f"{text}: {shares}, by degrees and a sample of triangles"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures are based on."""
        return notes(self)

    @property
    def verdict(self) -> str:
        """The plan in one sentence."""
        return verdict(self)

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
        work = corrected(self.work, visited, seconds, self.expected)
        expected = forecast(
            self.arrays,
            self.chosen,
            self.layout,
            self.out_of_core,
            work,
            low_scratch=self.low_scratch,
            limit=self.limit if self.in_pages else None,
        )
        updated = replace(self, work=work, expected=expected)
        done = min(1.0, sum(visited) / max(work.visited * work.arcs, 1.0))
        left = _left_seconds(updated, done)
        fixed = not choosing or self.request.policy.name != AUTO.name
        if fixed or left < REPLAN_FROM * self.planning_seconds:
            return updated
        other = plan_for(self.request, work)
        pays = _left_seconds(other, done) + _transfer_seconds(updated, other) < left
        return other if pays else updated

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON holds it, in bytes and seconds.

        ``louvain-um plan --json`` prints this.
        """
        return plain_data(self, self.reasons, self.seconds_range)

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
        return frame_of_arrays(self.to_dict())


def plan_for(
    request: Request, work: Workload, declared: tuple[ArraySpec, ...] | None = None
) -> Plan:
    """Return the plan of a request; see `make_plan`. `declared` are its arrays, if at hand."""
    since = time.perf_counter()
    policy, limit = request.policy, request.limit
    default = request.declare(False) if declared is None else declared

    def auto() -> Candidate:
        asked = request.out_of_core, request.compact, request.free
        return choose(default, request.declare, work, limit, *asked)

    if policy.name == AUTO.name:
        found = auto()
    else:
        found = candidate(
            policy, default, work, limit, low_scratch=False, out_of_core=request.out_of_core(False)
        )
        if found.fitted.out_of_core or not found.fitted.within(limit):
            low_scratch, more = request.declare(True), request.out_of_core(True)
            small = candidate(policy, low_scratch, work, limit, low_scratch=True, out_of_core=more)
            found = best_of((small, found), limit) or small
    if not found.fitted.within(limit):
        raise refusal(
            found,
            limit,
            work.max_degree,
            auto,
            budgeted=request.budgeted,
        )
    return Plan(
        arrays=found.arrays,
        chosen=found.policy,
        layout=found.layout,
        out_of_core=found.fitted.out_of_core,
        device_bytes=found.fitted.occupied,
        low_scratch=found.low_scratch,
        compact=found.compact,
        expected=found.expected,
        work=work,
        request=request,
        like=found.like,
        planning_seconds=time.perf_counter() - since,
        in_pages=found.in_pages,
    )


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
