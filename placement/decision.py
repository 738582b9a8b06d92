"""What was decided for a run, and the figures that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage, peak_bytes
from louvain_um.core.ledger import GROUPS, Group
from louvain_um.placement.arena_spec import ArenaSpec, device_bytes
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.migration.room import PageBudget
from louvain_um.placement.model.cost import blocking_factor
from louvain_um.placement.model.forecast import Forecast
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.policy.candidate import no_more_arrays
from louvain_um.placement.policy.policy import AUTO, Placement, Policy

Declare = Callable[[bool], tuple[ArraySpec, ...]]
"""Returns the arrays of a run, with low scratch (True) or default scratch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a plan was asked for."""

    declare: Declare
    policy: Policy
    budget: int | None
    limit: int
    at: Callable[[int], Sequence[ArraySpec]] | None = None
    out_of_core: Declare = no_more_arrays
    compact: Declare | None = None
    free: int | None = None
    kept: tuple[float, float, float] | None = None

    @property
    def budgeted(self) -> bool:
        """Whether it is the budget that limits, not the device."""
        return self.budget is not None and self.budget <= self.limit


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Decision:
    """Arrays, placements, memory and predicted time of a run."""

    arrays: tuple[ArraySpec, ...]
    chosen: Policy
    layout: tuple[ArenaSpec, ...]
    out_of_core: Mapping[str, int]
    device_bytes: int
    low_scratch: bool
    compact: bool
    expected: Forecast
    work: Workload
    request: Request
    like: str = ""
    planning_seconds: float = 0.0
    in_pages: bool = False

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
        return {group: self._placement(group) for group in GROUPS}

    def _placement(self, group: Group) -> Placement:
        mine = [a for a in self.arrays if a.group == group and a.nbytes and not a.device_only]
        found = {placed(array, self.chosen) for array in mine}
        if self.in_pages and any(array.holds_input_arcs for array in mine):
            share = min(self._share(group, stage) for stage in STAGES)
            return Placement("split", share) if share < 1 else Placement("device")
        if len(found) <= 1:
            return found.pop() if found else self.chosen.placements[group]
        there = sum(int(placed(a, self.chosen).on_device * a.nbytes) for a in mine)
        return Placement("split", there / max(1, sum(a.nbytes for a in mine)))

    def _share(self, group: Group, stage: Stage) -> float:
        """Return the share of a group that fits the device in a stage, beside all else there."""
        mine = others = there = 0
        for array in self.arrays:
            if stage in array.stages:
                here = int(placed(array, self.chosen).on_device * array.nbytes)
                if array.group == group:
                    mine, there = mine + array.nbytes, there + here
                else:
                    others += here
        return min(there, max(0, self.limit - others)) / mine if mine else 1.0

    @cached_property
    def _by_name(self) -> dict[str, ArraySpec]:
        return {array.name: array for array in self.arrays}

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
    def in_core_bytes(self) -> int:
        """Bytes of the device that the run takes in core: 100 % of budgets and oversubscription."""
        return device_bytes_in_core(self.request.declare(False), apart=True)

    @cached_property
    def device_in_core(self) -> int:
        """Bytes of the device with which everything would be there, scratch as small as can be."""
        arrays = self.arrays if self.low_scratch else self.request.declare(True)
        return device_bytes_in_core(arrays, joint=True)

    @property
    def fits(self) -> bool:
        """Whether everything could be in plain device memory within the limit."""
        least = min(device_bytes_in_core(self.arrays), self.device_in_core)
        if self.policy == AUTO.name and self.request.compact:
            least = min(least, device_bytes_in_core(self.request.compact(True), joint=True))
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
        apart = [s for s in self.layout if not (s.in_pages or s.on_demand) and s.group is not None]
        fixed = sum(device_bytes(s.placement, s.capacity) for s in apart)
        shared = sum(s.capacity for s in self.layout if s.group is None)
        # Two levels, each with as many arcs as level 1 at most, while one is made of the other.
        kept = self.request.kept[2] if self.request.kept else 1.0
        arcs = [a for a in self.arrays if a.holds_coarse_arcs and a.level == 1]
        whole = int(2 * int(kept * self.work.arcs) * sum(a.itemsize for a in arcs))
        device = self.limit - fixed
        # Members of communities may leave for the rows that are made of them.
        aside = sum(a.nbytes for a in self.arrays if a.role == "members")
        later = max(0, whole - (device - shared)) + device // 4 + aside + self._on_demand
        return PageBudget(device=device, later=later)

    @property
    def transfer_mode(self) -> Literal["fault", "prefetch"] | None:
        """How blocks get to the device: by page faults of a kernel, or by prefetching."""
        kinds = {spec.placement.kind for spec in self.layout if spec.name in self.out_of_core}
        return None if not kinds else "prefetch" if kinds == {"prefetched"} else "fault"

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
