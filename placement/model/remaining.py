"""How long a run takes, once level 1 is known: later levels, and further cycles.

What level 0 took is the measure of what follows: a coarse arc is visited and aggregated about as
fast as one of the input was in this run, on this machine, under this budget. How fast levels shrink
and how many cycles follow is not known then. Whether communities are larger than a vertex and its
neighbours explains most of it: smaller ones came about by chance, and further cycles work on all
levels.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from louvain_um.core.rules import CYCLES, MOST_KEPT
from louvain_um.placement.machine.profiles import H200, rate, rates
from louvain_um.placement.model.workload import Workload

LEVELS: Final = 4
"""Levels above 0 whose arcs take time: those after them are small, or the run ends."""

CLEAR: Final = rate("clear")
"""Vertices of a community, by those of a vertex and its neighbours, from which communities are
taken to be clear."""

TIES: Final = 8
"""Exponent of the share of the arcs that level 1 keeps, where vertices have nothing to go by."""

SMALL: Final = 1000
"""Communities of a graph whose levels take no time: each level at least halves their number."""

LEVEL_OF_LEIDEN: Final = rate("level_of_leiden")
"""Seconds of a small level of Leiden by those of Louvain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What later levels and cycles take, by what level 0 took."""

    visit: float
    visit_vertex: float
    visit_skew: float
    aggregate: float
    refine: float
    sweeps: float
    open: float
    merging: float
    clear: float
    hubs: float
    vertex: float
    idle: float
    level: float
    back: float
    again: float
    uncertainty: float


FITTED: Final = Rates(**rates("remaining"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is known of a run when level 1 is there."""

    seconds: float
    visited: float
    arcs: int
    vertices: int
    communities: int
    isolated: int = 0
    skew: float = 1.0
    max_degree: int = 0


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """What follows from what is known of a run when level 1 is there."""

    work: Workload
    limit: int | None
    arc_bytes: float
    found: Found
    rates: Rates = FITTED

    @property
    def _vertices(self) -> tuple[int, int, int]:
        """Vertices of levels 0 and 1 and communities, without isolated vertices."""
        found, alone = self.found, self.found.isolated
        joined = max(self.work.vertices - alone, 1)
        return joined, max(found.vertices - alone, 1), max(found.communities - alone, 1)

    @cached_property
    def clear(self) -> bool:
        """Whether communities are larger than a vertex and its neighbours."""
        vertices, _, communities = self._vertices
        return vertices / communities >= CLEAR * (self.work.arcs / vertices + 1)

    @cached_property
    def kept(self) -> float:
        """Share of the arcs of level 0 that level 1 keeps."""
        return min(1.0, self.found.arcs / max(self.work.arcs, 1))

    @property
    def whole(self) -> bool:
        """Whether whole communities of level 1 become vertices of level 2, although by Leiden."""
        hubs = self.found.max_degree**2 > self.work.arcs
        return self.work.method == "leiden" and hubs and self.kept > MOST_KEPT

    @cached_property
    def shrinks(self) -> float:
        """Arcs of a level relative to those of the level before, from level 2 on."""
        if self.whole:
            return 0.0
        _, vertices, communities = self._vertices
        begun = min(1.0, communities / vertices)
        hubs = max(self.found.skew, 1.0) ** self.rates.hubs
        return float(self.kept**self.rates.merging * begun**self.rates.clear / hubs)

    @cached_property
    def sizes(self) -> list[float]:
        """Arcs of the levels above 0, and of one that counts for its bytes alone."""
        return [self.found.arcs * self.shrinks**number for number in range(LEVELS + 1)]

    @cached_property
    def arcs(self) -> float:
        """Arcs of the levels above 0."""
        return sum(self.sizes[:LEVELS])

    @cached_property
    def visits(self) -> float:
        """Visits of an arc of a coarse level in the first cycle."""
        before, vertices, communities = self._vertices
        open_ = (self.kept**TIES * min(1.0, communities / before)) ** 2
        alone = 1 + self.rates.sweeps * min(1.0, communities / vertices)
        return float(alone * (1 + self.rates.open * open_))

    @property
    def aggregating(self) -> float:
        """Seconds of aggregating an arc, and of refining it, by those of a visit."""
        leiden = self.work.method == "leiden"
        return self.rates.aggregate + (self.rates.refine if leiden else 0.0)

    @property
    def scale(self) -> float:
        """Seconds of this machine by nanoseconds of an H200."""
        return 1e-9 * H200.device_random_rate / self.work.machine.device_random_rate

    @property
    def launch(self) -> float:
        """Seconds of a level, however small it is."""
        fixed = self.work.machine.readback_seconds / H200.readback_seconds
        method = LEVEL_OF_LEIDEN if self.work.method == "leiden" else 1.0
        return 1e-3 * fixed * method * self.rates.level

    @cached_property
    def level_0(self) -> float:
        """Seconds of level 0 that arcs took."""
        return max(0.0, self.found.seconds - self.launch)

    @cached_property
    def visit(self) -> float:
        """Seconds of a visit of an arc with everything on the device."""
        arcs = max(self.work.arcs, 1)
        seconds = self.level_0 / arcs / (self.found.visited + self.aggregating)
        if self.limit is None:
            return seconds
        of_vertices = self.rates.visit_vertex * self._vertices[0] / arcs
        hubs = 1 + self.rates.visit_skew * (1 - 1 / max(self.found.skew, 1.0))
        return min(seconds, self.scale * hubs * (self.rates.visit + of_vertices))

    @cached_property
    def away(self) -> float:
        """Seconds of level 0 that waited for the bus, of a run in pages."""
        if self.limit is None:
            return 0.0
        here = self.visit * self.work.arcs * (self.found.visited + self.aggregating)
        return max(0.0, self.level_0 - here)

    @cached_property
    def coarse_away(self) -> float:
        """The same of the levels above 0, the more."""
        if self.limit is None:
            return 0.0
        arcs = 0.0
        for level, following in itertools.pairwise(self.sizes):
            arcs += level * min(1.0, self.arc_bytes * (level + following) / max(self.limit, 1))
        return self.away * arcs / max(self.work.arcs, 1)

    def idle(self, alone: int) -> float:
        """Return the seconds that so many vertices without arcs take, which are on each level."""
        return self.scale * self.rates.idle * alone * self._levels

    @property
    def _levels(self) -> float:
        """Levels above 0."""
        return math.log2(1 + self._vertices[2] / SMALL)

    def coarse(self, visits: float) -> float:
        """Return the seconds of levels above 0 with so many visits, without bus and launches."""
        of_vertices = self.scale * self.rates.vertex * self._vertices[1]
        share = self.arcs / max(self.found.arcs, 1)
        made = self.rates.aggregate if self.whole else self.aggregating
        return self.arcs * self.visit * (made + visits) + share * of_vertices

    @property
    def launches(self) -> float:
        """Seconds of the levels above 0, however small they are."""
        return self.launch * self._levels

    @property
    def again(self) -> float:
        """Seconds of the cycles after the first. Each run moves level 0's vertices once more."""
        rates, arcs = self.rates, self.work.arcs
        moving = self.visit * arcs + rates.back * self.away
        if self.work.method != "leiden":
            cycle = self.aggregating * self.visit * arcs + rates.back * self.away
            return moving + (rates.uncertainty if self.clear else 1.0) * cycle
        cycle = rates.again * (self.aggregating * self.visit * arcs + self.coarse(1))
        cycle += (1 - rates.back) * self.away + self.coarse_away  # the rest waits in `moving`
        cycle += self.idle(self.found.isolated)
        if self.clear:
            return moving + rates.uncertainty * cycle
        cycles = CYCLES["leiden"] - 1
        return moving + cycles * (cycle + self.launches) + moving

    @property
    def seconds(self) -> float:
        """Seconds of the whole run."""
        later = self.coarse(self.visits) + self.coarse_away + self.launches
        return self.found.seconds + later + self.idle(self.found.isolated) + self.again

    def after_cycle(self, spent: float) -> float:
        """Return the seconds of the whole run, if the first cycle took so many."""
        return spent + self.again
