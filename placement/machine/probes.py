"""Times of single memory operations on the device: reads, writes, atomics, copies, launches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from louvain_um.placement.hardware import PAGE, THREADS
from louvain_um.placement.memory import cuda_calls

BLOCKS_A_PROCESSOR: Final = 8
"""A grid that fills the device: 2,048 threads per multiprocessor."""


class Probes:
    """Times of kernels and copies on the current device, in seconds."""

    def __init__(self, device: int, runs: int = 3) -> None:
        import cupy

        about = cupy.cuda.runtime.getDeviceProperties(device)
        self.device = device
        self.runs = runs
        name = about["name"]
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        self.cache_bytes = int(about["l2CacheSize"])
        self.processors = int(about["multiProcessorCount"])
        threads = self.processors * int(about["maxThreadsPerMultiProcessor"])
        self.pages_in_flight = max(1, threads * 4 // PAGE)
        """Pages that all resident threads access at once, reading 4 bytes each in order."""
        self.grid = (BLOCKS_A_PROCESSOR * self.processors,)
        self.sink = cupy.zeros(1, np.uint32)
        self.module = _module(device)

    def read(self, address: int, nbytes: int, *, first: bool = False) -> float:
        """Read a range in order; `first` times only the first run."""
        return self._time("read_words", first, _at(address), np.uint64(nbytes // 16), self.sink)

    def write(self, address: int, nbytes: int, *, first: bool = False) -> float:
        """Write a range in order."""
        count = np.uint64(nbytes // 16)
        return self._time("write_words", first, _at(address), count, np.uint32(1))

    def gather(self, address: int, nbytes: int, count: int, *, first: bool = False) -> float:
        """Read so many 4-byte words of a range at random."""
        size = np.uint64(nbytes // 4)
        return self._time("read_random", first, _at(address), size, np.uint64(count), self.sink)

    def atomics(self, address: int, nbytes: int, count: int) -> float:
        """Add to so many 4-byte words of a range at random."""
        args = (_at(address), np.uint64(nbytes // 4), np.uint64(count))
        return self._time("add_random", False, *args)

    def copy(self, target: int, source: int, nbytes: int) -> float:
        """Copy between device memory and page-locked host memory."""
        return self.events(lambda: cuda_calls.copy_later(target, source, nbytes, 0))

    def launch(self, times: int = 1000) -> float:
        """Launch an empty kernel."""
        return self._loop(times, lambda: self._launch("nothing", (1,), ()))

    def readback(self, times: int = 200) -> float:
        """Launch an empty kernel and read four bytes back."""

        def both() -> None:
            self._launch("nothing", (1,), ())
            self.sink.get()

        return self._loop(times, both)

    def wall(self, work: Callable[[], object]) -> float:
        """Call `work` once and wait for the device."""
        cuda_calls.synchronize()
        since = time.perf_counter()
        work()
        cuda_calls.synchronize()
        return time.perf_counter() - since

    def events(self, work: Callable[[], object], *, first: bool = False) -> float:
        """Call `work`, which uses the current stream; timed by CUDA events."""
        import cupy

        seconds = []
        for _ in range(1 if first else 1 + self.runs):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            work()
            end.record()
            end.synchronize()
            seconds.append(float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3)
        return seconds[0] if first else statistics.median(seconds[1:])

    def _time(self, kernel: str, first: bool, *args: Any) -> float:
        self.module.get_function(kernel)  # loading is not part of the first run
        return self.events(lambda: self._launch(kernel, self.grid, args), first=first)

    def _launch(self, kernel: str, grid: tuple[int, ...], args: tuple[Any, ...]) -> None:
        self.module.get_function(kernel)(grid, (THREADS,), args)

    def _loop(self, times: int, work: Callable[[], object]) -> float:
        def many() -> None:
            for _ in range(times):
                work()

        many()
        return statistics.median(self.wall(many) / times for _ in range(self.runs))


def _at(address: int) -> np.uint64:
    return np.uint64(address)


@cache
def _module(device: int) -> Any:
    """Return the compiled kernels of `probes.cu`."""
    import cupy

    source = Path(__file__).with_name("probes.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("--std=c++17",))
