"""Move arrays of a program to the device, most time saved per byte first, within a budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.program import Program, ProgramArray
from louvain_um.placement.program.solving.standing import LEAST_GAIN, Standing

RUNG_ARRAYS: Final = 100
"""Arrays times ways for budgets between one and its half: what keeps planning below a second."""

Step = tuple[ProgramArray, Placement]
Marks = NDArray[np.bool_]


def device_bytes(array: ProgramArray, placement: Placement) -> int:
    """Return the most bytes of the device that an array takes."""
    if placement.kind == "split" and placement.fraction < 1:
        return int(array.nbytes * placement.fraction) // BLOCK * BLOCK
    return array.held if placement.on_device else 0


def climbed(
    begin: Standing, free: list[ProgramArray], here: tuple[Placement, ...], budget: int
) -> Standing:
    """Return placements after moving arrays to the device, most time saved per byte first."""
    program = begin.cost.program
    choices = Choices(begin, [array for array in free if array.nbytes], here)
    standing, held, ends = begin.copy(), Held(program, begin.placements), [begin]
    most = held.most
    waiting = [budget, *(rung for rung in rungs(most, len(free)) if rung < budget)]
    for array, placement in climb(standing, held, choices, most):
        room = held.room(array, budget)
        whole = standing.seconds_with(array, placement)
        part, seconds = split(standing, array, room, whole)
        least = min(standing.total, whole) if array.held <= room else standing.total
        if seconds < least * (1 - LEAST_GAIN):
            ends.append(standing.copy())
            ends[-1].place(array, part)
        full = [each for each in waiting if array.held > held.room(array, each)]
        for each in full:
            waiting.remove(each)
            ends.append(standing.copy())
            if each != budget:
                deque(climb(ends[-1], held.copy(), choices, each), maxlen=0)
        if not waiting:
            break
    else:
        ends.append(standing)
    found = ends[0]
    for end in ends[1:]:
        if end.total < found.total * (1 - LEAST_GAIN):
            found = end
    return found


def rungs(most: int, arrays: int) -> list[int]:
    """Return budgets that depend on the program alone, from just below its peak to one block."""
    step = 0.5 ** (1 / min(8, 1 + RUNG_ARRAYS // max(arrays, 1)))
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
        """Return the same, to go on from."""
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
        self, begin: Standing, arrays: list[ProgramArray], here: tuple[Placement, ...]
    ) -> None:
        cost, index = begin.cost, begin.accesses.index
        self.arrays, self.here = arrays, here
        self.index = np.array([index[array.name] for array in arrays], np.int64)
        self.held = np.array([array.held for array in arrays], np.float64)
        arrivals = [[cost.arrival(array, where) for where in here] for array in arrays]
        self.arrivals = np.array(arrivals, np.float64).reshape(len(arrays), len(here))

    def offers(self, standing: Standing, left: Marks) -> Iterator[tuple[int, Placement]]:
        """Yield what gains, most time per byte first, ties in the order of names."""
        least = standing.total * LEAST_GAIN
        arrival, kind = self.arrivals[:, 0].copy(), np.zeros(len(left), np.int64)
        for k in range(1, len(self.here)):
            better = self.arrivals[:, k] < arrival - least
            arrival[better], kind[better] = self.arrivals[better, k], k
        gains = standing.gains()[self.index] + standing.arrivals[self.index] - arrival
        rows = np.flatnonzero(left & (gains > least))
        # Rounded, since the order of additions must not decide between equals.
        mantissa, exponent = np.frexp(gains[rows] / self.held[rows])
        order = np.argsort(-np.ldexp(np.rint(mantissa * 2**30), exponent), kind="stable")
        return ((int(i), self.here[kind[i]]) for i in rows[order])


def climb(standing: Standing, held: Held, choices: Choices, budget: int) -> Iterator[Step]:
    """Move arrays to the device until none is left that gains and fits."""
    left = np.array([standing.placements[a.name].on_device == 0 for a in choices.arrays], np.bool_)
    moved = True
    while moved:
        moved = False
        for i, placement in choices.offers(standing, left):
            array, left[i] = choices.arrays[i], False
            room = held.room(array, budget)
            where, seconds = placement, standing.seconds_with(array, placement)
            if array.held > room:
                where, seconds = split(standing, array, room, seconds)
            if seconds < standing.total * (1 - LEAST_GAIN):
                yield array, where
                standing.place(array, where)
                held.add(array, where)
                moved = True
                break


def split(
    standing: Standing, array: ProgramArray, room: int, whole: float
) -> tuple[Placement, float]:
    """Return a split of whole blocks that there is room for, and its seconds; ∞ without room."""

    def seconds(blocks: int) -> float:
        return standing.seconds_split(array, share_of(array, blocks))

    low, high = 1, min(room, array.nbytes - 1) // BLOCK
    if high < low:
        return Placement("host_mapped"), float("inf")
    while low < high:
        middle = (low + high + 1) // 2
        if whole <= seconds(middle) <= seconds(middle - 1) * (1 + LEAST_GAIN):
            low = middle
        else:
            high = middle - 1
    return part_of(array, low), seconds(low)


def part_of(array: ProgramArray, blocks: int) -> Placement:
    """Return the split that leaves so many whole blocks on the device, less than the array."""
    return Placement("split", share_of(array, blocks))


def share_of(array: ProgramArray, blocks: int) -> float:
    """Return its share on the device."""
    # Half of what follows more, so that rounding the product down gives so many.
    whole = blocks * BLOCK
    return (whole + min(BLOCK, array.nbytes - whole) / 2) / array.nbytes
