"""Seconds of any program under any placement: the terms φ, τ and σ of Hope, Nag and Qasem.

A phase computes, uses device memory, and reads over the bus. The first two overlap wholly, as in a
roofline; the bus overlaps the more, the more there is to compute (`joined`), so that the exposed
latency φ of an array on the host tends to 0 with growing operational intensity. Managed memory pays
for the pages that are touched, once each time the host has written them, and is local from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from louvain_um.placement.hardware import BLOCK, LARGE_PAGE, SECTOR
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import rate, rates
from louvain_um.placement.model.cost import (
    BATCHES_A_BLOCK,
    FRESH,
    HOST_FILL,
    PAGEABLE,
    Estimate,
    launches,
    overlapped,
)
from louvain_um.placement.policy.policy import Kind, Placement
from louvain_um.placement.program.program import Atomic, Phase, Program, ProgramArray, Stream

OVERLAP: Final = rate("overlap")
"""Exponent p of ``(work^p + bus^p)^(1/p)``, the seconds of a phase that works and reads over the
bus at the same time. Where no thread waits for others, the longer hides the shorter."""

GIVEN: Final = rates("given")
"""Bytes/s, by kind of placement, at which several threads bring given values where they live, to
which the time of freeing the memory is added; of a split, the part on the host."""

MAKING: Final = rates("making")
"""Seconds that each array takes in addition."""

FETCHED: Final = rate("fetched")
"""Bytes/s at which several threads bring results from the device into fresh memory of the host."""

LEAST_MADE: Final = rate("least_made")
"""Bytes of the smallest array that `MAKING` was fitted to: below, it falls in proportion."""


def joined(work: float, bus: float, *, overlap: bool = True) -> float:
    """Return the seconds of computing and using device memory (`work`) while reading the bus."""
    return overlapped(work, bus, OVERLAP) if overlap else work + bus


@dataclass(frozen=True, slots=True)
class DemandPages:
    """What demand paging brings for an array, all of it once, and the seconds it takes."""

    nbytes: float
    blocks: float
    fault_groups: float
    seconds: float

    @property
    def unique(self) -> float:
        """Pages of 64 KiB that are touched at all: the driver brings no less of one."""
        return self.nbytes / LARGE_PAGE


class Use(NamedTuple):
    """What a phase's accesses of an array take, wherever all of it lies."""

    name: str
    local: float
    on_host: tuple[float, float]
    pinned: tuple[float, float]
    managed: tuple[float, float]

    def of(self, placement: Placement) -> tuple[float, float]:
        """Return the seconds to and from the device for what a placement keeps elsewhere."""
        if placement.kind in ("split", "peer"):
            return self.on_host
        return self.pinned if placement.kind == "pinned" else self.managed


@dataclass(frozen=True, kw_only=True)
class ProgramCost:
    """Seconds of a program on a machine."""

    program: Program
    machine: Machine
    scale: Mapping[str, float] = field(default_factory=dict)
    left: Mapping[str, float] = field(default_factory=dict)
    here: Mapping[str, Placement] = field(default_factory=dict)

    def uses(self, phase: Phase) -> list[Use]:
        """Return what a phase accesses, one entry per array."""
        return self._uses[phase.name]

    @cached_property
    def _uses(self) -> dict[str, list[Use]]:
        found: dict[str, list[Use]] = {phase.name: [] for phase in self.program.phases}
        for array in self.program.arrays:
            for name in self.program.phases_of(array):
                if self.program.accesses(array, name):
                    use = self._use(array, self.program.phase(name))
                    if use.local or any(use.on_host):
                        found[name].append(use)
        return found

    def _use(self, array: ProgramArray, phase: Phase) -> Use:
        return Use(
            array.name,
            self._local_whole(array, phase),
            self._bus_whole(array, phase, Placement("split")),
            self._bus_whole(array, phase, Placement("pinned")),
            self._bus_whole(array, phase, Placement("host_mapped")),
        )

    def _local_whole(self, array: ProgramArray, phase: Phase) -> float:
        """Return seconds of device memory for a phase's accesses of an array that lies there."""
        found = 0.0
        for access, _ in self.program.accesses(array, phase.name):
            count = access.elements(array.size)
            if isinstance(access, Stream):
                found += count * array.itemsize / self.machine.device_bandwidth
            elif isinstance(access, Atomic):
                found += count / self.machine.device_atomic_rate
            else:
                found += count / self.machine.device_random_rate
        return found

    def _bus_whole(
        self, array: ProgramArray, phase: Phase, placement: Placement
    ) -> tuple[float, float]:
        """Return seconds of the bus, to and from the device, for accesses of an array there."""
        machine, ways = self.machine.at(placement), [0.0, 0.0]
        pinned = placement.kind == "pinned"
        reads = machine.pinned_random_rate if pinned else machine.remote_random_rate
        for access, writes in self.program.accesses(array, phase.name):
            count = access.elements(array.size)
            rate = machine.remote_write_bandwidth if writes else machine.remote_bandwidth
            in_order = count * array.itemsize / rate
            if isinstance(access, Stream):
                ways[writes] += in_order
            elif isinstance(access, Atomic):
                seconds = count / (machine.remote_atomic_rate * reads / machine.remote_random_rate)
                ways = [way + seconds for way in ways]
            else:
                ways[writes] += max(count / reads, in_order if array.itemsize > SECTOR else 0.0)
        return ways[0], ways[1]

    def paged(self, array: ProgramArray) -> DemandPages:
        """Return what demand paging costs an array after the host has written it."""
        pages, blocks = array.nbytes / LARGE_PAGE, array.nbytes / BLOCK
        missing, untouched = 1.0, 1.0
        for phase in self.program.phases:
            for access, _ in self.program.accesses(array, phase.name):
                missing *= 1 - min(1.0, access.touched(pages) / pages) if pages else 0.0
                untouched *= 1 - min(1.0, access.touched(blocks) / blocks) if blocks else 0.0
        nbytes = array.nbytes * (1 - missing)
        touched = max(blocks * (1 - untouched), nbytes / BLOCK)
        machine = self.machine
        batches = BATCHES_A_BLOCK * nbytes / BLOCK + (1.0 if nbytes else 0.0)
        seconds = nbytes / machine.migrate_to_device + (
            touched * machine.block_service_seconds + batches * machine.fault_batch_seconds
        )
        return DemandPages(nbytes, touched, batches, seconds)

    @cached_property
    def _arrivals(self) -> dict[tuple[str, Placement], float]:
        return {}

    def arrival(self, array: ProgramArray, placement: Placement) -> float:
        """Return seconds of moving an array between host and device in the whole program."""
        key = array.name, placement
        found = self._arrivals.get(key)
        if found is None:
            found = self._arrivals[key] = self._arrival(array, placement)
        return found

    def split_arrival(self, array: ProgramArray, share: float) -> float:
        """Return the same for a split with this share on the device."""
        if array.name in self.here:
            return self._arrival(array, Placement("split", share))
        ends = self._splits.get(array.name)
        if ends is None:
            ends = self._splits[array.name] = tuple(
                self._arrival(array, Placement("split", each)) for each in (0.0, 1.0)
            )
        return ends[0] + share * (ends[1] - ends[0])

    @cached_property
    def _splits(self) -> dict[str, tuple[float, ...]]:
        return {}

    def _arrival(self, array: ProgramArray, placement: Placement) -> float:
        machine, kind, nbytes = self.machine, placement.kind, float(array.nbytes)
        if array.name in self.here:
            more = placement.on_device - self.here[array.name].on_device
            rate = machine.copy_to_device if more > 0 else machine.copy_to_host
            return (_making(kind, nbytes) if more else 0.0) + abs(more) * nbytes / rate
        # What the host writes in place is made before the program begins.
        begun = not nbytes or (array.from_host and not array.given)
        making = 0.0 if begun else _making(kind, nbytes)
        fresh = nbytes / (FRESH * machine.device_bandwidth)
        filled = nbytes / GIVEN[kind] if array.given else self._fresh_on_host(array)
        up, down = array.from_host, array.to_host
        if kind == "split":
            share = placement.fraction
            here = share * self.arrival(array, Placement("device"))
            return making + here + (1 - share) * filled
        if kind in ("host_mapped", "pinned"):
            return making + filled
        if kind in ("device", "peer"):
            copying = PAGEABLE if begun else GIVEN[kind]
            back = PAGEABLE if begun else FETCHED
            return nbytes * (
                up / min(copying, machine.copy_to_device) + down / min(back, machine.copy_to_host)
            )
        if kind == "prefetched":
            written = filled + up * nbytes / machine.prefetch_to_device
            back = down * nbytes / min(FETCHED, machine.prefetch_to_host)
            return making + (written if up else fresh) + back
        pages = self.paged(array)
        if kind == "managed":
            first = filled + up * pages.seconds
            back = down * pages.nbytes / machine.prefetch_to_host
            return (first if up else pages.nbytes / machine.migrate_to_device) + back
        # What is only read keeps its copy on the host.
        back = down * pages.nbytes / machine.prefetch_to_host if array.written else 0.0
        copying = 1 / machine.prefetch_duplicate - 1 / machine.migrate_to_device
        copies = max(up, 1.0) * (pages.seconds + copying * pages.nbytes)
        return making + filled + copies + back

    def _fresh_on_host(self, array: ProgramArray) -> float:
        """Return seconds of making pages of host memory; what the host writes has them."""
        return 0.0 if array.from_host else array.nbytes / HOST_FILL

    def phase_seconds(self, phase: Phase, placements: Mapping[str, Placement]) -> float:
        """Return seconds of all runs of a phase."""
        local = up = down = 0.0
        for use in self.uses(phase):
            placement = placements[use.name]
            there = 1 - placement.on_device
            local += (1 - there) * use.local
            if there:
                to_device, back = use.of(placement)
                up += there * to_device
                down += there * back
        work = max(phase.operations / self.machine.operation_rate, local)
        # The bus carries both ways at the same time.
        seconds = joined(work, max(up, down), overlap=phase.overlap)
        starts = phase.passes * phase.launches * self.machine.launch_seconds
        times = self.scale.get(phase.name, 1.0) * self.left.get(phase.name, 1.0)
        return times * (seconds + starts)

    def phases(self, placements: Mapping[str, Placement]) -> dict[str, float]:
        """Return seconds of each phase."""
        return {p.name: self.phase_seconds(p, placements) for p in self.program.phases}

    def seconds(self, placements: Mapping[str, Placement]) -> float:
        """Return seconds of the program."""
        moving = sum(self.arrival(a, placements[a.name]) for a in self.program.arrays)
        return sum(self.phases(placements).values()) + moving

    def estimate(
        self,
        array: ProgramArray,
        placements: Mapping[str, Placement],
        room: int,
        host: Placement | None = None,
    ) -> Estimate:
        """Return φ, τ and σ of keeping one array on the host, the others as they are placed."""
        # On demand, in managed memory, τ is the copies less the fault groups and unique pages.
        if host is None:
            host = placements[array.name]
            if host.kind not in ("host_mapped", "pinned"):
                host = Placement("host_mapped")
        paged = host.kind == "managed"
        here = {**placements, array.name: Placement("device")}
        there = {**placements, array.name: host}
        phi = sum(self.phases(there).values()) - sum(self.phases(here).values())
        mine = [self.program.phase(name) for name in self.program.phases_of(array)]
        runs = sum(phase.passes for phase in mine)
        rounds = launches(array.nbytes, max(room, BLOCK))
        coming = self.arrival(array, host)
        given = array.given or array.name in self.here or paged
        fresh = 0.0 if given else self._fresh_on_host(array)
        saved = self.arrival(array, Placement("device")) - coming + fresh
        if rounds > 1:
            # What does not fit has to come again for every pass.
            rate = min(PAGEABLE, self.machine.copy_to_device)
            saved = max(saved, runs * array.nbytes / rate - (coming if paged else 0.0))
        return Estimate(
            phi=phi, tau=saved, sigma=runs * (rounds - 1) * self.machine.launch_seconds - fresh
        )


def _making(kind: Kind, nbytes: float) -> float:
    """Return seconds that an array's memory takes in addition to filling it."""
    return MAKING.get(kind, 0.0) * min(1.0, nbytes / LEAST_MADE)
