"""Time of reading an array in place over the bus, by its access pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from louvain_um.core.array_spec import ArraySpec, Stage, Use
from louvain_um.core.ledger import Group
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.model.cost import LOW_SCRATCH_REMOTE, merged
from louvain_um.placement.policy.policy import Placement

SECTOR: Final = 32
"""Bytes that one access over the bus moves at least."""

SCATTER: Final[Mapping[Stage, float]] = {"aggregate": 1.2}
SCATTER_IN_ORDER: Final = 0.5
"""Share of a random access that each long row costs besides its bytes. Most passes take rows in the
order of their vertices, but not one after the other; aggregation takes them in that of communities.
Rows of 110 bytes come at 23 GB/s in random order, at 37 to 43 in order, and bytes alone would
come at 41 (`benchmarks/results/placement_stream_*`).
"""

WARP: Final = 32
LEAST_TILE: Final = 4
"""Threads that wait for an access together, and the fewest of them that read one row: short rows
are read side by side, so that each costs less. Moving over rows of 11 bytes took 1.0 ns for each,
over rows of 36 and 42 bytes 1.7 and 1.8, of which bytes are 0.8, 1.3 and 1.4 (`road`, `small_world`
and `geometric` of the zoo at 30 %, by an earlier version)."""

WHOLE: Final = 4
"""Bytes of a target that is not packed. Writing fewer to an element takes as long as writing so
many: weights of a byte cost aggregation as much as targets (`hosted_arrays_h200.json`)."""

TAKEN: Final = 0.8
"""Share of their reserved memory that coarse levels use: 0.79 on LFR 24, 0.96 on R-MAT 24. The
rest, at the end, costs nothing wherever it is."""

WORD: Final = 8
"""Bytes that are read together, at least, of an array without declared accesses."""

SEARCHED: Final = 1.9
"""How often aggregation reads what it looks up in scratch, per declared access: fitted
to `adv5` and `adv7` on LFR and R-MAT 24."""

WAITING: Final = 2
"""Exponent of how busy a link is, to give the share of its time that computing does not hide: 0.2
over NVLink, where two H200 lost 0.13 to 0.3 of it (`peer_h200.json`)."""

FLAGS: Final = 0.15
"""Cost of testing or setting a flag, by that of a read: no thread waits, many are set together.
With scratch on the host moving took 0.6 s on LFR 24 and 0.9 on R-MAT 24 (`policies_h200`)."""

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
    return min(1.0, busy**WAITING)


def rows_at_once(mean_degree: float) -> float:
    """Return how many rows a warp reads side by side."""
    return WARP / min(max(mean_degree, LEAST_TILE), WARP)


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
    hosted = max(0.0, TAKEN - there) if array.holds_coarse_arcs else 1 - there
    machine = machine.at(placement)
    pinned = placement.kind == "pinned"
    reads = machine.pinned_random_rate if pinned else machine.remote_random_rate
    atomics = machine.remote_atomic_rate * (reads / machine.remote_random_rate)
    arcs = array.holds_input_arcs or array.holds_coarse_arcs
    found = dict[Stage, float]()
    for (stage, use), count in accesses_of(array, scales).items():
        if use == "atomic":
            seconds = count / atomics
        elif use == "gather":
            seconds = count / reads
            if stage == "aggregate" and array.role == "offsets":
                # They do not change meanwhile: what the cache holds is not read again.
                seconds *= 1 - min(1.0, machine.cache_bytes / max(array.nbytes, 1))
        elif array.holds_input_arcs and mean_degree > 0:
            # A row ends and begins in the middle of a sector: most of one more is moved.
            row = array.itemsize * mean_degree + SECTOR - array.itemsize
            apart = SCATTER.get(stage, SCATTER_IN_ORDER) / reads / rows_at_once(mean_degree)
            seconds = count / mean_degree * (row / machine.remote_bandwidth + apart)
        else:
            least = WHOLE if stage == "aggregate" else 0
            seconds = count * max(array.itemsize, least) / machine.remote_bandwidth
        if use == "stream" and arcs:
            seconds *= exposed_share(machine)
        found[stage] = found.get(stage, 0.0) + hosted * seconds
    if "aggregate" in found:
        found["aggregate"] *= scales.pieces(array.group)
    return found


def overlaps(array: ArraySpec, machine: Machine) -> bool:
    """Whether reading arcs overlaps with computing on others, as `cost.together` says."""
    return array.by_length and exposed_share(machine) == 1
