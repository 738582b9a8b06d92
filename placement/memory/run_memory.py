"""The arrays of a run by name: views of their memory, its sides, and values in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.core.ledger import Group, Ledger, Listener
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory import copies, cuda_calls
from louvain_um.placement.memory.advise import PartAtSide
from louvain_um.placement.memory.arenas import Arenas, Wanted
from louvain_um.placement.memory.copies import fetch, fill
from louvain_um.placement.migration.mover import Mover
from louvain_um.placement.migration.room import PageBudget
from louvain_um.placement.migration.span import Allocation, Span

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


class RunMemory:
    """Arrays of one run on one device, under the placements of its plan."""

    def __init__(
        self,
        layout: Sequence[ArenaSpec],
        device: int,
        *,
        budget: int | None = None,
        out_of_core: Mapping[str, int] | None = None,
        pages: PageBudget | None = None,
        peer: int | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.device = device
        self.ledger = Ledger(listener)
        self.live: dict[str, cupy.ndarray] = {}
        self.allocations: dict[str, Allocation] = {}
        self.arenas = Arenas(
            layout, device, self.ledger, self.allocations,
            budget=budget, out_of_core=out_of_core, pages=pages, peer=peer,
        )  # fmt: skip

    @property
    def mover(self) -> Mover | None:
        """What moves pages during the run; None where everything stays where it is."""
        return self.arenas.mover

    @property
    def overflowed(self) -> dict[str, str]:
        """Arrays that found no room where they were planned, and the memory that they got."""
        return self.arenas.overflowed

    def empty(
        self,
        name: str,
        group: Group,
        shape: int,
        dtype: DTypeLike,
        *,
        short_lived: bool = False,
        cold: bool = False,
        most: int = 0,
        head: int = 0,
    ) -> Any:
        """Return an uninitialised one-dimensional array, that may grow to `most` elements."""
        if name in self.allocations:
            raise KeyError(f"array {name!r} is live already")
        kind = np.dtype(dtype)
        nbytes, most = shape * kind.itemsize, most * kind.itemsize
        wanted = Wanted(name, group, nbytes, most, head, short_lived, cold)
        self.allocations[name] = allocation = self.arenas.allocate(wanted)
        self.ledger.add(name, group, nbytes, allocation.address)
        return self.show(name, shape, kind)

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
            if allocation and allocation.alone:
                with cuda_calls.current(self.device):
                    allocation.arena.close()
            # The ledger may have arrays that were not allocated here.
            self.allocations.pop(name, None)
            self.ledger.remove(name)
            if allocation and not allocation.alone:
                allocation.arena.give(allocation.address)

    def discard(self, *names: str) -> None:
        """Give those of some arrays back that are live."""
        self.free(*(name for name in names if name in self.live))

    def shrink(self, name: str, shape: int) -> Any:
        """Return the first `shape` elements of an array, which gives the rest back."""
        old, allocation = self.live[name], self.allocations[name]
        nbytes = shape * old.itemsize
        if nbytes > allocation.nbytes:
            raise ValueError(f"array {name!r} has {old.size} elements, fewer than {shape}")
        allocation.arena.shrink(allocation.address, nbytes)
        self.allocations[name] = allocation._replace(nbytes=nbytes)
        self.ledger.shrink(name, nbytes)
        return self.show(name, shape, old.dtype)

    def extend(self, name: str, shape: int, final: int) -> Any:
        """Return an array with more elements at the same address; None if it cannot grow there."""
        old, allocation = self.live[name], self.allocations[name]
        nbytes, span = shape * old.itemsize, allocation.arena
        if self.mover and allocation.alone and isinstance(span, Span) and nbytes <= span.reserved:
            self.mover.growth.extend(span, nbytes, final * old.itemsize)
            span.in_use = span.peak = nbytes
            self.allocations[name] = allocation._replace(nbytes=nbytes)
        elif nbytes > allocation.nbytes:
            return None
        self.ledger.grow(name, nbytes)
        return self.show(name, shape, old.dtype)

    def close(self) -> None:
        """Free everything; every arena is tried, then the first failure is raised."""
        self.live.clear()
        self.arenas.close()

    def __enter__(self) -> RunMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sides(self, name: str) -> tuple[PartAtSide, ...]:
        """Return where a live array's bytes live."""
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
        there = sum(part.nbytes for part in parts if part.side in ("host", "peer"))
        return there / max(sum(part.nbytes for part in parts), 1)

    def placed_on_host(self, name: str, group: Group) -> float:
        """Return the share of an array in host memory, or of the arena that it would lie in."""
        if name in self.allocations:
            return self.host_share(name)
        return self.arenas.share_on_host(name, group)

    def on_device(self, name: str) -> bool:
        """Return whether all of a live array is in the device's own memory."""
        return all(part.side == "device" for part in self.sides(name))

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
            return copies.fetched(array)
        values = np.empty(array.size, array.dtype)
        with cuda_calls.current(self.device):
            fetch(self.allocations[name].arena.sides(array.data.ptr, values.nbytes), values)
        return values

    @property
    def peak_bytes(self) -> Mapping[Group, int]:
        """Largest number of bytes each group held at any one time."""
        return self.ledger.peak_bytes
