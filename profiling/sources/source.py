"""The interface of every source of events, their clock, and the engine as a source.

The engine reports bytes that kernels read over the bus, which no driver counts. It knows the arcs
that each phase visited and where each array lies (`louvain_um.gpu.memory.in_place`); the access
tracer agrees to within 2 % on small graphs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from louvain_um.errors import LouvainUmError
from louvain_um.events import Event
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable, Kind, Source

NO_TRACER = (
    "the tracer counts GPU kernels; omit tracer=True (--tracer): a CPU run records its accesses "
    "without it"
)

SOURCES = ("uvm", "cupti", "nvml")

LIGHT = ("uvm-light", "cupti", "nvml")
"""Names of sources of a GPU run; the access tracer is an option of its own.

`uvm` records managed memory, `uvm-light` the same without single migrations, `cupti` kernels and
copies, and managed memory where neither of the first two works, `nvml` energy.
"""


class SourceUnavailableError(LouvainUmError):
    """A source cannot record here; the message gives the reason and the remedy."""


def record_dtype(fields: Mapping[str, tuple[int, str]], nbytes: int = 0) -> np.dtype[Any]:
    """Return the type of a record of C, by offset and format of the fields that are read."""
    offsets, formats = zip(*fields.values(), strict=True)
    size = {"itemsize": nbytes} if nbytes else {}
    record: Any = {"names": [*fields], "offsets": offsets, "formats": formats} | size
    dtype: np.dtype[Any] = np.dtype(record)
    return dtype


@dataclass(frozen=True, slots=True)
class SessionClock:
    """Nanoseconds since a session began; the time base of all sources."""

    origin: int = field(default_factory=time.perf_counter_ns)

    def now(self) -> int:
        """Return the time."""
        return time.perf_counter_ns() - self.origin


class EventSource(Protocol):
    """One way of recording a run."""

    name: str
    notes: list[str]

    def start(self, clock: SessionClock) -> None:
        """Begin to record."""

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return the events since the last call; with `last`, flush those still pending."""
        return None

    def stop(self) -> None:
        """Stop recording and clean up; `drain` may be called once more."""
        return

    def maps(self) -> tuple[PageMap, ...]:
        """Return histograms of the accesses so far."""
        return ()

    def about(self) -> dict[str, Any]:
        """Return the source's metadata: counts, overhead."""
        return {}


class InPlaceReads(EventSource):
    """Notes what an engine announces of bytes read in place."""

    name = "in_place"

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.places: dict[str, int] = {}
        self.rows: list[tuple[int, int, int]] = []
        self.nbytes: dict[tuple[str, str, int], int] = {}

    def start(self, clock: SessionClock) -> None:
        """Begin to note."""
        self.clock = clock

    def observe(self, event: Event) -> None:
        """Note the addresses of arrays, and the bytes read of them."""
        if event.kind == "array":
            self.places[event.name] = event.address
        elif event.kind == "in_place":
            self.rows.append((self.clock.now(), self.places.get(event.name, 0), event.nbytes))
            key = event.name, event.phase, event.level
            self.nbytes[key] = self.nbytes.get(key, 0) + event.nbytes

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return the events since the last call."""
        rows, self.rows = self.rows, []
        if not rows:
            return None
        columns = dict(zip(("time", "address", "bytes"), zip(*rows, strict=True), strict=True))
        return EventTable({**columns, "kind": Kind.REMOTE_ACCESS, "source": Source.ENGINE})

    def about(self) -> dict[str, Any]:
        """Return the bytes by array, phase and level, most first."""
        rows = sorted(self.nbytes.items(), key=lambda row: -row[1])
        return {
            "reads": [
                {"array": name, "phase": phase, "level": level, "bytes": nbytes}
                for (name, phase, level), nbytes in rows
            ]
        }
