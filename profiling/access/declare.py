"""A recording's arrays as an engine declares its own, so that plans can be made for them."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage, Use
from louvain_um.core.ledger import Group
from louvain_um.placement.program import Atomic, Gather, Phase, Program, ProgramArray, Stream
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import Allocate, Free, Launch, Trace

Counted = tuple[Access, float]
"""Bytes of streams, accesses of all others."""

USES: Final[dict[Access, Use]] = {
    Access.READ: "stream",
    Access.WRITE: "stream",
    Access.GATHER: "gather",
    Access.SCATTER: "gather",
    Access.ATOMIC: "atomic",
    Access.CONTENDED: "atomic",
    Access.BARRIER: "atomic",
}


def declared(trace: Trace) -> tuple[ArraySpec, ...]:
    """Return a trace's arrays as an engine declares its own: when alive, how often touched."""
    later = {step.array for step in trace.steps if isinstance(step, Allocate)}
    alive = set(range(len(trace.arrays))) - later
    stages: list[set[Stage]] = [set() for _ in trace.arrays]
    accesses: list[dict[tuple[Stage, Use], float]] = [{} for _ in trace.arrays]
    for number in alive:
        stages[number].add("load")
    for step in trace.steps:
        if isinstance(step, Allocate):
            alive.add(step.array)
        elif isinstance(step, Free):
            alive.discard(step.array)
        elif isinstance(step, Launch):
            stage = stage_of(step)
            for number in alive:
                stages[number].add(stage)
            t = step.touches
            sums = np.zeros((len(trace.arrays), len(Access)))
            np.add.at(sums, (t.array, t.way), t.length * t.amount)
            for number, way in zip(*np.nonzero(sums), strict=True):
                use = USES[Access(way)]
                count = sums[number, way]
                count /= trace.arrays[number].itemsize if use == "stream" else 1
                key = (stage, use)
                accesses[number][key] = accesses[number].get(key, 0.0) + float(count)
    return tuple(
        ArraySpec(
            name=array.name,
            role=array.role,
            level=array.level,
            group=cast(Group, array.group),
            itemsize=array.itemsize,
            size=-(-array.nbytes // array.itemsize),
            stages=tuple(stage for stage in STAGES if stage in stages[number]),
            accesses=accesses[number],
        )
        for number, array in enumerate(trace.arrays)
    )


def stage_of(step: Launch) -> Stage:
    """Return the stage of a run that a launch belongs to."""
    if step.level > 0:
        return "coarse"
    return next((stage for stage in STAGES if stage == step.phase), "move")


def program_of(trace: Trace) -> Program:
    """Return a trace of any program as it would declare itself: phases, arrays, accesses.

    Examples
    --------
    >>> from louvain_um.profiling.access.declare import program_of
    >>> from louvain_um.profiling.simulator import Array, Launch, Touches, Trace
    >>> rank = Array(name="rank", group="mine", nbytes=1 << 20)
    >>> step = Launch(touches=Touches.runs(0, 0, rank.pages), phase="iterate")
    >>> program = program_of(Trace((rank,), (step, step)))
    >>> program.accesses(program.arrays[0], "iterate")
    [(Stream(passes=2.0, share=1.0), False)]
    """
    later = {step.array for step in trace.steps if isinstance(step, Allocate)}
    alive = set(range(len(trace.arrays))) - later
    launches = dict[str, int]()
    lives: list[set[str]] = [set() for _ in trace.arrays]
    uses: list[dict[str, list[Counted]]] = [{} for _ in trace.arrays]
    for step in trace.steps:
        if isinstance(step, Allocate):
            alive.add(step.array)
        elif isinstance(step, Free):
            alive.discard(step.array)
        elif isinstance(step, Launch):
            phase = step.phase or "run"
            launches[phase] = launches.get(phase, 0) + 1
            for number in alive:
                lives[number].add(phase)
            _count(step.touches, phase, uses)
    names = tuple(launches) or ("run",)
    arrays = []
    for number, array in enumerate(trace.arrays):
        size = max(1, -(-array.nbytes // array.itemsize))
        found: dict[str, dict[str, list[Any]]] = {"reads": {}, "writes": {}}
        for phase, rows in uses[number].items():
            for way, amount in rows:
                made: Any = Gather(amount)
                if USES[way] == "stream":
                    made = Stream(amount / (size * array.itemsize))
                elif USES[way] == "atomic":
                    made = Atomic(amount)
                written = way in (Access.WRITE, Access.SCATTER)
                found["writes" if written else "reads"].setdefault(phase, []).append(made)
        arrays.append(
            ProgramArray(
                name=array.name, shape=size, dtype=np.dtype((np.void, array.itemsize)),
                group=array.group, role=array.role,
                phases=tuple(name for name in names if name in lives[number]),
                reads=found["reads"], writes=found["writes"],
                from_host=float(array.starts == "host"), given=array.starts == "host",
            )
        )  # fmt: skip
    phases = [Phase(name=name, launches=launches.get(name, 1)) for name in names]
    return Program(name="recording", arrays=arrays, phases=phases)


def _count(touches: Touches, phase: str, uses: list[dict[str, list[Counted]]]) -> None:
    """Add a launch's touches to the accesses of each array: bytes streamed, or accesses."""
    sums = np.zeros((len(uses), len(Access)))
    np.add.at(sums, (touches.array, touches.way), touches.length * touches.amount)
    for number, way in zip(*np.nonzero(sums), strict=True):
        known = dict(uses[number].get(phase, ()))
        kind = Access(int(way))
        known[kind] = known.get(kind, 0.0) + float(sums[number, way])
        uses[number][phase] = list(known.items())
