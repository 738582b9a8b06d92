"""Rows in linked blocks as four papers have them: `bump`, `pages`, `vine` and `bal`.

Targets of a row are in blocks of one size from one pool, each with the numbers of those that
follow. They differ in how blocks are linked, what a deletion leaves, and which free block is used
next. As published, a batch walks all blocks of each row that it touches: adding to a hub takes time
in proportion to its row. The stores of the host and of a device are built from these.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from louvain_um.cpu.dynamic.linked import DENSE, LAZY, REFILLED
from louvain_um.dynamic.stores.free_blocks import LEAST, FreeBlocks, Preallocated
from louvain_um.dynamic.stores.store import RowLengths

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

    def _begin(self, arcs: int, rows: int, options: dict[str, Any], item: int) -> None:
        """Take options; so many arcs, of `item` bytes, are in rows that have some."""
        self.options, self.entry = options, self.entry_words(options, item)
        self.width = self.block_width(arcs, rows, options, self.entry)
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
        """Return the bytes held for a word of blocks: weights of 64 bits are beside them."""
        return 4 if entry > 1 and item < 12 else item

    @classmethod
    def blocks_begun(cls, used: int, options: dict[str, Any]) -> int:
        """Return the blocks held at the beginning, with so many in use."""
        return used

    @classmethod
    def free_after(cls, used: int, options: dict[str, Any]) -> FreeBlocks:
        """Return the free blocks at the beginning, with so many in use."""
        return FreeBlocks(used, stacked=cls.stacked)

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

    @classmethod
    def free_after(cls, used: int, options: dict[str, Any]) -> FreeBlocks:
        """Put blocks for growth into the queue."""
        return Preallocated(used, cls.blocks_begun(used, options))


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
