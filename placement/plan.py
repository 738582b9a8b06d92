"""A plan: every byte of a run, where it will live and what that will cost, before any exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from louvain_um.arrays import Declared, Stage, peak_bytes
from louvain_um.ledger import GROUPS, Group
from louvain_um.options import parse_budget
from louvain_um.placement.choose import Candidate, best_of, candidate, choose
from louvain_um.placement.cost import blocking_factor
from louvain_um.placement.forecast import Forecast, Source, Work, corrected, work_for
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.machine import Machine
from louvain_um.placement.policy import AUTO, Placement, Policy, find_policy
from louvain_um.placement.reasons import Reason, explain, verdict
from louvain_um.placement.refusal import refusal
from louvain_um.placement.spec import ArenaSpec, device_bytes

CONTEXT: Final = 512 << 20
"""Bytes of a device that its context and the kernels' code take, about."""

Declare = Callable[[bool], tuple[Declared, ...]]
"""The arrays of a run, with scratch as small as it works with (True) or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a plan was asked for.

    Parameters
    ----------
    declare : callable
        ``declare(tight)`` returns the arrays of the run.
    policy : Policy
    budget : int or None
        Bytes of the device that were allowed.
    limit : int
        Bytes of the device that there are: the budget, or less if the device has less.
    at : callable, optional
        ``at(arcs)`` returns the arrays, with tight scratch, of a graph of the same shape with
        so many arcs.
    """

    declare: Declare
    policy: Policy
    budget: int | None
    limit: int
    at: Callable[[int], Sequence[Declared]] | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan:
    """What `make_plan` decided, and all it knows about it.

    Parameters
    ----------
    arrays : tuple of Declared
        What the run will ask for.
    chosen : Policy
        As it will be carried out: "auto" with what was chosen.
    layout : tuple of ArenaSpec
    paged : mapping of str to int
        Arenas of which only so many bytes are on the device at a time.
    device_bytes : int
        What will occupy the device.
    tight : bool
        Scratch is as small as it works with.
    expected : Forecast
        Seconds by stage and cause.
    work : Work
        The inputs of the prediction.
    request : Request
    """

    arrays: tuple[Declared, ...]
    chosen: Policy
    layout: tuple[ArenaSpec, ...]
    paged: Mapping[str, int]
    device_bytes: int
    tight: bool
    expected: Forecast
    work: Work
    request: Request

    def __repr__(self) -> str:
        return f"Plan({self.policy}: {self.verdict})"

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self.chosen.name

    @property
    def budget(self) -> int | None:
        """Bytes of the device that were allowed; None where nothing was said."""
        return self.request.budget

    @property
    def limit(self) -> int:
        """Bytes of the device that there are: the budget, or less if the device has less."""
        return self.request.limit

    @cached_property
    def peak_bytes(self) -> dict[Group, int]:
        """Most bytes that each group holds at any one stage, wherever they live."""
        return peak_bytes(self.arrays)

    @cached_property
    def placements(self) -> dict[Group, Placement]:
        """Where each group lives; a split where some of its arrays go another way."""
        return {group: self._placement(group) for group in GROUPS}

    def _placement(self, group: Group) -> Placement:
        mine = [a for a in self.arrays if a.group == group and a.nbytes and not a.device_only]
        found = {placed(array, self.chosen) for array in mine}
        if len(found) <= 1:
            return found.pop() if found else self.chosen.placements[group]
        specs = [spec for spec in self.layout if spec.group == group]
        there = sum(device_bytes(spec.placement, spec.capacity) for spec in specs)
        return Placement("split", there / max(1, sum(spec.capacity for spec in specs)))

    @property
    def seconds(self) -> float:
        """Predicted seconds of the algorithm: the graph's and the labels' journeys apart."""
        return self.expected.seconds

    @property
    def seconds_in_core(self) -> float:
        """Predicted seconds with everything in plain device memory, fit or not."""
        return Forecast(core=self.work.core).seconds

    @property
    def stage_seconds(self) -> dict[Stage, float]:
        """Predicted seconds of each stage, "load" and "fetch" included."""
        return self.expected.stages

    @cached_property
    def device_in_core(self) -> int:
        """Bytes of the device with which everything would be there, scratch as small as can be."""
        return device_bytes_in_core(self.arrays if self.tight else self.request.declare(True))

    @property
    def fits(self) -> bool:
        """Whether everything could be in plain device memory within the limit."""
        return min(device_bytes_in_core(self.arrays), self.device_in_core) <= self.limit

    def placement_of(self, name: str) -> Placement:
        """Return where an array goes, by the name it was declared with."""
        return placed({array.name: array for array in self.arrays}[name], self.chosen)

    def is_host_resident(self, name: str) -> bool:
        """Whether an array, or some of it, stays on the host: the paper's isHostResident."""
        return self.placement_of(name).on_device < 1

    @property
    def in_core(self) -> bool:
        """Whether everything is in plain device memory."""
        return all(spec.placement.kind == "device" for spec in self.layout)

    @property
    def paged_by(self) -> Literal["fault", "prefetch"] | None:
        """How blocks come to the device: kernels fault on them, or they are sent for."""
        kinds = {spec.placement.kind for spec in self.layout if spec.name in self.paged}
        return None if not kinds else "prefetch" if kinds == {"prefetched"} else "fault"

    @property
    def blocks(self) -> int:
        """Launches that a pass over level 0 takes: ⌊bytes mapped to the device ÷ room⌋ + 1."""
        return self.expected.blocks

    @property
    def blocking(self) -> int:
        """Pages a warp, 1 … 10, with which a kernel begins that reads the host's memory."""
        far = sum(
            spec.capacity - device_bytes(spec.placement, spec.capacity) for spec in self.layout
        )
        return blocking_factor(far, self.work.machine)

    @cached_property
    def reasons(self) -> dict[Group, Reason]:
        """Why each group lives where it does: φ, τ, σ and a sentence."""
        return explain(self)

    @cached_property
    def cliff_arcs(self) -> int:
        """Arcs of the largest graph of this shape that runs in core within the limit."""
        arcs = self.work.arcs
        if not arcs or device_bytes_in_core(self._at(1)) > self.limit:
            return 0
        low, high = 1, 2
        while device_bytes_in_core(self._at(high)) <= self.limit:
            low, high = high, 2 * high
        while high - low > max(1, low >> 12):
            middle = (low + high) // 2
            low, high = (
                (middle, high)
                if device_bytes_in_core(self._at(middle)) <= self.limit
                else (low, middle)
            )
        return low

    def _at(self, arcs: int) -> Sequence[Declared]:
        if self.request.at is not None:
            return self.request.at(arcs)
        scale = arcs / self.work.arcs
        return [
            a if a.device_only else replace(a, size=-int(a.size * scale // -1))
            for a in self.request.declare(True)
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures rest on."""
        machine, kind = self.work.machine, self.work.kind
        return (
            f"machine {machine.name}: {machine.notes.get('profile', machine.notes.get('all', ''))}",
            f"kind of graph: {kind.name} ({kind.about}); {self.work.visited:.1f} passes of moving",
        )

    @property
    def verdict(self) -> str:
        """The plan in one sentence."""
        return verdict(self)

    def corrected(self, visited: Sequence[int], seconds: float) -> Plan:
        """Return a plan that takes into account how the first sweeps of level 0 went.

        Parameters
        ----------
        visited : sequence of int
            Arcs that each sweep visited so far.
        seconds : float
            What these sweeps took together.

        Returns
        -------
        Plan
            With predictions corrected; under "auto" perhaps with another choice, which its
            layout shows.
        """
        return _plan(self.request, corrected(self.work, visited, seconds, self.expected))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data: what ``louvain-um plan --json`` prints."""
        from louvain_um.placement.show import to_dict

        return to_dict(self)


def make_plan(
    declare: Declare,
    policy: str | Policy,
    machine: Machine,
    budget: int | str | Callable[[int], int | None] | None = None,
    *,
    kind: str | None = None,
    skew: float | None = None,
    visited: float | None = None,
    method: str | None = None,
    source: Source = "host",
    free: int | None = None,
    widest: int | None = None,
    at: Callable[[int], Sequence[Declared]] | None = None,
) -> Plan:
    """Decide where every array of a run will live, and predict what that costs.

    Parameters
    ----------
    declare : callable
        ``declare(tight)`` returns the arrays of the run; with True, scratch is as small as it
        works with.
    policy : str or Policy
        What `find_policy` takes; "auto" leaves the choice to the model.
    machine : Machine
    budget : int, str or callable, optional
        Bytes of the device to use, as a number, like "8GiB", or like "70%" of what the run takes
        in core; or a function of the latter.
    kind : {"even", "communities", "skewed", "unknown"}, optional
        What kind of graph it is; by default what `skew` tells.
    skew : float, optional
        Σ degree² ÷ Σ degree, of the unweighted graph: tells what kind of graph it is.
    visited : float, optional
        Arcs that moving visits on level 0, by arcs of the graph; by default those of the kind
        of graph.
    method : {"louvain", "leiden"}, optional
        By default what the arrays tell.
    source : {"host", "device"}
        Where the graph is when the run begins.
    free : int, optional
        Bytes that the device has free; by default what the machine has, less a context's.
    widest : int, optional
        Most arcs of a vertex: a block holds whole rows.
    at : callable, optional
        ``at(arcs)`` returns the arrays, with tight scratch, of a graph of the same shape with so
        many arcs; by default sizes are taken to grow in proportion.

    Returns
    -------
    Plan

    Raises
    ------
    OptionError
        There is no such policy or kind, or the budget is none.
    MemoryBudgetError
        The policy needs more of the device than there is; the error names the least it needs and
        the group that needs most of it.

    Examples
    --------
    >>> from louvain_um.arrays import Declared
    >>> from louvain_um.placement.plan import make_plan
    >>> from louvain_um.placement.profiles import H200
    >>> arcs = Declared(name="targets.0", group="graph", itemsize=4, size=1 << 26,
    ...                 stages=("load", "move"), touches={("move", "stream"): 5 << 26})
    >>> plan = make_plan(lambda tight: (arcs,), "auto", H200, "50%")
    >>> str(plan.placements["graph"]), plan.device_bytes >> 20
    ('split(0.5039)', 128)
    """
    chosen = find_policy(policy)
    roomy = declare(False)
    allowed = _allowed(budget, device_bytes_in_core(roomy, apart=True))
    there = max(1, machine.memory_bytes - CONTEXT) if free is None else free
    request = Request(
        declare=declare,
        policy=chosen,
        budget=allowed,
        limit=there if allowed is None else min(allowed, there),
        at=at,
    )
    work = work_for(
        roomy,
        machine,
        kind=kind,
        skew=skew,
        visited=visited,
        method=method,
        source=source,
        widest=widest or 0,
    )
    return _plan(request, work)


def _allowed(budget: int | str | Callable[[int], int | None] | None, peak: int) -> int | None:
    """Return the bytes of a budget, for a run that takes `peak` in core."""
    if budget is None or callable(budget):
        return budget(peak) if callable(budget) else None
    share = parse_budget(budget)
    return share if isinstance(share, int) else max(1, int(share * peak))


def _plan(request: Request, work: Work) -> Plan:
    policy, limit = request.policy, request.limit
    roomy = request.declare(False)
    if policy.name == AUTO.name:
        found: Candidate | None = choose(roomy, request.declare, work, limit)
    else:
        found = candidate(policy, roomy, work, limit, tight=False)
        if found.fitted.paged or not found.fitted.within(limit):
            small = candidate(policy, request.declare(True), work, limit, tight=True)
            found = best_of((small, found), limit) or small
    assert found is not None
    if not found.fitted.within(limit):
        raise refusal(
            found,
            limit,
            work.widest,
            lambda: choose(roomy, request.declare, work, limit),
        )
    return Plan(
        arrays=found.arrays,
        chosen=found.policy,
        layout=found.layout,
        paged=found.fitted.paged,
        device_bytes=found.fitted.occupied,
        tight=found.tight,
        expected=found.expected,
        work=work,
        request=request,
    )


__all__ = ["Plan", "Request", "device_bytes_in_core", "make_plan"]
