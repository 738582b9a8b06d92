"""Counters on the device: rows of pages × bins of time for reads, writes and atomics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.sources.tracer.counter_rows import MOST, CountedArray, CounterRows, Maps
from louvain_um.profiling.sources.tracer.snippet import COPIES, LOG, STATE, USES

U64 = NDArray[np.uint64]

SLAB: Final = 4096
"""Rows whose bins are joined at a time: little memory is needed in addition to the counters."""

GUESS: Final = 1e9
"""Estimated bytes of arrays that an instrumented run processes per second."""

SLACK: Final = 1 << 20
"""Nanoseconds before the first launch at which time begins: some timers tick once in so many."""

TRIES: Final = 5
"""Readings of the device's timer, of which the quickest is used."""

CLOCK: Final = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry now(.param .u64 out) {
  .reg .b64 %out, %time;
  ld.param.u64 %out, [out];
  mov.u64 %time, %globaltimer;
  st.global.u64 [%out], %time;
  ret;
}
"""
"""Kernel that reads the timer of the recorded counts."""


@dataclass(frozen=True, slots=True)
class NewCounts:
    """What was counted for an array since the last call; an empty name is "in no array"."""

    name: str
    address: int
    until: int
    counts: U64


class Histogram:
    """Counters on a device."""

    def __init__(
        self,
        *,
        page_bytes: int,
        bins: int,
        nbytes: int,
        seconds: float | None,
        period: int,
        records: int,
        clock: Callable[[], int],
        device: TracedDevice,
    ) -> None:
        self.device = device
        self.clock = clock
        self.period = period
        self.seconds = seconds
        self.rows = max(2, nbytes // (4 * len(USES) * bins))
        self.cells = device.zeros((len(USES), self.rows, bins), np.uint32)
        self.log = device.zeros(((records if period else 1) * LOG.itemsize,), np.uint8)
        self.logged = device.zeros((1,), np.uint64)
        self.ranges = CounterRows(page_bytes, self.rows)
        self.maps = Maps(nbytes)
        self.elsewhere = np.zeros(len(USES), np.uint64)
        self.pending: list[NewCounts] = []
        self.refused: list[str] = []
        self.version = 0
        self.clock_offset = device.clock_offset(clock)
        self.state = np.zeros((), STATE)
        capacity = records if period else 0
        for name, value in (
            ("cells", [self.cells[use].data.ptr for use in range(len(USES))]),
            ("log", self.log.data.ptr),
            ("logged", self.logged.data.ptr),
            ("capacity", capacity),
            ("limit", (2**32 // period) - 1 if period else 0),
            ("bins", bins),
            ("last_bin", bins - 1),
        ):
            self.state[name] = value
        self._changed()

    def enter(self, name: str, address: int, nbytes: int) -> None:
        """Count the accesses of a new array from the next launch on."""
        for other in {*self.ranges.overlapping(address, nbytes), name} & self.ranges.live.keys():
            self.leave(other)
        if self.ranges.crowded:
            self.collect(self.ranges.retired)
        if self.ranges.enter(name, address, nbytes) is None:
            self.refused.append(name)
        self._changed()

    def shrink(self, name: str, nbytes: int) -> None:
        """Leave the end of an array alone from the next launch on."""
        if name in self.ranges.live:
            self.ranges.live[name].nbytes = nbytes
            self._changed()

    def leave(self, name: str) -> None:
        """Stop counting for an array that is freed."""
        if name in self.ranges.live:
            self.ranges.leave(name, self.clock())
            self._changed()

    def new_counts(self) -> list[NewCounts]:
        """Return what was counted since the last time."""
        found, self.pending = self.pending, []
        sums = self._sums()
        for known in self.ranges.known:
            found.append(self._news(known, sums))
        elsewhere = sums[:, :COPIES].sum(axis=1)
        found.append(NewCounts("", 0, 0, elsewhere - self.elsewhere))
        self.elsewhere = elsewhere
        return [each for each in found if each.counts.any()]

    def collect(self, arrays: Iterable[CountedArray]) -> None:
        """Bring the counts of arrays to the host, and give their counters to others."""
        sums = self._sums()
        for known in list(arrays):
            self.pending.append(self._news(known, sums))
            if known.reported.any():
                wide = int(known.reported.sum()) > MOST
                self.maps.add(known.name, known.shift, self._counts(known, wide))
                self.cells[:, known.all_rows] = 0
            self.ranges.release(known)

    def _counts(self, known: CountedArray, wide: bool) -> NDArray[Any]:
        """Return the counts of an array's pages by bin, of all uses; in 64 bits if `wide`."""
        kind: Any = np.uint64 if wide else np.uint32
        bins = self.cells.shape[2]
        copies = self.cells[:, known.all_rows].reshape(len(USES), known.copies, known.rows, bins)
        used = min(bins, self._bin() + 2)  # one more, since clocks may differ
        counts = np.zeros((known.rows, bins), kind)
        for first in range(0, known.rows, SLAB):
            slab = slice(first, min(first + SLAB, known.rows))
            counts[slab, :used] = copies[:, :, slab, :used].sum(axis=(0, 1), dtype=kind).get()
        return counts

    def launch(self) -> None:
        """Make ready for a launch: time begins with the first; bins are joined in time."""
        if not self.state["origin"]:
            nbytes = sum(known.nbytes for known in self.ranges.live.values())
            seconds = self.seconds or 0.01 + nbytes / GUESS
            width = max(1, int(seconds * 1e9) // int(self.state["bins"]))
            self.state["bin_shift"] = width.bit_length()
            self.state["origin"] = self.clock() - self.clock_offset - SLACK
            self.version += 1
        while self._bin() >= int(self.state["bins"]) // 2:
            self._fold()

    def edges(self) -> NDArray[np.int64]:
        """Return where bins begin, and the last one ends, since the session began."""
        numbers = np.arange(int(self.state["bins"]) + 1, dtype=np.int64)
        origin = int(self.state["origin"]) + self.clock_offset
        return origin + (numbers << int(self.state["bin_shift"]))

    def samples(self) -> tuple[NDArray[Any], int]:
        """Return the log, of dtype `LOG`, and how many samples were dropped."""
        taken = int(self.logged.get()[0])
        kept = min(taken, int(self.state["capacity"]))
        found = self.log.get().view(LOG)[:kept].copy()
        found["time"] += np.uint64(self.clock_offset % 2**64)
        return found, taken - kept

    def close(self) -> None:
        """Free the device's memory."""
        del self.cells, self.log, self.logged

    def _sums(self) -> U64:
        """Return the sum of each row in use, by use."""
        sums: U64 = self.cells[:, : self.ranges.end].sum(axis=2, dtype=np.uint64).get()
        return sums

    def _news(self, known: CountedArray, sums: U64) -> NewCounts:
        counts = sums[:, known.all_rows].sum(axis=1)
        new = counts - known.reported
        known.reported = counts
        return NewCounts(known.name, known.address, known.until, new)

    def _changed(self) -> None:
        self.state["ranges"], self.state["count"] = self.ranges.pack()
        self.version += 1

    def _bin(self) -> int:
        """Return the bin of now, however late."""
        elapsed = self.clock() - self.clock_offset - int(self.state["origin"])
        return max(0, elapsed) >> int(self.state["bin_shift"])

    def _fold(self) -> None:
        """Join bins in pairs, here and in the maps."""
        half = self.cells.shape[2] // 2
        for first in range(0, self.ranges.end, SLAB):
            slab = self.cells[:, first : min(first + SLAB, self.ranges.end)]
            pairs = slab[:, :, ::2] + slab[:, :, 1::2]
            slab[:, :, :half] = pairs
            slab[:, :, half:] = 0
        self.maps.fold()
        self.state["bin_shift"] += 1
        self.version += 1


class TracedDevice:
    """The current device."""

    def __init__(self) -> None:
        import cupy
        from cupy.cuda.function import Module

        self.id = cupy.cuda.Device().id
        self.timer = Module()
        self.timer.load(CLOCK)

    def clock_offset(self, clock: Callable[[], int]) -> int:
        """Return a clock's time minus the device timer's, from the fastest of several tries."""
        import cupy

        now = self.timer.get_function("now")
        out = cupy.empty(1, np.uint64)
        found = []
        for _ in range(TRIES):
            before = clock()
            now((1,), (1,), (out,))
            cupy.cuda.get_current_stream().synchronize()
            after = clock()
            found.append((after - before, (before + after) // 2 - int(out.get()[0])))
        return min(found)[1]

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array in memory of its own, not of CuPy's pool."""
        import cupy

        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        try:
            memory = cupy.cuda.Memory(nbytes)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise LouvainUmError(
                f"the tracer's {nbytes >> 20} MiB of counters do not fit on the device; give "
                f"Tracer fewer counter_bytes or records ({error})"
            ) from error
        array = cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
        array.fill(0)
        return array
