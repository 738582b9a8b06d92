"""A trace of a program that was declared, not recorded: any program can be simulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from louvain_um.placement.program import Atomic, Phase, Program, Stream
from louvain_um.profiling.simulator import (
    Access,
    Allocate,
    Array,
    Free,
    HostTouches,
    Launch,
    Touches,
    Trace,
    concatenate_touches,
)
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.simulator.trace import Step

MOST_LAUNCHES: Final = 64
"""Launches of a phase; of phases with more runs, each stands for several."""

PARTS: Final = 16
"""Parts of a launch: in each, streams go on and random accesses fall everywhere."""


def trace_of(program: Program, seed: int = 0) -> Trace:
    """Return a trace of a program: streams page after page, the rest at random.

    Parameters
    ----------
    program : Program
    seed : int
        Of the pages that few random accesses fall on.

    Examples
    --------
    >>> from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
    >>> from louvain_um.profiling.access.declared_trace import trace_of
    >>> data = ProgramArray(name="data", shape=1 << 20, reads=Stream(6), from_host=1)
    >>> scan = Program(name="scan", arrays=[data], phases=[Phase(name="run", passes=3)])
    >>> trace = trace_of(scan)
    >>> [step.phase for step in trace.steps], int(trace.steps[0].touches.amount.max())
    (['run', 'run', 'run'], 8192)
    """
    rng = np.random.default_rng(seed)
    arrays = tuple(
        Array(
            name=array.name,
            group=array.group,
            nbytes=max(1, array.nbytes),
            starts="host" if array.from_host else "nowhere",
            itemsize=array.itemsize,
        )
        for array in program.arrays
    )
    steps: list[Step] = []
    lives = [program.phases_of(array) for array in program.arrays]
    first, last = program.phases[0].name, program.phases[-1].name
    later = [(n, names) for n, names in enumerate(lives) if names and names[0] != first]
    sooner = [(n, names) for n, names in enumerate(lives) if names and names[-1] != last]
    for phase in program.phases:
        steps += [Allocate(array=n) for n, names in later if names[0] == phase.name]
        launches = max(1, min(MOST_LAUNCHES, round(phase.passes)))
        for at in range(launches):
            touches = list(_launch(program, phase, at, launches, rng))
            whole = concatenate_touches(touches)
            if len(whole):
                steps.append(
                    Launch(touches=whole, kernel=phase.name, phase=phase.name, iteration=at)
                )
        steps += [Free(array=n) for n, names in sooner if names[-1] == phase.name]
    read = [
        Touches.runs(number, 0, arrays[number].pages, Access.READ, PAGE_BYTES)
        for number, array in enumerate(program.arrays)
        if array.to_host and last in lives[number]
    ]
    if read:
        steps.append(HostTouches(touches=concatenate_touches(read)))
    return Trace(arrays, tuple(steps))


def _launch(
    program: Program, phase: Phase, at: int, launches: int, rng: np.random.Generator
) -> Iterator[Touches]:
    """Yield the touches of one launch, part by part."""
    for part in range(PARTS):
        for number, array in enumerate(program.arrays):
            pages = max(1, -(-array.nbytes // PAGE_BYTES))
            for access, written in program.accesses(array, phase.name):
                if isinstance(access, Stream):
                    way = Access.WRITE if written else Access.READ
                    yield from _streamed(number, pages, access, way, (at, launches), part)
                    continue
                way = Access.SCATTER if written else Access.GATHER
                if isinstance(access, Atomic):
                    way = Access.ATOMIC
                count = access.count / launches / PARTS
                inside = max(1, round(pages * access.share))
                yield from _random(number, inside, count, way, rng)


def _streamed(
    number: int, pages: int, access: Stream, way: Access, launch: tuple[int, int], part: int
) -> Iterator[Touches]:
    """Yield a part of what a launch streams: all of the array, or its share of one pass."""
    at, launches = launch
    inside = max(1, round(pages * access.share))
    each = access.passes / launches
    if not each:
        return
    first, end = 0.0, float(inside)
    if each < 1:
        # One pass takes several launches.
        first = (at * each % 1) * inside
        end = min(float(inside), first + each * inside)
    low, high = (int(first + (end - first) * cut / PARTS) for cut in (part, part + 1))
    if high > low:
        yield Touches.runs(number, low, high - low, way, round(PAGE_BYTES * max(1.0, each)))


def _random(
    number: int, pages: int, count: float, way: Access, rng: np.random.Generator
) -> Iterator[Touches]:
    """Yield so many accesses of random pages."""
    if count >= pages:
        yield Touches.runs(number, 0, pages, way, round(count / pages))
    elif count >= 1:
        yield Touches.of(number, np.sort(rng.integers(0, pages, round(count))), way)
