"""Marrow-Graph's blocked adjacency list: edited by the host, dirty blocks pushed to the device.

Blocks of eight targets are chained in both directions; a deletion moves the row's last entry into
the gap, and an emptied block is used again, last freed first. As published, a batch walks the
blocks of each row that it touches: adding to a hub takes time in proportion to its row.
(Marrow-Graph, BAL.)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from louvain_um.cpu.dynamic.linked import DENSE
from louvain_um.dynamic.stores.linked import FreeBlocks, LinkedStore
from louvain_um.dynamic.stores.store import EMPTY_U32, U32, Growing


class Stack:
    """Blocks that were freed, last in, first out, before those that were never used."""

    def __init__(self, used: int) -> None:
        self._free, self.frontier = Growing(EMPTY_U32), used

    def held_with(self, count: int) -> int:
        """Return the blocks up to the frontier once `count` more are in use."""
        return self.frontier + max(0, count - len(self._free.items))

    def first(self, count: int) -> U32:
        """Return the blocks freed last, then new ones."""
        again = self._free.items[::-1][:count]
        fresh = self.frontier + np.arange(count - len(again))
        return np.concatenate([again, fresh.astype(np.uint32)])

    def exchange(self, taken: int, freed: U32) -> None:
        """Drop the blocks taken from the stack; put those freed on top."""
        again = min(taken, len(self._free.items))
        self._free.drop(again)
        self.frontier += taken - again
        self._free.extend(len(freed), freed)

    def all(self) -> U32:
        """Return the blocks on the stack."""
        return self._free.items


class BalStore(LinkedStore):
    """Blocks of eight targets, chained both ways, each with a dirty bit."""

    name: ClassVar[str] = "bal"
    width = 8
    policy: ClassVar[int] = DENSE
    link_bytes: ClassVar[int] = 8
    vertex_bytes: ClassVar[int] = 16
    keeps_dirty: ClassVar[bool] = True

    def free_after(self, used: int) -> FreeBlocks:
        """Return a stack without blocks."""
        return Stack(used)

    def push(self) -> U32:
        """Return the blocks written to since the last call: what a device would be sent."""
        dirty = np.flatnonzero(self.dirty[: self.held_blocks]).astype(np.uint32)
        self.dirty[:] = 0
        self.moved_bytes += len(dirty) * self._block_bytes()
        return dirty


STORE = BalStore
