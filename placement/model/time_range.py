"""How long a run may take: low, expected, high, by what its coarse levels may keep.

Level 0 is known before a run, later levels are not: a graph may fall into communities at once or
keep nearly all of its arcs for another level. What is measured cheaply, the degrees and a sample of
triangles, bounds that. When level 1 is known, so is most of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from louvain_um.core.array_spec import ArraySpec
from louvain_um.core.rules import CYCLES
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.model.forecast import Forecast
from louvain_um.placement.model.workload import Workload

Kept = tuple[float, float, float]
"""Share of the input's arcs that level 1 keeps: low, expected, high."""

LEVEL_0: Final = (0.6, 1.0, 3.0)
"""Seconds of level 0 relative to the expected: hubs and vertices without locality cost more."""

PER_ARC: Final = (0.24e-9, 0.45e-9, 0.8e-9)
"""Seconds per arc of a coarse level, all its sweeps, on an H200: weights, longer rows and fewer,
larger communities make them dearer than level 0's. Measured on five kinds of `benchmarks/zoo.py`,
.24 on R-MAT to .75 on a random graph."""

SHRINKS: Final = (0.2, 0.4, 0.9)
"""Arcs of level 2 relative to level 1's, and so on."""

MOST_LEVELS: Final = 3.0
"""Arcs of all coarse levels by those of level 1, at most: random graphs keep nearly all arcs for
two or three levels, and then none."""

PASSES: Final = 6
"""How often a coarse level's arcs are read, about."""

AGAIN: Final = 0.25
"""Seconds of moving on level 0 once more, from communities found before, by those of level 0."""

CYCLE_AGAIN: Final = 0.5
"""Seconds of another whole cycle by those of the first: .3 to .6 on the kinds of the zoo."""

IN_PAIRS: Final = 0.43
"""Share of the vertices that Leiden's level 1 keeps, from which communities are taken to be weak:
refinement then joined little more than pairs, and further cycles work on all levels. Otherwise they
end when level 0 gains nothing. In the zoo, kinds of one cycle keep .17 to .39, others .48 to .57.
"""

BUS: Final = (0.8, 1.0, 1.4)
"""Seconds of the bus on level 0 relative to the expected."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Seconds of the algorithm: the graph's and the labels' journeys apart.

    Examples
    --------
    >>> from louvain_um.placement.model.time_range import TimeRange
    >>> 0.2 in TimeRange(0.1, 0.15, 0.4)
    True
    """

    low: float
    expected: float
    high: float

    def __contains__(self, seconds: float) -> bool:
        return self.low <= seconds <= self.high


def time_range(
    expected: Forecast, work: Workload, kept: Kept, arrays: Sequence[ArraySpec], limit: int | None
) -> TimeRange:
    """Return how long a run may take.

    Parameters
    ----------
    expected : Forecast
    work : Workload
    kept : (float, float, float)
    arrays : sequence of ArraySpec
        Those of the run; their bytes beside coarse arcs bound what is left for these.
    limit : int, optional
        Bytes of the device, of a run in pages; None if everything is on the device.
    """
    machine = work.machine
    level_0 = sum(s for stage, s in expected.core.items() if stage not in ("fetch", "coarse"))
    causes = (expected.remote, expected.out_of_core, expected.arrival)
    bus = sum(s for by in causes for stage, s in by.items() if stage not in ("load", "coarse"))
    bus -= expected.arrival.get("fetch", 0.0) + expected.remote.get("fetch", 0.0)
    # Without pages, coarse levels lie where the plan says, however many arcs they keep.
    away = expected.remote.get("coarse", 0.0) if limit is None else 0.0
    found = []
    for at, share in enumerate(kept):
        arcs = share * work.arcs
        coarse = later_seconds(arcs, work, at)
        found.append(
            LEVEL_0[at] * level_0
            + BUS[at] * (max(bus, 0.0) + (share / kept[1] * away if kept[1] else 0.0))
            + coarse
            + bus_seconds(arcs, arrays, limit, machine)
        )
    return TimeRange(*found)


def levels_after(kept: float | None) -> float:
    """Return the arcs of all coarse levels by those of level 1, if each keeps such a share.

    Where nothing is known of that, each keeps what `SHRINKS` says.

    Examples
    --------
    >>> from louvain_um.placement.model.time_range import levels_after
    >>> levels_after(0.2), levels_after(0.95)
    (1.25, 3.0)
    """
    share = SHRINKS[1] if kept is None else kept
    return min(MOST_LEVELS, 1 / max(1 - share, 1 / MOST_LEVELS))


def later_seconds(
    arcs: float, work: Workload, at: int = 1, *, levels: float | None = None
) -> float:
    """Return the seconds of all levels above 0, in core, if level 1 has so many arcs.

    All of them together have `levels` times as many, if given.
    """
    if levels is None:
        levels = 1 / (1 - SHRINKS[at])
    scale = H200.device_random_rate / work.machine.device_random_rate
    fixed = work.machine.readback_seconds / H200.readback_seconds
    launches = 1e-9 * work.kind.methods[work.method].coarse_fixed * fixed
    return scale * PER_ARC[at] * arcs * levels + (0.2, 0.5, 2.0)[at] * launches


def bus_seconds(
    arcs: float, arrays: Sequence[ArraySpec], limit: int | None, machine: Machine
) -> float:
    """Return the seconds of reading what does not fit of level 1's arcs."""
    if limit is None:
        return 0.0
    each = sum(a.itemsize for a in arrays if a.holds_coarse_arcs and a.level == 1)
    others = sum(
        a.nbytes for a in arrays
        if "coarse" in a.stages and a.role not in ("targets", "weights")
    )  # fmt: skip
    over = max(0.0, each * arcs - max(0, limit - others))
    return PASSES * over / machine.remote_bandwidth


def whole_cycles(method: str, kept_vertices: float) -> int:
    """Return how many cycles after the first are expected to work on all levels.

    Parameters
    ----------
    method : {"louvain", "leiden"}
    kept_vertices : float
        Share of the vertices that level 1 keeps.

    Examples
    --------
    >>> from louvain_um.placement.model.time_range import whole_cycles
    >>> whole_cycles("leiden", 0.5), whole_cycles("leiden", 0.2), whole_cycles("louvain", 0.5)
    (2, 0, 0)
    """
    weak = method == "leiden" and kept_vertices > IN_PAIRS
    return CYCLES["leiden"] - 1 if weak else 0


def cycles_seconds(
    level_0: float, cycle: float, method: str, kept_vertices: float, returning: float
) -> float:
    """Return the seconds of all cycles after the first.

    Parameters
    ----------
    level_0, cycle : float
        Seconds of the first cycle: of level 0, and of all levels.
    method : {"louvain", "leiden"}
    kept_vertices : float
        Share of the vertices that level 1 keeps.
    returning : float
        Seconds in which the input's arcs come back to the device for a cycle.
    """
    whole = whole_cycles(method, kept_vertices)
    if whole:
        return whole * (CYCLE_AGAIN * cycle + returning)
    # Every run tries another cycle; it ends when level 0 gains next to nothing.
    return AGAIN * level_0 + returning


def returning_seconds(arrays: Sequence[ArraySpec], limit: int | None, machine: Machine) -> float:
    """Return the seconds in which the input comes back to a device of so many bytes, in pages."""
    if limit is None:
        return 0.0
    roles = ("offsets", "targets", "weights")
    whole = sum(a.nbytes for a in arrays if a.level == 0 and a.role in roles)
    return min(whole, limit) / machine.copy_to_device
