"""Where stores of linked blocks keep free ones."""

from __future__ import annotations

import numpy as np

from louvain_um.dynamic.stores.store import U32


class Ring:
    """A queue of blocks, first in, first out: faimGraph's and GraphVine's."""

    def __init__(self) -> None:
        self._ring = np.zeros(1, np.uint32)
        self._front = self._back = 0

    def __len__(self) -> int:
        return self._back - self._front

    def first(self, count: int) -> U32:
        """Return up to `count` blocks from the front, without taking them."""
        stop = min(self._back, self._front + count)
        blocks: U32 = self._ring[np.arange(self._front, stop) & (len(self._ring) - 1)]
        return blocks

    def drop(self, count: int) -> None:
        """Take blocks from the front."""
        self._front += count

    def give(self, blocks: U32) -> None:
        """Append blocks at the back."""
        if len(self) + len(blocks) > len(self._ring):
            held = self.first(len(self))
            self._ring = np.zeros(1 << (len(held) + len(blocks) - 1).bit_length(), np.uint32)
            self._ring[: len(held)] = held
            self._front, self._back = 0, len(held)
        places = np.arange(self._back, self._back + len(blocks)) & (len(self._ring) - 1)
        self._ring[places] = blocks
        self._back += len(blocks)
