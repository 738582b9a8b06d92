"""The arrays of a run that are live: views of their memory, its sides, and values in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.core.ledger import Group, Ledger, Listener
from louvain_um.placement.memory import cuda_calls, staging
from louvain_um.placement.memory.advise import Side
from louvain_um.placement.memory.arena import Arena
from louvain_um.placement.memory.colocate import fetch, fill
from louvain_um.placement.memory.paging.span import Span

if TYPE_CHECKING:
    import cupy


class OnDevice(Protocol):
    """Memory that belongs to a device."""

    device: int


def view(address: int, shape: int, dtype: DTypeLike, memory: OnDevice, owner: object = None) -> Any:
    """Return a one-dimensional CuPy array at an address; it keeps `owner`, or `memory`, alive."""
    import cupy

    kind = np.dtype(dtype)
    nbytes = max(shape * kind.itemsize, 1)
    unowned = cupy.cuda.UnownedMemory(address, nbytes, owner or memory, memory.device)
    return cupy.ndarray((shape,), kind, cupy.cuda.MemoryPointer(unowned, 0))


# A run asks for hundreds of arrays while the device waits: a tuple is made faster than an object.
class Allocation(NamedTuple):
    """Where a live array lies: its arena, its block there, and whether the arena is its own."""

    arena: Arena | Span
    address: int
    nbytes: int
    own: bool = False


class LiveArrays:
    """Arrays by name, whichever memory they are in."""

    def __init__(self, device: int, listener: Listener | None = None) -> None:
        self.device = device
        self.ledger = Ledger(listener)
        self.live: dict[str, cupy.ndarray] = {}
        self.allocations: dict[str, Allocation] = {}

    def keep(
        self, name: str, group: Group, allocation: Allocation, shape: int, dtype: np.dtype[Any]
    ) -> Any:
        """Return a new array in memory that was allocated for it."""
        self.allocations[name] = allocation
        self.ledger.add(name, group, shape * dtype.itemsize, allocation.address)
        return self.show(name, shape, dtype)

    def show(self, name: str, shape: int, dtype: DTypeLike) -> Any:
        """Return the first elements of an array, which is so long from now on."""
        allocation = self.allocations[name]
        self.live[name] = view(allocation.address, shape, dtype, allocation.arena)
        return self.live[name]

    def free(self, *names: str) -> None:
        """Give arrays back; the caller drops its own references."""
        for name in names:
            self.live.pop(name, None)
            allocation = self.allocations.get(name)
            if allocation and allocation.own:
                with cuda_calls.current(self.device):
                    allocation.arena.close()
            # The ledger may have arrays that another allocator made.
            self.allocations.pop(name, None)
            self.ledger.remove(name)
            if allocation and not allocation.own:
                allocation.arena.give(allocation.address)

    def shrink(self, name: str, shape: int) -> Any:
        """Return the first `shape` elements of an array, which gives the rest back."""
        old, allocation = self.live[name], self.allocations[name]
        nbytes = shape * old.itemsize
        if nbytes > allocation.nbytes:
            raise ValueError(f"array {name!r} has {old.size} elements, fewer than {shape}")
        allocation.arena.shrink(allocation.address, nbytes)
        self.allocations[name] = Allocation(
            allocation.arena, allocation.address, nbytes, allocation.own
        )
        self.ledger.shrink(name, nbytes)
        return self.show(name, shape, old.dtype)

    def arena_of(self, name: str) -> Arena | Span:
        """Return the arena that a live array lies in."""
        return self.allocations[name].arena

    def sides(self, name: str) -> tuple[tuple[int, int, Side], ...]:
        """Return where a live array's bytes live: address, bytes and side of each stretch."""
        allocation = self.allocations[name]
        return allocation.arena.sides(allocation.address, allocation.nbytes)

    def host_share(self, name: str) -> float:
        """Return the share of a live array in host or a peer's memory; 0 if there is none such."""
        if name not in self.allocations:
            return 0.0
        arena = self.allocations[name].arena
        if isinstance(arena, Span) and not arena.away:
            return 0.0
        parts = self.sides(name)
        there = sum(nbytes for _, nbytes, side in parts if side in ("host", "peer"))
        return there / max(sum(nbytes for _, nbytes, _ in parts), 1)

    def on_device(self, name: str) -> bool:
        """Return whether all of a live array is in the device's own memory."""
        return all(side == "device" for _, _, side in self.sides(name))

    def fill(self, name: str, source: Any) -> None:
        """Copy values into a live array, each to the side where its bytes are."""
        array = self.live[name]
        if source.dtype != array.dtype or source.size > array.size:
            raise ValueError(
                f"array {name!r} holds {array.size} {array.dtype}, not {source.size} {source.dtype}"
            )
        if not source.flags.c_contiguous:
            raise ValueError(f"array {name!r} takes contiguous values only")
        allocation = self.allocations[name]
        with cuda_calls.current(self.device):
            fill(allocation.arena.sides(allocation.address, source.nbytes), source, self.device)

    def fetch(self, name: str) -> NDArray[Any]:
        """Return a live array's values in host memory, read by the side where they live."""
        return self.values_of(self.live[name])

    def name_of(self, array: Any) -> str | None:
        """Return the name of the live array that begins where this one does; None if none does."""
        for name, held in self.allocations.items():
            if held.address == array.data.ptr:
                return name
        return None

    def values_of(self, array: Any) -> NDArray[Any]:
        """Return the values of an array, live or not, in host memory, as `fetch` does."""
        name = self.name_of(array)
        if name is None:
            return staging.fetched(array)
        values = np.empty(array.size, array.dtype)
        with cuda_calls.current(self.device):
            fetch(self.allocations[name].arena.sides(array.data.ptr, values.nbytes), values)
        return values

    @property
    def peak_bytes(self) -> Mapping[Group, int]:
        """Largest number of bytes each group held at any one time."""
        return self.ledger.peak_bytes

    def _own_arenas(self) -> list[Arena | Span]:
        """Return the arenas of single arrays."""
        return [allocation.arena for allocation in self.allocations.values() if allocation.own]
