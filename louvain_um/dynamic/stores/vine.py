"""GraphVine: each row a complete binary tree of edge blocks from a queue that is allocated ahead.

Blocks are as wide as the mean degree, not counting 0, of the first edges. A deletion leaves a hole
for good, as published; `compact` is an extension. Block k of a row hangs from block k // 2, and
fullness is told by the row's entries, holes included, not by its arcs. (GraphVine, 2023.)
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from louvain_um.cpu.dynamic.blocks import LAZY, TREE
from louvain_um.dynamic.stores.blocks import Blocks, BlockStore
from louvain_um.dynamic.stores.queues import Ring
from louvain_um.dynamic.stores.store import U32, ArcChanges

AHEAD: Final = 2
"""Blocks in the queue at the start, for each one in use."""

LEAST: Final = 64
"""Blocks in the queue of an empty graph."""


class VineStore(BlockStore):
    """Trees of blocks; the sentinel of a row knows its arcs, blocks and entries."""

    name: ClassVar[str] = "vine"
    width = 8
    shape: ClassVar[int] = TREE
    policy: ClassVar[int] = LAZY
    link_bytes: ClassVar[int] = 8
    vertex_bytes: ClassVar[int] = 20

    @classmethod
    def block_width(cls, arcs: int, rows: int) -> int:
        """Return the mean degree, not counting 0."""
        return max(1, round(arcs / rows)) if rows else cls.width

    @classmethod
    def blocks_begun(cls, used: int) -> int:
        """Return the blocks in use and those put into the queue ahead."""
        return used + max(LEAST, AHEAD * used)

    def reserve(self, changes: ArcChanges) -> Blocks:
        """Choose blocks; the first edges of an empty graph decide how wide these are."""
        if self.n_arcs == 0 and not self._blocks.items.any():
            self.width = self.block_width(changes.arcs, len(changes.rows))
            self._fill(self.compressed())
        return super().reserve(changes)

    def start_queue(self, used: int) -> None:
        """Put blocks for growth into the queue."""
        self._queue, self._held = Ring(), used
        self._extend(self.blocks_begun(used) - used)

    def blocks_after(self, count: int) -> int:
        """Return all blocks: the queue doubles them when it runs out."""
        short = count - len(self._queue)
        return self._held if short <= 0 else max(2 * self._held, self._held + short)

    def take_blocks(self, count: int) -> U32:
        """Return the blocks at the queue's front, which is extended if need be."""
        if count > len(self._queue):
            self._extend(self.blocks_after(count) - self._held)
        return self._queue.first(count)

    def settle_blocks(self, taken: int, freed: U32) -> None:
        """Drop the blocks taken; none is ever freed."""
        self._queue.drop(taken)

    def free_blocks(self) -> U32:
        """Return the blocks in the queue."""
        return self._queue.first(len(self._queue))

    def _extend(self, count: int) -> None:
        """Allocate more blocks and queue them."""
        self._queue.give(np.arange(self._held, self._held + count).astype(np.uint32))
        self._held += count
        self._grow_pool(self._held)


STORE = VineStore
