"""How long a run may take: low, expected, high, by what its coarse levels may keep.

Level 0 is known before a run, later levels are not: a graph may fall into communities at once or
keep nearly all of its arcs for another level. What is measured cheaply, the degrees and a sample of
triangles, bounds that. What follows when level 1 is known is in `remaining.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from louvain_um.placement.model.forecast import Forecast
from louvain_um.placement.model.remaining import Found, Remaining
from louvain_um.placement.model.workload import Workload

Kept = tuple[float, float, float]
"""Share of the input's arcs that level 1 keeps: low, expected, high."""

LEVEL_0: Final = (0.3, 1.0, 2.0)
"""Seconds of level 0 relative to the expected: hubs and vertices without locality cost more, and
cliques are found in three sweeps."""

LATER: Final = 0.7
"""Seconds of what follows level 0, by those that the same facts are taken to mean when level 1 is
there: all three shares of its arcs at once, and as many vertices, are rare."""

JOINED: Final = 0.55
"""Vertices of level 1 by those of the input, relative to the arcs that it keeps."""

BUS: Final = (0.28, 1.0, 1.8)
"""Seconds of the bus on level 0 relative to the expected: on the kinds of the zoo, moving visited
arcs 3.6 to 13.5 times, where 4 to 11 times were expected."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Seconds of the algorithm: the graph's and the labels' journeys apart."""

    low: float
    expected: float
    high: float

    def __contains__(self, seconds: float) -> bool:
        return self.low <= seconds <= self.high


def time_range(
    expected: Forecast, work: Workload, kept: Kept, *, limit: int | None, arc_bytes: float
) -> TimeRange:
    """Return how long a run may take."""
    level_0 = sum(s for stage, s in expected.core.items() if stage not in ("fetch", "coarse"))
    causes = (expected.remote, expected.out_of_core, expected.arrival)
    bus = sum(s for by in causes for stage, s in by.items() if stage not in ("load", "coarse"))
    bus -= expected.arrival.get("fetch", 0.0) + expected.remote.get("fetch", 0.0)
    # Without pages, coarse levels lie where the plan says, however many arcs they keep.
    away = expected.remote.get("coarse", 0.0) if limit is None else 0.0
    found = []
    for at, share in enumerate(kept):
        waited = BUS[at] * max(bus, 0.0)
        first = LEVEL_0[at] * level_0 + waited
        vertices = int(JOINED * share * work.vertices)
        known = Found(
            seconds=first,
            visited=work.visited,
            arcs=int(share * work.arcs),
            vertices=vertices,
            communities=vertices,
            waited=waited,
        )
        run = Remaining(work=work, limit=limit, arc_bytes=arc_bytes, found=known)
        later = run.seconds - first
        there = share / kept[1] * away if kept[1] else 0.0
        found.append(first + LATER * later + BUS[at] * there)
    return TimeRange(*found)
