"""Replay a trace on the simulated machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import distinct
from louvain_um.errors import LouvainUmError, OptionError, check_table
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.policy import Policy
from louvain_um.profiling.session.events import PHASES, Cause, EventTable, Kind, Source
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import allocate, discard_pages, free
from louvain_um.profiling.simulator.driver.gpus import (
    Gpus,
    copy_counters,
    stack_states,
    state_of,
    update_others,
)
from louvain_um.profiling.simulator.driver.launch import run, run_host
from louvain_um.profiling.simulator.driver.migration import to_gpu, to_host
from louvain_um.profiling.simulator.driver.service import serve_notices
from louvain_um.profiling.simulator.driver.state import emit, spend
from louvain_um.profiling.simulator.driver.thrashing import unpin
from louvain_um.profiling.simulator.driver.user_functions import Driver
from louvain_um.profiling.simulator.initial_state import (
    arrivals,
    build_state,
    check_peer,
    check_state,
)
from louvain_um.profiling.simulator.layout import Layout, Placement, lay_out, placements_of
from louvain_um.profiling.simulator.result import TERMS, Simulation
from louvain_um.profiling.simulator.touches import Touches
from louvain_um.profiling.simulator.trace import (
    Allocate,
    Discard,
    Free,
    HostTouches,
    Launch,
    Prefetch,
    Step,
    Trace,
    begun_later,
)

MOST_NS = 2.0**62
"""Bound of simulated time, which events keep as int64."""

SAMPLE = 1 << 20
"""Random accesses of a run that are simulated one by one, twice; the second time stands for all
further ones."""

_NO_PAGE = -(c.BASE_ADDRESS // c.PAGE_BYTES)  # comes out as address 0: no array's

_PREFETCH_RANGE = 4096 * c.BLOCK_PAGES  # pages between two looks at the event buffer


def simulate(
    trace: Trace,
    machine: Machine | str = "h200",
    *,
    policy: str | Path | Policy | None = None,
    placements: Mapping[str, Placement] | None = None,
    capacity: int | Sequence[int] | None = None,
    driver: Driver | None = None,
    peer: bool = False,
    record: bool = True,
) -> Simulation:
    """Replay a trace under a policy, on a machine, with a given device memory.

    Steps run one after another, even on different GPUs.

    Parameters
    ----------
    trace : Trace
        Arrays, launches, host touches and prefetches.
    machine : Machine or str
        Rates from which times are computed; a profile's name or file.
    policy : str, path or Policy, optional
        Name, TOML file or object of any policy but "auto", which `sweep.replay.run` plans.
    placements : mapping of str to placement, optional
        Instead of a policy: by name of an array or a group; see `layout.ADVICE`. With several
        GPUs, "preferred_gpu:1" names the second; "accessed_by" means all. Default: no advice.
    capacity : int or sequence of int, optional
        Bytes of device memory of every GPU, or of each; the machine's own by default.
    driver : Driver, optional
        Behaviour of the driver; NVIDIA's by default.
    peer : bool
        Whether the rest of splits is in another GPU's memory, of a GPU of the same kind, instead
        of the host's. The placement "peer" is there in any case.
    record : bool
        Whether to keep single events; the totals are kept anyway.

    Returns
    -------
    Simulation
        Deterministic.

    Raises
    ------
    MemoryBudgetError
        The arrays placed on the device do not fit.
    OptionError
        There is no such policy or placement, or both are given; the trace or a placement uses more
        GPUs than the machine has; or `capacity` does not hold whole numbers, one for each GPU.
    LouvainUmError
        The simulation needs more memory than the host has, or simulated time overflows.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import Array, Launch, Touches, Trace, simulate
    >>> data = Array(name="targets", group="graph", nbytes=8 << 20)
    >>> scan = Launch(touches=Touches.runs(0, 0, data.pages))
    >>> run = simulate(Trace((data,), (scan, scan)), "h200")
    >>> run.bytes_to_device == data.nbytes, run.total("evictions")
    (True, 0)
    >>> simulate(Trace((data,), (scan,)), policy="adv2").batches
    0

    Two GPUs that use an array in turns take it from each other:

    >>> turns = [Launch(touches=scan.touches, device=k % 2) for k in range(4)]
    >>> run = simulate(Trace((data,), tuple(turns)), "h200-x2")
    >>> run.bytes_to_device == data.nbytes, run.bytes_between == 3 * data.nbytes
    (True, True)
    """
    profile = machine if isinstance(machine, Machine) else load_machine(machine)
    given = profile.memory_bytes if capacity is None else capacity
    if policy is not None:
        if placements is not None:
            raise OptionError(remedy="pass a policy or placements, not both")
        placements = placements_of(trace.arrays, policy)
    ways = driver or Driver()
    check_state(trace.arrays, profile, ways, trace.devices)
    check_table("placements", placements or {})
    layout = lay_out(
        trace.arrays, placements or {}, ways.hold, trace.steps,
        pooled=ways.eviction == "program", far="peer" if peer else "host_mapped",
        malloc="accessed_by" if profile.coherent else "managed",
    )  # fmt: skip
    gpus = max(trace.devices, layout.devices)
    if gpus > profile.gpus:
        has = "1 GPU" if profile.gpus == 1 else f"{profile.gpus} GPUs"
        more = "name one that has more, such as h200-x2" if gpus == 2 else "set gpus in its profile"
        raise OptionError("machine", profile.name, f"has {has}, and {gpus} are used; {more}")
    if gpus > trace.devices:
        check_state(trace.arrays, profile, ways, gpus)
    sizes = _capacities(given, gpus)
    replay = Replay(trace, layout, profile, ways, sizes, record)
    try:
        replay.start()
        loading = replay.seconds
        seconds = np.array([replay.step(step) for step in trace.steps], np.float64)
    except ValueError as error:  # of compiled code, about a function of the user's
        raise LouvainUmError(
            f"a function of your own (eviction {ways.eviction!r}, prefetch {ways.prefetch!r}) "
            f"{error}; test it on a small trace"
        ) from None
    s = replay.state
    if not s.clock[c.STALLED] < MOST_NS:
        raise LouvainUmError(
            f"the simulation takes {s.clock[c.STALLED] / 1e9:.3g} s on {profile.name}, too long to "
            "count in nanoseconds; check the rates of the machine"
        )
    return Simulation(
        trace=trace,
        addresses=np.array([layout.address(i) for i in range(len(trace.arrays))], np.int64),
        events=replay.events(),
        dropped_events=int(s.counters[c.DROPPED]),
        costs={name: float(ns) * 1e-9 for name, ns in zip(TERMS, s.costs, strict=True)},
        by_gpu=np.stack([state.totals for state in replay.states]),
        batches=int(s.counters[c.BATCHES]),
        services=int(s.counters[c.SERVICES]),
        fetched_faults=int(s.counters[c.FAULTS]),
        replayed=int(s.counters[c.REPLAYED]),
        peak_bytes=max(int(state.counters[c.PEAK]) for state in replay.states) * c.PAGE_BYTES,
        capacity_bytes=max(sizes),
        bytes_loaded=replay.loaded,
        load_seconds=loading,
        launch_seconds=seconds,
        provenance={
            "evidence": "modelled",
            "machine": profile.to_dict(),
            "driver": asdict(ways),
            "placements": dict(placements or {}),
            "peer": peer,
        },
    )


def seconds_within(
    most: float, trace: Trace, machine: Machine, placements: Mapping[str, Placement], capacity: int
) -> tuple[float, int]:
    """Return the seconds and evictions of a replay, which ends once it takes longer than `most`."""
    driver = Driver()
    check_state(trace.arrays, machine, driver, trace.devices)
    layout = lay_out(
        trace.arrays, placements, steps=trace.steps,
        malloc="accessed_by" if machine.coherent else "managed",
    )  # fmt: skip
    replay = Replay(trace, layout, machine, driver, [capacity], record=False)
    replay.start()
    for step in trace.steps:
        replay.step(step)
        if replay.seconds > most:
            break
    return replay.seconds, int(replay.state.totals[:, c.T_EVICTIONS].sum())


def _capacities(given: Any, gpus: int) -> list[int]:
    """Return the bytes of each GPU, given as one number for all or as one for each."""
    try:
        sizes = list(given)
    except TypeError:
        sizes = [given] * gpus
    whole = all(isinstance(size, Integral) and not isinstance(size, bool) for size in sizes)
    if len(sizes) != gpus or not whole or min(sizes) < 0:
        many = "" if gpus == 1 else f", or one for each of {gpus} GPUs"
        raise OptionError("capacity", given, f"must be a number of bytes{many}")
    return [int(size) for size in sizes]


class _Place(NamedTuple):
    """What runs: kernel, phase, level and iteration, and for how many of its kind it stands."""

    kernel: int = -1
    phase: int = -1
    level: int = -1
    iteration: int = -1
    times: float = 1.0


class Replay:
    """State of one replay and the events gathered so far."""

    def __init__(
        self,
        trace: Trace,
        layout: Layout,
        machine: Machine,
        driver: Driver,
        sizes: Sequence[int],
        record: bool,
    ) -> None:
        self.trace = trace
        self.later = begun_later(trace.steps)
        self.alive = set(range(len(trace.arrays))) - self.later
        self.layout = layout
        self.machine = machine
        self.passes = driver.prefetch_passes
        self.record = record
        self.kernels: dict[str, int] = {}
        named = (s.phase for s in trace.steps if isinstance(s, Launch) and s.phase is not None)
        self.phases = tuple(dict.fromkeys((*PHASES, *named)))
        self.parts: list[tuple[NDArray[np.int64], _Place]] = []
        self.place = _Place()
        self.loaded = 0
        linked = machine.peer_link != "none"
        seen = [layout]
        if len(sizes) > 1:
            seen = [layout.seen_by(number, linked=linked) for number in range(len(sizes))]
        self.states = [
            build_state(
                trace, seen[number], machine, driver, capacity=size, record=record,
                gpus=len(sizes), number=number,
            )
            for number, size in enumerate(sizes)
        ]  # fmt: skip
        check_peer(trace, layout, machine.memory_bytes)
        self.gpus: Gpus | None = None
        if len(sizes) > 1:
            self.gpus = stack_states(self.states)
            self.states = [state_of.py_func(self.gpus, number) for number in range(len(sizes))]
        self.state = self.states[0]

    @property
    def seconds(self) -> float:
        """Seconds until now."""
        return float(self.state.clock[c.STALLED]) * 1e-9

    def turn_to(self, device: int) -> None:
        """Let another GPU work."""
        if self.state is not self.states[device]:
            copy_counters(self.state, self.states[device])
            self.state = self.states[device]

    def on_each(self, act: Callable[..., Any], *ranges: Any) -> None:
        """Let each GPU do the same with some pages."""
        for device in range(len(self.states)):
            self.turn_to(device)
            act(self.state, *ranges)
            if self.gpus is not None:  # it may have evicted pages
                update_others(self.state, self.gpus)

    def start(self) -> None:
        """Copy what the program itself copies to the device before its first kernel."""
        given = [
            part
            for number, array in enumerate(self.trace.arrays)
            if array.starts == "host" and number not in self.later
            for part in self.layout.parts(number, array.pages)
        ]
        for part in given:
            self.turn_to(max((part.advice >> c.TARGET) - 1, 0))
            if part.advice & (c.DEVICE | c.PEER):
                size = (part.end - part.first) * c.PAGE_BYTES
                self.loaded += size
                spend(self.state, c.PREFETCH, size / self.machine.copy_to_device * 1e9)
                if part.advice & c.DEVICE:
                    self.state.totals[part.array, c.T_IN_USER] += size
                    emit(self.state, int(Kind.HTOD), part.first, size, 1, int(Cause.USER))
            elif part.prefetched:
                self._to_gpu(part.first, part.end)
        self._drain()

    def step(self, step: Step) -> float:
        """Run one step; return its seconds."""
        clock = self.state.clock
        before = clock[c.STALLED]
        self.place = _Place()
        unpin(self.state, self.gpus)
        if isinstance(step, Launch):
            self._launch(step)
            if step.repeats > 1:
                with self._standing_for(step.repeats - 1):
                    self._launch(step, again=True)
        elif isinstance(step, HostTouches):
            self._host(step)
        elif isinstance(step, Allocate | Free):
            self._lifetime(step)
        elif isinstance(step, Discard):
            self.on_each(discard_pages, *self._range(step))
        else:
            self._prefetch(step)
        self._drain()
        return float(clock[c.STALLED] - before) * 1e-9

    def _launch(self, step: Launch, *, again: bool = False) -> None:
        self.turn_to(step.device)
        s, t = self.state, step.touches
        number = self.kernels.setdefault(step.kernel, len(self.kernels))
        phase = -1 if step.phase is None else self.phases.index(step.phase)
        self.place = self.place._replace(
            kernel=number, phase=phase, level=step.level, iteration=step.iteration
        )
        spend(s, c.LAUNCH, (self.machine.launch_seconds + step.host_seconds) * 1e9)
        local = s.per_access[:, c.LOCAL].copy()
        if step.compute_seconds is not None:
            s.per_access[:, c.LOCAL] = 0.0
        before = s.totals.copy()
        if self.record and not again:
            self._note(Kind.KERNEL, _NO_PAGE, 0, t.touches)
        self._touch(t, arrivals(t, step.chain, self.machine))
        s.per_access[:, c.LOCAL] = local
        if step.compute_seconds is not None:
            s.clock[c.COMPUTED] = step.compute_seconds * 1e9
            s.costs[c.COMPUTE] += step.compute_seconds * 1e9
        computed, remote = float(s.clock[c.COMPUTED]), float(s.clock[c.READ_REMOTELY])
        grown = s.totals - before
        for array in np.flatnonzero(grown[:, c.T_REMOTE_BYTES]).tolist() if self.record else ():
            row = grown[array]
            count = int(row[c.T_REMOTE_ACCESSES] + row[c.T_REMOTE_ATOMICS])
            page = int(self.layout.starts[array])
            self._note(Kind.REMOTE_ACCESS, page, int(row[c.T_REMOTE_BYTES]), count)
        hidden = float(s.rates[c.SHARE_HIDDEN]) * min(computed, remote)
        spend(s, c.STEPS, max(0.0, step.chain * self.machine.step_seconds * 1e9 - computed))
        s.costs[c.HIDDEN] += hidden
        s.clock[c.STALLED] += computed + remote - hidden
        s.clock[c.COMPUTED] = s.clock[c.READ_REMOTELY] = 0.0

    def _touch(self, t: Touches, amount: NDArray[np.int64]) -> None:
        """Run the touches of a kernel; of many random ones, a sample stands for the rest."""
        # Neighbouring runs of an array share a sample.
        first = t.first + self.layout.starts[t.array]
        if t.way.max(initial=0) < c.SCATTERED:
            return self._rows(t, first, amount, slice(None))
        begin, alike = 0, (np.diff(t.array) == 0) & (np.diff(t.way) == 0) & t.scattered[1:]
        starts = np.flatnonzero(np.append(True, ~alike))
        sums = np.add.reduceat(amount, starts)
        for group in np.flatnonzero(t.scattered[starts] & (sums > 2 * SAMPLE)).tolist():
            at, total = int(starts[group]), int(sums[group])
            end = int(starts[group + 1]) if group + 1 < len(starts) else len(t)
            self._rows(t, first, amount, slice(begin, at))
            sample = np.maximum(1, np.rint(amount * (SAMPLE / total))).astype(np.int64)
            taken = int(sample[at:end].sum())
            self._rows(t, first, sample, slice(at, end))
            with self._standing_for((total - taken) / taken):
                self._rows(t, first, sample, slice(at, end))
            begin = end
        return self._rows(t, first, amount, slice(begin, len(t)))

    def _rows(
        self, t: Touches, first: NDArray[np.int64], amount: NDArray[np.int64], part: slice
    ) -> None:
        rows = (first[part], t.length[part], t.way[part], amount[part], t.array[part])
        sums = np.zeros(self.state.per_access.shape, np.int64)
        cursor = np.zeros(2, np.int64)
        while not run(self.state, self.gpus, sums, rows, cursor):
            self._drain()
            if self.state.counters[c.NOTIFIED]:
                serve_notices(self.state, self.gpus)

    @contextmanager
    def _standing_for(self, times: float) -> Iterator[None]:
        """Count what happens inside so many times."""
        s, place = self.state, self.place
        totals = s.totals if self.gpus is None else self.gpus.totals
        counted = (totals, s.costs, s.clock, s.counters)
        before = [values.copy() for values in counted]
        self._drain()
        self.place = place._replace(times=times * place.times)
        yield
        self._drain()
        self.place = place
        for values, old in zip(counted, before, strict=True):
            grown = values - old
            if values is s.counters:
                grown[[n for n in range(c.COUNTERS) if n not in c.REPORTED]] = 0
            values += np.rint((times - 1) * grown).astype(values.dtype)

    def _host(self, step: HostTouches) -> None:
        t = step.touches
        cursor = np.zeros(2, np.int64)
        first = t.first + self.layout.starts[t.array]
        self.turn_to(0)
        while not run_host(self.state, self.gpus, first, t.length, t.way, cursor):
            self._drain()

    def _lifetime(self, step: Allocate | Free) -> None:
        first = int(self.layout.starts[step.array])
        end = first + self.trace.arrays[step.array].pages
        begins = isinstance(step, Allocate)
        if begins == (step.array in self.alive):  # none begins or ends twice, as in `lives_of`
            return
        self.alive ^= {step.array}
        if self.layout.pooled or step.array in self.layout.pools:  # its pages are an arena's
            for state in self.states if begins else ():
                state.blocks[distinct(state.block_of[first:end]), c.OWNER] = step.array
            return
        self.on_each(allocate if begins else free, first, end)

    def _prefetch(self, step: Prefetch) -> None:
        if not step.batched:
            spend(self.state, c.PREFETCH, self.machine.prefetch_call_seconds * 1e9)
        first, end = self._range(step)
        if step.to == "gpu":
            self.turn_to(step.device)
            return self._to_gpu(first, end)
        for start in range(first, end, _PREFETCH_RANGE):
            self.on_each(to_host, self.gpus, start, min(end, start + _PREFETCH_RANGE))
            self._drain()

    def _range(self, step: Prefetch | Discard) -> tuple[int, int]:
        """Return where the pages of a step begin and end in the layout."""
        pages = self.trace.arrays[step.array].pages - step.first
        first = int(self.layout.starts[step.array]) + step.first
        return first, first + (pages if step.pages is None else step.pages)

    def _to_gpu(self, first: int, end: int) -> None:
        for _ in range(self.passes):
            for start in range(first, end, _PREFETCH_RANGE):
                to_gpu(self.state, self.gpus, start, min(end, start + _PREFETCH_RANGE))
                self._drain()

    def _note(self, kind: Kind, page: int, size: int, count: int) -> None:
        emit(self.state, int(kind), page, size, count, int(Cause.UNKNOWN))

    def _drain(self) -> None:
        """Keep the buffer's rows, with the kernel, phase, level and iteration they belong to."""
        rows = int(self.state.counters[c.EVENTS])
        if rows:
            self.parts.append((self.state.events[:rows].copy(), self.place))
            self.state.counters[c.EVENTS] = 0

    def events(self) -> EventTable:
        """Return all events in the schema."""
        rows = (
            np.concatenate([part for part, _ in self.parts])
            if self.parts
            else np.empty((0, c.EVENT_COLUMNS), np.int64)
        )
        counts = [len(part) for part, _ in self.parts]
        times = np.repeat([place.times for _, place in self.parts], counts)
        places = np.array([place[:4] for _, place in self.parts], np.int64).reshape(-1, 4)
        places = np.repeat(places, counts, axis=0)

        def whole(values: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.rint(times * values).astype(np.int64) if len(values) else values

        columns = {
            "time": np.maximum.accumulate(rows[:, c.E_TIME]),  # sums of fractions lose some ns
            "source": np.full(len(rows), Source.SIMULATOR, np.uint8),
            "kind": rows[:, c.E_KIND],
            "address": rows[:, c.E_ADDRESS],
            "bytes": whole(rows[:, c.E_BYTES]),
            "count": whole(rows[:, c.E_COUNT]),
            "cause": rows[:, c.E_CAUSE],
            "rows": whole(_groups(rows)),
            "kernel": places[:, 0],
            "phase": places[:, 1],
            "level": places[:, 2],
            "iteration": places[:, 3],
            "device": rows[:, c.E_GPU],
        }
        return EventTable(columns, tuple(self.kernels), self.phases)


def _groups(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of the source's rows each event is."""
    groups = np.ones(len(rows), np.int64)
    faults = np.flatnonzero(rows[:, c.E_KIND] == Kind.GPU_FAULT_GROUP)
    groups[faults[1:]] = np.diff(rows[faults, c.E_BATCH]) != 0
    return groups
