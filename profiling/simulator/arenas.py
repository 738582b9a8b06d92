"""Arrays of one arena: memory that a program allocates once and reuses."""

from __future__ import annotations

from collections.abc import Sequence

from louvain_um.profiling.simulator.trace import Allocate, Free, Step

Lives = list[tuple[int, int]]


def lives_of(steps: Sequence[Step], count: int) -> list[Lives]:
    """Return for each array the ranges of steps in which it is alive."""
    later = {step.array for step in steps if isinstance(step, Allocate)}
    begun = {number: -1 for number in range(count) if number not in later}
    found: list[Lives] = [[] for _ in range(count)]
    for at, step in enumerate(steps):
        if isinstance(step, Allocate):
            begun.setdefault(step.array, at)
        elif isinstance(step, Free) and step.array in begun:
            found[step.array].append((begun.pop(step.array), at))
    for number, since in begun.items():
        found[number].append((since, len(steps)))
    return found


def pack(pages: Sequence[int], lives: Sequence[Lives]) -> list[int]:
    """Return the page of an arena at which each of some arrays begins."""
    starts = [0] * len(pages)
    placed: list[int] = []
    order = sorted(range(len(pages)), key=lambda number: lives[number][0] if lives[number] else ())
    for number in order:
        taken = sorted(
            (starts[other], starts[other] + pages[other])
            for other in placed
            if _together(lives[number], lives[other])
        )
        at = 0
        for first, end in taken:
            if first - at >= pages[number]:
                break
            at = max(at, end)
        starts[number] = at
        placed.append(number)
    return starts


def _together(first: Lives, second: Lives) -> bool:
    """Return whether two arrays are alive at the same time."""
    return any(a < d and c < b for a, b in first for c, d in second)
