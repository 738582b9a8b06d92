"""Bytes held by each group; every array of a run is requested by name and group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

Group = Literal["graph", "hash", "community", "scratch"]
GROUPS: tuple[Group, ...] = get_args(Group)

Listener = Callable[[str, str, str, int, int], None]
"""Called with "array" or "freed", name, group, address and bytes."""


class Entry(NamedTuple):
    """One live array: its group, bytes and address."""

    group: Group
    nbytes: int
    address: int = 0


class Ledger:
    """Live arrays, and bytes by group: now, at each group's peak and at the joint peak."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.listener = listener
        self.entries: dict[str, Entry] = {}
        self.live_bytes: dict[Group, int] = dict.fromkeys(GROUPS, 0)
        self.peak_bytes: dict[Group, int] = dict.fromkeys(GROUPS, 0)
        self.live_total = self.peak_total = 0

    def add(self, name: str, group: Group, nbytes: int, address: int = 0) -> None:
        """Add a new array; a name in use is an error in the engine."""
        if name in self.entries:
            raise KeyError(f"array {name!r} already exists")
        if self.listener:
            self.listener("array", name, group, address, nbytes)
        self.entries[name] = Entry(group, nbytes, address)
        live = self.live_bytes[group] = self.live_bytes[group] + nbytes
        if live > self.peak_bytes[group]:
            self.peak_bytes[group] = live
        self.live_total += nbytes
        if self.live_total > self.peak_total:
            self.peak_total = self.live_total

    def remove(self, name: str) -> None:
        """Remove a freed array."""
        entry = self.entries.pop(name)
        self.live_bytes[entry.group] -= entry.nbytes
        self.live_total -= entry.nbytes
        if self.listener:
            self.listener("freed", name, entry.group, entry.address, entry.nbytes)

    def grow(self, name: str, nbytes: int) -> None:
        """Lengthen an array in place."""
        group, address = self.entries[name].group, self.entries[name].address
        self.remove(name)
        self.add(name, group, nbytes, address)

    def shrink(self, name: str, nbytes: int) -> None:
        """Shorten an array whose tail was freed."""
        entry = self.entries[name]
        self.live_bytes[entry.group] -= entry.nbytes - nbytes
        self.live_total -= entry.nbytes - nbytes
        self.entries[name] = Entry(entry.group, nbytes, entry.address)
        if self.listener:
            self.listener("freed", name, entry.group, entry.address + nbytes, entry.nbytes - nbytes)


class HostAllocator:
    """Arrays in ordinary host memory, with their bytes on a ledger."""

    def __init__(self, listener: Listener | None = None) -> None:
        from numpy import empty  # here, because the command line's help names groups and policies

        self.ledger, self.new = Ledger(listener), empty

    def empty(self, name: str, group: Group, shape: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an uninitialised NumPy array."""
        array = self.new(shape, dtype)
        # Finding an address takes longer than allocating a small array; only listeners ask for it.
        address = array.ctypes.data if self.ledger.listener else 0
        self.ledger.add(name, group, array.nbytes, address)
        return array

    def free(self, *names: str) -> None:
        """Remove arrays from the ledger."""
        for name in names:
            self.ledger.remove(name)

    @property
    def peak_bytes(self) -> Mapping[Group, int]:
        """Largest number of bytes each group held at any one time."""
        return self.ledger.peak_bytes
