"""The interface of every source of events, the clock they share, and which ones record a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable

if TYPE_CHECKING:
    from louvain_um.gpu.runtime.device import Choice


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


def choose_sources(
    chosen: Choice, sources: Sequence[str], *, tracer: bool = False, programs: bool = False
) -> tuple[list[EventSource], dict[str, str]]:
    """Return the sources for a device, and why others are missing."""
    known = tuple(dict.fromkeys(SOURCES + LIGHT))
    if isinstance(sources, str):
        sources = (sources,)
    unknown = [name for name in sources if name not in known]
    if unknown:
        raise OptionError("sources", unknown[0], f"must be of {', '.join(known)}")
    if chosen.kind == "cpu":
        if tracer:
            raise OptionError(remedy=NO_TRACER)
        return [], {}
    from cupy.cuda import runtime

    from louvain_um.profiling.sources.cupti import Cupti
    from louvain_um.profiling.sources.in_place import InPlaceReads
    from louvain_um.profiling.sources.nvml import Nvml
    from louvain_um.profiling.sources.uvm import Uvm

    found: list[EventSource] = [] if programs else [InPlaceReads()]
    missing = {}
    if "uvm" in sources or "uvm-light" in sources:
        runtime.setDevice(chosen.index)
        runtime.memGetInfo()  # the driver records a process only once it has a context
        try:
            Uvm.check()
            found.append(Uvm(migrations="uvm" in sources))
        except SourceUnavailableError as error:
            missing["uvm"] = str(error)
    if "cupti" in sources:
        found.append(Cupti(chosen.index, counters=not any(s.name == "uvm" for s in found)))
    if "nvml" in sources:
        found.append(Nvml(runtime.deviceGetPCIBusId(chosen.index)))
    if tracer:
        from louvain_um.profiling.sources.tracer import Tracer

        found.append(Tracer(programs=programs))
    return found, missing
