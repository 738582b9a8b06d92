"""aimGraph: chained blocks of 64 bytes from a pointer that only advances.

A deletion leaves a gap, which a later insertion into the row fills; blocks are never freed. Rows
are searched to their end, past gaps, so that no duplicate is missed. As published, a batch walks
all blocks of each row that it touches: adding to a hub takes time in proportion to its row.
(Winter, Zayer, Steinberger: Autonomous, independent management of dynamic graphs on GPUs, HPEC
2017.)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from louvain_um.cpu.dynamic.linked import REFILLED
from louvain_um.dynamic.stores.linked import FreeBlocks, LinkedStore
from louvain_um.dynamic.stores.store import EMPTY_U32, U32


class Pointer:
    """The block behind those that were ever used; freed ones stay with their rows."""

    def __init__(self, used: int) -> None:
        self.next = used

    def held_with(self, count: int) -> int:
        """Return the blocks below the pointer once it has advanced."""
        return self.next + count

    def first(self, count: int) -> U32:
        """Return the blocks behind the pointer."""
        return np.arange(self.next, self.next + count).astype(np.uint32)

    def exchange(self, taken: int, freed: U32) -> None:
        """Advance the pointer."""
        self.next += taken

    def all(self) -> U32:
        """Return none."""
        return EMPTY_U32


class BumpStore(LinkedStore):
    """Chained blocks of 15 targets and a link, without reuse."""

    name: ClassVar[str] = "bump"
    width = 15
    policy: ClassVar[int] = REFILLED
    link_bytes: ClassVar[int] = 4
    vertex_bytes: ClassVar[int] = 16

    def free_after(self, used: int) -> FreeBlocks:
        """Return a pointer behind the blocks in use."""
        return Pointer(used)


STORE = BumpStore
