"""Declared programs as traces, and recorded runs as programs and plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage, Use
from louvain_um.core.ledger import Group
from louvain_um.errors import LouvainUmError, MemoryBudgetError
from louvain_um.options import Method
from louvain_um.placement.detection_plan import Plan, make_plan
from louvain_um.placement.hardware import size
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.model.workload import Facts, kind_of
from louvain_um.placement.policy.auto import Declare, DeclaredRun
from louvain_um.placement.policy.policy import AUTO, Policy
from louvain_um.placement.program import Atomic, Gather, Phase, Program, ProgramArray, Stream
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.solver import solve
from louvain_um.profiling.simulator import Array, HostTouches, Touches, concatenate_touches
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.simulator.touches import Access
from louvain_um.profiling.simulator.trace import Allocate, Free, Launch, Step, Trace, begun_later

if TYPE_CHECKING:
    from louvain_um.gpu.memory.shape import Shape

MOST_LAUNCHES: Final = 64
"""Launches of a phase; of phases with more runs, each launch stands for several."""

MOST_UNLIKE: Final = 1024
"""The same where runs mostly go over parts of arrays, each run over other ones."""

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
    >>> from louvain_um.profiling.access.recorded_plans import trace_of
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
    if not accesses:
        return
    streams = [(n, access) for n, access, _ in accesses if isinstance(access, Stream)]
    alike, unlike = (
        sum(arrays[n].pages for n, a in streams if (a.passes >= phase.passes) is whole)
        for whole in (True, False)
    )
    most = MOST_UNLIKE if unlike > alike else MOST_LAUNCHES
    launches = max(1, min(most, round(phase.passes)))
    repeats = max(1.0, phase.passes / launches)
    passes = [access.passes / repeats for _, access in streams]
    parts = PARTS
    if len(streams) == len(accesses):
        longest = max((arrays[n].pages * access.share for n, access in streams), default=0)
        parts = max(PARTS, ceil(longest / PART_PAGES))
    each = max(passes, default=0) / launches
    parts = max(PARTS, ceil(parts * (each if launches > MOST_LAUNCHES else max(1, ceil(each)))))
    slots = launches * parts
    for at in range(launches):
        edges = np.arange(at * parts, (at + 1) * parts + 1) / slots
        rows = [
            _rows(number, arrays[number].pages, access, written, edges, launches, repeats)
            for number, access, written in accesses
        ]
        order = np.argsort(np.concatenate([part for part, _ in rows]), kind="stable")
        touches = concatenate_touches(runs for _, runs in rows)
        if len(touches):
            yield Launch(
                touches=touches.select(order), kernel=phase.name, phase=phase.name,
                iteration=at, repeats=repeats, device=phase.device,
            )  # fmt: skip


def _rows(
    number: int, pages: int, access: Stream | Gather, written: bool, edges: NDArray[np.float64],
    launches: int, repeats: float,
) -> tuple[NDArray[np.int64], Touches]:  # fmt: skip
    """Return the runs of an access between shares of the whole, and the part of each."""
    # A launch that stands for several, none of them a pass over a stream, goes over all of their
    # parts, and reads so much less of each page.
    inside = max(1, round(pages * access.share))
    nbytes = PAGE_BYTES
    if isinstance(access, Stream) and access.passes <= launches:
        nbytes = max(1, round(PAGE_BYTES / repeats))
    else:
        access = access.times(1 / repeats)
    if isinstance(access, Stream):
        cuts = (access.passes * inside * edges).astype(np.int64)
        # A run ends with its part, and with the array.
        turns = np.arange(cuts[0] // inside + 1, cuts[-1] // inside + 1) * inside
        begins = np.unique(np.concatenate([cuts, turns]))
        part = np.searchsorted(cuts, begins[:-1], side="right") - 1
        way = Access.WRITE if written else Access.READ
        return part, Touches.runs(number, begins[:-1] % inside, np.diff(begins), way, nbytes)
    way = Access.SCATTER if written else Access.GATHER
    if isinstance(access, Atomic):
        way = Access.ATOMIC
    cuts = (access.count * edges).astype(np.int64)
    amount: NDArray[np.int64] = cuts[1:] - cuts[:-1]
    part = np.flatnonzero(amount)
    return part, Touches.at_random(number, 0, inside, way, amount[part])


MOST_COUNT: Final = 1 << 48
"""Bound of what a recording says of its graph."""

USES: Final[dict[Access, Use]] = {
    Access.READ: "stream",
    Access.WRITE: "stream",
    Access.GATHER: "gather",
    Access.SCATTER: "gather",
    Access.ATOMIC: "atomic",
    Access.CONTENDED: "atomic",
    Access.BARRIER: "atomic",
}


def peak_of(trace: Trace) -> int:
    """Return the in-core footprint in bytes, of which budgets and oversubscription are shares."""
    if trace.about is None:
        return trace.peak_bytes
    return device_bytes_in_core(_declarer(trace.about)(False), separate=True)


def explain_peak(trace: Trace) -> str:
    """Return what 100 % of device memory is for a recording, in a sentence."""
    peak = size(peak_of(trace))
    if trace.about is None:
        return (
            f"100 % of device memory is {peak}, the peak of the recorded arrays in whole blocks of "
            "2 MiB"
        )
    reserve = ", the rest is reserve that the run did not touch"
    return (
        f"100 % of device memory is {peak}, the in-core footprint that louvain-um plan --read "
        f"states; the recorded arrays take {size(trace.peak_bytes)}"
        f"{reserve if trace.peak_bytes <= peak_of(trace) else ', in whole blocks of 2 MiB'}"
    )


def plan_of(about: Mapping[str, Any], policy: Policy, machine: Machine, capacity: int) -> Plan:
    """Return the plan that the program itself makes, from what a recording says of its graph."""
    from louvain_um.gpu.memory.array_specs import declare_out_of_core

    shape = _shape(about)
    declared = DeclaredRun(
        arrays=_declarer(about),
        out_of_core=lambda low_scratch: declare_out_of_core(
            replace(shape, low_scratch=low_scratch)
        ),
    )
    facts = Facts(skew=about["skew"], max_degree=shape.max_degree)
    return make_plan(declared, policy, machine, capacity, facts)


def _declarer(about: Mapping[str, Any]) -> Declare:
    """Return what declares the arrays of a run, with low scratch or not."""
    from louvain_um.gpu.memory.array_specs import declare

    shape = _shape(about)
    return lambda low: declare(replace(shape, low_scratch=low))


def _shape(about: Mapping[str, Any]) -> Shape:
    """Return what the sizes of a recorded run's arrays follow from."""
    from louvain_um.gpu.memory.shape import Shape

    known = dict(about)
    try:
        for name, value in known.items():
            if name != "method" and value is not None and not 0 <= float(value) < MOST_COUNT:
                raise ValueError(name)
        if known["method"] not in get_args(Method):
            raise ValueError("method")
        if known.get("sum_bytes", 8) not in (4, 8):
            raise ValueError("sum_bytes")
        skew = known.pop("skew") * known["vertices"] / max(known["arcs"], 1)
        return Shape(**known | {"kind": kind_of(skew).name, "skew": skew})
    except (KeyError, TypeError, ValueError):
        raise LouvainUmError(
            "the recording's data of its graph is damaged; record the graph again"
        ) from None


def program_placements(program: Program, machine: Machine, capacity: int) -> dict[str, str]:
    """Return the placements that `auto` decides for another program's arrays."""
    if capacity <= 0:
        raise MemoryBudgetError(1, 0, remedy="lower the oversubscription")
    found = solve(ProgramCost(program=program, machine=machine), capacity)
    return {name: str(where) for name, where in found.items()}


def auto_placements(
    arrays: tuple[ArraySpec, ...], machine: Machine, capacity: int
) -> dict[str, str]:
    """Return the placements that `auto` plans for arrays on a machine of such a capacity."""
    if capacity <= 0:
        raise MemoryBudgetError(1, 0, remedy="lower the oversubscription")
    targets = [array for array in arrays if array.role == "targets" and array.level == 0]
    arcs = max(1, sum(array.size for array in targets))
    read = targets[0].accesses if targets else {}
    visited = read.get(("move", "stream"), arcs) / arcs
    declared = DeclaredRun(arrays=lambda low_scratch: arrays)
    plan = make_plan(declared, AUTO, machine, capacity, Facts(visited=visited), free=capacity)
    return {array.name: str(placed(array, plan.chosen)) for array in arrays}


def _counted(trace: Trace) -> Iterator[tuple[Launch, set[int], list[tuple[int, Access, float]]]]:
    """Yield each launch, the arrays that are there, and bytes streamed, or accesses, of each."""
    alive = set(range(len(trace.arrays))) - begun_later(trace.steps)
    for step in trace.steps:
        if isinstance(step, Allocate):
            alive.add(step.array)
        elif isinstance(step, Free):
            alive.discard(step.array)
        elif isinstance(step, Launch):
            t = step.touches
            sums = np.zeros((len(trace.arrays), len(Access)))
            np.add.at(sums, (t.array, t.kinds), step.repeats * t.totals)
            touched = np.argwhere(sums).tolist()
            yield step, alive, [(n, Access(way), float(sums[n, way])) for n, way in touched]


def declared(trace: Trace) -> tuple[ArraySpec, ...]:
    """Return a trace's arrays as an engine declares its own: when alive, how often touched."""
    later = begun_later(trace.steps)
    stages: list[set[Stage]] = [
        set() if number in later else {"load"} for number in range(len(trace.arrays))
    ]
    accesses: list[dict[tuple[Stage, Use], float]] = [{} for _ in trace.arrays]
    for step, alive, touched in _counted(trace):
        stage = stage_of(step)
        for number in alive:
            stages[number].add(stage)
        for number, way, count in touched:
            key = (stage, USES[way])
            count /= trace.arrays[number].itemsize if USES[way] == "stream" else 1
            accesses[number][key] = accesses[number].get(key, 0.0) + count
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
    >>> from louvain_um.profiling.access.recorded_plans import program_of
    >>> from louvain_um.profiling.simulator import Array, Launch, Touches, Trace
    >>> rank = Array(name="rank", group="mine", nbytes=1 << 20)
    >>> step = Launch(touches=Touches.runs(0, 0, rank.pages), phase="iterate")
    >>> program = program_of(Trace((rank,), (step, step)))
    >>> program.accesses(program.arrays[0], "iterate")
    [(Stream(passes=2.0, share=1.0), False)]
    """
    launches = dict[str, float]()
    lives: list[set[str]] = [set() for _ in trace.arrays]
    uses: list[dict[tuple[str, Access], float]] = [{} for _ in trace.arrays]
    for step, alive, touched in _counted(trace):
        phase = step.phase or "run"
        launches[phase] = launches.get(phase, 0.0) + step.repeats
        for number in alive:
            lives[number].add(phase)
        for number, way, count in touched:
            uses[number][phase, way] = uses[number].get((phase, way), 0.0) + count
    names = tuple(launches) or ("run",)
    arrays = []
    for number, array in enumerate(trace.arrays):
        size = max(1, -(-array.nbytes // array.itemsize))
        found: dict[str, dict[str, list[Any]]] = {"reads": {}, "writes": {}}
        for (phase, way), amount in uses[number].items():
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
