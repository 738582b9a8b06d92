"""An arena: one range of addresses that a group's arrays are cut from, placed as a whole."""

from __future__ import annotations

import sys
from typing import Final

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement import advise, calls
from louvain_um.placement.advise import Side, Stretch
from louvain_um.placement.calls import HOST
from louvain_um.placement.freelist import FreeList
from louvain_um.placement.guard import guard
from louvain_um.placement.host import PageLocked, available, populate
from louvain_um.placement.policy import Placement
from louvain_um.placement.spec import BLOCK, MANAGED, ArenaSpec, device_bytes

SLACK: Final = 64 << 10
"""Bytes on top of a plan's capacity: arrays begin at multiples of 256, plans count bytes."""


class Arena:
    """Memory under one placement, from which arrays are cut.

    Managed memory is advised about before anything touches it, and the advice is read back.
    What is to live on one side is populated there at once: device parts by a prefetch, host
    parts by the host's threads, upon which the driver maps them to the device.

    Parameters
    ----------
    spec : ArenaSpec
    device : int
        The CUDA device, which is current.

    Raises
    ------
    MemoryBudgetError
        There is no such memory left, or the guard refuses.
    PlacementError
        The device or its driver does not carry out the placement.

    Attributes
    ----------
    address, nbytes : int
        The range; managed ranges begin and end at 2 MiB.
    stretches : tuple of Stretch
        Which part of it lives on which side.
    """

    def __init__(self, spec: ArenaSpec, device: int) -> None:
        self.spec = spec
        self.device = device
        self.placement = spec.placement
        self.nbytes = -(-(spec.capacity + SLACK) // BLOCK) * BLOCK
        if spec.placement.kind == "device":
            self.nbytes = spec.capacity + SLACK
        self.base = 0
        """What the allocation returned; `address` may begin later, at a block."""
        self.address = 0
        self.stretches: tuple[Stretch, ...] = ()
        self.blocks = FreeList(self.nbytes)
        self.pages: PageLocked | None = None
        self._allocate()
        try:
            self._advise()
            self._populate()
        except BaseException:
            self.close()
            raise

    def take(self, nbytes: int) -> int | None:
        """Return the address of a new block, or None if no hole is large enough."""
        offset = self.blocks.take(nbytes)
        return None if offset is None else self.address + offset

    def whole(self) -> int:
        """Return the address of a block of all that was planned, in an arena that is empty."""
        address = self.take(self.spec.capacity)
        if address is None:
            raise ValueError(f"arena {self.spec.name!r} is in use")
        return address

    def give(self, address: int) -> None:
        """Free a block."""
        self.blocks.give(address - self.address)

    def shrink(self, address: int, nbytes: int) -> None:
        """Free the end of a block."""
        self.blocks.shrink(address - self.address, nbytes)

    @property
    def in_use(self) -> int:
        """Bytes of the blocks that are taken."""
        return self.blocks.in_use

    @property
    def peak(self) -> int:
        """Most bytes that were ever taken at once."""
        return self.blocks.peak

    @property
    def managed(self) -> bool:
        """Whether this is managed memory."""
        return self.placement.kind in MANAGED

    @property
    def resident_bytes(self) -> int:
        """Bytes of the plan's capacity that are the device's."""
        return device_bytes(self.placement, self.spec.capacity)

    def sides(self, address: int, nbytes: int) -> tuple[tuple[int, int, Side], ...]:
        """Return where a part of the range lives: address, bytes and side of each stretch."""
        found = []
        for part in self.stretches:
            begin = max(address, self.address + part.offset)
            end = min(address + nbytes, self.address + part.offset + part.nbytes)
            if begin < end:
                found.append((begin, end - begin, part.side))
        return tuple(found)

    def place(self, placement: Placement) -> None:
        """Give managed memory another placement: old advice withdrawn, new advice read back.

        Bytes move where the placement wants them; their values stay.

        Raises
        ------
        PlacementError
            The driver rejects it.
        ValueError
            One of the two placements is not one of managed memory.
        """
        if not self.managed or placement.kind not in MANAGED:
            raise ValueError(f"{self.placement} memory cannot become {placement}")
        for part in self.stretches:
            advise.withdraw(self.spec.name, self.address, part, self.device)
        self.placement = placement
        self._advise()
        for part in self.stretches:
            if part.side in ("device", "host"):
                self._bring(part)
        self._arrived()

    def close(self) -> None:
        """Free the memory; its arrays are gone."""
        base, self.base = self.base, 0
        if not base:
            return
        if self.managed:
            guard.release(base)
        elif self.pages:
            self.pages.close()
        else:
            calls.release("freeHost" if self.placement.kind == "pinned" else "free", base)

    def _allocate(self) -> None:
        name, kind = self.spec.name, self.placement.kind
        if kind == "device":
            self.base = guard.plain(name, self.nbytes, self.device)
        elif kind == "pinned":
            self._page_lock()
        else:
            self.base = guard.managed(name, self.nbytes, self.device)
            if self.base % BLOCK:
                # No driver was seen to do this to 2 MiB or more, and none promises not to.
                self.close()
                self.base = guard.managed(name, self.nbytes + BLOCK, self.device)
        self.address = self.base
        if self.managed:
            self.address = -(-self.base // BLOCK) * BLOCK

    def _page_lock(self) -> None:
        """Allocate page-locked memory: registered pages where devices take host addresses."""
        try:
            if calls.attribute(calls.HOST_POINTERS, self.device) and sys.platform == "linux":
                self.pages = PageLocked(self.nbytes)
                self.base = self.pages.address
            else:
                self.base = calls.allocate("hostAlloc", self.nbytes, calls.PORTABLE_MAPPED)
        except (calls.CudaError, MemoryError) as error:
            if isinstance(error, calls.CudaError) and error.code != calls.OUT_OF_MEMORY:
                raise
            room = min(available() or 0, self.nbytes - 1)
            raise MemoryBudgetError(
                self.nbytes,
                room,
                [(self.spec.name, self.nbytes)],
                "the host has no such page-locked memory left; close other programs or use a "
                "machine with more",
            ) from None

    def _advise(self) -> None:
        """Tell the driver what is to live where, and read it back."""
        self.stretches = advise.stretches(self.placement, self.spec.capacity, self.nbytes)
        if self.managed:
            for part in self.stretches:
                advise.apply(self.spec.name, self.address, part, self.device)

    def _populate(self) -> None:
        """Make the pages of memory that nobody has touched, each where it is to live."""
        if not self.managed:
            return
        for part in self.stretches:
            if part.side == "device":
                self._bring(part)
        for part in self.stretches:
            if part.side == "host":
                # Twice as fast as a prefetch, and mapped to the device all the same.
                populate(self.address + part.offset, part.nbytes)
        self._arrived()

    def _bring(self, part: Stretch) -> None:
        location = self.device if part.side == "device" else HOST
        advise.bring(self.spec.name, self.address, part, location)

    def _arrived(self) -> None:
        """Wait for prefetches, which are queued, and count what is on the device now."""
        there = sum(part.nbytes for part in self.stretches if part.side == "device")
        calls.synchronize()
        guard.note_resident(self.base, there)
