"""Decide for all arrays of a program together where each lives.

Every array begins on the host. Then the one that saves most time per byte of device memory goes
there, as whole as it fits, and so on; lifetimes count, since arrays of different phases can take
turns in the same memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.policy.policy import Kind, Placement
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.program import Program, ProgramArray
from louvain_um.placement.program.solving.climb import climbed, device_bytes
from louvain_um.placement.program.solving.standing import LEAST_GAIN, Standing

HOSTED: Final = (Placement("host_mapped"), Placement("pinned"))
"""Placements without device memory; the first of equals is taken."""

BESIDE: Final = (Placement("peer"),)
"""The same where another device's memory takes the place of the host's."""

HERE: Final = tuple(Placement(k) for k in ("device", "managed", "prefetched", "read_mostly"))
"""Placements that may take device memory for the whole array; the first of equals is taken."""


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
    hosted = BESIDE if by_peer else HOSTED if managed else HOSTED[1:]
    others = (*hosted, *here)
    if fits(cost.program, everything, budget) and not may_pay(cost, everything, free, others):
        return {array.name: everything[array.name] for array in arrays}
    begin = Standing(cost, placements)
    for array in free:
        begin.place(array, begin.best(array, hosted)[0])
    chosen = climbed(begin, free, here, budget)
    for other in alternatives(begin.placements, free, here):
        if fits(cost.program, other, budget):
            standing = Standing(cost, other, begin.accesses)
            if standing.total < chosen.total * (1 - LEAST_GAIN):
                chosen = standing
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


def alternatives(
    begin: Mapping[str, Placement], free: Iterable[ProgramArray], here: tuple[Placement, ...]
) -> Iterable[dict[str, Placement]]:
    """Yield placements of one kind for all arrays, as fixed policies have them."""
    kinds: tuple[Kind, ...] = tuple(placement.kind for placement in here)
    for kind in kinds:
        yield {**begin, **{array.name: Placement(kind) for array in free}}


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
