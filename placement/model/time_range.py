"""How long a run may take: low, expected, high, by what its coarse levels may keep.

Level 0 is known before a run, later levels are not: a graph may fall into communities at once or
keep nearly all of its arcs for another level. What is measured cheaply, the degrees and a sample of
triangles, bounds that. What follows when level 1 is known is in `remaining.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from louvain_um.core.array_spec import ArraySpec
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.model.forecast import Forecast
from louvain_um.placement.model.remaining import PASSES
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

BUS: Final = (0.35, 1.0, 3.0)
"""Seconds of the bus on level 0 relative to the expected: on the kinds of the zoo, moving visited
arcs 3.6 to 13.5 times, where 4 to 11 times were expected."""


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


def later_seconds(arcs: float, work: Workload, at: int = 1) -> float:
    """Return the seconds of all levels above 0, in core, if level 1 has so many arcs."""
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
