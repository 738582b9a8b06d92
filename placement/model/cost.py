"""What a placement costs: the model of Hope, Nag and Qasem, term by term.

For a structure d, keeping it on the host pays when ``P_d = φ_d − τ_d − σ_d`` is negative:

* φ, the exposed latency of remote access: time of reading d over the bus, less what overlaps with
  the kernel's other work;
* τ, the copies saved: d need not be copied to the device, once if it fits, repeatedly if not;
* σ, the launches saved: those of a kernel that processes d block by block.

All figures of the machine come from `louvain_um.placement.machine.machine.Machine`; the constants
below are this model's own, each with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from louvain_um.core.array_spec import Stage
from louvain_um.core.ledger import Group
from louvain_um.placement.arena_spec import BLOCK
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.policy.policy import Placement

HIDDEN: Final = 0.1
"""Share of the shorter of computing and reading over the bus that overlaps with the longer. It is
small if part of the arcs is on the host, since a step waits for its slowest rows (`policies_h200`:
on LFR 24 and R-MAT 24 with half or more of the arcs hosted, the sum is right to within 10 %)."""

BATCHES_A_BLOCK: Final = 2.33
"""Fault batches per 2 MiB moved by page faults; fitted: 12.9 GB/s measured on an H200."""

HOST_FILL: Final = 20.8e9
"""Bytes/s at which several threads make fresh pages of host memory, measured beside an H200."""

GIVEN_FILL: Final = 6.5e9
"""Bytes/s at which a graph's arrays are written into memory that host and device share: LFR 24's
2.7 GB took 0.43 to 0.46 s under zero_copy (`policies_h200`)."""

PAGEABLE: Final = 7.5e9
"""Bytes/s at which a graph's arrays are copied to the device at most, since they are not in
page-locked memory: LFR 24's 2.7 GB took 0.34 s, R-MAT 24's 2.2 GB 0.32 (`policies_h200`)."""

PACKING: Final = 5e8
"""Arcs/s that several threads pack: LFR and R-MAT 24 loaded in 0.7 s instead of 0.3 with targets of
24 bits (`policies_h200`), graphs of 112 M arcs take 0.13 s longer since targets take as many bytes
as their neighbours need (`zoo_split_h200`, `zoo_packed_h200`; two hosts)."""

FRESH: Final = 0.083
"""Rate at which prefetching creates empty pages on the device, relative to its bandwidth: 362 of
4,360 GB/s on an H200."""

BESIDE: Final = 3.5
"""Exponent p of ``(compute^p + bus^p)^(1/p)``, the time of both with sorted rows. They overlap
because rows are sorted by length, and the hosted ones are the longest: some warps wait for these
while others are at work on the rest. Fitted to LFR 24 and R-MAT 24 with 25, 50, 75, 88 and 100 % of
the arcs hosted (`hosted_arrays_h200.json`), by kernels half of whose blocks began with the shortest
rows; with all in the same order five kinds of graph took as long with 30 % of the memory
(`sorted_rows_h200.json`).
"""

PACKED_MOVE: Final = 1.15
"""Factor on the time of moving and refining with packed targets, wherever these are: with all of
level 0 on the device and targets of 24 bits, moving on it took 1.10 times as long on LFR 24, 1.20
times on R-MAT 24 (`as_beside_the_host` in `peer_h200.json`)."""

REMAPPED: Final = 400e-6
"""Seconds for each page that changes sides while level 0 is aggregated, what waits for it included;
fitted to the same runs. Unmapping and mapping it take 45 to 65 µs on a device (`pages_h200.json`).
"""

LOW_SCRATCH_AGGREGATE: Final = 1.2
LOW_SCRATCH_REMOTE: Final = 1.3
"""Factors on the time of aggregation with low scratch, and on its reads over the bus with the graph
on the host; fitted to LFR 24 and R-MAT 24."""

MERGED: Final = 11
MERGING: Final[tuple[Group, ...]] = ("scratch", "hash")
"""How often scratch and hash are used again if all arcs move in blocks; less if some stay. The
rows of each block are merged into those of earlier blocks. With one of the groups on the host and
44 to 98 % of the arcs out of core, aggregation took 5 to 15 times as long as with both on the GPU
(`policies_h200`: `adv3`, `adv5` and `adv8` on LFR 20, LFR 24 and R-MAT 24)."""

LOW_SCRATCH_MERGED: Final = 4, 6
"""The same with low scratch on the host: the first figure always, the second added if all arcs
move in blocks. Low scratch splits each block and each merge into many pieces, and the grid
synchronizes through host memory after each (`small_scratch_h200`)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The terms of one structure, in seconds."""

    phi: float = 0.0
    tau: float = 0.0
    sigma: float = 0.0

    @property
    def net(self) -> float:
        """P_d: what host placement adds to the run, in seconds; below 0 it pays."""
        return self.phi - self.tau - self.sigma

    @property
    def host_pays(self) -> bool:
        """Whether the structure is better kept on the host."""
        return self.net < 0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.phi + other.phi, self.tau + other.tau, self.sigma + other.sigma)


def fault_rate(machine: Machine) -> float:
    """Return bytes/s at which page faults move pages to the device."""
    each = machine.block_service_seconds + BATCHES_A_BLOCK * machine.fault_batch_seconds
    return BLOCK / (BLOCK / machine.migrate_to_device + each)


def transfer_seconds(nbytes: int, placement: Placement, machine: Machine) -> float:
    """Return seconds to move so many bytes to the device, and as many others off it."""
    arriving = {
        "managed": fault_rate(machine),
        "prefetched": machine.prefetch_to_device,
        "read_mostly": machine.prefetch_duplicate,
    }[placement.kind]
    return nbytes / arriving + nbytes / machine.prefetch_to_host


def copying_rate(machine: Machine) -> float:
    """Return bytes/s at which a graph's arrays are copied to the device."""
    return min(PAGEABLE, machine.copy_to_device)


def arrival_seconds(nbytes: int, placement: Placement, machine: Machine, *, given: bool) -> float:
    """Return seconds until the bytes of an arena are where they are to live, fresh or `given`."""
    kind = placement.kind
    copying = copying_rate(machine)
    filling = GIVEN_FILL if given else HOST_FILL
    if kind == "device":
        return nbytes / copying if given else 0.0
    if kind in ("host_mapped", "pinned"):
        return nbytes / filling
    if kind == "peer":
        return nbytes / copying if given else 0.0
    if kind == "split":
        there = nbytes * placement.fraction
        rate = copying if given else FRESH * machine.device_bandwidth
        return there / rate + (nbytes - there) / filling
    if kind == "prefetched":
        return nbytes / (machine.prefetch_to_device if given else FRESH * machine.device_bandwidth)
    if not given:
        return nbytes / machine.migrate_to_device
    return nbytes / (fault_rate(machine) if kind == "managed" else machine.prefetch_duplicate)


def together(core: float, remote: float, sorted_rows: float = 0.0) -> float:
    """Return seconds of a stage that computes and reads over the bus at the same time."""
    both = max(core, sorted_rows)
    if sorted_rows:
        both *= (1 + (min(core, sorted_rows) / both) ** BESIDE) ** (1 / BESIDE)
    return max(both, remote) + (1 - HIDDEN) * min(both, remote)


def exposed(
    core: Mapping[Stage, float], remote: Mapping[Stage, float], *, sorted_rows: bool = False
) -> float:
    """Return φ: what reading over the bus adds to stages that compute for so long."""
    found = 0.0
    for stage, seconds in remote.items():
        alone = core.get(stage, 0.0)
        found += (
            together(alone, 0.0, seconds) if sorted_rows else together(alone, seconds)
        ) - alone
    return found


def add(parts: Iterable[Mapping[Stage, float]]) -> dict[Stage, float]:
    """Return the sums of seconds, stage by stage."""
    found = dict[Stage, float]()
    for part in parts:
        for stage, seconds in part.items():
            found[stage] = found.get(stage, 0.0) + seconds
    return found


def merged(group: Group, coming: float, *, low_scratch: bool) -> float:
    """Return how many more accesses aggregation makes to a group's arrays out of core."""
    if not coming or group not in MERGING:
        return 0.0
    if low_scratch and group == "scratch":
        always, more = LOW_SCRATCH_MERGED
        return always + more * coming
    return MERGED * coming


def launches(device_mapped: int, room: int) -> int:
    """Return k, the launches needed to go over data mapped to the device: ⌊Σ bytes ÷ room⌋ + 1."""
    return device_mapped // max(room, 1) + 1


PAGE: Final = 4096
FACTORS: Final = range(1, 11)
"""Blocking factors, pages a warp, that the paper found to pay; the best were 2 to 5."""

BEST_FACTORS: Final = (2, 5)


def blocking_factor(nbytes: int, machine: Machine) -> int:
    """Return the initial pages per warp: as many as give every warp at least one."""
    warps = machine.faults_in_flight * (PAGE // 128)
    low, high = BEST_FACTORS
    return max(low, min(high, nbytes // PAGE // max(warps, 1)))


def tune(measure: Callable[[int], float], begin: int = BEST_FACTORS[0]) -> int:
    """Return the blocking factor with the least measured seconds, walking downhill from `begin`."""
    seen = dict[int, float]()

    def seconds(factor: int) -> float:
        if factor not in seen:
            seen[factor] = measure(factor) if factor in FACTORS else float("inf")
        return seen[factor]

    best = min(max(begin, FACTORS[0]), FACTORS[-1])
    while True:
        better = min((best, best - 1, best + 1), key=seconds)
        if better == best:
            return best
        best = better
