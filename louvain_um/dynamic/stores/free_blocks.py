"""The free blocks of a pool, in the order in which a store uses them again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.dynamic.stores.store import U32

LEAST: Final = 64
"""Blocks in the queue of an empty graph, if it is filled in advance."""


class Queue:
    """Numbers in a ring, first in, first out; positions count on, and the ring doubles if full."""

    def __init__(self, places: int = 1) -> None:
        self.ring = np.zeros(places, np.uint32)
        self.front = self.back = 0

    def __len__(self) -> int:
        return self.back - self.front

    def reserve(self, places: int) -> None:
        """Have room for so many items."""
        if places > len(self.ring):
            held = self.peek(len(self))
            self.ring = np.zeros(1 << (places - 1).bit_length(), np.uint32)
            self.ring[self._places(self.front, self.back)] = held

    def extend(self, items: U32) -> None:
        """Append items."""
        self.reserve(len(self) + len(items))
        self.ring[self._places(self.back, self.back + len(items))] = items
        self.back += len(items)

    def peek(self, count: int) -> U32:
        """Return the first items without taking them."""
        items: U32 = self.ring[self._places(self.front, self.front + count)]
        return items

    def last(self, count: int) -> U32:
        """Return the last items without taking them."""
        items: U32 = self.ring[self._places(self.back - count, self.back)]
        return items

    def pop(self, count: int) -> U32:
        """Take the first items."""
        items = self.peek(count)
        self.front += count
        return items

    def _places(self, begin: int, end: int) -> Any:
        return np.arange(begin, end) & (len(self.ring) - 1)


class FreeBlocks:
    """Blocks that were freed, the last ones first if `stacked`, then those that were never used."""

    def __init__(self, used: int, *, stacked: bool = False) -> None:
        self.queue, self.frontier, self.stacked = Queue(), used, stacked

    def held_with(self, count: int) -> int:
        """Return the blocks that will be held once `count` more are in use."""
        return self.frontier + max(0, count - len(self.queue))

    def first(self, count: int) -> U32:
        """Return free blocks without taking them yet; the pool reaches beyond them."""
        freed = min(count, len(self.queue))
        again = self.queue.last(freed)[::-1] if self.stacked else self.queue.peek(freed)
        fresh = self.frontier + np.arange(count - freed)
        return np.concatenate([again, fresh.astype(np.uint32)])

    def exchange(self, taken: int, freed: U32) -> None:
        """Take the blocks that `first` returned; give back those that a batch freed."""
        again = min(taken, len(self.queue))
        self.frontier += taken - again
        if self.stacked:
            self.queue.back -= again
        else:
            self.queue.front += again
        self.queue.extend(freed)

    def all(self) -> U32:
        """Return all free blocks."""
        return self.queue.peek(len(self.queue))


def held_for(held: int, used: int) -> int:
    """Return the blocks to hold: a quarter more while more than four fifths are in use."""
    while 5 * used > 4 * held:
        held += max(LEAST, held // 4)
    return held


class Preallocated(FreeBlocks):
    """A queue of blocks that is filled in advance, and again before it runs out."""

    def __init__(self, used: int, held: int) -> None:
        super().__init__(used)
        self._hold(held)

    def held_with(self, count: int) -> int:
        """Return all blocks, once `count` more are in use."""
        used = self.frontier - len(self.queue) + count
        return held_for(self.frontier, used) if count else self.frontier

    def first(self, count: int) -> U32:
        """Return the blocks at the queue's front, which is extended if need be."""
        self._hold(self.held_with(count))
        return super().first(count)

    def _hold(self, held: int) -> None:
        """Queue new blocks until so many are held."""
        self.queue.extend(np.arange(self.frontier, held).astype(np.uint32))
        self.frontier = held
