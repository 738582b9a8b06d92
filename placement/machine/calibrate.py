"""Measure a machine by small kernels: every figure that predictions need, within a minute."""

from __future__ import annotations

import ctypes
import mmap
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.hardware import BLOCK, LARGE_PAGE, PAGE, THREADS
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.machine.machine import GIB, Machine
from louvain_um.placement.machine.profiles import machine_for
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.arena import Arena
from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.memory.guard import guard, managed_refusal
from louvain_um.placement.memory.host import populate
from louvain_um.placement.policy.policy import Kind, Placement

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


MOST: Final = 1 << 30
"""Bytes that figures are measured on, if the device has eight times as many free."""

LEAST: Final = 64 << 20
"""With fewer, caches would be measured."""

PAGEABLE_BY_HOST_TABLES: Final = 100
"""cudaDevAttrPageableMemoryAccessUsesHostPageTables: the host reaches device memory in place."""

COUNTS: Final = {"device": 1 << 28, "atomic": 1 << 26, "host_mapped": 1 << 24, "pinned": 1 << 23}
"""Random accesses of a measurement: some 10 to 100 ms each on an H200."""

REACHED: Final = 0.5
"""Share of the full rate from which larger arrays count as read at that rate."""

FIRST_TOUCHES: Final = 3
"""First touches of each kind; their median is used."""

WIDE_FROM: Final = 128
"""Pending touches from which a device counts as wide."""

Progress = Callable[[str, int, int], object]
"""Called with what is measured, the steps done, and the number of steps."""


def calibrate(
    device: int = 0, progress: Progress | None = None, *, peer: int | None = None
) -> Machine:
    """Measure a device and its host.

    Parameters
    ----------
    device : int
        The CUDA device.
    progress : callable, optional
        Called before every step.
    peer : int, optional
        Another device, whose memory is measured as well; the device has it mapped.

    Returns
    -------
    Machine
        Its notes say which figures were measured, fitted or assumed.

    Raises
    ------
    MemoryBudgetError
        The device has less than 512 MiB free.

    Notes
    -----
    At most 1 GiB is allocated at any time on either side, managed memory included.
    """
    with cuda_calls.current(device):
        free, total = cuda_calls.reclaimed_memory()
        size = min(MOST, free // 8 // BLOCK * BLOCK)
        if size < LEAST:
            raise MemoryBudgetError(
                8 * LEAST, free, [], "close other programs that use this device, then try again"
            )
        probes = Probes(device)
        bench = _Bench(probes, size)
        refusal = managed_refusal(device)
        steps: list[tuple[str, Callable[[], Mapping[str, float]]]] = [
            ("launches", bench.launches),
            ("device memory", bench.on_device),
            ("page-locked memory", bench.pinned),
        ]
        if refusal is None:
            steps += [
                ("host memory in place", lambda: bench.in_place("host_mapped")),
                ("prefetches", bench.prefetches),
                ("page faults", bench.faults),
            ]
        else:
            steps.append(("host memory in place", lambda: bench.in_place("pinned")))
        if peer is not None:
            steps.append((f"the memory of cuda:{peer}", lambda: bench.neighbour(peer)))
        found: dict[str, float] = {}
        for number, (what, step) in enumerate(steps):
            if progress:
                progress(what, number, len(steps))
            found |= step()
        if progress:
            progress("done", len(steps), len(steps))
    values: dict[str, Any] = {
        **_assumed(probes.name, found, refusal),
        **found,
        "name": probes.name,
        "memory_bytes": total,
        "faults_in_flight": probes.pages_in_flight,
        "cache_bytes": probes.cache_bytes,
        "host_page_bytes": mmap.PAGESIZE,
        "coherent": bool(cuda_calls.attribute(PAGEABLE_BY_HOST_TABLES, device)),
    }
    values["notes"] = {
        "all": f"measured on this {probes.name} on {time.strftime('%Y-%m-%d', time.gmtime())}",
        "faults_in_flight": "processors x resident threads x 4 bytes, in pages of 4 KiB",
        "operation_rate": "assumed: as on an H200",
        **values["notes"],
    }
    return Machine(**values)


def _assumed(name: str, found: Mapping[str, float], refusal: str | None) -> dict[str, Any]:
    """Return the figures that were not measured, with notes that say so."""
    notes = {
        "migrate_to_device": "fitted, with the costs of faults, to four measured first touches",
        "fault_batch_seconds": "fitted to four measured first touches",
        "block_service_seconds": "fitted to four measured first touches",
        "evict_to_host": "assumed: as a prefetch to the host; eviction is not provoked",
    }
    if refusal is None:
        return {"evict_to_host": found["prefetch_to_host"], "notes": notes}
    stand_in = machine_for(name)
    reason = refusal.split(";")[0]
    missing = [x for x in stand_in.to_dict() if x not in found and not x.startswith("pinned")]
    return {item: getattr(stand_in, item) for item in missing} | {
        "notes": dict.fromkeys(missing, f"assumed, from {stand_in.name}: {reason}")
        | {item: f"measured on page-locked memory: {reason}" for item in found if "remote" in item}
    }


class _Bench:
    """The measurements, each of which returns figures by their names in `Machine`."""

    def __init__(self, probes: Probes, size: int) -> None:
        self.probes = probes
        self.size = size
        self.copying = 1e12

    def launches(self) -> dict[str, float]:
        return {"launch_seconds": self.probes.launch(), "readback_seconds": self.probes.readback()}

    def on_device(self) -> dict[str, float]:
        with self.arena("device") as at:
            return {
                "device_bandwidth": self.size / self.probes.read(at, self.size),
                "device_random_rate": self.rate("device", self.probes.gather, at),
                "device_atomic_rate": self.rate("atomic", self.probes.atomics, at),
            }

    def pinned(self) -> dict[str, float]:
        with self.arena("pinned") as there:
            with self.arena("device") as here:
                found = {
                    "copy_to_device": self.size / self.probes.copy(here, there, self.size),
                    "copy_to_host": self.size / self.probes.copy(there, here, self.size),
                }
            self.copying = found["copy_to_device"]
            rates = {
                nbytes: COUNTS["pinned"] / self.probes.gather(there, nbytes, COUNTS["pinned"])
                for nbytes in (self.size // 4, self.size // 4 * 3, self.size)
            }
            return found | {"pinned_random_rate": rates[self.size]} | fit_reach(rates)

    def in_place(self, kind: Literal["host_mapped", "pinned"]) -> dict[str, float]:
        with self.arena(kind) as at:
            return {
                "remote_bandwidth": self.size / self.probes.read(at, self.size),
                "remote_write_bandwidth": self.size / self.probes.write(at, self.size),
                "remote_random_rate": self.rate(kind, self.probes.gather, at),
                "remote_atomic_rate": self.rate(kind, self.probes.atomics, at),
            }

    def neighbour(self, peer: int) -> dict[str, float]:
        with self.arena("peer", peer) as there:
            with self.arena("device") as here:
                copied = self.size / self.probes.copy(here, there, self.size)
            return {
                "peer_copy_bandwidth": copied,
                "peer_bandwidth": self.size / self.probes.read(there, self.size),
                "peer_random_rate": self.rate("atomic", self.probes.gather, there),
                "peer_atomic_rate": self.rate("host_mapped", self.probes.atomics, there),
            }

    def prefetches(self) -> dict[str, float]:
        probes, size = self.probes, self.size
        with self.fresh(on_host=True) as at:
            up = probes.wall(lambda: cuda_calls.prefetch(at, size, probes.device))
            down = probes.wall(lambda: cuda_calls.prefetch(at, size, HOST))
            again = probes.wall(lambda: cuda_calls.prefetch(at, size, probes.device))
            back = probes.wall(lambda: cuda_calls.prefetch(at, size, HOST))
        with self.arena("read_mostly") as at:
            populate(at, size)
            duplicate = probes.wall(lambda: cuda_calls.prefetch(at, size, probes.device))
        return {
            "prefetch_to_device": 2 * size / (up + again),
            "prefetch_to_host": 2 * size / (down + back),
            "prefetch_duplicate": size / duplicate,
            "cpu_fault_seconds": self.cpu_fault(2 * size / (down + back)),
        }

    def cpu_fault(self, rate: float) -> float:
        """Time touches of the host, one in each block, less the 64 KiB that each brings."""
        blocks = self.size // BLOCK
        with self.fresh(on_host=False) as at:
            self.probes.write(at, self.size, first=True)
            since = time.perf_counter()
            for block in range(blocks):
                ctypes.c_uint8.from_address(at + block * BLOCK).value = 1
            each = (time.perf_counter() - since) / blocks
        return max(each - LARGE_PAGE / rate, 1e-6)

    def faults(self) -> dict[str, float]:
        size, share = self.size, self.size / MOST
        touches: dict[str, tuple[bool, Callable[[int], float]]] = {
            "scan": (True, lambda at: self.probes.read(at, size, first=True)),
            "random": (True, lambda at: self.scattered(at, int(500_000 * share))),
            "few": (True, lambda at: self.scattered(at, int(4096 * share))),
            "first write": (False, lambda at: self.probes.write(at, size, first=True)),
        }
        seconds = {}
        for name, (on_host, touch) in touches.items():
            runs = []
            for _ in range(FIRST_TOUCHES):
                with self.fresh(on_host=on_host) as at:
                    runs.append(touch(at) / share)
            seconds[name] = statistics.median(runs)
        wide = self.probes.pages_in_flight >= WIDE_FROM
        return fit_faults(seconds, wide=wide, copying=self.copying)

    def scattered(self, at: int, count: int) -> float:
        return self.probes.gather(at, self.size, count, first=True)

    def rate(self, kind: str, probe: Callable[[int, int, int], float], at: int) -> float:
        """Return accesses a second."""
        return COUNTS[kind] / probe(at, self.size, COUNTS[kind])

    @contextmanager
    def arena(self, kind: Kind, peer: int | None = None) -> Iterator[int]:
        """Yield the address of an arena that is gone afterwards."""
        spec = ArenaSpec(
            name="calibration", group="scratch", capacity=self.size, placement=Placement(kind)
        )
        arena = Arena(spec, self.probes.device, peer=peer)
        try:
            yield arena.address
        finally:
            arena.close()

    @contextmanager
    def fresh(self, *, on_host: bool) -> Iterator[int]:
        """Yield managed memory without advice, written by the host or untouched."""
        address = guard.managed("calibration", self.size, self.probes.device)
        try:
            if on_host:
                populate(address, self.size)
            yield address
        finally:
            cuda_calls.synchronize()
            guard.release(address)


def fit_reach(rates: Mapping[int, float]) -> dict[str, float]:
    """Return the reach and the rate beyond it that explain rates of three ascending sizes."""
    # Of more bytes than a device reaches at full rate, each takes the time of the slower rate.
    (_, full), (middle, more), (size, most) = sorted(rates.items())
    missed = (size - middle) / (size / most - middle / more) if most < more else full
    reach = int(size * (1 / missed - 1 / most) / (1 / missed - 1 / full)) if missed < full else 0
    if missed >= REACHED * full or reach <= 0:
        return {}
    return {"pinned_reach_bytes": reach, "pinned_missed_rate": missed}


Touch = tuple[int, int, float]
"""Batches of faults, services of 2 MiB blocks, and GiB that come from the host."""

WIDE: Final[Mapping[str, Touch]] = {
    "scan": (1024, 1024, 1.0),
    "random": (31, 5643, 1.0),
    "few": (15, 2883, 0.245),
    "first write": (1024, 1024, 0.0),
}
NARROW: Final[Mapping[str, Touch]] = {
    "scan": (2048, 2048, 1.0),
    "random": (130, 6709, 1.0),
    "few": (65, 3426, 0.248),
    "first write": (2048, 2048, 0.0),
}
"""What the driver does when a device first touches a GiB: in order; at random, 500,000 times and
4,096 times; and writing untouched memory. Counted in the page-level model of the driver,
with 264 and with 56 touches that may wait at one time."""

LEAST_SECONDS: Final = 1e-7
"""A cost that the fit finds to be nothing is taken as this; no figure of a machine is 0."""


def fit_faults(
    seconds: Mapping[str, float], *, wide: bool, copying: float = 1e12
) -> dict[str, float]:
    """Return the three costs of a fault that explain measured seconds best."""
    import numpy as np
    from scipy.optimize import lsq_linear

    table = WIDE if wide else NARROW
    rows = np.array([table[name] for name in seconds], float)
    times = np.array(list(seconds.values()))
    # Relative errors count, so each row is divided by its time.
    least = np.array([LEAST_SECONDS, LEAST_SECONDS, GIB / copying])
    scale = np.abs(rows).max(axis=0)  # costs of a batch and of a GiB differ by orders of magnitude
    found = lsq_linear(rows / scale / times[:, None], np.ones(len(times)), (least * scale, np.inf))
    batch, service, gib = (float(cost) for cost in found.x / scale)
    return {
        "fault_batch_seconds": batch,
        "block_service_seconds": service,
        "migrate_to_device": GIB / gib,
    }
