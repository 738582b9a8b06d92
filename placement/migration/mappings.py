"""What is mapped where: pages stay so until others are mapped in their place.

The driver takes long to map and unmap a page. So a page
stays mapped where it was for as long as nothing else is to be mapped there, also when it is used
elsewhere, and addresses of arrays that are gone serve others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from louvain_um.errors import LouvainUmError
from louvain_um.placement.memory import cuda_calls, vmm

PageSide = Literal["device", "host"]


@dataclass(frozen=True, slots=True)
class Page:
    """Memory of one page."""

    handle: Any
    address: int
    side: PageSide


class Mappings:
    """Addresses of arrays, and pages that are mapped there."""

    def __init__(self, device: int, size: int) -> None:
        self.device, self.size = device, size
        self.live, self.stale = dict[int, Page](), dict[int, Page]()
        self.spare, self.reserved = list[tuple[int, int]](), dict[int, int]()
        self.due = list[int]()
        self.lock = threading.Lock()

    def map(self, address: int, pages: Sequence[Page]) -> None:
        """Map pages one after the other; the device may read and write them."""
        with self.lock:
            fresh = dict[int, Page]()
            for number, page in enumerate(pages):
                at = address + number * self.size
                if self.stale.get(at) is page:
                    self.live[at] = self.stale.pop(at)
                else:
                    fresh[at] = page
            self._unmap(self.stale, fresh)
            for at, page in fresh.items():
                # First of all: whoever interrupts the call finds it mapped.
                self.live[at] = page
                _call("cuMemMap", at, self.size, 0, page.handle, 0)
            for begin, count in runs(fresh, self.size):
                vmm.open_to(begin, count * self.size, self.device)

    def unmap(self, address: int, count: int) -> None:
        """Undo `map`; nothing may use the addresses any more. Pages stay where they are for now."""
        with self.lock:
            for at in range(address, address + count * self.size, self.size):
                if page := self.live.pop(at, None):
                    self.stale[at] = page

    def reserve(self, nbytes: int) -> int:
        """Return addresses for so many bytes of pages: of an array that is gone, if possible."""
        fitting = [(size, at) for size, at in self.spare if size >= nbytes]
        if fitting:
            self.spare.remove(min(fitting))
            return min(fitting)[1]
        # One page more, where nothing is mapped: what is unmapped at once never goes on in others.
        address = vmm.reserve(nbytes + self.size)
        self.reserved[address] = nbytes
        return address

    def release(self, address: int) -> None:
        """Let others have addresses, where nothing is mapped any more."""
        nbytes = self.reserved[address]
        self.spare.append((nbytes, address))
        with self.lock:
            held = range(address, address + nbytes, self.size)
            self.due += [at for at in held if at in self.stale and self.stale[at].side == "host"]

    def unmap_due(self) -> None:
        """Unmap pages of the host that stayed where nothing is any more."""
        with self.lock:
            due, self.due = self.due, []
            self._unmap(self.stale, due)

    def close(self) -> None:
        """Unmap all pages, and free all addresses."""
        held = [*self.live, *self.stale]
        self.live.clear()
        self.stale.clear()
        for begin, count in runs(held, self.size):
            try:
                _call("cuMemUnmap", begin, count * self.size)
            except LouvainUmError:
                for at in range(begin, begin + count * self.size, self.size):
                    with suppress(LouvainUmError):
                        _call("cuMemUnmap", at, self.size)
        reserved, self.reserved = self.reserved, {}
        self.spare.clear()
        for address, nbytes in reserved.items():
            _call("cuMemAddressFree", address, nbytes + self.size)

    def _unmap(self, pages: dict[int, Page], addresses: Iterable[int]) -> None:
        """Unmap those of the pages that are mapped at these addresses."""
        for begin, count in runs({at for at in addresses if at in pages}, self.size):
            _call("cuMemUnmap", begin, count * self.size)
            for at in range(begin, begin + count * self.size, self.size):
                del pages[at]


def runs(numbers: Iterable[int], step: int = 1) -> list[tuple[int, int]]:
    """Return runs of numbers that follow each other by a step: the first of each, and how many."""
    found = list[tuple[int, int]]()
    for number in sorted(numbers):
        if found and found[-1][0] + found[-1][1] * step == number:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((number, 1))
    return found


_call = cuda_calls.driver_call
