"""Which blocks of a graph's arcs are on the device, when the budget holds only some of them.

Real faults, real migrations, real write-backs; only the choice of victim is the program's: the
blocks used longest ago are moved back before others are brought, so that the driver never has
to evict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.memory import cuda_calls

BLOCK: Final = 2 << 20
"""Bytes of the unit that moves: the driver's own."""

AWAY: Final = -1
"""When a unit was used last that is not on the device."""

Mode = Literal["fault", "prefetch"]


@dataclass(frozen=True, slots=True)
class Span:
    """An array in managed memory, indexed by arcs: address and bytes of an element."""

    address: int
    itemsize: int


@dataclass(slots=True)
class Traffic:
    """Bytes that residency moved."""

    to_device: int = 0
    to_host: int = 0


class Mover(Protocol):
    """What moves ranges: see `Prefetches`."""

    def send(self, address: int, nbytes: int, to: int) -> None:
        """Begin to move a range to a device or to the host."""

    def arrive(self) -> None:
        """Let kernels launched later wait for everything sent."""


class Residency:
    """Blocks of arcs on the device, least recently used first to leave.

    Parameters
    ----------
    spans : sequence of Span
        The arrays: targets, and weights if there are any.
    cuts : int64[blocks + 1]
        Arcs at which blocks begin.
    capacity : int
        Bytes of them that may be on the device.
    mode : {"fault", "prefetch"}
        Brought by touching, as a program without placement would, or by prefetching, the next
        block while this one is worked on.
    device : int
    touch : callable
        ``touch(address, nbytes)`` launches a kernel that touches every page of a range.
    mover : Mover, optional
        Moves ranges; CUDA's prefetches, if none is given.

    Examples
    --------
    A graph of four blocks with room for two, brought in turn:

    >>> import numpy as np
    >>> from louvain_um.placement.lru.residency import Residency, Span
    >>> touched = []
    >>> where = Residency([Span(0, 4)], np.arange(5) << 19, 8 << 20, "fault", 0,
    ...                   touch=lambda address, nbytes: touched.append(address >> 21))
    >>> for block in (0, 1, 3, 0):
    ...     where.need(block)
    >>> touched, where.traffic.to_device >> 20
    ([0, 1, 3], 6)
    """

    def __init__(
        self,
        spans: Sequence[Span],
        cuts: NDArray[np.int64],
        capacity: int,
        mode: Mode,
        device: int,
        *,
        touch: Callable[[int, int], None],
        mover: Mover | None = None,
    ) -> None:
        self.mode = mode
        self.device = device
        self.touch = touch
        self.mover = mover or Prefetches()
        self.traffic = Traffic()
        self.room = capacity // BLOCK
        self.clock = 0
        # Units of all arrays are numbered through; `firsts` says where each array's begin.
        self.bases, self.units = list[int](), list[NDArray[np.int64]]()
        count = 0
        for span in spans:
            begins = (span.address + cuts[:-1] * span.itemsize) // BLOCK
            ends = -((span.address + cuts[1:] * span.itemsize) // -BLOCK)
            base = int(begins[0]) if len(begins) else 0
            self.bases.append(base - count)
            self.units.append(np.stack([begins - base + count, ends - base + count], axis=1))
            count += int(ends[-1]) - base if len(ends) else 0
        self.used = np.full(count, AWAY, np.int64)

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
        return int((self.used != AWAY).sum()) * BLOCK

    def need(self, block: int, following: int | None = None) -> None:
        """Bring a block for the kernel that is launched next.

        Where blocks are prefetched, the following one is sent for as well, if there is room for
        both: it travels while that kernel works.
        """
        self.clock += 1
        self.bring(self.units_of(block), None)
        self.mover.arrive()
        if following is not None and self.mode == "prefetch":
            self.bring(self.units_of(following), self.units_of(block))

    def bring(self, wanted: NDArray[np.int64], kept: NDArray[np.int64] | None) -> None:
        """Bring units; the others may leave, except those kept."""
        missing = wanted[self.used[wanted] == AWAY]
        here = np.flatnonzero(self.used != AWAY)
        surplus = len(here) + len(missing) - self.room
        if surplus > 0:
            staying = wanted if kept is None else np.union1d(wanted, kept)
            others = np.setdiff1d(here, staying)
            if len(others) < surplus:
                if kept is not None:
                    return  # no room to work ahead
                raise ValueError(f"a block of {len(wanted)} units does not fit into {self.room}")
            oldest = others[np.argsort(self.used[others], kind="stable")[:surplus]]
            self.move(np.sort(oldest), cuda_calls.HOST)
            self.used[oldest] = AWAY
            if self.mode == "fault":
                self.mover.arrive()  # what is touched next must find room
        self.move(missing, self.device)
        self.used[wanted] = self.clock

    def move(self, units: NDArray[np.int64], to: int) -> None:
        """Move units, neighbours together."""
        if not len(units):
            return
        breaks = np.flatnonzero(np.diff(units) != 1) + 1
        for run in np.split(units, breaks):
            for low, high, base in self.pieces(int(run[0]), int(run[-1]) + 1):
                address, nbytes = (low + base) * BLOCK, (high - low) * BLOCK
                if to == cuda_calls.HOST:
                    self.traffic.to_host += nbytes
                    self.mover.send(address, nbytes, to)
                    continue
                self.traffic.to_device += nbytes
                if self.mode == "fault":
                    self.touch(address, nbytes)
                else:
                    self.mover.send(address, nbytes, to)

    def pieces(self, low: int, high: int) -> list[tuple[int, int, int]]:
        """Return a stretch of units, cut where one array ends, each with its array's base."""
        found = []
        for base, units in zip(self.bases, self.units, strict=True):
            first, last = int(units[0, 0]), int(units[-1, 1])
            if low < last and high > first:
                found.append((max(low, first), min(high, last), base))
        return found


def cut_rows(offsets: NDArray[np.int64], itemsize: int, nbytes: int) -> NDArray[np.int64]:
    """Return the vertices at which blocks begin, and the end of the last.

    Parameters
    ----------
    offsets : int64[n + 1]
    itemsize : int
        Bytes an arc.
    nbytes : int
        Bytes a block; one with a single row may have more.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.placement.lru.residency import cut_rows
    >>> cut_rows(np.array([0, 3, 6, 9, 20]), 4, 32).tolist()
    [0, 2, 3, 4]
    """
    cuts, last, step = [0], len(offsets) - 1, max(1, nbytes // itemsize)
    while cuts[-1] < last:
        reached = int(np.searchsorted(offsets, offsets[cuts[-1]] + step, side="right")) - 1
        cuts.append(min(last, max(reached, cuts[-1] + 1)))
    return np.array(cuts, np.int64)


class Prefetches:
    """Moves ranges of managed memory on a stream of its own, beside the kernels of another.

    What is sent begins when the kernels launched so far have ended, since what leaves may be
    theirs; `arrive` lets the kernels launched later wait for all that was sent.
    """

    def __init__(self) -> None:
        self.stream: Any = None
        self.sent = False

    def send(self, address: int, nbytes: int, to: int) -> None:
        """Begin to move a range to a device or to the host."""
        import cupy

        if self.stream is None:
            self.stream = cupy.cuda.Stream(non_blocking=True)
        if not self.sent:
            self.stream.wait_event(cupy.cuda.get_current_stream().record())
            self.sent = True
        cuda_calls.prefetch(address, nbytes, to, self.stream.ptr)

    def arrive(self) -> None:
        """Let the current stream wait for everything sent."""
        if self.sent:
            import cupy

            cupy.cuda.get_current_stream().wait_event(self.stream.record())
            self.sent = False
