"""aimGraph: chained blocks of 64 bytes from a pointer that only advances.

A deletion leaves a hole, which a later insertion into the row fills; blocks are never freed. Rows
are searched to their end, past holes, so that no duplicate is missed. (Winter, Zayer, Steinberger:
Autonomous, independent management of dynamic graphs on GPUs, HPEC 2017.)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from louvain_um.cpu.dynamic.blocks import HOLES
from louvain_um.dynamic.stores.blocks import BlockStore
from louvain_um.dynamic.stores.store import EMPTY_U32, U32


class BumpStore(BlockStore):
    """Chained blocks of 15 targets and a link, without reuse."""

    name: ClassVar[str] = "bump"
    width = 15
    policy: ClassVar[int] = HOLES
    link_bytes: ClassVar[int] = 4
    vertex_bytes: ClassVar[int] = 16

    def start_queue(self, used: int) -> None:
        """Set the pointer behind the blocks in use."""
        self._next = used

    def blocks_after(self, count: int) -> int:
        """Return the blocks below the pointer once it has advanced."""
        return self._next + count

    def take_blocks(self, count: int) -> U32:
        """Return the blocks behind the pointer."""
        self._grow_pool(self._next + count)
        return np.arange(self._next, self._next + count).astype(np.uint32)

    def settle_blocks(self, taken: int, freed: U32) -> None:
        """Advance the pointer."""
        self._next += taken

    def free_blocks(self) -> U32:
        """Return none."""
        return EMPTY_U32


STORE = BumpStore
