"""The unified-memory driver as a source: its complete event queue and its totals.

CUPTI reads the same queue through a small buffer and silently loses what does not fit. Here
the buffer is large, dropped events are counted, and the driver's totals show whether everything
arrived.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.threads import start_thread
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable, Kind
from louvain_um.profiling.sources.source import SessionClock
from louvain_um.profiling.sources.uvm_driver import COUNTERS, MIGRATION, WANTED, Decoder, listen

ENTRIES = 1 << 20
"""Entries of the queue: 64 MiB, a second of the densest faulting seen."""

PERIOD = 0.02
"""Seconds between reads of the queue."""

MOST_WAITING = 1 << 24
"""Entries that may wait to be decoded; beyond, the queue fills and the driver drops and counts."""


class Totals:
    """The driver's totals since construction, next to the sums of a source's events."""

    def __init__(self) -> None:
        self.trackers = listen()
        self.before = [tracker.totals for tracker in self.trackers]
        self.recorded = dict.fromkeys(COUNTERS, 0)
        self.counted: dict[str, int] | None = None

    def add(self, table: EventTable) -> None:
        """Count what was recorded."""
        for name, kind, column in (
            ("bytes_to_device", Kind.HTOD, "bytes"),
            ("bytes_to_host", Kind.DTOH, "bytes"),
            ("cpu_faults", Kind.CPU_FAULT, "count"),
        ):
            self.recorded[name] += table.total(kind, column=column)

    def close(self) -> None:
        """Note the driver's totals and stop counting."""
        pairs = zip(self.trackers, self.before, strict=True)
        totals = np.sum([tracker.totals - before for tracker, before in pairs], axis=0)
        self.counted = dict(zip(COUNTERS, totals.tolist(), strict=True))
        self.stop()

    def stop(self) -> None:
        """Stop counting."""
        for tracker in self.trackers:
            tracker.close()

    def about(self) -> dict[str, Any]:
        """Return both."""
        return {"recorded": dict(self.recorded), "driver_totals": self.counted}

    def missing(self) -> str:
        """Return as text where fewer were recorded than counted; empty if complete."""
        return ", ".join(
            f"{self.recorded[name]:,} of {counted:,} {name.replace('_', ' ')}"
            for name, counted in (self.counted or {}).items()
            if self.recorded[name] != counted
        )


class Uvm:
    """Migrations, faults, evictions, remote maps and thrashing, from the driver itself."""

    name = "uvm"

    def __init__(self, *, migrations: bool = True) -> None:
        self.migrations = migrations
        self.notes: list[str] = []
        self.decoder = Decoder()
        self.events = 0
        self.entries = 0
        self.dropped = 0
        self._waiting: list[NDArray[np.uint8]] = []
        self._lock = threading.Lock()
        self._halt = threading.Event()

    def start(self, clock: SessionClock) -> None:
        """Begin to record."""
        self.clock = clock
        self.totals = Totals()
        try:
            wanted = [kind for kind in WANTED if self.migrations or kind != MIGRATION]
            self.queues = listen(ENTRIES, wanted)
        except BaseException:
            self.totals.stop()
            raise
        self._thread = start_thread(self._collect, "uvm")

    @staticmethod
    def check() -> None:
        """Raise what `start` would raise."""
        for tracker in listen():
            tracker.close()

    def _collect(self) -> None:
        while not self._halt.wait(PERIOD):
            self._empty()

    def _empty(self) -> None:
        """Copy what is in the queue, unless too much waits already."""
        with self._lock:
            if sum(map(len, self._waiting)) < MOST_WAITING:
                taken = [queue.take() for queue in self.queues]
                self._waiting += [entries for entries in taken if len(entries)]

    def _flush(self) -> None:
        for queue in self.queues:
            queue.flush()

    def _dropped_so_far(self) -> int:
        return sum(queue.dropped for queue in self.queues)

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return the events that came in."""
        if not self._halt.is_set():
            if last:
                self._flush()
            self._empty()
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if not waiting:
            return None
        raw = np.concatenate(waiting)
        self.entries += len(raw)
        table = self.decoder.decode(raw)
        self.events += len(table)
        self.totals.add(table)
        raw_now, now = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), self.clock.now()
        columns = dict(table.columns)
        columns["time"] = columns["time"] - raw_now + now
        return EventTable(columns)

    def stop(self) -> None:
        """Stop recording, and compare the events with the driver's totals."""
        if "cupy" in sys.modules:
            from cupy.cuda import runtime

            runtime.deviceSynchronize()
        self._flush()
        time.sleep(2 * PERIOD)  # a driver thread delivers what was flushed
        self._halt.set()
        self._thread.join()
        self._empty()
        self.dropped = self._dropped_so_far()
        for queue in self.queues:
            queue.close()
        self.totals.close()
        if self.dropped:
            self.notes.append(f"the driver dropped {self.dropped:,} events: its queue was full")

    def lost(self) -> str:
        """Return which events are missing, by the driver's totals; empty if none."""
        if not self.migrations:
            return "migrations were not recorded one by one: only total bytes are known"
        missing = self.totals.missing()
        return f"the driver handed over {missing}" if missing else ""

    def maps(self) -> tuple[PageMap, ...]:
        """Return nothing: the events have addresses of their own."""
        return ()

    def about(self) -> dict[str, Any]:
        """Return events received, events lost, and the driver's totals."""
        return {
            "migrations": self.migrations,
            "entries": self.entries,
            "events": self.events,
            "dropped": self.dropped if self._halt.is_set() else self._dropped_so_far(),
            **self.totals.about(),
        }
