"""Decide for all arrays of a program together where each lives.

Every array begins on the host. Then the one that saves most time per byte of device memory goes
there, as whole as it fits, and so on; lifetimes count, since arrays of different phases can take
turns in the same memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.arena_spec import BLOCK
from louvain_um.placement.policy.policy import Kind, Placement
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.program import Program, ProgramArray

HOSTED: Final = (Placement("host_mapped"), Placement("pinned"))
"""Placements without device memory; the first of equals is taken."""

BESIDE: Final = (Placement("peer"),)
"""The same where another device's memory takes the place of the host's."""

HERE: Final = tuple(Placement(k) for k in ("device", "managed", "prefetched", "read_mostly"))
"""Placements that may take device memory for the whole array; the first of equals is taken."""

LEAST_GAIN: Final = 1e-9
"""Relative gain below which two placements count as equal."""


def device_bytes(array: ProgramArray, placement: Placement) -> int:
    """Return the most bytes of the device that an array takes.

    Examples
    --------
    >>> from louvain_um.placement.policy.policy import Placement
    >>> from louvain_um.placement.program import ProgramArray
    >>> from louvain_um.placement.program.solver import device_bytes
    >>> device_bytes(ProgramArray(name="x", shape=8 << 20, dtype="u1"), Placement("split", 0.4))
    2097152
    """
    if placement.kind == "split" and placement.fraction < 1:
        return int(array.nbytes * placement.fraction) // BLOCK * BLOCK
    return array.held if placement.on_device else 0


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
    """Return where each array lives, for the least predicted time within a budget.

    Parameters
    ----------
    cost : ProgramCost
    budget : int
        Bytes of the device in any phase.
    managed : bool
        Whether there is managed memory; without, host memory is page-locked.
    fixed : mapping of str to Placement, optional
        Arrays that are decided already.

    Returns
    -------
    dict of str to Placement
        The same for arrays in any order of declaration.

    Raises
    ------
    MemoryBudgetError
        What must be on the device exceeds the budget.

    Examples
    --------
    >>> from louvain_um.placement.machine.profiles import H200
    >>> from louvain_um.placement.program.cost import ProgramCost
    >>> from louvain_um.placement.program import Gather, Program, ProgramArray, Stream
    >>> from louvain_um.placement.program.solver import solve
    >>> cold = ProgramArray(name="cold", shape=1 << 26, reads=Stream(passes=50))
    >>> hot = ProgramArray(name="hot", shape=1 << 26, reads=Gather(1e10))
    >>> cost = ProgramCost(program=Program(name="two", arrays=[cold, hot]), machine=H200)
    >>> {name: str(where) for name, where in solve(cost, 300 << 20).items()}
    {'cold': 'split(0.1758)', 'hot': 'device'}
    """
    arrays = sorted(cost.program.arrays, key=lambda array: array.name)
    placements = dict(fixed or {})
    must = [a for a in arrays if a.on_device and a.name not in placements]
    placements |= {array.name: Placement("device") for array in must}
    free = [array for array in arrays if array.name not in placements]
    by_peer = cost.machine.beyond == "peer"
    placements |= {a.name: Placement("peer" if by_peer else "pinned") for a in free}
    refuse_beyond(cost.program, placements, budget)
    here = HERE if managed and not by_peer else HERE[:1]
    everything = {**placements, **{array.name: Placement("device") for array in free}}
    hosted = BESIDE if by_peer else HOSTED if managed else HOSTED[1:]
    others = (*hosted, *here)
    if fits(cost.program, everything, budget) and not may_pay(cost, everything, free, others):
        return {array.name: everything[array.name] for array in arrays}
    for array in free:
        placements[array.name], _ = best(cost, placements, array, hosted)
    chosen = greedy(cost, placements, free, here, budget)
    for other in alternatives(cost, placements, free, here):
        least = cost.seconds(chosen) * (1 - LEAST_GAIN)
        if fits(cost.program, other, budget) and cost.seconds(other) < least:
            chosen = other
    return {array.name: chosen[array.name] for array in arrays}


def fits(program: Program, placements: Mapping[str, Placement], budget: int) -> bool:
    """Whether placements keep to a budget in every phase."""
    return max(held_by_phase(program, placements).values()) <= budget


def may_pay(
    cost: ProgramCost,
    everything: Mapping[str, Placement],
    free: Iterable[ProgramArray],
    others: tuple[Placement, ...],
) -> bool:
    """Whether other placements than plain device memory for everything may pay at all.

    No kernel is faster elsewhere, so they can only save what moving arrays takes.
    """
    saved = 0.0
    for array in free:
        now = cost.arrival(array, everything[array.name])
        saved += now - min([now, *(cost.arrival(array, other) for other in others)])
    return saved > LEAST_GAIN * cost.seconds(everything)


def best(
    cost: ProgramCost,
    placements: Mapping[str, Placement],
    array: ProgramArray,
    among: Iterable[Placement],
) -> tuple[Placement, float]:
    """Return the placement of one array that takes least time, the first of equals, and that time.

    Phases take the same under all placements in device memory, which differ in arrival alone.
    """
    found, least = HOSTED[0], float("inf")
    others = sum(cost.arrival(a, placements[a.name]) for a in cost.program.arrays if a is not array)
    phases = dict[tuple[float, bool], float]()
    for placement in among:
        key = placement.on_device, placement.kind == "pinned"
        if key not in phases:
            phases[key] = sum(cost.phases({**placements, array.name: placement}).values())
        seconds = phases[key] + others + cost.arrival(array, placement)
        if seconds < least * (1 - LEAST_GAIN):
            found, least = placement, seconds
    return found, least


def greedy(
    cost: ProgramCost,
    begin: Mapping[str, Placement],
    free: Iterable[ProgramArray],
    here: tuple[Placement, ...],
    budget: int,
) -> dict[str, Placement]:
    """Return placements after moving arrays to the device, most time saved per byte first."""
    placements, left = dict(begin), {array.name: array for array in free if array.nbytes}
    while left:
        now = cost.seconds(placements)
        held = held_by_phase(cost.program, placements)
        offers = []
        for name, array in left.items():
            placement, seconds = best(cost, placements, array, here)
            gain = now - seconds
            if gain > now * LEAST_GAIN:
                # Rounded, since the order of additions must not decide between equals.
                offers.append((float(f"{-gain / array.held:.9e}"), name, placement))
        if not offers:
            break
        _, name, placement = min(offers, key=lambda offer: offer[:2])
        array = left.pop(name)
        room = budget - max(held[phase] for phase in cost.program.phases_of(array))
        if array.held <= room:
            placements[name] = placement
        elif (part := split(array, room)) is not None:
            gain = now - cost.seconds({**placements, name: part})
            if gain > now * LEAST_GAIN:
                placements[name] = part
    return placements


def split(array: ProgramArray, room: int) -> Placement | None:
    """Return a split that leaves as many whole blocks on the device as there is room for."""
    blocks = room // BLOCK
    if blocks <= 0:
        return None
    # Half a block more, so that rounding the product down gives so many.
    return Placement("split", min(1.0, (blocks + 0.5) * BLOCK / array.nbytes))


def alternatives(
    cost: ProgramCost,
    begin: Mapping[str, Placement],
    free: Iterable[ProgramArray],
    here: tuple[Placement, ...],
) -> Iterable[dict[str, Placement]]:
    """Yield placements of one kind for all arrays, as fixed policies have them."""
    kinds: tuple[Kind, ...] = tuple(placement.kind for placement in here)
    for kind in kinds:
        yield {**begin, **{array.name: Placement(kind) for array in free}}


def refuse_beyond(program: Program, placements: Mapping[str, Placement], budget: int) -> None:
    """Refuse placements that take more of the device than there is.

    Raises
    ------
    MemoryBudgetError
        With the bytes of the fullest phase, and its arrays.
    """
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
        "budget, or let memory='auto' place arrays that need not be there",
    )  # fmt: skip
