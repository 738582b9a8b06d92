"""Checks every allocation of a placement, so that the driver never evicts.

The driver evicts when managed memory in use exceeds the device, and that can hang the GPU for all
its users. So managed bytes and ballast together never exceed the free device memory: all managed
pages fit on the device at once. Ballast is the thesis's way to make a card smaller: a plain
allocation that does nothing. With too little left for the managed memory of a run the driver
evicts, for real; the usual way is a budget instead, which cannot hurt.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError, PlacementError
from louvain_um.placement.memory import cuda_calls

MARGIN: Final = 64 << 20
"""Free bytes left to the driver, for page tables and modules loaded later."""


@dataclass(slots=True)
class Range:
    """One managed allocation."""

    name: str
    device: int
    nbytes: int
    resident: int = 0


class Guard:
    """Account of the managed memory of this process; thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.ranges: dict[int, Range] = {}
        self.permitted: dict[int, int] = {}

    def managed(self, name: str, nbytes: int, device: int) -> int:
        """Return the address of new managed memory of the current device."""
        refusal = managed_refusal(device)
        if refusal:
            raise PlacementError(refusal)
        with self.lock:
            self.check(name, nbytes, device)
            address = _allocated("mallocManaged", name, nbytes, cuda_calls.ATTACH_GLOBAL)
            self.ranges[address] = Range(name, device, nbytes)
        return address

    def plain(self, name: str, nbytes: int, device: int) -> int:
        """Return the address of new plain memory of the current device."""
        with self.lock:
            self.check_plain(name, nbytes, device)
            return _allocated("malloc", name, nbytes)

    def release(self, address: int) -> None:
        """Free managed memory."""
        with self.lock:
            del self.ranges[address]
            cuda_calls.release("free", address)

    def note_resident(self, address: int, nbytes: int) -> None:
        """Note that so many bytes of a managed range have migrated to the device."""
        with self.lock:
            item = self.ranges[address]
            item.resident = max(item.resident, min(nbytes, item.nbytes))

    def room(self, device: int, enough: int | None = None) -> int:
        """Return the free bytes of the current device that no managed memory may need."""
        with self.lock:
            mine = [item for item in self.ranges.values() if item.device == device]
            kept = MARGIN + sum(item.nbytes - item.resident for item in mine)
            free, _ = cuda_calls.reclaimed_memory(None if enough is None else enough + kept)
            return free - kept

    @contextmanager
    def permit_eviction(self, device: int) -> Iterator[None]:
        """Let managed memory of a device exceed what is free: the driver will evict."""
        with self.lock:
            self.permitted[device] = self.permitted.get(device, 0) + 1
        try:
            yield
        finally:
            with self.lock:
                self.permitted[device] -= 1

    def allows(self, nbytes: int, device: int) -> bool:
        """Whether managed memory of the current device may grow by so many bytes."""
        with self.lock:
            return bool(self.permitted.get(device)) or nbytes <= self.room(device, nbytes)

    def check(self, name: str, nbytes: int, device: int) -> None:
        """Refuse managed memory that is not allowed."""
        with self.lock:
            if self.allows(nbytes, device):
                return
            room = max(self.room(device), 0)
            held = sum(item.nbytes - item.resident for item in self.ranges.values())
            alive = [(item.name, item.nbytes) for item in self.ranges.values()]
            arrays = [*alive, (name, nbytes)]
            raise MemoryBudgetError(held + nbytes, held + room, arrays, REMEDY)

    def check_plain(self, name: str, nbytes: int, device: int) -> None:
        """Refuse plain memory that live managed memory may need."""
        with self.lock:
            if any(item.device == device for item in self.ranges.values()):
                self.check(name, nbytes, device)


REMEDY: Final = (
    "managed memory beyond the device's free memory would make the driver evict; place a group "
    "in pinned memory, or use memory='auto'"
)


def _allocated(call: str, name: str, nbytes: int, *flags: int) -> int:
    """Return an allocation's address; too little memory raises a MemoryBudgetError."""
    try:
        return cuda_calls.allocate(call, nbytes, *flags)
    except cuda_calls.CudaError as error:
        if error.code != cuda_calls.OUT_OF_MEMORY:
            raise
        free, _ = cuda_calls.free_memory()
        # If free memory is fragmented, a smaller block may fail.
        remedy = "choose another memory policy, a larger device or device='cpu'"
        raise MemoryBudgetError(nbytes, min(free, nbytes - 1), [(name, nbytes)], remedy) from None


def managed_refusal(device: int) -> str | None:
    """Return why a device cannot serve managed placements, or None if it can."""
    if not cuda_calls.attribute(cuda_calls.MANAGED_MEMORY, device):
        return f"cuda:{device} has no managed memory; {FALLBACK}"
    if not cuda_calls.attribute(cuda_calls.CONCURRENT_MANAGED_ACCESS, device):
        return (
            f"cuda:{device} shares managed memory with the host only while it is idle "
            f"(concurrentManagedAccess is 0, as on Windows, WSL and old cards); {FALLBACK}"
        )
    return None


FALLBACK = "use memory='device', or a policy whose groups are 'pinned' where the host keeps them"

guard: Final = Guard()
"""The guard of this process."""

WARNING: Final = "driver eviction can hang the GPU for all its users until the machine is restarted"
"""Shown before it is allowed."""


@contextmanager
def ballast(
    nbytes: int, managed: int, device: int, *, allow_driver_eviction: bool = False
) -> Iterator[int]:
    """Hold plain memory of a device, so that a run has less."""
    with cuda_calls.current(device):
        room = guard.room(device)
        if nbytes + managed > room and not allow_driver_eviction:
            raise MemoryBudgetError(
                nbytes + managed,
                max(room, 0),
                [("ballast", nbytes), ("managed memory", managed)],
                f"use --device-budget, or --allow-driver-eviction if you must: {WARNING}",
            )
        address = guard.plain("ballast", nbytes, device)
        try:
            if allow_driver_eviction:
                with guard.permit_eviction(device):
                    yield address
            else:
                yield address
        finally:
            with cuda_calls.current(device):
                cuda_calls.release("free", address)


def enable_peers(device: int, others: Sequence[int], remedy: str) -> None:
    """Let a device read the others' memory: copies by way of the host are ten times slower."""
    for other in dict.fromkeys(others):
        if not cuda_calls.reaches(device, other):
            raise DeviceUnavailableError(
                f"cuda:{device} cannot read the memory of cuda:{other}; {remedy}"
            )
        cuda_calls.enable_peer(device, other)


def peer_for(name: str | None, device: int) -> int | None:
    """Return the device whose memory a run on another one may use; None if none is named."""
    if name is None:
        return None
    peer = int(name.removeprefix("cuda:"))
    enable_peers(device, [peer], "name another GPU of this host, or leave out peer_memory")
    return peer


def peer_room(peer: int) -> int:
    """Return the bytes that a run may take of another device."""
    with cuda_calls.current(peer):
        return guard.room(peer)
