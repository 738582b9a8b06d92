"""CUPTI as a source: migrations and their causes, durations of kernels and copies."""

from __future__ import annotations

import ctypes
import os
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable, Kind, concatenate
from louvain_um.profiling.sources import cupti_records as records
from louvain_um.profiling.sources.cupti_records import FORCED, Buffers
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError
from louvain_um.profiling.sources.uvm import Totals

INSTALL = "pip install nvidia-cuda-cupti (CUDA 12: nvidia-cuda-cupti-cu12)"

ANOTHER_PROFILER = 39
REMEDIES = {
    14: "it does not fit the driver; install the one of the driver's CUDA version, " + INSTALL,
    28: "this system has no unified-memory counters; the other sources continue",
    29: "this GPU has no unified-memory counters, which take one of compute capability 6.0",
    30: "GPUs without peer access have no unified-memory counters; show the process one of them "
    "with CUDA_VISIBLE_DEVICES",
    31: "there are no unified-memory counters under MPS; run without it",
    33: "this virtual GPU allows no profiling; ask whoever runs the machine to allow it",
    35: "the driver lets only administrators profile; run as root, or load the module nvidia with "
    "NVreg_RestrictProfilingToAdminUsers=0",
    ANOTHER_PROFILER: "another profiler is attached to this process; run without nsys, ncu or "
    "the other tool",
    40: "this virtual GPU lets only administrators profile; ask whoever runs the machine",
    41: "the GPU runs in confidential mode, which allows no profiling",
    43: "a slice of a GPU (MIG) cannot be profiled like this; use a whole one",
    45: "CUPTI's counters do not work under WSL; use Linux itself",
}
"""What to do about a status; any other is named by CUPTI's own text."""

COUNTERS = tuple(Kind(number) for number in range(1, 9))
SINGLE_DEVICE = 1
"""Scope of counters."""


class Library:
    """The functions of libcupti that the source calls."""

    def __init__(self) -> None:
        self.path, self.handle = _open()
        self.handle.cuptiGetResultString.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self.handle.cuptiActivityGetNextRecord.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ]
        self.handle.cuptiActivityGetNumDroppedRecords.argtypes = [
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_void_p,
        ]

    def call(self, name: str, *args: Any) -> int:
        """Call a function and return its status, 0 if all is well."""
        try:
            function = getattr(self.handle, f"cupti{name}")
        except AttributeError:
            raise SourceUnavailableError(
                f"CUPTI: {self.path} has no cupti{name}; {INSTALL} installs one that has it"
            ) from None
        return int(function(*args))

    def check(self, name: str, *args: Any) -> None:
        """Call a function; raise an error with a remedy if it fails."""
        status = self.call(name, *args)
        if status:
            raise SourceUnavailableError(f"CUPTI: {self.explain(status)}")

    def explain(self, status: int) -> str:
        """Return what a status means and what to do about it."""
        if status in REMEDIES:
            return REMEDIES[status]
        text = ctypes.c_char_p()
        self.call("GetResultString", status, ctypes.byref(text))
        name = text.value.decode() if text.value else f"status {status}"
        return f"it refused with {name}; see whether nvidia-smi works"

    @property
    def version(self) -> int:
        """CUPTI's API version."""
        number = ctypes.c_uint32()
        self.call("GetVersion", ctypes.byref(number))
        return number.value

    def timestamp(self) -> int:
        """Return CUPTI's time in nanoseconds."""
        now = ctypes.c_uint64()
        self.call("GetTimestamp", ctypes.byref(now))
        return now.value


def _open() -> tuple[str, Any]:
    broken = ""
    for path in _candidates():
        try:
            return path, ctypes.CDLL(path)
        except OSError as error:
            if os.path.exists(path):
                broken = f" ({error})"
    raise SourceUnavailableError(f"CUPTI is not installed{broken}; {INSTALL}")


def _candidates() -> Iterator[str]:
    """Yield where libcupti may be: asked for, wheels, the toolkit, the system's own places."""
    asked = os.environ.get("LOUVAIN_UM_CUPTI")
    if asked:
        yield asked
        return
    site = Path(sysconfig.get_paths()["purelib"])
    folders = [site / "nvidia/cu13/lib", site / "nvidia/cuda_cupti/lib"]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            home = Path(os.environ[variable])
            folders += [home / "extras/CUPTI/lib64", home / "lib64"]
    folders += [Path("/usr/local/cuda/extras/CUPTI/lib64"), Path("/usr/local/cuda/lib64")]
    for folder in folders:
        yield from (str(path) for path in sorted(folder.glob("libcupti.so.[0-9]*"), reverse=True))
    yield from ("libcupti.so.13", "libcupti.so.12", "libcupti.so")


_lock = threading.Lock()
_shared: list[Buffers] = []


def shared_buffers() -> Buffers:
    """Return the process's one set of buffers."""
    with _lock:
        if not _shared:
            _shared.append(Buffers(Library()))
        return _shared[0]


class _Config(ctypes.Structure):
    """CUpti_ActivityUnifiedMemoryCounterConfig."""

    _fields_ = (
        ("scope", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("enable", ctypes.c_uint32),
    )


class Cupti:
    """Unified-memory counters, kernels and copies of one device, by CUPTI's activity records."""

    name = "cupti"

    def __init__(self, device: int = 0, *, counters: bool = True) -> None:
        self.device = device
        self.wanted = COUNTERS if counters else ()
        self.totals: Totals | None = None
        self.notes: list[str] = []
        self.enabled: list[int] = []
        self.counters: list[Kind] = []
        self.overhead = 0
        self.events = 0
        self._pairs: list[tuple[int, int]] = []
        self._stopped = False
        self._mine = True

    def start(self, clock: SessionClock) -> None:
        """Switch recording on."""
        from cupy.cuda import runtime

        runtime.memGetInfo()  # counters want a context
        self.clock = clock
        self.buffers = shared_buffers()
        self.library = self.buffers.library
        if not self.buffers.free.acquire(blocking=False):
            raise SourceUnavailableError(
                "CUPTI: this process is recording already; end that recording first"
            )
        try:
            self._begin()
        except BaseException:
            self.buffers.free.release()
            raise

    def _begin(self) -> None:
        """Switch on what can be."""
        self.buffers.take()
        self.buffers.dropped = 0
        self._pair()
        if self.wanted:
            with suppress(SourceUnavailableError):
                self.totals = Totals()
        refused = self._configure(enable=1)
        kinds = {
            records.UNIFIED_MEMORY: "unified-memory counters",
            records.CONCURRENT_KERNEL: "kernels",
            records.MEMCPY: "copies",
            records.MEMSET: "copies",
            records.OVERHEAD: "overhead",
        }
        if not self.counters:
            del kinds[records.UNIFIED_MEMORY]
        for kind in kinds:
            status = self.library.call("ActivityEnable", kind)
            if status == 0:
                self.enabled.append(kind)
            else:
                refused.append(f"{kinds[kind]}: {self.library.explain(status)}")
        if not self.enabled:
            raise SourceUnavailableError(f"CUPTI: {refused[0].partition(': ')[2]}")
        self.notes += [f"CUPTI recorded no {text}" for text in dict.fromkeys(refused)]

    def _configure(self, *, enable: int) -> list[str]:
        """Switch the counters on or off; return what was refused, if no counter is left."""
        wanted = self.wanted if enable else tuple(self.counters)
        status = 0
        for kinds in ([*wanted], *([kind] for kind in wanted)):
            if not kinds:
                break
            configs = (_Config * len(kinds))(
                *(_Config(SINGLE_DEVICE, kind, self.device, enable) for kind in kinds)
            )
            status = self.library.call("ActivityConfigureUnifiedMemoryCounter", configs, len(kinds))
            if status == 0 and enable:
                self.counters += kinds
            if len(kinds) == len(wanted) and status == 0:
                break
        if self.counters or not (enable and status):
            return []
        return [f"unified-memory counters: {self.library.explain(status)}"]

    def _pair(self) -> None:
        """Note one moment by both clocks; of several tries, the tightest."""
        tries = []
        for _ in range(16):
            before = time.perf_counter_ns()
            theirs = self.library.timestamp()
            after = time.perf_counter_ns()
            tries.append((after - before, theirs, (before + after) // 2 - self.clock.origin))
        _, theirs, ours = min(tries)
        self._pairs.append((theirs, ours))

    def drain(self, *, last: bool = False) -> EventTable | None:
        """Return the events of all buffers that came back; `last` calls the others back, too."""
        if not self._stopped:
            self.library.call("ActivityFlushAll", FORCED if last else 0)
        tables, overhead = self.buffers.take(self.device)
        if self._stopped and last and self._mine:
            self._mine = False
            self.buffers.free.release()
        self.overhead += overhead
        table = concatenate(tables)
        self.events += len(table)
        if not len(table):
            return None
        if self.totals:
            self.totals.add(table)
        self._pair()
        columns = dict(table.columns)
        columns["time"] = self._convert(columns["time"])
        return EventTable(columns, table.kernels)

    def _convert(self, theirs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return times of CUPTI's clock by the session's."""
        (a, x), (b, y) = self._pairs[0], self._pairs[-1]
        # Over less than a second, drift is less than the error of a pair.
        drift = (y - x) / (b - a) - 1 if b - a > 1_000_000_000 else 0.0
        since = theirs - a
        ours: NDArray[np.int64] = x + since + np.rint(since * drift).astype(np.int64)
        return ours

    def stop(self) -> None:
        """Switch recording off."""
        from cupy.cuda import runtime

        runtime.deviceSynchronize()
        self.library.call("ActivityFlushAll", FORCED)
        for kind in self.enabled:
            self.library.call("ActivityDisable", kind)
        self._configure(enable=0)
        self._stopped = True
        if self.totals:
            self.totals.close()
        if self.buffers.dropped:
            self.notes.append(
                f"CUPTI dropped {self.buffers.dropped:,} records; its totals are too low by as many"
            )

    def lost(self) -> str:
        """Return which events are missing, by the driver's totals; empty if none."""
        missing = self.totals.missing() if self.totals else ""
        return f"CUPTI recorded {missing}; source uvm loses none" if missing else ""

    def maps(self) -> tuple[PageMap, ...]:
        """Return nothing: CUPTI's events have addresses of their own."""
        return ()

    def about(self) -> dict[str, Any]:
        """Return versions, counters and what was lost."""
        return {
            "library": self.library.path,
            "version": self.library.version,
            "counters": [kind.name.lower() for kind in self.counters],
            "events": self.events,
            "dropped": self.buffers.dropped,
            "overhead_seconds": self.overhead / 1e9,
            **(self.totals.about() if self.totals else {}),
        }
