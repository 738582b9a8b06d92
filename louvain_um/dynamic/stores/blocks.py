"""Rows in linked blocks as four papers have them: `bump`, `pages`, `vine` and `bal`.

Targets of a row are in blocks of one size from one pool, each with the numbers of those that
follow. They differ in how blocks are linked, what a deletion leaves, and which free block is used
next. As published, a batch walks all blocks of each row that it touches: adding to a hub takes time
in proportion to its row. The stores of the host and of a device are built from these.
"""

from __future__ import annotations

from typing import Any, ClassVar

from louvain_um.cpu.dynamic.linked import DENSE, LAZY, REFILLED
from louvain_um.dynamic.stores.free_blocks import (
    LEAST,
    FreeBlocks,
    Preallocated,
    Stack,
)
from louvain_um.dynamic.stores.store import RowLengths


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

    width: int
    """Targets in a block."""

    def _begin(self, arcs: int, rows: int, options: dict[str, Any]) -> None:
        """Take options; so many arcs are in rows that have some."""
        self.options, self.width = options, self.block_width(arcs, rows, options)
        self.name = ":".join([self.name, *(f"{name}={value}" for name, value in options.items())])

    @property
    def words(self) -> int:
        """Words of a block."""
        return self.width + self.links

    @property
    def linked(self) -> int:
        """How rows are linked, as `Blocks` of linked.cuh unpacks it."""
        return self.words | self.links << 16 | self.policy << 20 | self.tree << 24

    @classmethod
    def block_width(cls, arcs: int, rows: int, options: dict[str, Any]) -> int:
        """Return the targets in a block, for so many arcs in rows that have some."""
        return int(options.get("page", 64)) // 4 - cls.links

    @classmethod
    def blocks_begun(cls, used: int, options: dict[str, Any]) -> int:
        """Return the blocks held at the beginning, with so many in use."""
        return used

    @classmethod
    def free_after(cls, used: int, options: dict[str, Any]) -> FreeBlocks:
        """Return the free blocks at the beginning, with so many in use."""
        return FreeBlocks(used)

    @classmethod
    def records(cls, vertices: int) -> int:
        """Return the records that are held for so many vertices, as published."""
        return 1 << max(vertices - 1, 0).bit_length() if cls.doubles else vertices

    @classmethod
    def block_bytes(cls, rows: RowLengths, item: int, options: dict[str, Any]) -> int:
        """Return the bytes of all blocks of a store just built, of `item` bytes a word."""
        width = cls.block_width(rows.arcs, rows.held, options)
        blocks = cls.blocks_begun(rows.total(-(-rows.lengths // width)), options)
        return item * (width + cls.links) * blocks


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
    def block_width(cls, arcs: int, rows: int, options: dict[str, Any]) -> int:
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

    @classmethod
    def block_width(cls, arcs: int, rows: int, options: dict[str, Any]) -> int:
        """Return eight, or what `block` says."""
        return int(options.get("block", 8))

    @classmethod
    def free_after(cls, used: int, options: dict[str, Any]) -> FreeBlocks:
        """Return a stack without blocks."""
        return Stack(used)
