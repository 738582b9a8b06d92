"""What a placement costs: the model of Hope, Nag and Qasem, term by term.

For a structure d, keeping it on the host pays when ``P_d = φ_d − τ_d − σ_d`` is negative:

* φ, the exposed latency of remote access: time of reading d over the bus, less what overlaps with
  the kernel's other work;
* τ, the copies saved: d need not be copied to the device, once if it fits, repeatedly if not;
* σ, the launches saved: those of a kernel that processes d block by block.

All figures of the machine come from `louvain_um.placement.machine.machine.Machine`; rates that were
fitted, and what to, are in `machine/h200.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from louvain_um.core.array_spec import ArraySpec, Stage, Use
from louvain_um.core.ledger import Group
from louvain_um.placement.hardware import BLOCK, PAGE, SECTOR, WARP
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import rate
from louvain_um.placement.policy.policy import Placement

HIDDEN: Final = rate("hidden")
"""Share of the shorter of computing and reading over the bus that overlaps with the longer: small
if part of the arcs is on the host, since a step waits for its slowest rows."""

BATCHES_A_BLOCK: Final = rate("batches_a_block")
"""Fault batches per 2 MiB moved by page faults."""

HOST_FILL: Final = rate("host_fill")
"""Bytes/s at which several threads make fresh pages of host memory."""

GIVEN_FILL: Final = rate("given_fill")
"""Bytes/s at which a graph's arrays are written into memory that host and device share."""

PAGEABLE: Final = rate("pageable")
"""Bytes/s at which a graph's arrays are copied to the device at most, since they are not in
page-locked memory."""

PACKING: Final = rate("packing")
"""Arcs/s that several threads pack."""

FRESH: Final = rate("fresh")
"""Rate at which prefetching creates empty pages on the device, relative to its bandwidth."""

SORTED_OVERLAP: Final = rate("sorted_overlap")
"""Exponent p of ``(compute^p + bus^p)^(1/p)``, the time of both with sorted rows. They overlap
because rows are sorted by length, and those on the host are the longest: some warps wait for these
while others are at work on the rest."""

PACKED_MOVE: Final = rate("packed_move")
"""Factor on the time of moving and refining with packed targets, wherever these are."""

REMAPPED: Final = rate("remapped")
"""Seconds for each page that changes sides while level 0 is aggregated, what waits for it included.
"""

LOW_SCRATCH_AGGREGATE: Final = rate("low_scratch_aggregate")
LOW_SCRATCH_REMOTE: Final = rate("low_scratch_remote")
"""Factors on the time of aggregation with low scratch, and on its reads over the bus with the graph
on the host."""

MERGED: Final = rate("merged")
MERGING: Final[tuple[Group, ...]] = ("scratch", "hash")
"""How often scratch and hash are used again if all arcs move in blocks; less if some stay. The
rows of each block are merged into those of earlier blocks."""

LOW_SCRATCH_MERGED: Final = rate("low_scratch_merged"), rate("low_scratch_merged_blocks")
"""The same with low scratch on the host: the first figure always, the second added if all arcs
move in blocks. Low scratch splits each block and each merge into many pieces, and the grid
synchronizes through host memory after each."""


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


def overlapped(first: float, second: float, exponent: float) -> float:
    """Return ``(a^p + b^p)^(1/p)``, the seconds of two things that are done at the same time."""
    most = max(first, second)
    if not most:
        return 0.0
    both: float = (1 + (min(first, second) / most) ** exponent) ** (1 / exponent)
    return most * both


def together(core: float, remote: float, sorted_rows: float = 0.0) -> float:
    """Return seconds of a stage that computes and reads over the bus at the same time."""
    both = overlapped(core, sorted_rows, SORTED_OVERLAP) if sorted_rows else core
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


SCATTER: Final[Mapping[Stage, float]] = {"aggregate": rate("scatter_aggregate")}
SCATTER_IN_ORDER: Final = rate("scatter_in_order")
"""Share of a random access that each long row costs besides its bytes. Most passes take rows in the
order of their vertices, but not one after the other; aggregation takes them in that of communities.
"""

LEAST_TILE: Final = 4
"""Fewest threads that read one row: short rows are read side by side, so that each costs less."""

WHOLE: Final = 4
"""Bytes of a target that is not packed. Writing fewer to an element takes as long as writing so
many."""

TAKEN: Final = rate("taken")
"""Share of their reserved memory that coarse levels use. The rest, at the end, costs nothing
wherever it is."""

WORD: Final = 8
"""Bytes that are read together, at least, of an array without declared accesses."""

SEARCHED: Final = rate("searched")
"""How often aggregation reads what it looks up in scratch, per declared access."""

WAITING: Final = rate("waiting")
"""Exponent of how busy a link is, to give the share of its time that computing does not hide."""

FLAGS: Final = rate("flags")
"""Cost of testing or setting a flag, by that of a read: no thread waits, many are set together."""

UNSEEN: Final[tuple[Stage, ...]] = ("move", "refine", "aggregate", "coarse", "fetch")
UNSEEN_TIMES: Final = 7
"""An array without declared accesses is assumed to be read at random, word by word, so often in
each of these stages. This errs towards keeping it on the device."""


@dataclass(frozen=True, slots=True)
class Scales:
    """By how much a graph, and how it is run, differ from what arrays declare for any."""

    moving: float = 1.0
    rows: float = 1.0
    hubs: float = 1.0
    refines: bool = True
    adding: float = 1.0
    coming: float = 0.0
    low_scratch: bool = False
    in_pages: bool = False

    def pieces(self, group: Group) -> float:
        """Return the factor for aggregation: blocks are merged, low scratch is reused more."""
        more = merged(group, self.coming, low_scratch=self.low_scratch)
        return (1 + more) * (LOW_SCRATCH_REMOTE if self.low_scratch else 1)

    def of(self, array: ArraySpec, stage: Stage, use: Use) -> float:
        """Return the factor for accesses of an array."""
        labels = array.role == "labels" and array.level == 0
        along = (array.holds_input_arcs and use == "stream") or labels
        tables = array.group == "hash"
        if stage == "move":
            if array.role == "next_active" or (array.role == "active" and use == "gather"):
                return self.moving * FLAGS
            return self.moving * (self.rows if along else self.hubs if tables else 1.0)
        if stage != "aggregate":
            return 1.0
        scratch = array.group == "scratch"
        searched = SEARCHED if scratch and use == "gather" else 1.0
        return searched * (self.adding if along or tables or scratch else 1.0)


AS_DECLARED: Final = Scales()


def accesses_of(array: ArraySpec, scales: Scales = AS_DECLARED) -> dict[tuple[Stage, Use], float]:
    """Return an array's element accesses."""
    if not array.accesses:
        # Bytes are cut into arrays of words.
        count = float(UNSEEN_TIMES * array.nbytes / max(array.itemsize, WORD))
        stages = (s for s in UNSEEN if s in array.stages and (scales.refines or s != "refine"))
        return {(stage, "gather"): count for stage in stages}
    return {
        (stage, use): count * scales.of(array, stage, use)
        for (stage, use), count in array.accesses.items()
    }


def exposed_share(machine: Machine) -> float:
    """Return the share of the seconds of reading arcs in place that computing does not hide."""
    # With each arc goes a random read of the device: arcs are used no faster than that.
    busy = WHOLE * machine.device_random_rate / machine.remote_bandwidth
    return float(min(1.0, busy**WAITING))


def remote_seconds(
    array: ArraySpec,
    placement: Placement,
    machine: Machine,
    mean_degree: float,
    scales: Scales = AS_DECLARED,
) -> dict[Stage, float]:
    """Return seconds per stage that the bus, or the link to a peer, is busy for an array."""
    there = placement.on_device
    if there == 1:
        return {}
    on_host = max(0.0, TAKEN - there) if array.holds_coarse_arcs else 1 - there
    machine = machine.at(placement)
    arcs = array.holds_input_arcs or array.holds_coarse_arcs
    paged = scales.in_pages and (arcs or (array.role == "offsets" and array.level == 0))
    paged = paged and machine.pinned_reach_bytes > 0
    found = dict[Stage, float]()
    for (stage, use), count in accesses_of(array, scales).items():
        # Other stages take rows in the order of vertices, which are close together then.
        pinned = placement.kind == "pinned" or (paged and stage == "aggregate")
        reads = machine.random_rate(on_host * array.nbytes, pinned=pinned)
        if use == "atomic":
            seconds = count / (machine.remote_atomic_rate * (reads / machine.remote_random_rate))
        elif use == "gather":
            seconds = count / reads
            if stage == "aggregate" and array.role == "offsets":
                # They do not change meanwhile: what the cache holds is not read again.
                seconds *= 1 - min(1.0, machine.cache_bytes / max(array.nbytes, 1))
        elif array.holds_input_arcs and mean_degree > 0:
            # A row ends and begins in the middle of a sector: most of one more is moved.
            row = array.itemsize * mean_degree + SECTOR - array.itemsize
            side_by_side = WARP / min(max(mean_degree, LEAST_TILE), WARP)  # rows that a warp reads
            scattered = SCATTER.get(stage, SCATTER_IN_ORDER) / reads / side_by_side
            seconds = count / mean_degree * (row / machine.remote_bandwidth + scattered)
        else:
            least = WHOLE if stage == "aggregate" else 0
            seconds = count * max(array.itemsize, least) / machine.remote_bandwidth
        if use == "stream" and arcs:
            seconds *= exposed_share(machine)
        found[stage] = found.get(stage, 0.0) + on_host * seconds
    if "aggregate" in found:
        found["aggregate"] *= scales.pieces(array.group)
    return found


def overlaps(array: ArraySpec, machine: Machine) -> bool:
    """Whether reading arcs overlaps with computing on others, as `cost.together` says."""
    return array.by_length and exposed_share(machine) == 1
