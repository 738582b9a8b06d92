"""Marrow-Graph's blocked adjacency list: edited by the host, dirty blocks pushed to the device.

Blocks of eight targets are chained in both directions; a deletion moves the row's last entry into
the gap, and an emptied block is used again, last freed first. (Marrow-Graph, BAL.)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from louvain_um.cpu.dynamic.blocks import DENSE
from louvain_um.dynamic.growing import Growing
from louvain_um.dynamic.stores.blocks import BlockStore
from louvain_um.dynamic.stores.store import EMPTY_U32, U32


class BalStore(BlockStore):
    """Blocks of eight targets, chained both ways, each with a dirty bit."""

    name: ClassVar[str] = "bal"
    width = 8
    policy: ClassVar[int] = DENSE
    link_bytes: ClassVar[int] = 8
    vertex_bytes: ClassVar[int] = 16
    keeps_dirty: ClassVar[bool] = True

    def start_queue(self, used: int) -> None:
        """Begin without free blocks."""
        self._free, self._frontier = Growing(EMPTY_U32), used

    def blocks_after(self, count: int) -> int:
        """Return the blocks up to the frontier once `count` more are in use."""
        return self._frontier + max(0, count - len(self._free.items))

    def take_blocks(self, count: int) -> U32:
        """Return the blocks freed last, then new ones."""
        again = self._free.items[::-1][:count]
        fresh = self._frontier + np.arange(count - len(again))
        self._grow_pool(self._frontier + len(fresh))
        return np.concatenate([again, fresh.astype(np.uint32)])

    def settle_blocks(self, taken: int, freed: U32) -> None:
        """Drop the blocks taken from the stack; put those freed on top."""
        again = min(taken, len(self._free.items))
        self._free.drop(again)
        self._frontier += taken - again
        self._free.extend(len(freed), freed)

    def free_blocks(self) -> U32:
        """Return the blocks on the stack."""
        return self._free.items

    def push(self) -> U32:
        """Return the blocks written to since the last call: what a device would be sent."""
        dirty = np.flatnonzero(self.dirty[: self._frontier]).astype(np.uint32)
        self.dirty[:] = 0
        self.moved_bytes += len(dirty) * self._block_bytes()
        return dirty


STORE = BalStore
