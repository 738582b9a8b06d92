"""What a plan knows: every byte of a run, where it will live and what that will cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage, peak_bytes
from louvain_um.core.ledger import GROUPS, Group
from louvain_um.placement.arena_spec import MANAGED, ArenaSpec, device_bytes, guarded_bytes, size_of
from louvain_um.placement.auto import no_more_arrays
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.model.cost import blocking_factor
from louvain_um.placement.model.forecast import Forecast, Work, corrected, forecast
from louvain_um.placement.policy.policy import AUTO, Placement, Policy
from louvain_um.placement.reasons import Reason, explain, verdict

AGAIN: Final = 50
"""In the middle of a run `auto` chooses anew if what is left takes so many times as long: choosing
takes tens of milliseconds on a processor, during which the device waits."""

Declare = Callable[[bool], tuple[ArraySpec, ...]]
"""The arrays of a run, with scratch as small as it works with (True) or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a plan was asked for.

    Parameters
    ----------
    declare : callable
        ``declare(low_scratch)`` returns the arrays of the run.
    policy : Policy
    budget : int or None
        Bytes of the device that were allowed.
    limit : int
        Bytes of the device that there are: the budget, or less if the device has less.
    at : callable, optional
        ``at(arcs)`` returns the arrays, with low scratch, of a graph of the same shape with
        so many arcs.
    paging : callable
        ``paging(low_scratch)`` returns what the run takes besides where level 0's arcs come and go.
    pack : callable, optional
        ``pack(low_scratch)`` returns the arrays with level 0's arcs packed, if they can be.
    free : int, optional
        Bytes that the device has free for managed memory and all else together.
    """

    declare: Declare
    policy: Policy
    budget: int | None
    limit: int
    at: Callable[[int], Sequence[ArraySpec]] | None = None
    out_of_core: Declare = no_more_arrays
    targets24: Declare | None = None
    free: int | None = None

    @property
    def budgeted(self) -> bool:
        """Whether it is the budget that limits, not the device."""
        return self.budget is not None and self.budget <= self.limit


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan:
    """What `make_plan` decided, and all it knows about it.

    Parameters
    ----------
    arrays : tuple of ArraySpec
        What the run will ask for.
    chosen : Policy
        As it will be carried out: "auto" with what was chosen.
    layout : tuple of ArenaSpec
    paged : mapping of str to int
        Arenas of which only so many bytes are on the device at a time.
    device_bytes : int
        What will occupy the device.
    low_scratch : bool
        Scratch is as small as it works with.
    packed : bool
        Level 0's arcs take fewer bytes than they came in.
    expected : Forecast
        Seconds by stage and cause.
    work : Work
        The inputs of the prediction.
    request : Request
    like : str
        The policy whose layout "auto" took, if it took one's.
    planning_seconds : float
        What it took to make this plan.
    """

    arrays: tuple[ArraySpec, ...]
    chosen: Policy
    layout: tuple[ArenaSpec, ...]
    out_of_core: Mapping[str, int]
    device_bytes: int
    low_scratch: bool
    targets24: bool
    expected: Forecast
    work: Work
    request: Request
    like: str = ""
    planning_seconds: float = 0.0

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
        there = sum(int(placed(a, self.chosen).on_device * a.nbytes) for a in mine)
        return Placement("split", there / max(1, sum(a.nbytes for a in mine)))

    @cached_property
    def bytes_by_stage(self) -> dict[Stage, int]:
        """Bytes of all arrays that are alive in each stage, wherever they live."""
        return {s: sum(a.nbytes for a in self.arrays if s in a.stages) for s in STAGES}

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
        arrays = self.arrays if self.low_scratch else self.request.declare(True)
        return device_bytes_in_core(arrays, joint=True)

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
    def transfer_mode(self) -> Literal["fault", "prefetch"] | None:
        """How blocks come to the device: kernels fault on them, or they are sent for."""
        kinds = {spec.placement.kind for spec in self.layout if spec.name in self.out_of_core}
        return None if not kinds else "prefetch" if kinds == {"prefetched"} else "fault"

    @property
    def blocks(self) -> int:
        """Launches that a pass over level 0 takes: ⌊bytes mapped to the device ÷ room⌋ + 1."""
        return self.expected.blocks

    @property
    def blocking(self) -> int:
        """Pages a warp, 1 … 10, with which touching begins, where touching brings blocks."""
        return blocking_factor(self.host_bytes, self.work.machine)

    @property
    def host_bytes(self) -> int:
        """Bytes of host memory that the device is to read in place."""
        return sum(
            spec.capacity - device_bytes(spec.placement, spec.capacity) for spec in self.layout
        )

    @cached_property
    def reasons(self) -> dict[Group, Reason]:
        """Why each group lives where it does: φ, τ, σ and a sentence."""
        return explain(self)

    @cached_property
    def cliff_arcs(self) -> int:
        """Arcs of the largest graph of this shape that runs in core within the limit."""
        arcs = self.work.arcs
        if not arcs or device_bytes_in_core(self._at(1), joint=True) > self.limit:
            return 0
        low, high = 1, 2
        while device_bytes_in_core(self._at(high), joint=True) <= self.limit:
            low, high = high, 2 * high
        while high - low > max(1, low >> 12):
            middle = (low + high) // 2
            low, high = (
                (middle, high)
                if device_bytes_in_core(self._at(middle), joint=True) <= self.limit
                else (low, middle)
            )
        return low

    def _at(self, arcs: int) -> Sequence[ArraySpec]:
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
        there = {array.name for array in self.arrays}
        lost = [name for name in self.request.policy.arrays if name not in there]
        unused = f"policy {self.policy} places arrays that this run does not have: "
        return (
            f"machine {machine.name}: {machine.notes.get('profile', machine.notes.get('all', ''))}",
            f"kind of graph: {kind.name} ({kind.about}); {self.work.visited:.1f} passes of moving",
            *([unused + ", ".join(lost)] if lost else []),
            *(["level 0's targets take 24 bits instead of 32"] if self.targets24 else []),
            *self._beyond(),
        )

    def _beyond(self) -> tuple[str, ...]:
        """Say what becomes of managed memory that, with the plain one, exceeds what is free."""
        free = self.request.free
        managed = [spec for spec in self.layout if spec.placement.kind in MANAGED]
        if not managed or free is None:
            return ()
        wanted = sum(size_of(spec) for spec in self.layout if spec.placement.kind != "pinned")
        if free and wanted <= free:
            return ()
        few = f"of which {wanted:,} bytes, all else included, exceed the {free:,} that are free"
        why = few if free else "which the device does not have"
        if guarded_bytes(self.layout) <= free:
            return (f"some of the host's memory is no managed memory, {why}",)
        return (f"a run is refused: it needs managed memory, {why}; memory='auto' does without",)

    @property
    def verdict(self) -> str:
        """The plan in one sentence."""
        return verdict(self)

    def corrected(self, visited: Sequence[int], seconds: float, *, choosing: bool = True) -> Plan:
        """Return a plan that takes into account how the first sweeps of level 0 went.

        Parameters
        ----------
        visited : sequence of int
            Arcs that each sweep visited so far, or those of all sweeps as one figure, if moving
            is over.
        seconds : float
            What these sweeps took together.
        choosing : bool
            Whether another choice may be made, under "auto".

        Returns
        -------
        Plan
            With predictions corrected; under "auto", where enough is left to do for another
            choice to pay, perhaps with another one, which its layout shows.
        """
        from louvain_um.placement.planner import plan_for

        work = corrected(self.work, visited, seconds, self.expected)
        expected = forecast(
            self.arrays,
            self.chosen,
            self.layout,
            self.out_of_core,
            work,
            low_scratch=self.low_scratch,
        )
        told = replace(self, work=work, expected=expected)
        done = min(1.0, sum(visited) / max(work.visited * work.arcs, 1.0))
        left = _left_seconds(told, done)
        fixed = not choosing or self.request.policy.name != AUTO.name
        if fixed or left < AGAIN * self.planning_seconds:
            return told
        other = plan_for(self.request, work)
        pays = _left_seconds(other, done) + _moving_seconds(told, other) < left
        return other if pays else told

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data: what ``louvain-um plan --json`` prints."""
        from louvain_um.placement.plan_dict import to_dict

        return to_dict(self)


def _left_seconds(plan: Plan, done: float) -> float:
    """Return the seconds of a run after a share of its moving on level 0."""
    return plan.seconds - done * plan.stage_seconds.get("move", 0.0)


def _moving_seconds(plan: Plan, other: Plan) -> float:
    """Return what it takes to have a plan's arenas as another plan has them."""
    machine = plan.work.machine
    there = {spec.name: device_bytes(spec.placement, spec.capacity) for spec in plan.layout}
    moved = [device_bytes(s.placement, s.capacity) - there.get(s.name, 0) for s in other.layout]
    arriving = sum(nbytes for nbytes in moved if nbytes > 0)
    leaving = -sum(nbytes for nbytes in moved if nbytes < 0)
    return arriving / machine.prefetch_to_device + leaving / machine.prefetch_to_host
