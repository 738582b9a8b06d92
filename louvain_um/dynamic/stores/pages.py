"""faimGraph: chained pages of 64 bytes; freed ones return through a ring queue.

A deletion moves the row's last entry into the gap, so that rows stay dense and a page that empties
is free for any row. Batches arrive sorted by row, as in its update for dense batches; a vertex is
removed by deleting the arcs of its row and their reverses. (Winter, Mlakar, Zayer, Seidel,
Steinberger: faimGraph, SC 2018.)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from louvain_um.cpu.dynamic.blocks import DENSE
from louvain_um.dynamic.stores.blocks import BlockStore
from louvain_um.dynamic.stores.queues import Ring
from louvain_um.dynamic.stores.store import U32


class PagesStore(BlockStore):
    """Chained pages of 15 targets and a link, reused in the order in which they were freed."""

    name: ClassVar[str] = "pages"
    width = 15
    policy: ClassVar[int] = DENSE
    link_bytes: ClassVar[int] = 4
    vertex_bytes: ClassVar[int] = 20

    def start_queue(self, used: int) -> None:
        """Begin with an empty queue."""
        self._queue, self._frontier = Ring(), used

    def blocks_after(self, count: int) -> int:
        """Return the pages up to the frontier once `count` more are in use."""
        return self._frontier + max(0, count - len(self._queue))

    def take_blocks(self, count: int) -> U32:
        """Return pages from the queue's front, then new ones."""
        again = self._queue.first(count)
        fresh = self._frontier + np.arange(count - len(again))
        self._grow_pool(self._frontier + len(fresh))
        return np.concatenate([again, fresh.astype(np.uint32)])

    def settle_blocks(self, taken: int, freed: U32) -> None:
        """Drop the pages taken from the queue; append those freed."""
        again = min(taken, len(self._queue))
        self._queue.drop(again)
        self._frontier += taken - again
        self._queue.give(freed)

    def free_blocks(self) -> U32:
        """Return the pages in the queue."""
        return self._queue.first(len(self._queue))


STORE = PagesStore
