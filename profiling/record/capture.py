"""Record a run: sources, an observer of the engine, what both gather, and a session at any time."""

from __future__ import annotations

import atexit
import datetime
import platform
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from louvain_um.core.threads import start_thread
from louvain_um.errors import GraphError, LouvainUmError, OptionError
from louvain_um.events import Event
from louvain_um.placement.detection_plan import Plan
from louvain_um.placement.program import ProgramPlan
from louvain_um.profiling.facade import Session
from louvain_um.profiling.session import Lifetime, PhaseSpan
from louvain_um.profiling.session.data import event_arrays, with_phases
from louvain_um.profiling.session.events import (
    MOST_EVENTS,
    MOST_LEVELS,
    EventTable,
    concatenate,
    merge,
)
from louvain_um.profiling.session.storage import check_target
from louvain_um.profiling.sources.source import EventSource, SessionClock, SourceUnavailableError
from louvain_um.version import __version__


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


TICK = 0.2
"""Seconds between visits to the sources."""

FIRST_SAVE, SAVE_EVERY = 1.0, 10.0
SHARE = 0.05
"""Seconds until a running session is first saved, between later savings (each pause twice the one
before until then), and the share of the time that saving may take."""

FEWEST_EVENTS = 100
"""Fewer rows could not separate arrays and phases."""


class Recording:
    """A run being recorded: an observer of engines."""

    def __init__(
        self,
        sources: Sequence[EventSource],
        *,
        metadata: Mapping[str, Any] | None = None,
        missing: Mapping[str, str] | None = None,
        save_to: str | Path | None = None,
        force: bool = False,
        most_events: int = MOST_EVENTS,
    ) -> None:
        if save_to is not None:
            check_target(save_to, force=force)
        if not isinstance(most_events, int) or most_events < FEWEST_EVENTS:
            raise OptionError("most_events", most_events, f"must be at least {FEWEST_EVENTS:,}")
        self.sources = list(sources)
        self.metadata = dict(metadata or {})
        self.status = {name: f"not available: {why}" for name, why in (missing or {}).items()}
        self.notes = [f"{name} recorded nothing: {why}" for name, why in (missing or {}).items()]
        self.plan: Plan | ProgramPlan | None = None
        self.save_to = save_to
        self.force = force
        self.complete = False
        self._lock = threading.RLock()
        self._events = EventStore(most_events)
        self._failed: list[EventSource] = []
        self._halt = threading.Event()
        self._session: Session | None = None

    def __enter__(self) -> Recording:
        self.clock = SessionClock()
        self.timeline = Timeline(self.clock)
        self.metadata.setdefault("created", datetime.datetime.now(datetime.UTC).isoformat())
        self.metadata.setdefault("host", platform.node())
        working = []
        for source in self.sources:
            try:
                source.start(self.clock)
            except SourceUnavailableError as error:
                self.status[source.name] = f"not available: {error}"
                self.notes.append(f"{source.name} recorded nothing: {error}")
            else:
                self.status[source.name] = getattr(source, "evidence", "measured")
                working.append(source)
        self.sources = working
        self.began = self.clock.now()
        try:
            self._pump = start_thread(self._run, "profiling")
        except BaseException:
            for source in self.sources:
                self._end(source)
            raise
        atexit.register(self._stop)  # an interrupt may come before or inside `__exit__`
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        seconds = (self.clock.now() - self.began) / 1e9
        self.metadata.setdefault("seconds", seconds)
        self._stop()
        for source in self.sources:
            self._end(source)
        self.complete = error is None
        if error is not None:
            self.notes.append(f"the run was cut short after {seconds:.1f} s")
        self._session = self.snapshot()
        if error is None:
            self._save(self._session)
        elif not _refused(error, self._session) and _has_content(self._session):
            # An error in saving must not hide why the run failed.
            with suppress(LouvainUmError):
                self._save(self._session)

    def _stop(self) -> None:
        """End the thread: one that still runs when the interpreter ends can crash."""
        self._halt.set()
        self._pump.join()
        atexit.unregister(self._stop)

    def __call__(self, event: Event) -> None:
        """Observe an engine."""
        if event.kind == "plan":
            self.plan = event.plan
        elif event.kind == "ranks":
            self.metadata["by_rank"] = list(event.ranks)
        self.timeline(event)
        for source in self.sources:
            observe = getattr(source, "observe", None)
            if observe is not None:
                observe(event)

    @property
    def session(self) -> Session:
        """The session so far; complete once the recording has ended."""
        return self._session or self.snapshot()

    @contextmanager
    def phase(self, name: str, level: int = -1) -> Iterator[None]:
        """Name what the block does; events inside belong to that phase."""
        if not (isinstance(level, int) and -1 <= level < MOST_LEVELS):
            raise OptionError("level", level, f"must lie in -1 … {MOST_LEVELS - 1}")
        self(Event(kind="start", phase=str(name), level=level))
        try:
            yield
        finally:
            self(Event(kind="end", phase=str(name), level=level))

    def array(self, name: str, array: Any, group: str = "graph") -> None:
        """Name an array, so that events at its addresses are attributed to it."""
        if not isinstance(group, str) or not group or not group.isprintable():
            raise OptionError("group", group, "must be a word")
        address, nbytes = _extent(array)
        self(Event(kind="array", name=str(name), group=group, address=address, nbytes=nbytes))

    def freed(self, name: str) -> None:
        """Note that an array was freed."""
        known = self.timeline.alive.get(name)
        if known is not None:
            at, nbytes = known.address, known.nbytes
            self(Event(kind="freed", name=name, group=known.group, address=at, nbytes=nbytes))

    def snapshot(self) -> Session:
        """Return a session of what is known so far."""
        with self._lock:
            events = self._events.gather(self.timeline)
            notes = [*self.notes, *(note for source in self.sources for note in source.notes)]
            notes += self._events.notes
        phases, lifetimes = self.timeline.phases(), self.timeline.lifetimes()
        energy = next((s.energy() for s in self.sources if hasattr(s, "energy")), None)
        metadata = {
            "version": __version__,
            "device": "",
            "policy": None,
            "seconds": (self.clock.now() - self.began) / 1e9,
            **self.metadata,
            "complete": self.complete,
            "sources": {"engine": "measured", **self.status},
            "about_sources": {source.name: source.about() for source in self.sources},
        }
        return Session(
            metadata=metadata,
            plan=None if self.plan is None else self.plan.to_dict(),
            lifetimes=lifetimes,
            phases=phases,
            events=with_phases(events, phases),
            maps=tuple(page for source in self.sources for page in source.maps()),
            notes=tuple(notes),
            energy=energy,
        )

    def _end(self, source: EventSource) -> None:
        """Stop a source and take its last events; if it fails, note that."""
        try:
            source.stop()
            self._take(source, last=True)
        except Exception as error:  # an error in stopping must not hide the run's own
            self.notes.append(
                f"{source.name} could not be stopped ({_reason(error)}); "
                "its last events may be missing"
            )
            return
        lost = getattr(source, "lost", None)
        if lost is not None and lost():
            self.notes.append(lost())

    def _visit(self, source: EventSource) -> None:
        """Take a source's events; if it fails, note that and continue with the others."""
        if source in self._failed:
            return
        try:
            self._take(source)
        except Exception as error:
            self._failed.append(source)
            self.notes.append(f"{source.name} failed ({_reason(error)}); what came later is lost")

    def _take(self, source: EventSource, *, last: bool = False) -> None:
        table = source.drain(last=last)
        if table is not None and len(table):
            with self._lock:
                self._events.add(table)

    def _run(self) -> None:
        """Visit the sources periodically, and save the session."""
        pause = FIRST_SAVE
        due = time.perf_counter() + pause
        while not self._halt.wait(TICK):
            for source in self.sources:
                self._visit(source)
            with self._lock:
                if self._events.full:
                    self._events.gather(self.timeline)
            since = time.perf_counter()
            if self.save_to is not None and since >= due:
                # An error here is raised when the recording ends and saves again.
                with suppress(Exception):
                    session = self.snapshot()
                    if _has_content(session):
                        self._save(session)
                took = time.perf_counter() - since
                pause = min(2 * pause, SAVE_EVERY)
                due = since + took + max(pause, took / SHARE)

    def _save(self, session: Session) -> None:
        if self.save_to is None:
            return
        session.save(self.save_to, force=self.force)
        self.force = True  # from now on the file is this recording's own


def _refused(error: BaseException, session: Session) -> bool:
    """Return whether a graph or an option was refused when it was loaded."""
    loaded = all(span.phase == "load" for span in session.phases) and not len(session.events)
    return loaded and isinstance(error, GraphError | OptionError)


def _has_content(session: Session) -> bool:
    """Return whether a session holds anything: a refused run leaves no file."""
    return bool(session.phases) or len(session.events) > 0


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _extent(array: Any) -> tuple[int, int]:
    """Return address and bytes of an array."""
    for attribute in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(array, attribute, None)
        if interface is not None:
            return int(interface["data"][0]), int(array.nbytes)
    raise OptionError("array", type(array).__name__, "must be an array of CuPy or NumPy")
