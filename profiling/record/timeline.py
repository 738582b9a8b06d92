"""What a recording gathers: phases and arrays that an engine announces, and events of sources."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from louvain_um.events import Event
from louvain_um.profiling.session import Lifetime, PhaseSpan
from louvain_um.profiling.session.data import event_arrays, with_phases
from louvain_um.profiling.session.events import EventTable, concatenate, merge
from louvain_um.profiling.sources.source import SessionClock


@dataclass(slots=True)
class _Open:
    """A phase that runs, and where its next iteration begins."""

    phase: str
    level: int
    about: Event
    start: int
    mark: int

    def until(self, now: int) -> PhaseSpan:
        """Return it as if it ended now."""
        span = _span(self.about, self.start, now, -1)
        return replace(span, phase=self.phase, level=self.level)


class Timeline:
    """Phases and arrays of one run, as an engine announces them."""

    def __init__(self, clock: SessionClock) -> None:
        self.clock = clock
        self.spans: list[PhaseSpan] = []
        self.open: list[_Open] = []
        self.ended: list[Lifetime] = []
        self.alive: dict[str, Lifetime] = {}

    def __call__(self, event: Event) -> None:
        """Observe."""
        now = self.clock.now()
        if event.kind == "array":
            self.enter(event.name, event.group, event.address, event.nbytes, now)
        elif event.kind == "freed":
            self.leave(event.name, event.address, now)
        elif event.kind == "start":
            self.begin(event.phase, event.level, event)
        elif event.kind == "end":
            self.end(event.phase)
        elif event.kind == "iteration" and self.open:
            running = self.open[-1]
            end = max(running.mark, now - round(event.seconds_ago * 1e9))
            self.spans.append(_span(event, running.mark, end, event.iteration))
            running.mark = end

    def begin(self, phase: str, level: int = -1, about: Event | None = None) -> None:
        """Note that a phase begins."""
        now = self.clock.now()
        self.open.append(_Open(phase, level, about or Event(kind="start"), now, now))

    def end(self, phase: str) -> None:
        """Note that a phase ends; whatever began inside it and never ended, ends with it."""
        now = self.clock.now()
        for at in range(len(self.open) - 1, -1, -1):
            if self.open[at].phase == phase:
                self.spans.extend(running.until(now) for running in self.open[at:])
                del self.open[at:]
                return

    def enter(self, name: str, group: str, address: int, nbytes: int, now: int) -> None:
        """Note a new array; one of the same name ends."""
        self.leave(name, None, now)
        level = re.search(r"\.(\d+)$", name)
        self.alive[name] = Lifetime(
            name=name,
            group=group or "scratch",
            address=address,
            nbytes=nbytes,
            start_ns=now,
            end_ns=now,
            level=int(level[1]) if level else -1,
        )

    def leave(self, name: str, address: int | None, now: int) -> None:
        """Note that an array, or its tail from an address on, was given back."""
        array = self.alive.pop(name, None)
        if array is None:
            return
        self.ended.append(replace(array, end_ns=now))
        if address is not None and array.address < address < array.address + array.nbytes:
            self.alive[name] = replace(array, nbytes=address - array.address, start_ns=now)

    def lifetimes(self) -> tuple[Lifetime, ...]:
        """Return all arrays so far; those alive end now."""
        now = self.clock.now()
        arrays = [*self.ended, *(replace(array, end_ns=now) for array in list(self.alive.values()))]
        return tuple(sorted(arrays, key=lambda array: (array.start_ns, array.name)))

    def phases(self) -> tuple[PhaseSpan, ...]:
        """Return all phases and iterations so far; those that run end now."""
        now = self.clock.now()
        spans = [*self.spans, *(each.until(now) for each in list(self.open))]
        return tuple(sorted(spans, key=lambda span: (span.start_ns, -span.end_ns)))


def _span(event: Event, start: int, end: int, iteration: int) -> PhaseSpan:
    return PhaseSpan(
        phase=event.phase,
        level=event.level,
        iteration=iteration,
        start_ns=start,
        end_ns=max(start, end),
        vertices=event.vertices,
        arcs=event.arcs,
        moved=event.moved,
        modularity=event.modularity,
    )


class EventStore:
    """Tables as they come from sources; similar rows are merged where there are too many."""

    def __init__(self, most_events: int) -> None:
        self.most_events = most_events
        self.notes: list[str] = []
        self._tables: list[EventTable] = []

    def add(self, table: EventTable) -> None:
        """Keep a table."""
        self._tables.append(table)

    @property
    def full(self) -> bool:
        """Whether there are more rows than should be kept."""
        return sum(map(len, self._tables)) > self.most_events

    def gather(self, timeline: Timeline) -> EventTable:
        """Return all events as one table, merged by the timeline's phases and arrays if full."""
        table = concatenate(self._tables)
        if len(table) > self.most_events:
            rows = len(table)
            table = with_phases(table, timeline.phases())
            arrays = event_arrays(table, timeline.lifetimes())
            table, ns, size = merge(table, arrays, self.most_events // 2)
            self.notes = [
                f"events were merged from {rows:,} rows into {len(table):,} where they were alike: "
                f"totals are exact, times to {ns / 1e6:g} ms, addresses to {size / 2**20:g} MiB"
            ]
        self._tables = [table] if len(table) else []
        return table
