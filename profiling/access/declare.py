"""A recording's arrays as an engine declares its own, so that plans can be made for them."""

from __future__ import annotations

from typing import Final

import numpy as np

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage, Use
from louvain_um.profiling.simulator.touches import Access
from louvain_um.profiling.simulator.trace import Allocate, Free, Launch, Trace

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
            group=array.group,
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
