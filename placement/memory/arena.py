"""An arena: one range of addresses that arrays are cut from, placed as a whole, and its memory."""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from louvain_um.core.ledger import Group
from louvain_um.errors import MemoryBudgetError, PlacementError
from louvain_um.placement.hardware import ALIGNED, BLOCK
from louvain_um.placement.layout import MANAGED, ArenaSpec, cut, device_bytes, size_of
from louvain_um.placement.memory import advise, cuda_calls
from louvain_um.placement.memory.advise import Extent, PartAtSide
from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.memory.guard import guard, managed_refusal
from louvain_um.placement.memory.host import PageLocked, available, populate
from louvain_um.placement.memory.vmm import VmmRange
from louvain_um.placement.policy.policy import Kind, Placement


class Memory(Protocol):
    """A range of addresses that the device reaches."""

    address: int

    def close(self) -> None:
        """Free it."""


class Plain:
    """Device memory."""

    def __init__(self, name: str, nbytes: int, device: int) -> None:
        self.address = guard.plain(name, nbytes, device)

    def close(self) -> None:
        """Free it."""
        cuda_calls.release("free", self.address)


class Neighbour:
    """Memory of another device, which this one reads and writes in place."""

    def __init__(self, name: str, nbytes: int, peer: int) -> None:
        self.peer = peer
        with cuda_calls.current(peer):
            self.address = guard.plain(name, nbytes, peer)

    def close(self) -> None:
        """Free it."""
        with cuda_calls.current(self.peer):
            cuda_calls.release("free", self.address)


class Managed:
    """Managed memory; begins at 2 MiB."""

    def __init__(self, name: str, nbytes: int, device: int) -> None:
        self.base = guard.managed(name, nbytes, device)
        if self.base % BLOCK:
            # Not seen with any driver for 2 MiB or more, but no driver rules it out.
            guard.release(self.base)
            self.base = guard.managed(name, nbytes + BLOCK, device)
        self.address = -(-self.base // BLOCK) * BLOCK

    def close(self) -> None:
        """Free it."""
        guard.release(self.base)

    def on_device(self, nbytes: int) -> None:
        """Note that so many bytes have migrated to the device."""
        guard.note_resident(self.base, nbytes)


class Pinned:
    """Page-locked host memory that CUDA allocates, where it cannot register the system's."""

    def __init__(self, nbytes: int) -> None:
        self.address = cuda_calls.allocate("hostAlloc", nbytes, cuda_calls.PORTABLE_MAPPED)

    def close(self) -> None:
        """Free it."""
        cuda_calls.release("freeHost", self.address)


def back(
    spec: ArenaSpec, nbytes: int, device: int, *, managed: bool = True, peer: int | None = None
) -> Memory:
    """Return memory for an arena of the current device."""
    name, kind, fraction = spec.name, spec.placement.kind, spec.placement.fraction
    if kind == "device":
        return Plain(name, nbytes, device)
    if kind == "peer":
        if peer is None:
            raise PlacementError(
                f"arena {name!r} is placed on another GPU; name it, as in peer_memory='cuda:1'"
            )
        return Neighbour(name, nbytes, peer)
    managed = managed or not spec.lenient
    if kind == "pinned" or (kind == "host_mapped" and not managed):
        return page_locked(name, nbytes, device)
    cannot = not managed or managed_refusal(device) or not guard.allows(nbytes, device)
    if kind == "split" and (cannot or peer is not None):
        here = nbytes if fraction >= 1 else cut(spec.capacity, fraction)
        guard.check_plain(name, here, device)
        other = cuda_calls.HOST if peer is None else peer
        return VmmRange(name, [(device, here), (other, nbytes - here)], [device])
    return Managed(name, nbytes, device)


def managed_fits(layout: Sequence[ArenaSpec], device: int) -> bool:
    """Whether the current device can have all managed memory of a layout next to the plain one."""
    wanted = sum(size_of(spec) for spec in layout if spec.placement.kind != "pinned")
    return managed_refusal(device) is None and guard.allows(wanted, device)


def page_locked(name: str, nbytes: int, device: int) -> Memory:
    """Return page-locked host memory: registered pages where devices take host addresses."""
    try:
        if cuda_calls.attribute(cuda_calls.HOST_POINTERS, device) and sys.platform == "linux":
            return PageLocked(nbytes)
        return Pinned(nbytes)
    except (cuda_calls.CudaError, MemoryError) as error:
        if isinstance(error, cuda_calls.CudaError) and error.code != cuda_calls.OUT_OF_MEMORY:
            raise
        room = min(available() or 0, nbytes - 1)
        remedy = "close other programs on this host or use a machine with more memory"
        raise MemoryBudgetError(nbytes, room, [(f"{name}, page-locked", nbytes)], remedy) from None


class Arena:
    """Memory under one placement, from which arrays are cut."""

    def __init__(
        self, spec: ArenaSpec, device: int, *, managed: bool = True, peer: int | None = None
    ) -> None:
        self.spec = spec
        self.device = device
        self.placement = spec.placement
        self.nbytes = size_of(spec)
        self.extents: tuple[Extent, ...] = ()
        self.blocks = FreeList(self.nbytes)
        self.memory: Memory | None = back(spec, self.nbytes, device, managed=managed, peer=peer)
        self.peer = peer
        self.address = self.memory.address
        try:
            self._advise()
            self._populate()
        except BaseException:
            self.close()
            raise

    def take(self, nbytes: int, *, high: bool = False) -> int | None:
        """Return the address of a new block, or None if no gap is large enough."""
        offset = self.blocks.take(nbytes, high=high)
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
        """Whether this is managed memory; splits and host memory can do without it."""
        return isinstance(self.memory, Managed)

    @property
    def resident_bytes(self) -> int:
        """Bytes of the plan's capacity that are the device's."""
        return device_bytes(self.placement, self.spec.capacity)

    def sides(self, address: int, nbytes: int) -> tuple[PartAtSide, ...]:
        """Return where a part of the range lives."""
        found = list[PartAtSide]()
        for part in self.extents:
            begin = max(address, self.address + part.offset)
            end = min(address + nbytes, self.address + part.offset + part.nbytes)
            if begin < end:
                found.append(PartAtSide(begin, end - begin, part.side))
        return tuple(found)

    def place(self, placement: Placement) -> None:
        """Give managed memory another placement: old advice withdrawn, new advice read back."""
        if not self.managed or placement.kind not in MANAGED:
            raise ValueError(f"{self.placement} memory cannot become {placement}")
        for part in self.extents:
            advise.withdraw(self.spec.name, self.address, part, self.device)
        self.placement = placement
        self._advise()
        for part in self.extents:
            if part.side in ("device", "host"):
                self._bring(part)
        self._arrived()

    def close(self) -> None:
        """Free the memory; its arrays are gone."""
        memory, self.memory = self.memory, None
        if memory:
            memory.close()

    def _advise(self) -> None:
        """Advise the driver about each extent, and read the advice back."""
        self.extents = advise.extents(self.placement, self.spec.capacity, self.nbytes)
        if self.peer is not None and self.placement.kind == "split":
            self.extents = tuple(
                replace(part, side="peer") if part.side == "host" else part for part in self.extents
            )
        if self.managed:
            for part in self.extents:
                advise.apply(self.spec.name, self.address, part, self.device)

    def _populate(self) -> None:
        """Populate pages that were never accessed, each where it is placed."""
        if not self.managed:
            return
        for part in self.extents:
            if part.side == "device":
                self._bring(part)
        for part in self.extents:
            if part.side == "host":
                # Twice as fast as a prefetch, and mapped to the device all the same.
                populate(self.address + part.offset, part.nbytes)
        self._arrived()

    def _bring(self, part: Extent) -> None:
        location = self.device if part.side == "device" else HOST
        advise.bring(self.spec.name, self.address, part, location)

    def _arrived(self) -> None:
        """Wait for prefetches, which are queued, and count what is on the device now."""
        cuda_calls.synchronize()
        if isinstance(self.memory, Managed):
            here = sum(part.nbytes for part in self.extents if part.side == "device")
            self.memory.on_device(here)


def separate_arena(
    name: str, group: Group, nbytes: int, room: int, device: int, peer: int | None
) -> tuple[Arena, Kind] | None:
    """Return an arena for one array, and its kind of memory; None if there is none left."""
    kinds: tuple[Kind, ...] = ("device",) if nbytes <= room else kinds_elsewhere(device, peer)
    for kind in kinds:
        spec = ArenaSpec(name=name, group=group, capacity=nbytes, placement=Placement(kind))
        try:
            return Arena(spec, device, peer=peer), kind
        except MemoryBudgetError:
            continue
    return None


def kinds_elsewhere(device: int, peer: int | None) -> tuple[Kind, ...]:
    """Return the placements outside the device to try, best first."""
    if peer is not None:
        return ("peer", "pinned")
    return ("pinned",) if managed_refusal(device) else ("host_mapped", "pinned")


class FreeList:
    """Blocks cut from a range of bytes by best fit; neighbours that are free are joined."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity // ALIGNED * ALIGNED
        self.taken: dict[int, int] = {}
        # Gaps as (offset, bytes), by offset. A run has dozens of arrays, not thousands.
        self.gaps: list[tuple[int, int]] = [(0, self.capacity)] if self.capacity else []
        self.in_use = 0
        self.peak = 0

    def take(self, nbytes: int, *, high: bool = False) -> int | None:
        """Return the offset of a new block, or None if no gap is large enough."""
        gaps, wanted = self.gaps, rounded(nbytes)
        fitting = [i for i, gap in enumerate(gaps) if gap[1] >= wanted]
        if not fitting:
            return None
        # Of equals, the first that is looked at.
        at = min(reversed(fitting) if high else fitting, key=lambda i: gaps[i][1])
        offset, size = gaps[at]
        left = size - wanted
        if left:  # which stays in its place among the others
            gaps[at] = (offset if high else offset + wanted), left
        else:
            del gaps[at]
        offset += left if high else 0
        self.taken[offset] = wanted
        self._count(wanted)
        return offset

    def reserve(self, offset: int, nbytes: int) -> None:
        """Take a block at an offset; both are multiples of the grain."""
        for begin, size in self.gaps:
            if begin <= offset and offset + nbytes <= begin + size:
                break
        else:
            raise ValueError(f"{nbytes} bytes at {offset} are not free")
        self.gaps.remove((begin, size))
        for gap in ((begin, offset - begin), (offset + nbytes, begin + size - offset - nbytes)):
            if gap[1]:
                insort(self.gaps, gap)
        self.taken[offset] = nbytes
        self._count(nbytes)

    def give(self, offset: int) -> None:
        """Free a block."""
        size = self.taken.pop(offset)
        self._count(-size)
        self._add_gap(offset, size)

    def shrink(self, offset: int, nbytes: int) -> None:
        """Free the end of a block, so that `nbytes` of it are left."""
        size, wanted = self.taken[offset], rounded(nbytes)
        if wanted > size:
            raise ValueError(f"a block of {size} bytes cannot shrink to {nbytes}")
        if wanted < size:
            self.taken[offset] = wanted
            self._count(wanted - size)
            self._add_gap(offset + wanted, size - wanted)

    @property
    def free(self) -> int:
        """Bytes that are not taken."""
        return self.capacity - self.in_use

    @property
    def largest(self) -> int:
        """Bytes of the largest gap."""
        return max((nbytes for _, nbytes in self.gaps), default=0)

    def _count(self, change: int) -> None:
        self.in_use += change
        if self.in_use > self.peak:
            self.peak = self.in_use

    def _add_gap(self, offset: int, size: int) -> None:
        """Add a gap, joined with those that it touches."""
        gaps = self.gaps
        at = bisect_left(gaps, (offset, 0))
        if at < len(gaps) and offset + size == gaps[at][0]:
            size += gaps.pop(at)[1]
        if at:
            before, length = gaps[at - 1]
            if before + length == offset:
                gaps[at - 1] = before, length + size
                return
        gaps.insert(at, (offset, size))


def rounded(nbytes: int) -> int:
    """Return bytes as whole grains; an empty array takes one, so that it has an address."""
    return -(-max(nbytes, 1) // ALIGNED) * ALIGNED
