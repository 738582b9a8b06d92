"""A trace of a program that was declared, not recorded: any program can be simulated."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.program import Atomic, Gather, Phase, Program, Stream
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
"""Launches of a phase; of phases with more runs, each launch stands for several."""

PARTS: Final = 16
"""Parts of a pass over the array that is passed over most often: in each, the others go on."""

PART_PAGES: Final = 64
"""Pages of a part where all accesses are streams, which kernels read side by side."""


def trace_of(program: Program) -> Trace:
    """Return a trace of a program: streams page after page, pass after pass, the rest at random.

    Parameters
    ----------
    program : Program

    Examples
    --------
    >>> from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
    >>> from louvain_um.profiling.access.declared_trace import trace_of
    >>> data = ProgramArray(name="data", shape=1 << 20, reads=Stream(6), from_host=1)
    >>> scan = Program(name="scan", arrays=[data], phases=[Phase(name="run", passes=3)])
    >>> trace = trace_of(scan)
    >>> [step.phase for step in trace.steps], trace.steps[0].touches.touches
    (['run', 'run', 'run'], 2048)
    """
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
        steps += _launches(program, phase, arrays)
        steps += [Free(array=n) for n, names in sooner if names[-1] == phase.name]
    read = [
        Touches.runs(number, 0, arrays[number].pages, Access.READ, PAGE_BYTES)
        for number, array in enumerate(program.arrays)
        if array.to_host and last in lives[number]
    ]
    if read:
        steps.append(HostTouches(touches=concatenate_touches(read)))
    return Trace(arrays, tuple(steps))


def _launches(program: Program, phase: Phase, arrays: tuple[Array, ...]) -> Iterator[Launch]:
    """Yield the launches of a phase: its accesses, cut into parts that follow each other."""
    accesses = [
        (number, access, written)
        for number, array in enumerate(program.arrays)
        for access, written in program.accesses(array, phase.name)
    ]
    launches = max(1, min(MOST_LAUNCHES, round(phase.passes)))
    repeats = max(1.0, phase.passes / launches)
    streams = [(n, access) for n, access, _ in accesses if isinstance(access, Stream)]
    passes = [access.passes / repeats for _, access in streams]
    parts = PARTS
    if len(streams) == len(accesses):
        most = max((arrays[n].pages * access.share for n, access in streams), default=0)
        parts = max(PARTS, ceil(most / PART_PAGES))
    parts *= max(1, ceil(max(passes, default=0) / launches))
    slots = launches * parts
    for at in range(launches):
        edges = np.arange(at * parts, (at + 1) * parts + 1) / slots
        rows = [
            _rows(number, arrays[number].pages, access.times(1 / repeats), written, edges)
            for number, access, written in accesses
        ]
        order = np.argsort(np.concatenate([part for part, _ in rows]), kind="stable")
        touches = concatenate_touches(runs for _, runs in rows)
        if len(touches):
            yield Launch(
                touches=touches.select(order), kernel=phase.name, phase=phase.name,
                iteration=at, repeats=repeats,
            )  # fmt: skip


def _rows(
    number: int, pages: int, access: Stream | Gather, written: bool, edges: NDArray[np.float64]
) -> tuple[NDArray[np.int64], Touches]:
    """Return the runs of an access between shares of the whole, and the part of each."""
    inside = max(1, round(pages * access.share))
    if isinstance(access, Stream):
        cuts = (access.passes * inside * edges).astype(np.int64)
        # A run ends with its part, and with the array.
        turns = np.arange(cuts[0] // inside + 1, cuts[-1] // inside + 1) * inside
        begins = np.unique(np.concatenate([cuts, turns]))
        part = np.searchsorted(cuts, begins[:-1], side="right") - 1
        way = Access.WRITE if written else Access.READ
        return part, Touches.runs(number, begins[:-1] % inside, np.diff(begins), way)
    way = Access.SCATTER if written else Access.GATHER
    if isinstance(access, Atomic):
        way = Access.ATOMIC
    cuts = (access.count * edges).astype(np.int64)
    amount: NDArray[np.int64] = cuts[1:] - cuts[:-1]
    part = np.flatnonzero(amount)
    return part, Touches.at_random(number, 0, inside, way, amount[part])
