"""Sources of a CPU run: accesses that the GPU would make, recorded step by step or declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.algorithms.programs import program_of
from louvain_um.events import Event
from louvain_um.graph.graph import Graph
from louvain_um.placement.program import Program
from louvain_um.profiling.access.recorded_plans import trace_of
from louvain_um.profiling.access.recorder import Recorder
from louvain_um.profiling.access.recordings import BINS, access_maps, by_page, page_map, shift_of
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable, Kind, Source
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.simulator.trace import Array, Launch, Trace
from louvain_um.profiling.sources.source import EventSource, SessionClock

COUNTERPARTS: Final = {
    "next_active": "active", "aggregate_members": "members",
    "aggregate_starts": "member_starts", "aggregate_rooms": "rooms", "hub_keys": "tally_keys",
    "hub_sums": "tally_sums",
}  # fmt: skip
"""Arrays of the GPU engine that the CPU engine knows by another name."""

CYCLED: Final = ("labels", "start", "refined")
"""Arrays that it numbers by cycle and level."""

NOTE: Final = (
    "accesses are modelled: those that the GPU's kernels would make for the steps that the CPU "
    "engine took; several in one 32-byte sector of a row count once"
)

DECLARED_NOTE: Final = (
    "accesses are modelled: those that the GPU's kernels declare for a graph of this size, in the "
    "time that the CPU engine took; a search is taken to visit every arc"
)

ADDRESS: Final = 1 << 44
"""Arrays of the program, which a run on the CPU does not make, begin at multiples of this."""


@dataclass(slots=True)
class _Count:
    """What a launch did to one array: when, how often, by rows of its map."""

    array: str
    bin: int
    rows: NDArray[np.int64]


def accesses(
    times: Sequence[int], addresses: Sequence[int], sizes: Sequence[int], counts: Sequence[int],
    kernels: Sequence[str],
) -> EventTable:  # fmt: skip
    """Return accesses of launches to arrays as events of the engine."""
    names = tuple(dict.fromkeys(kernels))
    columns: dict[str, Any] = {
        "time": times, "source": Source.ENGINE, "kind": Kind.ACCESS, "address": addresses,
        "bytes": sizes, "count": counts, "kernel": [names.index(kernel) for kernel in kernels],
    }  # fmt: skip
    return EventTable(columns, names)


class RecorderSource(EventSource):
    """Records the accesses of a CPU run."""

    name = "recorder"
    evidence = "modelled"

    def __init__(self, graph: Graph) -> None:
        self.recorder = Recorder(graph)
        self.notes: list[str] = [NOTE]
        self.alive: dict[str, tuple[int, int]] = {}
        self.shifts: dict[str, int] = {}
        self.counts: list[_Count] = []
        self.edges: list[int] = []
        self.launches = 0
        self.fresh: list[tuple[int, int, int, int, str]] = []

    def start(self, clock: SessionClock) -> None:
        """Begin to record."""
        self.clock = clock
        self.edges = [clock.now()]

    def observe(self, event: Event) -> None:
        """Note arrays, and count the accesses of a step."""
        if event.kind == "start":
            # Nothing is accessed before the first phase, nor between two.
            now = self.clock.now()
            if not self.launches:
                self.edges = [now]
            elif now > self.edges[-1]:
                self.edges.append(now)
        elif event.kind == "array":
            self.alive[event.name] = (event.address, event.nbytes)
        elif event.kind == "freed":
            # A tail given back leaves the rest where it is.
            address, nbytes = self.alive.get(event.name, (0, 0))
            if event.address > address:
                self.alive[event.name] = (address, nbytes - event.nbytes)
            else:
                self.alive.pop(event.name, None)
        elif event.kind == "step":
            self.recorder(event)
            self._count(event)

    def _count(self, event: Event) -> None:
        """Count the launches that were added to the program."""
        program = self.recorder.program
        arrays = list(program.arrays.values())
        launches = [s for s in program.steps if isinstance(s, Launch)]
        # The session keeps counts, not steps: what was counted is let go.
        program.steps.clear()
        now = self.clock.now()
        self.launches += len(launches)
        for at, launch in enumerate(launches):
            begin = self.edges[-1]
            self.edges.append(max(begin + 1, begin + (now - begin) // (len(launches) - at)))
            for number in np.unique(launch.touches.array).tolist():
                self._add(arrays[number], number, launch, event, now)

    def _add(self, array: Array, number: int, launch: Launch, event: Event, now: int) -> None:
        """Add what a launch did to one array, at the address of its counterpart."""
        counterpart = self._counterpart(array.name, event)
        if counterpart not in self.alive:
            return
        address, nbytes = self.alive[counterpart]
        if not nbytes:
            return
        shift = self.shifts.setdefault(counterpart, shift_of(nbytes))
        pages, counts, size = by_page(launch.touches, number, array)
        # Elements differ in size; their order does not.
        at = np.minimum(pages * PAGE_BYTES * nbytes // max(array.nbytes, 1), nbytes - 1)
        rows = np.bincount(at >> shift, counts).astype(np.int64)
        self.counts.append(_Count(counterpart, len(self.edges) - 2, rows))
        self.fresh.append((now, address, size, int(counts.sum()), launch.kernel))

    def _counterpart(self, name: str, event: Event) -> str:
        """Return what the CPU engine calls an array."""
        stem, _, number = name.rpartition(".")
        if not number.isdecimal():
            stem, number = name, "0"
        stem = COUNTERPARTS.get(stem, stem)
        cycle = event.step["cycle"]
        if stem in CYCLED:
            return f"{stem}.{cycle}.{number}"
        return name if stem in ("offsets", "targets", "weights", "loops", "degrees") else stem

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return a row for each array of each launch since the last call."""
        fresh, self.fresh = self.fresh, []
        if not fresh:
            return None
        times, addresses, sizes, counts, kernels = zip(*fresh, strict=True)
        return accesses(times, addresses, sizes, counts, kernels)

    def maps(self) -> tuple[PageMap, ...]:
        """Return a map of each array; long runs have several launches in a bin."""
        if len(self.edges) < 2:
            return ()
        each = -(-(len(self.edges) - 1) // BINS)
        edges = np.array([*self.edges[:-1:each], self.edges[-1]], np.int64)
        heights: dict[str, int] = {}
        for count in list(self.counts):
            heights[count.array] = max(heights.get(count.array, 0), len(count.rows))
        found = {
            name: np.zeros((height, len(edges) - 1), np.int64) for name, height in heights.items()
        }
        for count in list(self.counts):
            found[count.array][: len(count.rows), count.bin // each] += count.rows
        return tuple(
            page_map(name, self.shifts[name], edges, counts) for name, counts in found.items()
        )

    def about(self) -> dict[str, Any]:
        """Return how many launches were counted."""
        return {"launches": self.launches, "page_bytes": PAGE_BYTES}


def announced_arrays(program: Program, kind: Literal["array", "freed"]) -> Iterator[Event]:
    """Yield what an engine would announce of a program's arrays."""
    for number, array in enumerate(program.arrays, 1):
        yield Event(
            kind=kind, name=array.name, group=array.group, address=ADDRESS * number,
            nbytes=max(1, array.nbytes),
        )  # fmt: skip


class DeclaredAccesses(EventSource):
    """Records what an algorithm declares."""

    name = "declared"
    evidence = "modelled"

    def __init__(self, name: str, size: Mapping[str, Any]) -> None:
        self.program, self.size = name, dict(size)
        self.notes: list[str] = [DECLARED_NOTE]
        self.iterations = 0
        self.began = 0
        self.trace: Trace | None = None
        self.times: Any = None
        self.drained = True

    def start(self, clock: SessionClock) -> None:
        """Begin to record."""
        self.clock = clock

    def observe(self, event: Event) -> None:
        """Note when the run began, its iterations, and that it has ended."""
        if event.phase != "run":
            return
        if event.kind == "start":
            self.began = self.clock.now()
        elif event.kind == "iteration":
            self.iterations = event.iteration + 1
        elif event.kind == "end":
            program = program_of(self.program, iterations=self.iterations or None, **self.size)
            trace = trace_of(program)
            # What the host reads behind the last launch is no part of the run.
            launches = tuple(step for step in trace.steps if isinstance(step, Launch))
            self.trace = replace(trace, steps=launches)
            end = max(self.clock.now(), self.began + len(launches))
            self.times = np.linspace(self.began, end, len(launches) + 1).astype(np.int64)
            self.drained = False

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return a row for each array of each launch, once."""
        if self.drained or self.trace is None:
            return None
        self.drained = True
        rows = []
        for at, step in enumerate(self.trace.steps):
            for number in np.unique(step.touches.array).tolist():  # type: ignore[union-attr]
                array = self.trace.arrays[number]
                _, pages, size = by_page(step.touches, number, array)  # type: ignore[union-attr]
                rows.append((self.times[at], ADDRESS * (number + 1), size, int(pages.sum())))
        if not rows:
            return None
        times, addresses, sizes, counts = zip(*rows, strict=True)
        return accesses(times, addresses, sizes, counts, [self.program] * len(rows))

    def maps(self) -> tuple[PageMap, ...]:
        """Return a map of each array."""
        return () if self.trace is None else access_maps(self.trace, self.times)

    def about(self) -> dict[str, Any]:
        """Return how many launches were declared."""
        return {"launches": 0 if self.trace is None else len(self.trace.steps)}
