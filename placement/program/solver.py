"""Decide for all arrays of a program together where each lives.

Every array begins on the host. Then the one that saves most time per byte of device memory goes
there, as whole as it fits, and so on; lifetimes count, since arrays of different phases can take
turns in the same memory.

What each phase accesses is laid out as whole arrays (`Arrangement`), so that the seconds of moving
any of several hundred arrays are found together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.layout import cut, share_of
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.cost import OVERLAP, ProgramCost, joined
from louvain_um.placement.program.program import Program, ProgramArray

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
        """Return a copy to continue from."""
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
        """Return the placement of one array that takes least time, the first of equal ones."""
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


LEVEL_ARRAYS: Final = 100
"""Arrays times ways for budgets between one and its half: what keeps planning below a second."""

Step = tuple[ProgramArray, Placement]
Marks = NDArray[np.bool_]


def device_bytes(array: ProgramArray, placement: Placement) -> int:
    """Return the most bytes of the device that an array takes."""
    if placement.kind == "split" and placement.fraction < 1:
        return cut(array.nbytes, placement.fraction)
    return array.held if placement.on_device else 0


def hill_climbed(
    begin: Arrangement, free: list[ProgramArray], here: tuple[Placement, ...], budget: int
) -> Arrangement:
    """Return placements after moving arrays to the device, most time saved per byte first."""
    program = begin.cost.program
    choices = Choices(begin, [array for array in free if array.nbytes], here)
    arrangement, held, ends = begin.copy(), Held(program, begin.placements), [begin]
    most = held.most
    waiting = [budget, *(level for level in budget_levels(most, len(free)) if level < budget)]
    for array, placement in hill_climb(arrangement, held, choices, most):
        room = held.room(array, budget)
        whole = arrangement.seconds_with(array, placement)
        part, seconds = split(arrangement, array, room, whole)
        least = min(arrangement.total, whole) if array.held <= room else arrangement.total
        if seconds < least * (1 - LEAST_GAIN):
            ends.append(arrangement.copy())
            ends[-1].place(array, part)
        full = [each for each in waiting if array.held > held.room(array, each)]
        for each in full:
            waiting.remove(each)
            ends.append(arrangement.copy())
            if each != budget:
                deque(hill_climb(ends[-1], held.copy(), choices, each), maxlen=0)
        if not waiting:
            break
    else:
        ends.append(arrangement)
    found = ends[0]
    for end in ends[1:]:
        if end.total < found.total * (1 - LEAST_GAIN):
            found = end
    return found


def budget_levels(most: int, arrays: int) -> list[int]:
    """Return budgets that depend on the program alone, from just below its peak to one block."""
    step = 0.5 ** (1 / min(8, 1 + LEVEL_ARRAYS // max(arrays, 1)))
    found = [int(most * step)]
    while found[-1] > BLOCK:
        found.append(int(found[-1] * step))
    return found


class Held:
    """Bytes of the device that are taken in each phase."""

    def __init__(self, program: Program, placements: Mapping[str, Placement]) -> None:
        at = {phase.name: p for p, phase in enumerate(program.phases)}
        self.phases = {a.name: [at[p] for p in program.phases_of(a)] for a in program.arrays}
        self.taken, self.every = [0] * len(at), [0] * len(at)
        for array in program.arrays:
            self.add(array, placements[array.name])
            for p in self.phases[array.name]:
                self.every[p] += array.held

    @property
    def most(self) -> int:
        """Bytes with which all arrays would be there."""
        return max(self.every)

    def copy(self) -> Held:
        """Return a copy to continue from."""
        again = copy(self)
        again.taken = list(self.taken)
        return again

    def add(self, array: ProgramArray, placement: Placement) -> None:
        """Add an array."""
        nbytes = device_bytes(array, placement)
        for p in self.phases[array.name]:
            self.taken[p] += nbytes

    def room(self, array: ProgramArray, budget: int) -> int:
        """Return the bytes that are left in all phases of an array."""
        return budget - max((self.taken[p] for p in self.phases[array.name]), default=0)


class Choices:
    """Arrays that may move to the device, in which way, and what bringing them there takes."""

    def __init__(
        self, begin: Arrangement, arrays: list[ProgramArray], here: tuple[Placement, ...]
    ) -> None:
        cost, index = begin.cost, begin.accesses.index
        self.arrays, self.here = arrays, here
        self.index = np.array([index[array.name] for array in arrays], np.int64)
        self.held = np.array([array.held for array in arrays], np.float64)
        arrivals = [[cost.arrival(array, where) for where in here] for array in arrays]
        self.arrivals = np.array(arrivals, np.float64).reshape(len(arrays), len(here))

    def offers(self, arrangement: Arrangement, left: Marks) -> Iterator[tuple[int, Placement]]:
        """Yield what gains, most time per byte first, ties in the order of names."""
        least = arrangement.total * LEAST_GAIN
        arrival, kind = self.arrivals[:, 0].copy(), np.zeros(len(left), np.int64)
        for k in range(1, len(self.here)):
            better = self.arrivals[:, k] < arrival - least
            arrival[better], kind[better] = self.arrivals[better, k], k
        gains = arrangement.gains()[self.index] + arrangement.arrivals[self.index] - arrival
        rows = np.flatnonzero(left & (gains > least))
        # Rounded, since the order of additions must not decide between equals.
        mantissa, exponent = np.frexp(gains[rows] / self.held[rows])
        order = np.argsort(-np.ldexp(np.rint(mantissa * 2**30), exponent), kind="stable")
        return ((int(i), self.here[kind[i]]) for i in rows[order])


def hill_climb(
    arrangement: Arrangement, held: Held, choices: Choices, budget: int
) -> Iterator[Step]:
    """Move arrays to the device until none is left that gains and fits."""
    left = np.array(
        [arrangement.placements[a.name].on_device == 0 for a in choices.arrays], np.bool_
    )
    moved = True
    while moved:
        moved = False
        for i, placement in choices.offers(arrangement, left):
            array, left[i] = choices.arrays[i], False
            room = held.room(array, budget)
            where, seconds = placement, arrangement.seconds_with(array, placement)
            if array.held > room:
                where, seconds = split(arrangement, array, room, seconds)
            if seconds < arrangement.total * (1 - LEAST_GAIN):
                yield array, where
                arrangement.place(array, where)
                held.add(array, where)
                moved = True
                break


def split(
    arrangement: Arrangement, array: ProgramArray, room: int, whole: float
) -> tuple[Placement, float]:
    """Return a split of whole blocks that there is room for, and its seconds; ∞ without room."""

    def seconds(blocks: int) -> float:
        return arrangement.seconds_split(array, share_of(blocks * BLOCK, array.nbytes))

    low, high = 1, min(room, array.nbytes - 1) // BLOCK
    if high < low:
        return Placement("host_mapped"), float("inf")
    while low < high:
        middle = (low + high + 1) // 2
        if whole <= seconds(middle) <= seconds(middle - 1) * (1 + LEAST_GAIN):
            low = middle
        else:
            high = middle - 1
    return Placement("split", share_of(low * BLOCK, array.nbytes)), seconds(low)


ON_HOST: Final = (Placement("host_mapped"), Placement("pinned"))
"""Placements without device memory; the first of equal ones is taken."""

ON_PEER: Final = (Placement("peer"),)
"""The same where another device's memory takes the place of the host's."""

HERE: Final = tuple(Placement(k) for k in ("device", "managed", "prefetched", "read_mostly"))
"""Placements that may take device memory for the whole array; the first of equal ones is taken."""

Question = tuple[ProgramCost, int, bool, dict[str, Placement]]

DECIDED: Final = deque[tuple[Question, dict[str, Placement]]](maxlen=16)
"""The last decisions: running a program again, from another source, must not take them anew."""


def held_by_phase(program: Program, placements: Mapping[str, Placement]) -> dict[str, int]:
    """Return the bytes of the device that are taken in each phase."""
    held = {phase.name: 0 for phase in program.phases}
    for array in program.arrays:
        nbytes = device_bytes(array, placements[array.name])
        for phase in program.phases_of(array):
            held[phase] += nbytes
    return held


def solve(
    cost: ProgramCost,
    budget: int,
    *,
    managed: bool = True,
    fixed: Mapping[str, Placement] | None = None,
) -> dict[str, Placement]:
    """Return where each array lives, for the least predicted time within a budget."""
    # What is free beyond a program's peak changes from run to run, and decides nothing.
    question = cost, min(budget, cost.program.peak_bytes), managed, dict(fixed or {})
    for asked, decided in tuple(DECIDED):
        if asked == question:
            return dict(decided)
    found = decide(*question)
    DECIDED.append((question, found))
    return dict(found)


def decide(
    cost: ProgramCost, budget: int, managed: bool, fixed: Mapping[str, Placement]
) -> dict[str, Placement]:
    """Return where each array lives; see `solve`."""
    arrays = sorted(cost.program.arrays, key=lambda array: array.name)
    placements = dict(fixed)
    must = [a for a in arrays if a.on_device and a.name not in placements]
    placements |= {array.name: Placement("device") for array in must}
    free = [array for array in arrays if array.name not in placements]
    by_peer = cost.machine.beyond == "peer"
    placements |= {a.name: Placement("peer" if by_peer else "pinned") for a in free}
    refuse_beyond(cost.program, placements, budget, chosen=True)
    here = HERE if managed and not by_peer else HERE[:1]
    everything = {**placements, **{array.name: Placement("device") for array in free}}
    on_host = ON_PEER if by_peer else ON_HOST if managed else ON_HOST[1:]
    others = (*on_host, *here)
    # Less may be predicted with a small array on the host, whose bus works beside the device, but
    # by less than predictions are off.
    if fits(cost.program, everything, budget) and not may_pay(cost, everything, free, others):
        return {array.name: everything[array.name] for array in arrays}
    begin = Arrangement(cost, placements)
    for array in free:
        begin.place(array, begin.best(array, on_host)[0])
    chosen = hill_climbed(begin, free, here, budget)
    for kind in (placement.kind for placement in here):  # one for all arrays, as in policies
        other = {**begin.placements, **{array.name: Placement(kind) for array in free}}
        if fits(cost.program, other, budget):
            arrangement = Arrangement(cost, other, begin.accesses)
            if arrangement.total < chosen.total * (1 - LEAST_GAIN):
                chosen = arrangement
    return {array.name: chosen.placements[array.name] for array in arrays}


def fits(program: Program, placements: Mapping[str, Placement], budget: int) -> bool:
    """Whether placements keep to a budget in every phase."""
    return max(held_by_phase(program, placements).values()) <= budget


def may_pay(
    cost: ProgramCost,
    everything: Mapping[str, Placement],
    free: Iterable[ProgramArray],
    others: tuple[Placement, ...],
) -> bool:
    """Whether other placements than plain device memory for everything may pay at all."""
    saved = 0.0
    for array in free:
        now = cost.arrival(array, everything[array.name])
        if now:
            saved += now - min(now, *(cost.arrival(array, other) for other in others))
    return saved > 0 and saved > LEAST_GAIN * cost.seconds(everything)


def refuse_beyond(
    program: Program, placements: Mapping[str, Placement], budget: int, *, chosen: bool = False
) -> None:
    """Refuse placements that take more of the device than there is."""
    held = held_by_phase(program, placements)
    fullest = max(held, key=lambda phase: held[phase])
    if held[fullest] <= budget:
        return
    there = [
        (array.name, device_bytes(array, placements[array.name]))
        for array in program.arrays
        if fullest in program.phases_of(array)
    ]
    raise MemoryBudgetError(
        held[fullest], budget, [item for item in there if item[1]],
        f"phase {fullest!r} of program {program.name} needs that much of the device; raise the "
        f"budget to {-(-held[fullest] >> 20)}MiB"
        + ("" if chosen else ", or let memory='auto' place arrays that need not be there"),
    )  # fmt: skip
