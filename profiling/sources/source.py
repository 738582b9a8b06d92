"""What every source of events offers, and the clock they share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable


class SourceUnavailableError(LouvainUmError):
    """A source cannot record here; its text says why and what to do."""


@dataclass(frozen=True, slots=True)
class SessionClock:
    """Nanoseconds since a session began; all sources tell their times by it."""

    origin: int = field(default_factory=time.perf_counter_ns)

    def now(self) -> int:
        """Return the time."""
        return time.perf_counter_ns() - self.origin


class EventSource(Protocol):
    """One way of watching a run.

    `start` raises `SourceUnavailableError` where the source cannot work; all else may be called
    only after it has returned. `drain` may be called from another thread than the run's.

    A source may also have `observe(event)`, which is told what engines announce; `energy()`, for
    the session's `energy`; and `lost()`, a note on what is missing, asked for at the end.
    """

    name: str
    notes: list[str]

    def start(self, clock: SessionClock) -> None:
        """Begin to record."""

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return the events since the last call; `last` asks for all that are still on the way."""

    def stop(self) -> None:
        """Stop recording and leave no trace; `drain` may be called once more."""

    def maps(self) -> tuple[PageMap, ...]:
        """Return histograms of what was recorded so far."""

    def about(self) -> dict[str, Any]:
        """Return what belongs into the session's metadata: counts, overhead."""
