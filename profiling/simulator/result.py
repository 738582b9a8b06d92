"""What a simulation returns: events, seconds by term, totals by array, launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError, check_choice
from louvain_um.placement.hardware import seconds
from louvain_um.profiling.session.events import EventTable
from louvain_um.profiling.simulator.trace import Array, Trace

#: Terms of cost, in the order of the compiled parts. All but the last add up; `waiting` is for
#: dependent steps that take longer than their computing; `remote_barrier` is for barriers
#: whose memory lies on the host; `hidden` is computing that overlapped with remote reading, and
#: is subtracted.
TERMS = (
    "compute", "launch", "faults", "migration", "write_back", "remote_sequential",
    "remote_random", "remote_atomic", "prefetch", "host", "waiting", "remote_barrier", "hidden",
)  # fmt: skip

#: Totals of each array, in the order of the compiled parts: counts, or bytes where the name says.
#: `bytes_in_peer` and `bytes_remote_peer` are of managed pages only: bytes of memory that a
#: placement puts on another GPU count as `bytes_remote` alone.
TOTALS = (
    "touches", "hits", "faults", "bytes_in_demand", "bytes_in_density", "bytes_in_user",
    "bytes_out_demand", "bytes_out_user", "bytes_out_eviction", "evictions",
    "bytes_copies_dropped", "remote_maps", "bytes_remote", "remote_accesses", "remote_atomics",
    "host_faults", "thrashing", "throttling", "bytes_in_counted", "bytes_in_peer",
    "bytes_remote_peer",
)  # fmt: skip

CONFORMANCE = "docs/reference/simulator.md#conformance"
"""Where documentation says how closely the model follows the driver."""

SERVICE_RANGE = (0.5, 2.0)
"""Least and most of the times of serving faults, of GPU and host, which are fitted or assumed."""

SLOWEST_EVICTION = 2.0
"""Most of the time of evicting a byte, which is assumed; at least, it is that of a plain copy."""

_IN = ("bytes_in_demand", "bytes_in_density", "bytes_in_user", "bytes_in_counted")
_OUT = ("bytes_out_demand", "bytes_out_user", "bytes_out_eviction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """One simulated run. All figures are modelled.

    Parameters
    ----------
    trace : Trace
        What was replayed.
    addresses : int64[arrays]
        Where each begins.
    events : EventTable
        In order of time.
    dropped_events : int
        Events dropped because the buffer was full; 0 unless something is wrong.
    costs : dict of str to float
        Seconds by term; see `TERMS`.
    by_gpu : int64[gpus, arrays, totals]
        See `TOTALS`. A fault of the host counts for the GPU on whose view of the page it was
        served: where the page is pinned, which it prefers, or which has it; else the first.
    batches, services, fetched_faults, replayed : int
        Batches of faults; times the driver woke to serve some; entries fetched before coalescing;
        entries repeated because a batch left them or their page was evicted again.
    peak_bytes, capacity_bytes : int
        Device memory used at most, and given; of several GPUs, the largest of each.
    bytes_loaded : int
        Bytes that the program itself copied to the device before its first kernel, of arrays that
        live there; part of `bytes_to_device`.
    load_seconds : float
        Time before the first kernel: those copies, and prefetches.
    launch_seconds : float64[steps]
        Time of every step of the trace.
    provenance : dict
        Machine, driver, placements and "modelled".
    """

    trace: Trace
    addresses: NDArray[np.int64]
    events: EventTable
    dropped_events: int
    costs: dict[str, float]
    by_gpu: NDArray[np.int64]
    batches: int
    services: int
    fetched_faults: int
    replayed: int
    peak_bytes: int
    capacity_bytes: int
    bytes_loaded: int
    load_seconds: float
    launch_seconds: NDArray[np.float64]
    provenance: dict[str, Any]

    def __repr__(self) -> str:
        return (
            f"Simulation({len(self.arrays)} arrays, {len(self.trace.steps):,} steps: "
            f"{seconds(self.seconds)}, {self.total('evictions'):,} evictions, modelled)"
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The trace's arrays."""
        return self.trace.arrays

    @property
    def by_array(self) -> NDArray[np.int64]:
        """Totals of all GPUs together: int64[arrays, totals], see `TOTALS`."""
        sums: NDArray[np.int64] = self.by_gpu.sum(axis=0)
        return sums

    @property
    def seconds(self) -> float:
        """Time of the whole run: all terms, less the overlap."""
        return sum(self.costs.values()) - 2 * self.costs["hidden"]

    @property
    def seconds_range(self) -> tuple[float, float]:
        """Time of the run with the constants that are assumed at either end.

        These are the time of an eviction's copies, from that of plain copies to twice as assumed,
        and the times of serving faults, from half to twice as fitted. Where pages thrash, naps
        are taken to change with the latter.
        """
        machine = self.provenance["machine"]
        copies = min(1.0, machine["evict_to_host"] / machine["copy_to_host"])
        service = self.costs["faults"] + self.costs["host"]
        low, high = (
            self.seconds + (by - 1) * service + (evicting - 1) * self.costs["write_back"]
            for by, evicting in zip(SERVICE_RANGE, (copies, SLOWEST_EVICTION), strict=True)
        )
        return low, high

    def total(self, *names: str, device: int | None = None) -> int:
        """Return the sum of one or more totals over all arrays, of one GPU or all.

        Raises
        ------
        OptionError
            A name is not among `TOTALS`, or there is no such GPU.
        """
        if device is not None and device not in range(len(self.by_gpu)):
            raise OptionError("device", device, f"must be 0 to {len(self.by_gpu) - 1}")
        for name in names:
            check_choice("total", name, TOTALS)
        rows = self.by_gpu if device is None else self.by_gpu[device]
        return int(sum(rows[..., TOTALS.index(name)].sum() for name in names))

    @property
    def bytes_to_device(self) -> int:
        """Bytes copied to the device: by faults, density and the program."""
        return self.total(*_IN)

    @property
    def bytes_to_host(self) -> int:
        """Bytes copied to the host: by its faults, the program and evictions."""
        return self.total(*_OUT)

    @property
    def bytes_between(self) -> int:
        """Bytes of managed pages copied from one GPU to another over their link."""
        return self.total("bytes_in_peer")

    @property
    def bytes_remote(self) -> int:
        """Bytes that GPUs read and wrote in place elsewhere; 32 a random access."""
        return self.total("bytes_remote")

    def by_group(self) -> dict[str, dict[str, int]]:
        """Return the totals of each group that has arrays."""
        sums: dict[str, dict[str, int]] = {}
        for array, row in zip(self.arrays, self.by_array, strict=True):
            group = sums.setdefault(array.group, dict.fromkeys(TOTALS, 0))
            for name, value in zip(TOTALS, row, strict=True):
                group[name] += int(value)
        return sums

    def summary(self) -> dict[str, Any]:
        """Return the figures of a sweep's row."""
        several = {"bytes_between": self.bytes_between} if len(self.by_gpu) > 1 else {}
        return {
            "feasible": True,
            "seconds": self.seconds,
            "least_seconds": self.seconds_range[0],
            "most_seconds": self.seconds_range[1],
            "bytes_to_device": self.bytes_to_device,
            "bytes_to_host": self.bytes_to_host,
            "bytes_remote": self.bytes_remote,
            "fault_groups": self.batches,
            "faults": self.total("faults"),
            "evictions": self.total("evictions"),
            "bytes_loaded": self.bytes_loaded,
            "load_seconds": self.load_seconds,
            **several,
            "evidence": "modelled",
        }
