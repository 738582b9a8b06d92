"""NVML as a source: the energy of a run."""

from __future__ import annotations

import threading
from typing import Any

from louvain_um.core.threads import start_thread
from louvain_um.profiling.sources.source import EventSource, SessionClock, SourceUnavailableError

PERIOD = 0.1
"""Seconds between samples at first; the driver's own figure changes no faster."""

MOST_SAMPLES = 10_000
"""With so many, every other one is dropped and the period doubles."""


class Nvml(EventSource):
    """Total energy and power samples of one device."""

    name = "nvml"

    def __init__(self, bus_id: str, library: Any = None, period: float = PERIOD) -> None:
        self.bus_id = bus_id
        self.notes: list[str] = []
        self.period = period
        self.samples: list[tuple[int, float]] = []
        self._library = library
        self._device: Any = None
        self._halt = threading.Event()
        self._first: int | None = None
        self._last: int | None = None

    def start(self, clock: SessionClock) -> None:
        """Read the energy counter and begin to sample."""
        self.clock = clock
        if self._library is None:
            self._library = _pynvml()
        try:
            self._library.nvmlInit()
            self._device = self._library.nvmlDeviceGetHandleByPciBusId(self.bus_id)
        except self._library.NVMLError as error:
            raise SourceUnavailableError(f"NVML: {_reason(self._library, error)}") from None
        self.began = clock.now()
        self._first = self._energy()
        if self._watts() is None and self._first is None:
            raise SourceUnavailableError("NVML: this GPU reports neither energy nor power")
        self._thread = start_thread(self._sample, "nvml")

    def _energy(self) -> int | None:
        """Return millijoules since the driver was loaded, if the GPU counts them."""
        return self._ask("nvmlDeviceGetTotalEnergyConsumption")

    def _watts(self) -> float | None:
        milliwatts = self._ask("nvmlDeviceGetPowerUsage")
        return None if milliwatts is None else milliwatts / 1e3

    def _ask(self, function: str) -> int | None:
        """Return what NVML reports of the device; None if it does not."""
        try:
            return int(getattr(self._library, function)(self._device))
        except self._library.NVMLError:
            return None

    def _sample(self) -> None:
        while True:
            watts = self._watts()
            if watts is not None:
                self.samples.append((self.clock.now(), watts))
            if len(self.samples) >= MOST_SAMPLES:
                self.samples = self.samples[::2]
                self.period *= 2
            if self._halt.wait(self.period):
                return

    def stop(self) -> None:
        """Read the counter once more and stop sampling."""
        self._last = self._energy()
        self.ended = self.clock.now()
        self._halt.set()
        self._thread.join()
        self._library.nvmlShutdown()
        if self.energy() is None:
            self.notes.append(
                "energy is not known: the run was shorter than the GPU's counting step"
            )

    def about(self) -> dict[str, Any]:
        """Return how many samples there are."""
        return {"samples": len(self.samples), "period_seconds": self.period}

    def energy(self) -> dict[str, Any] | None:
        """Return the session's energy; None if there were too few samples."""
        samples = list(self.samples)
        end = getattr(self, "ended", None) or self.clock.now()
        last = self._last if hasattr(self, "ended") else self._energy()
        # A counter that did not move: the run was shorter than its step.
        if self._first is not None and last is not None and last > self._first:
            joules, counter = (last - self._first) / 1e3, "total energy"
        elif len(samples) > 1:
            joules, counter = _integral(samples, self.began, end), "integrated power"
        else:
            return None
        return {
            "joules": joules,
            "seconds": (end - self.began) / 1e9,
            "counter": counter,
            "times_ns": [time for time, _ in samples],
            "watts": [watts for _, watts in samples],
        }


def _pynvml() -> Any:
    try:
        import pynvml
    except ImportError:
        raise SourceUnavailableError(
            "NVML needs nvidia-ml-py: pip install 'louvain-um[cuda12]' or [cuda13]"
        ) from None
    return pynvml


def _reason(library: Any, error: Any) -> str:
    """Return why NVML refused, and what to do."""
    if error.value == library.NVML_ERROR_NO_PERMISSION:
        return "not permitted; run as root or ask for permission"
    if error.value == library.NVML_ERROR_LIBRARY_NOT_FOUND:
        return "its library is missing; it comes with the NVIDIA driver"
    return f"refused ({error}); see whether nvidia-smi works"


def _integral(samples: list[tuple[int, float]], start: int, end: int) -> float:
    """Return joules under a curve of watts; constant before the first and after the last."""
    times = [start, *(time for time, _ in samples), end]
    watts = [samples[0][1], *(value for _, value in samples), samples[-1][1]]
    return sum(
        (b - a) / 1e9 * (p + q) / 2
        for a, b, p, q in zip(times, times[1:], watts, watts[1:], strict=False)
    )
