"""Accesses of a run on the CPU as the GPU's program declares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from louvain_um.algorithms.programs import program_of
from louvain_um.events import Event
from louvain_um.placement.program import Program
from louvain_um.profiling.access.access_maps import access_maps, by_page
from louvain_um.profiling.access.declared_trace import trace_of
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable, Kind, Source
from louvain_um.profiling.simulator.trace import Launch, Trace
from louvain_um.profiling.sources.source import SessionClock

NOTE: Final = (
    "accesses are modelled: those that the GPU's kernels declare for a graph of this size, in the "
    "time that the CPU engine took; a search is taken to visit every arc"
)


ADDRESS: Final = 1 << 44
"""Arrays of the program, which a run on the CPU does not make, begin at multiples of this."""


def announced_arrays(program: Program, kind: Literal["array", "freed"]) -> Iterator[Event]:
    """Yield what an engine would announce of a program's arrays."""
    for number, array in enumerate(program.arrays, 1):
        yield Event(
            kind=kind, name=array.name, group=array.group, address=ADDRESS * number,
            nbytes=max(1, array.nbytes),
        )  # fmt: skip


class DeclaredAccesses:
    """Records what an algorithm declares; see `louvain_um.profiling.sources.source.EventSource`."""

    name = "declared"
    evidence = "modelled"

    def __init__(self, name: str, size: Mapping[str, Any]) -> None:
        self.program, self.size = name, dict(size)
        self.notes: list[str] = [NOTE]
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
                _, counts, size = by_page(step.touches, number, array)  # type: ignore[union-attr]
                rows.append((self.times[at], ADDRESS * (number + 1), size, int(counts.sum())))
        if not rows:
            return None
        when, where, sizes, how_often = zip(*rows, strict=True)
        columns: dict[str, Any] = {
            "time": np.array(when),
            "source": np.full(len(rows), Source.ENGINE),
            "kind": np.full(len(rows), Kind.ACCESS),
            "address": np.array(where, np.uint64),
            "bytes": np.array(sizes),
            "count": np.array(how_often),
            "kernel": np.zeros(len(rows), np.int64),
        }
        return EventTable(columns, (self.program,))

    def stop(self) -> None:
        """Stop recording."""

    def maps(self) -> tuple[PageMap, ...]:
        """Return a map of each array."""
        return () if self.trace is None else access_maps(self.trace, self.times)

    def about(self) -> dict[str, Any]:
        """Return how many launches were declared."""
        return {"launches": 0 if self.trace is None else len(self.trace.steps)}
