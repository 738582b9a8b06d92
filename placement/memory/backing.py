"""The memory of arenas: ways to allocate it, each with an address and `close`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

from louvain_um.errors import MemoryBudgetError, PlacementError
from louvain_um.placement.arena_spec import BLOCK, ArenaSpec, cut, size_of
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import guard, managed_refusal
from louvain_um.placement.memory.host import PageLocked, available
from louvain_um.placement.memory.vmm import VmmRange


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
                f"arena {name!r} is to lie on another GPU; name it, as in peer_memory='cuda:1'"
            )
        return Neighbour(name, nbytes, peer)
    if kind == "split" and peer is not None:
        here = nbytes if fraction >= 1 else cut(spec.capacity, fraction)
        guard.check_plain(name, here, device)
        return VmmRange(name, [(device, here), (peer, nbytes - here)], [device])
    managed = managed or not spec.lenient
    if kind == "pinned" or (kind == "host_mapped" and not managed):
        return page_locked(name, nbytes, device)
    cannot = not managed or managed_refusal(device) or not guard.allows(nbytes, device)
    if kind == "split" and cannot:
        here = nbytes if fraction >= 1 else cut(spec.capacity, fraction)
        guard.check_plain(name, here, device)
        return VmmRange(name, [(device, here), (cuda_calls.HOST, nbytes - here)], [device])
    return Managed(name, nbytes, device)


def managed_fits(layout: Sequence[ArenaSpec], device: int) -> bool:
    """Whether the current device can have all managed memory of a layout beside the plain one."""
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
