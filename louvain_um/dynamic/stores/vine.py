"""GraphVine: each row a complete binary tree of edge blocks from a queue allocated in advance.

Blocks are as wide as the mean degree, not counting 0, of the first edges. A deletion leaves a gap
for good, as published; `compact` is an extension. Block k of a row hangs from block k // 2, and
fullness is given by the row's entries, gaps included, not by its arcs. (GraphVine, 2023.)
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from louvain_um.cpu.dynamic.linked import LAZY, TREE, Taken
from louvain_um.dynamic.stores.linked import FreeBlocks, LinkedStore, Ring
from louvain_um.dynamic.stores.store import U32, ArcChanges

EARLY: Final = 2
"""Blocks in the queue at the start, for each one in use."""

LEAST: Final = 64
"""Blocks in the queue of an empty graph."""


class Preallocated(Ring):
    """A queue of blocks that is filled in advance, and doubles all blocks when it runs out."""

    def __init__(self, used: int, held: int) -> None:
        super().__init__(used)
        self._hold(held)

    def held_with(self, count: int) -> int:
        """Return all blocks: the queue doubles them when it runs out."""
        short = count - len(self)
        return self.frontier if short <= 0 else max(2 * self.frontier, self.frontier + short)

    def first(self, count: int) -> U32:
        """Return the blocks at the queue's front, which is extended if need be."""
        self._hold(self.held_with(count))
        return super().first(count)

    def _hold(self, held: int) -> None:
        """Queue new blocks until so many are held."""
        self.append(np.arange(self.frontier, held).astype(np.uint32))
        self.frontier = held


class VineStore(LinkedStore):
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
        """Return the blocks in use and those put into the queue in advance."""
        return used + max(LEAST, EARLY * used)

    def free_after(self, used: int) -> FreeBlocks:
        """Put blocks for growth into the queue."""
        return Preallocated(used, self.blocks_begun(used))

    def reserve(self, changes: ArcChanges) -> Taken:
        """Choose blocks; the first edges of an empty graph decide how wide these are."""
        if self.n_arcs == 0 and not self._blocks.items.any():
            self.width = self.block_width(changes.arcs, len(changes.rows))
            self._fill(self.compressed())
        return super().reserve(changes)


STORE = VineStore
