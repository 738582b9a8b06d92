"""An arena: one range of addresses that a group's arrays are cut from, placed as a whole."""

from __future__ import annotations

from dataclasses import replace

from louvain_um.core.ledger import Group
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.arena_spec import MANAGED, ArenaSpec, device_bytes, size_of
from louvain_um.placement.memory import advise, cuda_calls
from louvain_um.placement.memory.advise import Extent, Part
from louvain_um.placement.memory.backing import Managed, Memory, back
from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.memory.free_list import FreeList
from louvain_um.placement.memory.guard import managed_refusal
from louvain_um.placement.memory.host import populate
from louvain_um.placement.policy.policy import Kind, Placement


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

    def sides(self, address: int, nbytes: int) -> tuple[Part, ...]:
        """Return where a part of the range lives."""
        found = list[Part]()
        for part in self.extents:
            begin = max(address, self.address + part.offset)
            end = min(address + nbytes, self.address + part.offset + part.nbytes)
            if begin < end:
                found.append(Part(begin, end - begin, part.side))
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
