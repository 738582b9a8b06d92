"""Memory, messages and seconds of a run on ranks or devices, from the size of a graph alone.

What is counted (bytes of arrays, moves, sweeps, messages) follows from the algorithm and three
kinds of graph; what takes time, from rates. All of it is a model of level 0, where nearly all
arcs are.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final

from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.distributed.partition import BINS
from louvain_um.errors import OptionError, check_choice
from louvain_um.gpu.ranks.share import arena_bytes
from louvain_um.graph.limits import MAX_VERTICES
from louvain_um.placement.machine.profiles import rate, rates

DEFAULT_KIND: Final = "community_structured"
MAX_ARCS: Final = 1 << 50


class PlanOfOne:
    """A mixin of dataclasses: what one rank or device takes, with `nbytes` and `seconds`."""

    __slots__ = ()

    nbytes: Any
    seconds: Any

    @property
    def total_seconds(self) -> float:
        """Seconds of Louvain."""
        return float(sum(self.seconds.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        plain: Any = self
        return {**asdict(plain), "bytes": self.nbytes, "total_seconds": self.total_seconds}


def counts_to(most: int) -> list[int]:
    """Return 1, 2, 4, … and `most`."""
    return sorted({1 << k for k in range(most.bit_length()) if 1 << k <= most} | {most})


def refuse_sizes(name: str, count: int, most: int, vertices: int, arcs: int) -> None:
    """Raise for a number of ranks or devices, vertices or arcs outside its range."""
    for option, value, low, high in (
        (name, count, 1, most),
        ("vertices", vertices, 0, MAX_VERTICES),
        ("arcs", arcs, 0, MAX_ARCS),
    ):
        if not low <= value <= high:
            raise OptionError(option, value, f"must lie in {low} … {high:,}")


def kind_among(kinds: Collection[str], kind: str | None) -> str:
    """Return a kind of graph, or the default one."""
    kind = kind or DEFAULT_KIND
    check_choice("kind", kind, kinds)
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelCourse:
    """What a run does on level 0 of a kind of graph, all cycles together."""

    moves: float
    sweeps: float
    pruned: float
    visits: float
    partial: float
    arc_rate: float


KINDS: Final = ("community_structured", "power_law", "mesh")

COURSES: Final = {kind: LevelCourse(**rates(f"ranks_{kind}")) for kind in KINDS}

VERTEX_BYTES: Final = 33
"""Of every vertex on every rank: label 4, total 8, size 4, state 1, degree 8, number 4, and the
renumbering 4."""

LOCAL_VERTEX_BYTES: Final = 32
"""Of local vertices: row bounds and loops 24, queue and proposal 8."""

MOVE_BYTES: Final = 8
MOVE_SECONDS: Final = rate("ranks_move")
"""To carry out one move: label, totals and sizes at random addresses."""

MOST_RANKS: Final = 64
"""What is beyond replicates more than it divides."""

MOST_PLANNED: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlan(PlanOfOne):
    """What one rank of a run takes."""

    ranks: int
    row_bytes: int
    replicated_bytes: int
    inbox_bytes: int
    received_bytes: int
    seconds: dict[str, float]

    @property
    def nbytes(self) -> int:
        """Bytes of a rank."""
        return self.row_bytes + self.replicated_bytes + self.inbox_bytes


def plan_ranks(
    vertices: int,
    arcs: int,
    *,
    ranks: int,
    weighted: bool = False,
    kind: str | None = None,
    link: float = 1.25e9,
    latency: float = 1e-3,
    threads: int = 16,
) -> RankPlan:
    """Return what each rank of a run takes."""
    refuse_sizes("ranks", ranks, MOST_PLANNED, vertices, arcs)
    course = COURSES[kind_among(COURSES, kind)]
    arc_bytes = 8 if weighted else 4
    others = (ranks - 1) / ranks
    moves = course.moves * vertices
    partial = int(course.partial * arcs / ranks)
    received = int(
        others * (MOVE_BYTES * moves + course.pruned * vertices / 4 + 9 * partial + 8 * vertices)
        + 8 * BINS * (ranks - 1)
    )
    collectives = course.sweeps * (SUB_ROUNDS + 1) + 2 * course.pruned + 16
    return RankPlan(
        ranks=ranks,
        row_bytes=arc_bytes * arcs // ranks + LOCAL_VERTEX_BYTES * vertices // ranks,
        replicated_bytes=VERTEX_BYTES * vertices,
        inbox_bytes=16 * partial,
        received_bytes=received,
        seconds={
            "local": course.visits * arcs / (ranks * threads * course.arc_rate),
            "apply": moves * MOVE_SECONDS / threads,
            "exchange": received / link,
            "latency": collectives * latency if ranks > 1 else 0.0,
        },
    )


def least_ranks(
    vertices: int, arcs: int, memory: int, most: int = MOST_PLANNED, **values: Any
) -> int | None:
    """Return the fewest ranks of which each needs no more than `memory` bytes; None if none do."""

    def fits(ranks: int) -> bool:
        return plan_ranks(vertices, arcs, ranks=ranks, **values).nbytes <= memory

    if not fits(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def most_speedup(vertices: int, arcs: int, **values: Any) -> float:
    """Return how many times as fast as one rank any number of ranks is at most."""
    # Every rank carries out and receives all moves, however many ranks there are.
    plans = choices(vertices, arcs, MOST_PLANNED, **values)
    return plans[0].total_seconds / min(plan.total_seconds for plan in plans)


def link_bytes(rate: str) -> float:
    """Return bytes per second of a rate such as "100Gb" (bits) or "12.5GB" (bytes)."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([MG])([bB])(?:it)?(?:/s)?\s*", rate)
    if match is None or not float(match[1]):
        raise OptionError("link", rate, "must be a rate such as '100Gb' (bits) or '10GB' (bytes)")
    unit = {"M": 1e6, "G": 1e9}[match[2]] / (8 if match[3] == "b" else 1)
    return float(match[1]) * unit


def choices(vertices: int, arcs: int, most: int = MOST_RANKS, **values: Any) -> list[RankPlan]:
    """Return plans for 1, 2, 4, … ranks, and for `most`."""
    # The most first: if there are too many, the error names those asked for.
    counts = reversed(counts_to(most))
    return [plan_ranks(vertices, arcs, ranks=ranks, **values) for ranks in counts][::-1]


DEVICES: Final = rates("devices")

RATES: Final = {kind: DEVICES[kind] for kind in KINDS}
"""Arcs of the graph per second of one H200."""

ALONE: Final = {kind: DEVICES[f"alone_{kind}"] for kind in KINDS}
"""Share of these seconds on levels that are too small to be shared."""

REPEATED: Final = DEVICES["repeated"]
"""Share of all other seconds that do not become less with more devices: applying moves, grouping
vertices, exchange and waiting."""

MEASURED: Final = 2
"""Most devices that anything was measured on."""

LARGE: Final = 10**8
"""Arcs from which launches and small exchanges, which the model leaves out, matter little."""

MOST_DEVICES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlan(PlanOfOne):
    """What each of several devices takes."""

    devices: int
    row_bytes: int
    state_bytes: int
    seconds: dict[str, float]
    evidence: str

    @property
    def nbytes(self) -> int:
        """Bytes reserved on a device."""
        return self.row_bytes + self.state_bytes


def plan_devices(
    vertices: int, arcs: int, *, devices: int, weighted: bool = False, kind: str | None = None
) -> DevicePlan:
    """Return what each of several H200 of one host takes."""
    refuse_sizes("devices", devices, MOST_DEVICES, vertices, arcs)
    kind = kind_among(RATES, kind)
    whole = arcs / RATES[kind]
    shared = whole * (1 - ALONE[kind])
    local = arcs // devices
    # Sums of weights above 2³² take eight bytes.
    width = 12 if weighted or arcs >= 1 << 32 else 8
    return DevicePlan(
        devices=devices,
        row_bytes=(8 if weighted else 4) * local,
        state_bytes=arena_bytes(vertices, arcs, local, width),
        seconds={
            "local": shared * (1 - REPEATED) / devices,
            "repeated": shared * REPEATED,
            "alone": whole * ALONE[kind],
        },
        evidence="fitted" if devices <= MEASURED and arcs >= LARGE else "modelled",
    )


def device_choices(vertices: int, arcs: int, most: int, **values: Any) -> list[DevicePlan]:
    """Return plans for 1, 2, 4, … devices, and for `most`."""
    # The most first: if there are too many, the error names those asked for.
    counts = reversed(counts_to(most))
    return [plan_devices(vertices, arcs, devices=count, **values) for count in counts][::-1]


def most_device_speedup(kind: str | None = None) -> float:
    """Return how many times as fast as one any number of devices is at most."""
    alone = ALONE[kind or DEFAULT_KIND]
    return 1 / (alone + (1 - alone) * REPEATED)
