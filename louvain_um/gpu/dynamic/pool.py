"""The arcs of a store on a device: arrays that grow in place, past a budget on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from louvain_um.errors import MemoryBudgetError

SLACK: Final = 1 / 16
"""Of what is needed, so much more is mapped: each step costs some calls to the driver."""


class Pool:
    """Targets, and weights at the same places, if there are any, on a `CudaDevice`."""

    def __init__(self, device: Any, dtypes: Sequence[Any], most: int | None) -> None:
        self.device, self.dtypes = device, [np.dtype(dtype) for dtype in dtypes]
        self.item = sum(dtype.itemsize for dtype in self.dtypes)
        self.places = 0
        self.rooms = [
            device.room(name, None if most is None else most // self.item * dtype.itemsize)
            for name, dtype in zip(("targets", "weights"), self.dtypes, strict=False)
        ]
        self.arrays: list[Any] = []
        self._show(0)

    def grow(self, places: int, here: int) -> None:
        """Have so many places; what is beyond `here` bytes is on the host."""
        if places <= self.places:
            return
        most = max(places, here // self.item)
        slack = min(places + int(SLACK * places), most)
        for wanted in (slack, slack, places):
            try:
                self._grow(wanted, here)
            except MemoryBudgetError:
                if wanted == places:
                    raise
                self.device.free_cached()
            else:
                self._show(wanted)
                return

    def bring(self, here: int) -> None:
        """Move what is on the host to the device, up to `here` bytes."""
        for room, dtype in zip(self.rooms, self.dtypes, strict=True):
            room.bring(here // self.item * dtype.itemsize)

    def fetched(self, places: int) -> list[Any]:
        """Return copies of the arrays' beginnings in host memory."""
        found = [np.empty(places, dtype) for dtype in self.dtypes]
        for room, target in zip(self.rooms, found, strict=True):
            room.fetch(target)
        return found

    @property
    def on_host(self) -> int:
        """Bytes that are on the host."""
        return sum(room.on_host for room in self.rooms)

    @property
    def on_device(self) -> int:
        """Bytes that are on the device."""
        return sum(room.on_device for room in self.rooms)

    def _grow(self, places: int, here: int) -> None:
        for room, dtype in zip(self.rooms, self.dtypes, strict=True):
            room.grow(places * dtype.itemsize, here // self.item * dtype.itemsize)

    def _show(self, places: int) -> None:
        self.places = places
        self.arrays = [
            self.device.array_in(room, places, dtype)
            for room, dtype in zip(self.rooms, self.dtypes, strict=True)
        ]


class Copied:
    """Memory of a device that maps none: growing copies it."""

    on_host = 0

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.bytes = xp.empty(0, np.uint8)

    def grow(self, nbytes: int, here: int) -> None:
        """Have so many bytes; values stay."""
        held = len(self.bytes)
        if nbytes > held:
            grown = self.xp.empty(max(nbytes, held + held // 4), np.uint8)
            grown[:held] = self.bytes
            self.bytes = grown

    def bring(self, here: int) -> None:
        """Nothing is on the host."""

    def fetch(self, target: Any) -> None:
        """Copy the beginning into an array in host memory."""
        target.view(np.uint8)[:] = self.xp.asnumpy(self.bytes[: target.nbytes])

    @property
    def on_device(self) -> int:
        """All bytes."""
        return len(self.bytes)
