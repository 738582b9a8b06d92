"""Device memory for a run's arrays: plain allocations, with their bytes on a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.errors import MemoryBudgetError
from louvain_um.ledger import Group, Ledger

if TYPE_CHECKING:
    import cupy

NAMED = 5
"""Arrays that an error lists."""


class DeviceAllocator:
    """Arrays in plain memory of the current device, reused while a run lasts.

    Parameters
    ----------
    budget : int, optional
        Bytes that may be live at once; what the device has, if none is given.

    Notes
    -----
    The memory comes from a pool of the run's own, so that CuPy's default pool neither grows
    nor has to be emptied; `close` returns all of it to the driver.
    """

    def __init__(self, budget: int | None = None) -> None:
        import cupy

        self.budget = budget
        self.ledger = Ledger()
        self.live: dict[str, cupy.ndarray] = {}
        self.pool = cupy.cuda.MemoryPool()

    def reserve(self, nbytes: int) -> None:
        """Take a block from the driver that later arrays are cut from, if there is room.

        One large allocation costs what a small one does; a run makes dozens.
        """
        import cupy

        free, _ = cupy.cuda.runtime.memGetInfo()
        if self.budget is not None:
            free = min(free, self.budget)
        if nbytes < free // 2:
            self.pool.malloc(nbytes)

    def empty(self, name: str, group: Group, shape: int, dtype: DTypeLike) -> Any:
        """Return an uninitialised array.

        Raises
        ------
        MemoryBudgetError
            The device has no such block of memory left.
        """
        import cupy

        kind = np.dtype(dtype)
        nbytes = shape * kind.itemsize
        if name in self.live:
            raise KeyError(f"array {name!r} is live already")
        held = sum(self.ledger.live_bytes.values())
        if self.budget is not None and held + nbytes > self.budget:
            raise self._shortage(name, nbytes, self.budget)
        try:
            # One byte at least, so that every array has an address.
            memory = self.pool.malloc(max(nbytes, 1))
        except cupy.cuda.memory.OutOfMemoryError:
            free, _ = cupy.cuda.runtime.memGetInfo()
            # Where the free memory is in pieces, a block may fail that is smaller.
            raise self._shortage(name, nbytes, held + min(free, nbytes - 1)) from None
        array = cupy.ndarray((shape,), kind, memory)
        self.live[name] = array
        self.ledger.enter(name, group, nbytes)
        return array

    def free(self, *names: str) -> None:
        """Give arrays back; the caller drops its own references."""
        for name in names:
            self.live.pop(name, None)  # the ledger may know arrays that another made
            self.ledger.leave(name)

    def close(self) -> None:
        """Free every array and return the memory to the driver."""
        self.free(*self.live)
        self.pool.free_all_blocks()

    @property
    def peak_bytes(self) -> Mapping[Group, int]:
        """Largest number of bytes each group held at any one time."""
        return self.ledger.peak_bytes

    def _shortage(self, name: str, nbytes: int, budget: int) -> MemoryBudgetError:
        """Return the error of an array that found no room."""
        held = {name: entry.nbytes for name, entry in self.ledger.entries.items()}
        held[name] = nbytes
        return MemoryBudgetError(
            sum(held.values()),
            budget,
            sorted(held.items(), key=lambda item: -item[1])[:NAMED],
            "use a larger device or device='cpu'",
        )
