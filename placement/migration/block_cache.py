"""Which blocks of a graph's arcs are on the device, if the budget holds only some of them.

Faults, migrations and write-backs are real. Only eviction differs from the driver's: this module
moves the least recently used blocks to the host before others are moved in, so that the driver
never evicts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.memory import cuda_calls

NOT_RESIDENT: Final = -1
"""Entry of `BlockCache.used` for a unit that is not on the device."""

Mode = Literal["fault", "prefetch"]


@dataclass(frozen=True, slots=True)
class ArcArray:
    """An array in managed memory, indexed by arc: address, and bytes per element."""

    address: int
    itemsize: int


@dataclass(slots=True)
class BlockTraffic:
    """Bytes moved so far."""

    to_device: int = 0
    to_host: int = 0


class Transfers(Protocol):
    """Moves ranges of memory; see `Prefetches`."""

    def send(self, address: int, nbytes: int, to: int) -> None:
        """Start to move a range to a device or to the host."""

    def arrive(self) -> None:
        """Make kernels launched later wait for all ranges sent."""


class BlockCache:
    """Blocks of arcs on the device; the least recently used are evicted first."""

    def __init__(
        self,
        arrays: Sequence[ArcArray],
        cuts: NDArray[np.int64],
        capacity: int,
        mode: Mode,
        device: int,
        *,
        touch: Callable[[int, int], None],
        transfers: Transfers | None = None,
    ) -> None:
        self.mode = mode
        self.device = device
        self.touch = touch
        self.transfers = transfers or Prefetches()
        self.traffic = BlockTraffic()
        self.room = capacity // BLOCK
        self.clock = 0
        # Units of all arrays are numbered consecutively; `bases` maps a number to an address.
        self.bases, self.units = list[int](), list[NDArray[np.int64]]()
        count = 0
        for array in arrays:
            begins = (array.address + cuts[:-1] * array.itemsize) // BLOCK
            ends = -((array.address + cuts[1:] * array.itemsize) // -BLOCK)
            base = int(begins[0]) if len(begins) else 0
            self.bases.append(base - count)
            self.units.append(np.stack([begins - base + count, ends - base + count], axis=1))
            count += int(ends[-1]) - base if len(ends) else 0
        self.used = np.full(count, NOT_RESIDENT, np.int64)

    def units_of(self, block: int) -> NDArray[np.int64]:
        """Return the numbers of the units that hold a block."""
        return np.concatenate([np.arange(*units[block]) for units in self.units])

    @property
    def largest(self) -> int:
        """Most bytes that a block takes."""
        return (
            max(
                (sum(int(u[b, 1] - u[b, 0]) for u in self.units) for b in range(self.blocks)),
                default=0,
            )
            * BLOCK
        )

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.units[0])

    @property
    def resident_bytes(self) -> int:
        """Bytes on the device."""
        return int((self.used != NOT_RESIDENT).sum()) * BLOCK

    def need(self, block: int, following: int | None = None) -> None:
        """Move a block to the device for the kernel that is launched next."""
        self.clock += 1
        self.bring(self.units_of(block), None)
        self.transfers.arrive()
        if following is not None and self.mode == "prefetch":
            self.bring(self.units_of(following), self.units_of(block))

    def bring(self, wanted: NDArray[np.int64], kept: NDArray[np.int64] | None) -> None:
        """Move units to the device; evict others except those kept."""
        missing = wanted[self.used[wanted] == NOT_RESIDENT]
        here = np.flatnonzero(self.used != NOT_RESIDENT)
        surplus = len(here) + len(missing) - self.room
        if surplus > 0:
            staying = wanted if kept is None else np.union1d(wanted, kept)
            others = np.setdiff1d(here, staying)
            if len(others) < surplus:
                if kept is not None:
                    return  # the following block does not fit with this one
                raise ValueError(f"a block of {len(wanted)} units does not fit into {self.room}")
            oldest = others[np.argsort(self.used[others], kind="stable")[:surplus]]
            self.move(np.sort(oldest), cuda_calls.HOST)
            self.used[oldest] = NOT_RESIDENT
            if self.mode == "fault":
                self.transfers.arrive()  # evict before the next pages are touched
        self.move(missing, self.device)
        self.used[wanted] = self.clock

    def move(self, units: NDArray[np.int64], to: int) -> None:
        """Move units; consecutive ones in one call."""
        if not len(units):
            return
        breaks = np.flatnonzero(np.diff(units) != 1) + 1
        for run in np.split(units, breaks):
            for low, high, base in self.pieces(int(run[0]), int(run[-1]) + 1):
                address, nbytes = (low + base) * BLOCK, (high - low) * BLOCK
                if to == cuda_calls.HOST:
                    self.traffic.to_host += nbytes
                    self.transfers.send(address, nbytes, to)
                    continue
                self.traffic.to_device += nbytes
                if self.mode == "fault":
                    self.touch(address, nbytes)
                else:
                    self.transfers.send(address, nbytes, to)

    def pieces(self, low: int, high: int) -> list[tuple[int, int, int]]:
        """Return a range of units, split by array, each part with its array's base."""
        found = []
        for base, units in zip(self.bases, self.units, strict=True):
            first, last = int(units[0, 0]), int(units[-1, 1])
            if low < last and high > first:
                found.append((max(low, first), min(high, last), base))
        return found


class Prefetches:
    """Moves ranges of managed memory on a separate stream, concurrently with kernels."""

    def __init__(self) -> None:
        self.stream: Any = None
        self.sent = False

    def send(self, address: int, nbytes: int, to: int) -> None:
        """Start to move a range to a device or to the host."""
        import cupy

        if self.stream is None:
            self.stream = cupy.cuda.Stream(non_blocking=True)
        if not self.sent:
            self.stream.wait_event(cupy.cuda.get_current_stream().record())
            self.sent = True
        cuda_calls.prefetch(address, nbytes, to, self.stream.ptr)

    def arrive(self) -> None:
        """Make the current stream wait for all ranges sent."""
        if self.sent:
            import cupy

            cupy.cuda.get_current_stream().wait_event(self.stream.record())
            self.sent = False
