"""Rows in linked blocks as four papers have them: `bump`, `pages`, `vine` and `bal`.

Targets of a row are in blocks of one size from one pool, each with the numbers of those that
follow. They differ in how blocks are linked, what a deletion leaves, and which free block is used
next. As published, a batch walks all blocks of each row that it touches: adding to a hub takes time
in proportion to its row. The stores of the host and of a device are built from these.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from louvain_um.cpu.dynamic.linked import DENSE, LAZY, REFILLED
from louvain_um.dynamic.stores.store import U32, RowLengths

HIGH: Final = np.uint64(32)

SEMANTIC: Final = "type", "timestamp1", "timestamp2"
"""Attributes of faimGraph's semantic edges, words each."""


class Blocks:
    """How the rows of a store are kept in blocks.

    Parameters
    ----------
    **options
        Of the store; see `louvain_um.dynamic.stores.OPTIONS`.
    """

    name: str
    links: ClassVar[int] = 1
    """Words of a block behind its targets."""
    tree: ClassVar[bool] = False
    policy: ClassVar[int] = DENSE
    vertex_bytes: ClassVar[int]
    """Bytes of a vertex' record, as published."""
    doubles: ClassVar[bool] = False
    """Whether the records of vertices are a power of two, twice as many once they are too few."""
    keeps_dirty: ClassVar[bool] = False
    stacked: ClassVar[bool] = False
    """Whether blocks freed last are used first."""

    targets: Any
    """The words of all blocks."""
    width: int
    """Entries in a block."""
    entry: int
    """Words of an entry in its block: the target, and what lies in no array of its own."""
    directed: bool
    """Whether an edge is in the row of its first end alone."""

    def _begin(self, arcs: int, rows: int, options: dict[str, Any], item: int) -> None:
        """Take options; so many arcs, of `item` bytes, are in rows that have some."""
        self.options, self.entry = options, self.entry_words(options, item)
        self.width = self.block_width(arcs, rows, options, self.entry)
        self.directed = options.get("directed") == "yes"
        self.name = ":".join([self.name, *(f"{name}={value}" for name, value in options.items())])

    @property
    def words(self) -> int:
        """Words of a block."""
        return self.block_words(self.width, self.entry)

    @property
    def link(self) -> int:
        """Word of a block that has the number of the next one, behind all entries."""
        return self.width * self.entry

    @property
    def step(self) -> int:
        """Words from an entry to the next one."""
        return self.entry if self.options.get("layout") == "aos" else 1

    @property
    def linked(self) -> int:
        """How rows are linked, as `Blocks` of linked.cuh unpacks it."""
        low = self.words | self.policy << 20 | self.tree << 24 | self.step << 25
        low |= self.directed << 29
        return low | self.width << 32 | self.link << 48

    def word(self, k: int) -> int:
        """Return how far word k of an entry lies behind its target."""
        return k if self.step > 1 else k * self.width

    def in_blocks(self) -> dict[str, Any]:
        """Return the attributes of edges that lie in blocks, by the places of targets."""
        if self.entry == 1 or self.options.get("edges") != "semantic":
            return {}
        first = self.entry - len(SEMANTIC)
        return {name: self.targets[self.word(k) :] for k, name in enumerate(SEMANTIC, first)}

    def wrote(self, rows: Any, places: Any) -> None:
        """Note that attributes of some vertices, or of the edges at some places, were written."""

    def edges_of(self: Any, ids: U32) -> tuple[U32, U32]:
        """Return both ends of the edges of some vertices, which ascend."""
        # They are in the rows of these, but for those to them in a directed graph. With
        # ``deletion=reverse`` each entry of all rows is looked up among the vertices instead.
        reverse = self.options.get("deletion") == "reverse"
        u, v = self.arcs_of(ids[: 0 if reverse and not self.directed else None])
        if not (reverse or self.directed):
            return u, v
        more_u, more_v = ends_of(self.mentions(ids))
        return np.append(u, more_u), np.append(v, more_v)

    @classmethod
    def entry_words(cls, options: dict[str, Any], item: int) -> int:
        """Return the words of an entry in its block; targets and weights take `item` bytes."""
        if options.get("layout", "arrays") == "arrays":
            return 1
        return 1 + (item > 4) + len(SEMANTIC) * (options.get("edges") == "semantic")

    @classmethod
    def block_width(cls, arcs: int, rows: int, options: dict[str, Any], entry: int) -> int:
        """Return the entries in a block, for so many arcs in rows that have some."""
        return (int(options.get("page", 64)) // 4 - cls.links) // entry

    @classmethod
    def block_words(cls, width: int, entry: int) -> int:
        """Return the words of a block; entries of several words leave some of a page over."""
        words = width * entry + cls.links
        return words if entry == 1 else -(-words // 8) * 8

    @staticmethod
    def word_bytes(item: int, entry: int) -> int:
        """Return the bytes held for a word of blocks: weights of 64 bits are stored in addition."""
        return 4 if entry > 1 and item < 12 else item

    @classmethod
    def blocks_begun(cls, used: int, options: dict[str, Any]) -> int:
        """Return the blocks held at the beginning, with so many in use."""
        return used

    @staticmethod
    def ring_bytes(vertices: int, options: dict[str, Any]) -> int:
        """Return the bytes of a queue of removed vertices."""
        return 4 << max(vertices - 1, 0).bit_length() if options.get("ids") == "queue" else 0

    @classmethod
    def records(cls, vertices: int) -> int:
        """Return the records that are held for so many vertices, as published."""
        return 1 << max(vertices - 1, 0).bit_length() if cls.doubles else vertices

    @classmethod
    def block_bytes(cls, rows: RowLengths, item: int, options: dict[str, Any]) -> int:
        """Return the bytes of all blocks of a store just built, of `item` bytes a word."""
        entry = cls.entry_words(options, item)
        width = cls.block_width(rows.arcs, rows.held, options, entry)
        blocks = cls.blocks_begun(rows.total(-(-rows.lengths // width)), options)
        return cls.word_bytes(item, entry) * cls.block_words(width, entry) * blocks


def ends_of(keys: Any) -> tuple[U32, U32]:
    """Return source and target of arcs."""
    return (keys >> HIGH).astype(np.uint32), keys.astype(np.uint32)


class Bump(Blocks):
    """aimGraph: chained blocks of 64 bytes from a pointer that only advances.

    A deletion leaves a gap, which a later insertion into the row fills; blocks are never freed.
    Rows are searched to their end, past gaps, so that no duplicate is missed. (Winter, Zayer,
    Steinberger: Autonomous, independent management of dynamic graphs on GPUs, HPEC 2017.)
    """

    name = "bump"
    policy: ClassVar[int] = REFILLED
    vertex_bytes: ClassVar[int] = 16


class Pages(Blocks):
    """faimGraph: chained pages of 32 to 256 bytes; freed ones return through a ring queue.

    A deletion moves the row's last entry into the gap, so that rows stay dense and a page that
    empties is free for any row. Batches arrive sorted by row, as in its vertex-centric update,
    which may also keep pages sorted; a vertex is removed by deleting the arcs of its row and their
    reverses. (Winter, Mlakar, Zayer, Seidel, Steinberger: faimGraph, SC 2018.)
    """

    name = "pages"
    vertex_bytes: ClassVar[int] = 20


class Vine(Blocks):
    """GraphVine: each row a complete binary tree of blocks from a queue allocated in advance.

    Blocks are as wide as the mean degree, not counting 0, of the first edges; the dictionary of
    vertices has a power of two of records. A deletion leaves a gap for good; `compact` is an
    extension. Block k of a row hangs from block k // 2, and fullness is given by the row's entries,
    gaps included, not by its arcs. (GraphVine, 2023.)
    """

    name = "vine"
    links: ClassVar[int] = 2
    tree: ClassVar[bool] = True
    doubles: ClassVar[bool] = True
    policy: ClassVar[int] = LAZY
    vertex_bytes: ClassVar[int] = 20

    @classmethod
    def block_width(cls, arcs: int, rows: int, options: dict[str, Any], entry: int) -> int:
        """Return the mean degree, not counting 0, unless `block` says how many."""
        return int(options.get("block", 0)) or (max(1, round(arcs / rows)) if rows else 8)

    @classmethod
    def blocks_begun(cls, used: int, options: dict[str, Any]) -> int:
        """Return the blocks in use and those put into the queue in advance."""
        return used + max(LEAST, int(options.get("ahead", 200)) * used // 100)


class Bal(Blocks):
    """Marrow-Graph's blocked adjacency list: edited by the host, dirty blocks pushed to a device.

    Blocks of eight targets are chained in both directions; a deletion moves the row's last entry
    into the gap, and an emptied block is used again, last freed first. (Marrow-Graph, BAL.)
    """

    name = "bal"
    links: ClassVar[int] = 2
    vertex_bytes: ClassVar[int] = 16
    keeps_dirty: ClassVar[bool] = True
    stacked: ClassVar[bool] = True

    @classmethod
    def block_width(cls, arcs: int, rows: int, options: dict[str, Any], entry: int) -> int:
        """Return eight, or what `block` says."""
        return int(options.get("block", 8))


KINDS: Final = Bump, Pages, Vine
"""Those that are the same on the host and on a device."""

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

    # Those `held` in advance are in the queue from the beginning, and more before it runs out.

    def __init__(self, used: int, held: int, *, stacked: bool = False) -> None:
        self.queue, self.frontier, self.stacked = Queue(), used, stacked
        self.ahead = held > used
        self._hold(held)

    def held_with(self, count: int) -> int:
        """Return the blocks that will be held once `count` more are in use."""
        if self.ahead and count:
            return held_for(self.frontier, self.frontier - len(self.queue) + count)
        return self.frontier + max(0, count - len(self.queue))

    def first(self, count: int) -> U32:
        """Return free blocks without taking them yet; the pool reaches beyond them."""
        if self.ahead:
            self._hold(self.held_with(count))
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

    def _hold(self, held: int) -> None:
        """Queue new blocks until so many are held."""
        self.queue.extend(np.arange(self.frontier, held).astype(np.uint32))
        self.frontier = held


def held_for(held: int, used: int) -> int:
    """Return the blocks to hold: a quarter more while more than four fifths are in use."""
    while 5 * used > 4 * held:
        held += max(LEAST, held // 4)
    return held
