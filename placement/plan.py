"""The plan of a run: the decision, its reasons, and corrections during the run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from louvain_um.core.ledger import GROUPS, Group
from louvain_um.placement.arena_spec import MANAGED, device_bytes, guarded_bytes, size_of
from louvain_um.placement.decision import Decision, Request
from louvain_um.placement.layout import placed
from louvain_um.placement.model.cost import HIDDEN
from louvain_um.placement.model.forecast import corrected, forecast
from louvain_um.placement.model.time_range import (
    TimeRange,
    bus_seconds,
    later_seconds,
    levels_after,
    time_range,
)
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.policy.auto import choose
from louvain_um.placement.policy.candidate import Candidate, best_of, candidate
from louvain_um.placement.policy.policy import AUTO
from louvain_um.placement.reasons import Reason, explain, verdict
from louvain_um.placement.refusal import refusal
from louvain_um.placement.units import seconds as readable

REPLAN_FROM: Final = 50
"""Replan during a run only if the remaining time exceeds so many times the planning time: the
device waits meanwhile."""

AGAIN: Final = {"louvain": 0.25, "leiden": 0.5}
"""Seconds of another cycle, relative to the first's: of level 0 alone, or of all levels."""

INTEGERS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
"""Types by bytes of an element; arrays of records are counted in bytes."""

EARLIER_NAMES: Final[Mapping[str, str]] = {
    "tight": "low_scratch",
    "packed": "targets24",
    "paged": "out_of_core",
    "paged_by": "transfer_mode",
}
"""Attributes of a plan in earlier versions, and what they are called now."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan(Decision):
    """Placements, memory and predicted time of a run, decided before anything is allocated."""

    def __repr__(self) -> str:
        return f"Plan({self.policy}: {self.verdict})"

    def __getattr__(self, name: str) -> Any:
        if name not in EARLIER_NAMES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warnings.warn(
            f"Plan.{name} is now Plan.{EARLIER_NAMES[name]}; the old name goes with the next "
            "release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(self, EARLIER_NAMES[name])

    @cached_property
    def reasons(self) -> dict[Group, Reason]:
        """Why each group lives where it does: φ, τ, σ and a sentence."""
        return explain(self)

    @cached_property
    def seconds_range(self) -> TimeRange:
        """Seconds of the algorithm: low, expected, high, by what coarse levels may keep."""
        kept = self.request.kept or (0.02, 0.3, 1.0)
        limit = self.limit if self.in_pages else None
        return time_range(self.expected, self.work, kept, self.arrays, limit)

    def seconds_after(self, spent: float, arcs: int) -> float:
        """Return the seconds of a run that took `spent` until level 1, of so many arcs, was made.

        Louvain's other cycle moves on level 0 once more, from communities that are nearly final;
        Leiden's others refine and aggregate all levels again.
        """
        kept = self.request.kept
        levels = levels_after(kept[1] if kept else None)
        later = later_seconds(arcs, self.work, levels=levels)
        if self.in_pages:
            machine = self.work.machine
            later += levels * bus_seconds(arcs, self.arrays, self.limit, machine)
        others = self.work.kind.methods[self.work.method].cycles - 1
        again = spent + later if self.work.method == "leiden" else spent
        return spent + later + others * AGAIN[self.work.method] * again

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
        machine, kind = self.work.machine, self.work.kind
        there = {array.name for array in self.arrays}
        lost = [name for name in self.request.policy.arrays if name not in there]
        unused = f"policy {self.policy} names arrays that this run does not have: "
        return (
            f"machine {machine.name}: {machine.notes.get('profile', machine.notes.get('all', ''))}",
            f"kind of graph: {kind.name} ({kind.about}); moving visits each arc about "
            f"{self.work.visited:.1f} times",
            *([unused + ", ".join(lost)] if lost else []),
            *self._compact(),
            *self._beyond(),
        )

    def _compact(self) -> tuple[str, ...]:
        """Return how the input takes fewer bytes."""
        if not self.compact:
            return ()
        if self.targets24:
            return ("targets of level 0 take 24 bits instead of 32",)
        return ("offsets of level 0 take 32 bits instead of 64, and degrees follow from them",)

    def _beyond(self) -> tuple[str, ...]:
        """Return what happens if managed memory, with all other memory, exceeds what is free."""
        free = self.request.free
        managed = [spec for spec in self.layout if spec.placement.kind in MANAGED]
        if not managed or free is None:
            return ()
        wanted = sum(
            size_of(spec) for spec in self.layout if spec.placement.kind not in ("pinned", "peer")
        )
        if free and wanted <= free:
            return ()
        few = f"since {wanted:,} bytes in all exceed the {free:,} bytes free"
        why = few if free else "which the device lacks"
        if guarded_bytes(self.layout) <= free:
            return (f"some host memory is page-locked, no managed memory, {why}",)
        return (f"a run is refused: it needs managed memory, {why}; use memory='auto'",)

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
        work = self.work
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
            "seconds": self.seconds,
            "seconds_in_core": self.seconds_in_core,
            "seconds_range": [
                self.seconds_range.low,
                self.seconds_range.expected,
                self.seconds_range.high,
            ],
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
                    "phi": reason.phi,
                    "tau": reason.tau,
                    "sigma": reason.sigma,
                    "net": reason.net,
                    "sentence": reason.sentence,
                }
                for group, reason in self.reasons.items()
            },
            "tight": self.low_scratch,
            "packed": self.targets24,
            "blocks": self.blocks,
            "blocking": self.blocking,
            "paged": dict(self.out_of_core),
            "layout": [
                {
                    "name": spec.name,
                    "group": spec.group,
                    "bytes": spec.capacity,
                    "placement": str(spec.placement),
                    "members": None if spec.members is None else list(spec.members),
                }
                for spec in self.layout
            ],
            "arrays": [
                {
                    "name": array.name,
                    "group": array.group,
                    "dtype": INTEGERS.get(array.itemsize, f"V{array.itemsize}"),
                    "bytes": array.nbytes,
                    "phases": list(array.stages),
                    "placement": str(placed(array, self.chosen)),
                }
                for array in self.arrays
            ],
            "notes": list(self.notes),
            "verdict": self.verdict,
        }


def plan_for(request: Request, work: Workload) -> Plan:
    """Return the plan of a request; see `make_plan`."""
    since = time.perf_counter()
    policy, limit = request.policy, request.limit
    default = request.declare(False)

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
