"""The memory of a store on a device: its pool, what it may hold, and what it is measured by."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from louvain_um.dynamic.stores.store import ROW_BYTES, afford
from louvain_um.gpu.dynamic.pool import Pool, PoolDevice

UNLIMITED: Final = 1 << 62


class Device(PoolDevice, Protocol):
    """Arrays and kernels: CuPy and a GPU, or NumPy and emulated kernels."""

    xp: Any
    maps: bool
    """Whether memory of the host can lie behind the device's."""

    def threads(self, source: str, kernel: str, types: str = "") -> int:
        """Return how many threads of a kernel are resident at once, at most."""

    def launch(
        self, source: str, kernel: str, types: str, items: int, *args: Any, front: str = ""
    ) -> None:
        """Run a kernel, with a text before its source, by a thread per item if all are resident."""

    def address(self, array: Any) -> int:
        """Return where an array is; 0 for None."""

    def clear(self, array: Any) -> None:
        """Fill an array with zero bytes."""

    def get(self, array: Any) -> Any:
        """Copy to the host."""

    def read(self, array: Any) -> Any:
        """Copy a few bytes to the host; they are valid until the next call."""

    def free_bytes(self) -> int:
        """Return how much of the device's memory is free."""

    def errors(self) -> AbstractContextManager[None]:
        """Turn what the arrays' library raises within a block into errors of this package."""


class DevicePools:
    """Targets and weights of a store on a device, in a pool that grows."""

    paged: ClassVar[bool]
    device: Device
    xp: Any
    budget: int | None
    share: float | None
    pool: Pool | None
    spare: Pool | None
    targets: Any
    weights: Any
    alive: Any
    n_arcs: int
    frontier: int

    @property
    def live_bytes(self) -> int:
        """Bytes of the arcs themselves."""
        return self._bytes(self.n_arcs)

    @property
    def held_bytes(self) -> int:
        """Bytes of the pool up to its frontier."""
        return self._bytes(self.frontier)

    @property
    def row_bytes(self) -> int:
        """Bytes of begins, ends and classes."""
        return ROW_BYTES * len(self.alive)

    @property
    def types(self) -> str:
        """Template arguments of the kernels that run on the store."""
        if self.weights is None:
            return "Unweighted"
        return "u32" if self.weights.dtype == np.uint32 else "u64"

    def _bytes(self, arcs: int, weights: Any = None) -> int:
        weights = self.weights if weights is None else weights
        return arcs * (4 if weights is None else 4 + weights.dtype.itemsize)

    @property
    def host_bytes(self) -> int:
        """Bytes of the pool, up to its frontier, that lie on the host."""
        if self.pool is None or not self.pool.on_host:
            return 0
        return max(0, self.held_bytes - self.pool.on_device)

    def free_spare(self) -> None:
        """Free the memory that waits for the next rebuild: something else comes first."""
        self.spare = None

    def _here(self) -> int:
        """Return bytes of the device that pools may take."""
        if self.share is None or (self.budget is None and self.share == 1):
            return UNLIMITED  # what is beyond the budget has been refused
        if self.budget is None:
            return 0
        return int(self.share * max(0, self.budget - self.row_bytes))

    def _afford(self, arcs: int, weights: Any) -> None:
        """Raise a MemoryBudgetError if a pool of so many arcs is beyond the budget."""
        if self.share is None:  # else the host takes what is beyond it
            afford(self.budget, self._bytes(arcs, weights), self.row_bytes)

    def _widen(self, batch: Any) -> None:
        """Make room for weights beyond 32 bits."""
        if self.weights.dtype == np.uint64:
            return
        self._afford(2 * self.frontier, self.xp.empty(0, np.uint64))
        wide = self._new_pool(self.frontier, np.uint64)
        targets, weights = wide.arrays
        # By kernels: CUDA's own copies stop where the host's memory begins.
        self.xp.add(self.targets[: self.frontier], 0, out=targets[: self.frontier])
        self.xp.add(self.weights[: self.frontier], 0, out=weights[: self.frontier])
        self.pool, self.spare = wide, None
        self.targets, self.weights = targets, weights
        batch.set(targets=self.device.address(targets), weights=self.device.address(weights))

    def _new_pool(self, places: int, weights: Any, here: int | None = None) -> Pool:
        """Return another pool, at most `here` bytes of it on the device."""
        dtypes = [np.dtype(kind) for kind in (np.uint32, weights) if kind is not None]
        pool, self.spare = self.spare, None
        if pool is None or pool.dtypes != dtypes:
            pool = Pool(self.device, dtypes, self.budget if self.share is None else None)
        if here is None:
            held = self.pool.on_device if self.share is not None and self.pool else 0
            here = max(0, self._here() - held)
        pool.grow(places, here)
        return pool

    def _arrays(self, pool: Pool) -> tuple[Any, Any]:
        """Return targets and weights of a pool."""
        return pool.arrays[0], pool.arrays[1] if len(pool.arrays) > 1 else None
