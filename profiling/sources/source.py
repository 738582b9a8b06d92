"""The interface of every source of events, and the clock they share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable

if TYPE_CHECKING:
    pass


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

    def stop(self) -> None:
        """Stop recording and clean up; `drain` may be called once more."""

    def maps(self) -> tuple[PageMap, ...]:
        """Return histograms of the accesses so far."""

    def about(self) -> dict[str, Any]:
        """Return the source's metadata: counts, overhead."""
