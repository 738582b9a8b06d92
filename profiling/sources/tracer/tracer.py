"""The tracer as a source of sessions: engines run instrumented kernels while it is active."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import DeviceUnavailableError, LouvainUmError, OptionError
from louvain_um.events import Event
from louvain_um.gpu.runtime import compile, compile_cache
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import COLUMNS, PHASES, EventTable, Kind, Source
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError
from louvain_um.profiling.sources.tracer.histogram import Histogram, TracedDevice
from louvain_um.profiling.sources.tracer.kernels import (
    MODULES,
    CupyKernels,
    Register,
    TracedKernels,
)
from louvain_um.profiling.sources.tracer.snippet import LOG


class AccessCounts(NamedTuple):
    """How often something was accessed."""

    reads: int = 0
    writes: int = 0
    atomics: int = 0

    @property
    def total(self) -> int:
        """All accesses."""
        return sum(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAccesses:
    """What a tracer counted.

    Parameters
    ----------
    maps : tuple of PageMap
        Of each array: accesses by page and time.
    events : EventTable
        A row of kind ACCESS for each array in each phase: `count` accesses.
    counts : mapping of str to AccessCounts
        Accesses by array.
    elsewhere : AccessCounts
        Accesses outside all arrays.
    log : ndarray of `state.LOG`
        Sampled accesses: address, time in nanoseconds since the session began, use (an index
        into `state.USES`) and kernel (an index into `kernels`).
    kernels : tuple of str
        Symbols of functions in the log.
    dropped : int
        Samples dropped because the log was full.
    notes : tuple of str
        What the numbers mean, and what is missing from them, a sentence each.
    """

    maps: tuple[PageMap, ...]
    events: EventTable
    counts: Mapping[str, AccessCounts]
    elsewhere: AccessCounts
    log: NDArray[Any]
    kernels: tuple[str, ...]
    dropped: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Accesses of an array in a phase."""

    time: int
    address: int
    count: int
    phase: int
    level: int


def table(rows: Sequence[Row]) -> EventTable:
    """Return rows as events of kind ACCESS."""
    columns: dict[str, Any] = {
        each.name: np.array([getattr(row, each.name) for row in rows], COLUMNS[each.name])
        for each in fields(Row)
    }
    columns["source"] = np.full(len(rows), Source.TRACER)
    columns["kind"] = np.full(len(rows), Kind.ACCESS)
    return EventTable(columns)


def notes(
    counters: Histogram,
    register: Register,
    maps: Sequence[PageMap],
    counts: Mapping[str, AccessCounts],
    elsewhere: AccessCounts,
    dropped: int,
    *,
    programs: bool = False,
) -> list[str]:
    """Return notes on what the numbers mean and what is missing from them."""
    found = []
    pages = [page.page_bytes for page in maps]
    width, bins = 1 << int(counters.state["bin_shift"]), int(counters.state["bins"])
    left_out = "copies" if programs else "CuPy's own kernels and copies"
    if pages:
        found.append(
            f"accesses of {len(register.modules)} instrumented modules are counted in pages of "
            f"{min(pages):,} to {max(pages):,} bytes and bins of {width / 1e6:g} ms; "
            f"{left_out} are not counted; instrumented kernels run slower, so all seconds "
            "here are longer"
        )
        if maps[0].edges[-1] == counters.edges()[bins]:
            found.append("the run outlasted the bins: the last one holds all later accesses")
    for kernel, reason in sorted(register.left.items()):
        found.append(f"{kernel} was not instrumented, and its accesses are not counted: {reason}")
    if counters.refused:
        names = ", ".join(sorted(set(counters.refused)))
        found.append(f"no counters were left for {names}: their accesses count as in no array")
    if elsewhere.total:
        share = elsewhere.total / (elsewhere.total + sum(uses.total for uses in counts.values()))
        found.append(f"{elsewhere.total:,} accesses ({share:.2%}) lie in no array")
    if counters.maps.saturated:
        found.append("some counters of the maps are saturated at 2**32 - 1")
    if counters.period:
        found.append(
            f"one access in {counters.period:,} was sampled; {dropped:,} samples were dropped"
        )
    return found


class Tracer:
    """Counts every access of the engine's kernels to global memory, by page and time.

    While it is entered, the engine gets instrumented kernels; `observe` must be among the
    observers of the run, since engines announce their arrays and phases there. An access is one
    thread carrying out one load, store or atomic, however wide; of a bulk copy, one for each
    4 KiB. Labels are those of a run without.

    Parameters
    ----------
    page_bytes : int
        Bytes of the smallest page, a power of two. Pages of arrays for which there are too few
        counters are larger; each map has its own page size.
    bins : int
        Bins of time, a power of two. They grow with the run; each map has its edges.
    period : int
        One access in so many, chosen at random, is also written down with its address, time and
        kernel; 0 for none.
    seconds : float, optional
        How long the instrumented run may take, for the first length of the bins; guessed if not
        given.
    counter_bytes : int
        Bytes of counters on the device, and of maps on the host.
    records : int
        Most samples to keep, 24 bytes each; further ones are counted and dropped.
    programs : bool
        Whether CuPy's kernels are instrumented, too: raw kernels and modules, element-wise kernels,
        reductions. Kernels made before are compiled again, at the beginning and at the end.

    Notes
    -----
    The counters lie next to the run's memory, outside its budget. The page of results says how much
    longer a run takes. Kernels compile once on a machine; later runs load them from the cache.

    A sweep of moving reads the target of each arc it visits once to decide, and those of each
    vertex that moved once more to wake its neighbours.

    Examples
    --------
    Needs a GPU::

        with Tracer(page_bytes=65536) as tracer:
            lu.louvain(graph, device="cuda", observer=tracer.observe)
        tracer.result().counts["targets.0"].reads
    """

    name = "tracer"

    def __init__(
        self,
        *,
        page_bytes: int = 4096,
        bins: int = 128,
        period: int = 0,
        seconds: float | None = None,
        counter_bytes: int = 256 << 20,
        records: int = 1 << 20,
        programs: bool = False,
    ) -> None:
        for what, value, least in (("page_bytes", page_bytes, 32), ("bins", bins, 2)):
            if value < least or value & (value - 1):
                raise OptionError(what, value, f"must be a power of two from {least} on")
        if counter_bytes < 4096 * bins:
            raise OptionError(
                "counter_bytes", counter_bytes, f"must be at least {4096 * bins} for {bins} bins"
            )
        if period < 0 or period >= 1 << 32 or records < 1:
            raise OptionError(
                remedy="period is 0 for no samples or below 2**32; records is at least 1"
            )
        if seconds is not None and seconds <= 0:
            raise OptionError("seconds", seconds, "must be above 0")
        self.sizes: dict[str, Any] = {
            "page_bytes": page_bytes,
            "bins": bins,
            "nbytes": counter_bytes,
            "seconds": seconds,
            "period": period,
            "records": records,
        }
        self.programs = programs
        self.notes: list[str] = []
        self.trace: TracedAccesses | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Tracer:
        self.start(SessionClock())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, clock: SessionClock) -> None:
        """Give the engine instrumented kernels from now on, in this context.

        Raises
        ------
        SourceUnavailableError
            There is no CUDA, or no compiler for it.
        """
        try:
            compile_cache.compiler()
            import cupy  # noqa: F401
        except (ImportError, DeviceUnavailableError) as error:
            raise SourceUnavailableError(f"kernels cannot be instrumented: {error}") from error
        self.clock = clock
        self.histogram: Histogram | None = None
        self.register = Register()
        self.counts: dict[str, NDArray[np.uint64]] = {}
        self.trace = None
        self.notes = []
        self._arrays: dict[str, tuple[int, int]] = {}
        self._phases: list[tuple[int, int]] = []
        self._sent: dict[int, int] = {}
        self._launches = 0
        self._attributed = 0
        self._rows: list[Row] = []
        self._all_rows: list[Row] = []
        self._stack = ExitStack()
        self._running = True
        self._cupy: CupyKernels | None = None
        try:
            self._stack.enter_context(compile.using(self.instrument(compile.kernels)))
            if self.programs:
                self._instrument_cupy()
        except BaseException:
            self._stack.close()
            raise

    def _instrument_cupy(self) -> None:
        """Give CuPy instrumented kernels; unlike engines', no launch of these is announced."""
        counters = self._counters()
        counters.launch()
        kernels = CupyKernels(self.register, log=self.sizes["period"] > 0)
        kernels.loaded = lambda: kernels.send(counters.state)
        self._stack.enter_context(kernels.instrumenting())
        self._cupy = kernels

    def _send(self) -> None:
        """Bring what CuPy's kernels know up to date, and count anew from here."""
        if self._cupy is not None and self.histogram is not None:
            self._launches += 1
            self.histogram.launch()
            self._cupy.send(self.histogram.state)

    def observe(self, event: Event) -> None:
        """Note a program's arrays and phases."""
        self._note(event)
        if event.kind in ("array", "freed", "start", "end"):
            self._send()

    def _note(self, event: Event) -> None:
        if event.kind == "array":
            self._arrays[event.name] = event.address, event.nbytes
            if self.histogram is not None:
                self.histogram.enter(event.name, event.address, event.nbytes)
        elif event.kind == "freed":
            self._freed(event.name, event.address)
        elif event.kind == "start":
            self._attribute()
            phase = PHASES.index(event.phase) if event.phase in PHASES else -1
            self._phases.append((phase, event.level))
        elif event.kind == "end":
            self._attribute()
            if self._phases:
                self._phases.pop()

    def instrument(self, kernels: compile.Kernels) -> TracedKernels:
        """Return instrumented versions of kernels that are compiled as the engine's are."""
        return TracedKernels(kernels, self.register, self._ready, log=self.sizes["period"] > 0)

    def stop(self) -> None:
        """Give the engine its own kernels again, and copy the counts to the host."""
        if self._cupy is not None:
            self._launches += 1  # since the last phase
        self._stack.close()
        self._running = False
        counters = self.histogram
        if counters is None:
            self.notes.append("the tracer saw no kernel of the engine")
            self.trace = self._trace((), np.zeros(0, LOG), 0)
            return
        from cupy.cuda import driver, runtime

        log, dropped = np.zeros(0, LOG), 0
        try:
            self._attribute()
            counters.collect(counters.ranges.known)
            log, dropped = counters.samples()
        except (driver.CUDADriverError, runtime.CUDARuntimeError) as error:
            # The run's own error is more precise and must not be hidden by this one.
            self.notes.append(f"counts since the last phase are lost: the device failed ({error})")
        maps = counters.maps.page_maps(counters.edges())
        totals = {name: self._uses(name) for name in self.counts if name}
        self.notes += notes(
            counters, self.register, maps, totals, self._uses(""), dropped, programs=self.programs
        )
        counters.close()
        self.trace = self._trace(maps, log, dropped)

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return the rows since the last call."""
        with self._lock:
            rows, self._rows = self._rows, []
        return table(rows) if rows else None

    def maps(self) -> tuple[PageMap, ...]:
        """Return the maps; there are none before the tracer has stopped."""
        return self.trace.maps if self.trace else ()

    def about(self) -> dict[str, Any]:
        """Return what belongs into a session's metadata."""
        found: dict[str, Any] = {
            "launches": self._launches,
            "instrumented_places": self.register.sites,
            "period": self.sizes["period"],
        }
        if self.trace:
            found["accesses"] = {name: list(uses) for name, uses in self.trace.counts.items()}
            found["elsewhere"] = list(self.trace.elsewhere)
            found["samples"] = len(self.trace.log)
            found["dropped"] = self.trace.dropped
        return found

    def result(self) -> TracedAccesses:
        """Return what was counted, once the tracer has stopped.

        Raises
        ------
        LouvainUmError
            It has not stopped.
        """
        if self.trace is None:
            raise LouvainUmError("a tracer has a result only after it has stopped: leave its block")
        return self.trace

    def _freed(self, name: str, address: int) -> None:
        """Note that an array, or its tail from an address on, was freed."""
        if name not in self._arrays:
            return
        first, nbytes = self._arrays.pop(name)
        if first < address < first + nbytes:
            self._arrays[name] = first, address - first
            if self.histogram is not None:
                self.histogram.shrink(name, address - first)
        elif self.histogram is not None:
            self.histogram.leave(name)

    def _counters(self) -> Histogram:
        """Return the counters; before the first launch there are none."""
        if self.histogram is None:
            self.histogram = Histogram(clock=self.clock.now, device=TracedDevice(), **self.sizes)
            for name, (address, nbytes) in self._arrays.items():
                self.histogram.enter(name, address, nbytes)
        return self.histogram

    def _ready(self, module: int, address: int) -> None:
        """Bring a module's block of constants up to date, in the order of the stream."""
        from cupy.cuda import Device, get_current_stream, runtime

        if not self._running:
            raise LouvainUmError(
                "an instrumented kernel ran after its tracer stopped; start the run again"
            )
        counters = self._counters()
        if Device().id != counters.device.id:
            raise LouvainUmError(
                f"the tracer follows one device, cuda:{counters.device.id}; start another"
            )
        counters.launch()
        if self._sent.get(module) != counters.version:
            state = counters.state
            state["module"] = module * MODULES
            stream = get_current_stream().ptr
            runtime.memcpyAsync(
                address, state.ctypes.data, state.nbytes, runtime.memcpyHostToDevice, stream
            )
            self._sent[module] = counters.version
        self._launches += 1

    def _attribute(self) -> None:
        """Attribute what was counted since the last time to the current phase."""
        if self.histogram is None or self._launches == self._attributed:
            return
        self._attributed = self._launches
        now = self.clock.now()
        phase, level = self._phases[-1] if self._phases else (-1, -1)
        rows = []
        for new_counts in self.histogram.new_counts():
            known = self.counts.setdefault(new_counts.name, np.zeros(3, np.uint64))
            known += new_counts.counts
            total = int(new_counts.counts.sum())
            rows.append(Row(new_counts.until or now, new_counts.address, total, phase, level))
        with self._lock:
            self._rows += rows
        self._all_rows += rows

    def _uses(self, name: str) -> AccessCounts:
        return AccessCounts(*(int(count) for count in self.counts.get(name, (0, 0, 0))))

    def _trace(self, maps: tuple[PageMap, ...], log: NDArray[Any], dropped: int) -> TracedAccesses:
        first = np.cumsum([0, *(len(names) for names in self.register.modules)])
        modules, functions = np.divmod(log["kernel"], MODULES)
        log["kernel"] = first[modules] + functions
        return TracedAccesses(
            maps=maps,
            events=table(self._all_rows),
            counts={name: self._uses(name) for name in self.counts if name},
            elsewhere=self._uses(""),
            log=log,
            kernels=tuple(name for names in self.register.modules for name in names),
            dropped=dropped,
            notes=tuple(self.notes),
        )
