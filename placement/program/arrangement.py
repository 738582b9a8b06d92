"""Placements of a program's arrays, and what moving one of them elsewhere would change.

What each phase accesses is laid out as whole arrays, so that the seconds of moving any of several
hundred arrays are found together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.cost import OVERLAP, ProgramCost, joined
from louvain_um.placement.program.program import ProgramArray

F64 = NDArray[np.float64]

LEAST_GAIN: Final = 1e-9
"""Relative gain below which two placements count as equal."""


class AccessTable:
    """What the phases of a program access: one entry per array and phase, by array."""

    def __init__(self, cost: ProgramCost) -> None:
        program, machine = cost.program, cost.machine
        # In the order of names, since the order of declaration must not change any sum.
        self.arrays = sorted(program.arrays, key=lambda array: array.name)
        self.index = {array.name: i for i, array in enumerate(self.arrays)}
        phases = program.phases
        uses = sorted(
            ((self.index[use.name], p, use) for p, x in enumerate(phases) for use in cost.uses(x)),
            key=lambda each: each[:2],
        )
        self.array = np.array([i for i, _, _ in uses], np.int64)
        self.phase = np.array([p for _, p, _ in uses], np.int64)
        self.local = np.array([use.local for _, _, use in uses], np.float64)
        ways = [(use.on_host, use.pinned, use.managed) for _, _, use in uses]
        self.ways = np.array(ways, np.float64).reshape(len(uses), 3, 2)
        """Seconds of the bus to and from the device: of a split, pinned and managed memory."""
        self.of_array: list[list[int]] = [[] for _ in self.arrays]
        """Entries of each array."""
        for use, (i, _, _) in enumerate(uses):
            self.of_array[i].append(use)
        # Single entries are read from lists: a number of NumPy's takes ten times as long.
        self.entries = [(p, use.local, each) for (_, p, use), each in zip(uses, ways, strict=True)]
        self.phases = [
            (x.operations / machine.operation_rate, x.overlap,
             x.passes * x.launches * machine.launch_seconds,
             cost.scale.get(x.name, 1.0) * cost.left.get(x.name, 1.0))
            for x in phases
        ]  # fmt: skip
        self.computing, self.overlap, self.starts, self.times = (
            np.array(column) for column in zip(*self.phases, strict=True)
        )

    def seconds(self, phase: Any, local: F64, up: F64, down: F64) -> F64:
        """Return seconds of phases from the sums of their accesses, as `ProgramCost` has them."""
        work, bus = np.maximum(self.computing[phase], local), np.maximum(up, down)
        most = np.maximum(work, bus)
        both = np.minimum(work, bus) / np.where(most > 0, most, 1.0)
        hidden = most * (1 + both**OVERLAP) ** (1 / OVERLAP)
        both = np.where(self.overlap[phase], hidden, work + bus)
        found: F64 = self.times[phase] * (both + self.starts[phase])
        return found

    def seconds_of(self, phase: int, local: float, up: float, down: float) -> float:
        """Return the same of one phase."""
        computing, overlap, starts, times = self.phases[phase]
        work = max(computing, local)
        return times * (joined(work, max(up, down), overlap=overlap) + starts)


SPLIT: Final = 0
"""The column of `AccessTable.ways` for splits."""


def way_of(placement: Placement) -> int:
    """Return the column of `AccessTable.ways` for what a placement keeps elsewhere."""
    return SPLIT if placement.kind in ("split", "peer") else 1 if placement.kind == "pinned" else 2


class Arrangement:
    """Placements of all arrays, and the seconds that the program takes with them."""

    def __init__(
        self,
        cost: ProgramCost,
        placements: Mapping[str, Placement],
        accesses: AccessTable | None = None,
    ) -> None:
        self.cost, self.placements = cost, dict(placements)
        self.accesses = accesses or AccessTable(cost)
        arrays = self.accesses.arrays
        self.share = np.array([placements[a.name].on_device for a in arrays], np.float64)
        self.way = np.array([way_of(placements[a.name]) for a in arrays], np.int64)
        self.arrivals = np.array([cost.arrival(a, placements[a.name]) for a in arrays], np.float64)
        self._add_up()

    def copy(self) -> Self:
        """Return the same, to go on from."""
        again = copy(self)
        again.placements = dict(self.placements)
        again.share, again.way = self.share.copy(), self.way.copy()
        again.arrivals = self.arrivals.copy()
        return again

    def place(self, array: ProgramArray, placement: Placement) -> None:
        """Move one array."""
        i = self.accesses.index[array.name]
        self.placements[array.name] = placement
        self.share[i], self.way[i] = placement.on_device, way_of(placement)
        self.arrivals[i] = self.cost.arrival(array, placement)
        self._add_up()

    def _add_up(self) -> None:
        """Add up what the phases access, from nothing, so that no error grows with moves."""
        uses, phases = self.accesses, len(self.accesses.computing)
        share = self.share[uses.array]
        away = uses.ways[np.arange(len(share)), self.way[uses.array]] * (1 - share)[:, None]
        self.away = away
        self.local, self.up, self.down = (
            np.bincount(uses.phase, each, phases).astype(np.float64)
            for each in (share * uses.local, away[:, 0], away[:, 1])
        )
        self.phases = uses.seconds(slice(None), self.local, self.up, self.down)
        self.total = float(self.phases.sum() + self.arrivals.sum())
        self._away = away.tolist()
        columns = (self.local, self.up, self.down, self.phases)
        self._sums = list(zip(*(column.tolist() for column in columns), strict=True))

    def seconds_with(self, array: ProgramArray, placement: Placement) -> float:
        """Return the seconds of the program with one array placed otherwise."""
        arrival = self.cost.arrival(array, placement)
        return self._with(array, placement.on_device, way_of(placement), arrival)

    def seconds_split(self, array: ProgramArray, share: float) -> float:
        """Return the same with this share of the array on the device, and the rest split off."""
        return self._with(array, share, SPLIT, self.cost.split_arrival(array, share))

    def _with(self, array: ProgramArray, share: float, way: int, arrival: float) -> float:
        uses, i = self.accesses, self.accesses.index[array.name]
        more = share - float(self.share[i])
        change = 0.0
        for use in uses.of_array[i]:
            phase, there, ways = uses.entries[use]
            local, up, down, now = self._sums[phase]
            away = self._away[use]
            up = max(up + ways[way][0] * (1 - share) - away[0], 0.0)
            down = max(down + ways[way][1] * (1 - share) - away[1], 0.0)
            change += uses.seconds_of(phase, local + more * there, up, down) - now
        return self.total + change + arrival - float(self.arrivals[i])

    @property
    def sums(self) -> tuple[F64, F64]:
        """Seconds of the bus by phase, to and from the device."""
        return self.up, self.down

    def best(self, array: ProgramArray, among: Iterable[Placement]) -> tuple[Placement, float]:
        """Return the placement of one array that takes least time, the first of equals."""
        found, least = None, float("inf")
        for placement in among:
            seconds = self.seconds_with(array, placement)
            if found is None or seconds < least * (1 - LEAST_GAIN):
                found, least = placement, seconds
        assert found is not None
        return found, least

    def gains(self) -> F64:
        """Return, by array, the seconds saved in phases if all of it were on the device."""
        uses = self.accesses
        phase, rest = uses.phase, 1 - self.share[uses.array]
        local = self.local[phase] + rest * uses.local
        up, down = (np.maximum(s[phase] - self.away[:, k], 0.0) for k, s in enumerate(self.sums))
        saved = self.phases[phase] - uses.seconds(phase, local, up, down)
        return np.bincount(uses.array, saved, len(uses.index)).astype(np.float64)
