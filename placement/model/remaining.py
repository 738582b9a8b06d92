"""How long a run takes, once level 1 is known: later levels, what moves for them, cycles.

What is not known then is how fast levels shrink, and in how many sweeps. A level is taken to keep
no more of its arcs than the level before, nor than the input was expected to keep.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from louvain_um.core.array_spec import ArraySpec
from louvain_um.core.rules import CYCLES
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.memory.paging.pages import page_bytes
from louvain_um.placement.model.cost import REMAPPED
from louvain_um.placement.model.workload import Workload

LEVELS: Final = 3
"""Levels above 0 that take time: those after them are small, or the run ends."""

PASSES: Final = 6
"""How often a coarse level's arcs are read, about."""

IN_PAIRS: Final = 0.4
"""Share of the vertices that Leiden's level 1 keeps, from which communities are taken to be weak:
refinement then joined little more than pairs, and further cycles work on all levels. Otherwise they
end when level 0 gains next to nothing.
"""

SWEEPS: Final = 2
"""Sweeps over the arcs of a coarse level, besides one, if its vertices begin in communities of
their own. Where they begin in communities found before, as Leiden's do, hardly any leaves these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Chosen by runs of the zoo; `benchmarks/zoo_predictions.py` fits them to half of its kinds.

    Parameters
    ----------
    per_arc, per_visit, per_vertex : float
        Nanoseconds of a coarse level on an H200: refining and aggregating, each sweep, and what
        vertices take of both.
    open : float
        How many more sweeps, relative, go over levels that keep all arcs: nothing tells vertices
        where to go.
    merging : float
        Exponent by which communities merge faster than vertices did: of levels that keep half of
        their arcs at first, the next keep an eighth if it is 3.
    again : float
        Seconds of moving on level 0 once more, from communities found before, by those of level 0.
    cycle_again : float
        Seconds of computing another whole cycle by those of the first: fewer vertices move.
    away_again : float
        The same of what waited for the bus and for pages: all arcs are aggregated anew.
    """

    per_arc: float = 0.1
    per_visit: float = 0.06
    per_vertex: float = 2.0
    open: float = 1.0
    merging: float = 3.0
    again: float = 0.25
    cycle_again: float = 0.4
    away_again: float = 0.7


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """What follows from what is known of a run when level 1 is there.

    Parameters
    ----------
    work : Workload
    arrays : sequence of ArraySpec
        Those that were declared.
    limit : int, optional
        Bytes of the device, of a run in pages; None if everything is on the device.
    kept : float, optional
        Share of the arcs that level 1 was expected to keep, if anything was.
    level_0 : float
        Seconds until now.
    arcs, vertices, communities : int
        Of level 1, and the communities that its vertices begin in.
    rates : Rates
    """

    work: Workload
    arrays: Sequence[ArraySpec]
    limit: int | None
    kept: float | None
    level_0: float
    arcs: int
    vertices: int
    communities: int
    rates: Rates = Rates()

    @cached_property
    def shrinks(self) -> float:
        """Arcs of a level relative to those of the level before, from level 2 on."""
        known = self.arcs / max(self.work.arcs, 1)
        share = min(1.0, known, 1.0 if self.kept is None else self.kept)
        return float(share**self.rates.merging)

    @cached_property
    def sizes(self) -> list[float]:
        """Arcs of the levels above 0."""
        return [self.arcs * self.shrinks**number for number in range(LEVELS)]

    @property
    def computing(self) -> float:
        """Seconds of the levels above 0, with everything on the device."""
        machine = self.work.machine
        scale = H200.device_random_rate / machine.device_random_rate
        fixed = machine.readback_seconds / H200.readback_seconds
        launches = 1e-9 * self.work.kind.methods[self.work.method].coarse_fixed * fixed
        visits = 1 + SWEEPS * self.communities / max(self.vertices, 1)
        visits *= 1 + self.rates.open * self.shrinks
        per_arc = self.rates.per_arc + self.rates.per_visit * visits
        per_arc += self.rates.per_vertex * self.vertices / max(self.arcs, 1)
        return 1e-9 * scale * per_arc * sum(self.sizes) + 0.5 * launches

    @cached_property
    def input_bytes(self) -> int:
        """Bytes of the input."""
        roles = ("offsets", "targets", "weights")
        return sum(a.nbytes for a in self.arrays if a.level == 0 and a.role in roles)

    @cached_property
    def away(self) -> list[float]:
        """Seconds of the bus and of pages that change sides, level by level, 0 included.

        While a level is made, what does not fit beside it leaves: the input for nothing, another
        level to the host and back. What still does not fit is read in place.
        """
        if self.limit is None:
            return [0.0] * (LEVELS + 1)
        machine, limit = self.work.machine, self.limit
        each = sum(a.itemsize for a in self.arrays if a.holds_coarse_arcs and a.level == 1)
        others = sum(
            a.nbytes
            for a in self.arrays
            if "coarse" in a.stages and a.role not in ("targets", "weights")
        )
        found = []
        held = [float(self.input_bytes), *(each * size for size in self.sizes), 0.0]
        for number, (old, new) in enumerate(itertools.pairwise(held)):
            left = min(new, max(0.0, min(old, limit) + new + others - limit))
            seconds = REMAPPED * left / page_bytes(limit)
            if number:
                seconds += left / machine.copy_to_device + left / machine.copy_to_host
                seconds += PASSES * max(0.0, old + others - limit) / machine.remote_bandwidth
            found.append(seconds)
        return found

    @property
    def seconds(self) -> float:
        """Seconds of the whole run."""
        return self.after_cycle(self.level_0 + self.computing + sum(self.away[1:]))

    def after_cycle(self, spent: float) -> float:
        """Return the seconds of the whole run, if the first cycle took so many."""
        away = self.away
        whole = whole_cycles(self.work.method, self.vertices / max(self.work.vertices, 1))
        if whole:
            return spent + whole * self._again(self.rates.cycle_again, spent, sum(away))
        # Every run tries another cycle; it ends when level 0 gains next to nothing.
        return spent + self._again(self.rates.again, self.level_0, away[0])

    def _again(self, share: float, seconds: float, away: float) -> float:
        """Return the seconds of doing again what took some, part of them away from the device."""
        away = min(away, seconds / 2)
        back = returning_seconds(self.input_bytes, self.limit, self.work.machine)
        return share * (seconds - away) + self.rates.away_again * away + back


def whole_cycles(method: str, kept_vertices: float) -> int:
    """Return how many cycles after the first are expected to work on all levels.

    Parameters
    ----------
    method : {"louvain", "leiden"}
    kept_vertices : float
        Share of the vertices that level 1 keeps.

    Examples
    --------
    >>> from louvain_um.placement.model.remaining import whole_cycles
    >>> whole_cycles("leiden", 0.5), whole_cycles("leiden", 0.2), whole_cycles("louvain", 0.5)
    (2, 0, 0)
    """
    weak = method == "leiden" and kept_vertices > IN_PAIRS
    return CYCLES["leiden"] - 1 if weak else 0


def returning_seconds(nbytes: int, limit: int | None, machine: Machine) -> float:
    """Return the seconds in which the input comes back to a device of so many bytes, in pages."""
    return 0.0 if limit is None else min(nbytes, limit) / machine.copy_to_device
