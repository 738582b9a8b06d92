"""What the stores of linked blocks share: `bump`, `pages`, `vine` and `bal`."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.cpu.dynamic import linked as kernels
from louvain_um.cpu.dynamic.linked import CHAIN, NONE, LinkedRows, Taken
from louvain_um.dynamic.stores.store import (
    I64,
    NARROW,
    U32,
    ArcChanges,
    Compressed,
    Growing,
    RowLengths,
    given,
    offsets_of,
)
from louvain_um.errors import MemoryBudgetError
from louvain_um.graph.merge import sort_row

SMALL = 1 << 10
"""Rows below which a second thread costs more than it saves."""


class FreeBlocks(Protocol):
    """Which blocks of a pool are free."""

    def held_with(self, count: int) -> int:
        """Return the blocks that will be held once `count` more are in use."""

    def first(self, count: int) -> U32:
        """Return free blocks without taking them yet; the pool reaches beyond them."""

    def exchange(self, taken: int, freed: U32) -> None:
        """Take the blocks that `first` returned; give back those that a batch freed."""

    def all(self) -> U32:
        """Return all free blocks."""


class Ring:
    """A queue of blocks, first in, first out, before those that were never used."""

    def __init__(self, used: int) -> None:
        self._ring = np.zeros(1, np.uint32)
        self._front = self._back = 0
        self.frontier = used

    def __len__(self) -> int:
        return self._back - self._front

    def held_with(self, count: int) -> int:
        """Return the blocks up to the frontier once `count` more are in use."""
        return self.frontier + max(0, count - len(self))

    def first(self, count: int) -> U32:
        """Return blocks from the queue's front, then new ones."""
        again = self._items(min(count, len(self)))
        fresh = self.frontier + np.arange(count - len(again))
        return np.concatenate([again, fresh.astype(np.uint32)])

    def exchange(self, taken: int, freed: U32) -> None:
        """Drop the blocks taken from the queue; append those freed."""
        again = min(taken, len(self))
        self._front += again
        self.frontier += taken - again
        self.append(freed)

    def append(self, blocks: U32) -> None:
        """Append blocks at the back."""
        if len(self) + len(blocks) > len(self._ring):
            held = self.all()
            self._ring = np.zeros(1 << (len(held) + len(blocks) - 1).bit_length(), np.uint32)
            self._ring[: len(held)] = held
            self._front, self._back = 0, len(held)
        places = np.arange(self._back, self._back + len(blocks)) & (len(self._ring) - 1)
        self._ring[places] = blocks
        self._back += len(blocks)

    def all(self) -> U32:
        """Return the blocks in the queue."""
        return self._items(len(self))

    def _items(self, count: int) -> U32:
        places = np.arange(self._front, self._front + count) & (len(self._ring) - 1)
        items: U32 = self._ring[places]
        return items


class LinkedStore:
    """Rows in linked blocks of one size; targets within a row are in no order."""

    name: ClassVar[str]
    width: int
    """Targets in a block."""
    shape: ClassVar[int] = CHAIN
    policy: ClassVar[int]
    link_bytes: ClassVar[int]
    """Bytes of links in a block, as published."""
    vertex_bytes: ClassVar[int]
    """Bytes of a vertex' record, as published."""
    keeps_dirty: ClassVar[bool] = False
    free: FreeBlocks
    _weights: Any
    _longest: int
    """Blocks of the longest row that there has been."""

    def __init__(self, rows: Compressed, threads: int, budget: int | None) -> None:
        self.threads, self.budget = threads, budget
        self.weighted = rows.weights is not None
        self.moved_bytes = 0
        held = int(np.count_nonzero(np.diff(rows.offsets)))
        self.width = self.block_width(len(rows.targets), held)
        self._fill(rows)
        self._afford(self.held_blocks)

    @classmethod
    def block_width(cls, arcs: int, rows: int) -> int:
        """Return the targets in a block, for so many arcs in rows that have some."""
        return cls.width

    @classmethod
    def blocks_begun(cls, used: int) -> int:
        """Return the blocks held at the beginning, with so many in use."""
        return used

    def free_after(self, used: int) -> FreeBlocks:
        """Return the free blocks at the beginning, with so many in use."""
        return Ring(used)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        width = cls.block_width(rows.arcs, rows.held)
        blocks = cls.blocks_begun(rows.total(-(-rows.lengths // width)))
        return (width * item + cls.link_bytes) * blocks, cls.vertex_bytes * rows.vertices

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each arc u → v, int64[b]; 0 where there is none."""
        found = np.empty(len(u), np.int64)
        parallel.run(
            kernels.find, self._threads_for(len(u)), self._rows, self._longest, u, v, found
        )
        return found

    def reserve(self, changes: ArcChanges) -> Taken:
        """Choose free blocks for the rows that grow."""
        count = len(changes.rows)
        needed, spare = np.empty(count, np.int64), np.empty(count, np.int64)
        kernels.count_blocks(self._rows, changes.arrays, needed, spare)
        total = int(needed.sum())
        self._afford(self.free.held_with(total), wide=changes.heaviest >= NARROW)
        if self._weights is not None and changes.heaviest >= NARROW:
            self._weights = self._weights.astype(np.int64, copy=False)
        self._grow_pool(self.free.held_with(total))
        free_starts = offsets_of(spare)
        freed = np.empty(int(free_starts[-1]), np.uint32)
        return Taken(self.free.first(total), offsets_of(needed), freed, free_starts)

    def commit(self, changes: ArcChanges, reserved: Taken) -> None:
        """Merge the changes into the touched rows."""
        most = self._longest + int(np.diff(reserved.new_starts).max(initial=0))
        parallel.run(
            kernels.edit, self._threads_for(len(changes.rows)), np.zeros(1, np.int64), self._rows,
            changes.arrays, reserved, most, self.dirty,
        )  # fmt: skip
        self.free.exchange(len(reserved.new), reserved.freed)
        blocks = self._blocks.items[changes.rows]
        self._longest = max(self._longest, int(blocks.max(initial=0)))
        self.n_arcs += changes.arcs

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        for array in self._by_row:
            array.reserve(count)
        for array, value in zip(self._by_row, (NONE, 0, 0, 0), strict=True):
            array.extend(count, value)

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        for array in self._by_row:
            array.drop(count)

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        lengths = self._live.items[ids].astype(np.int64)
        offsets = offsets_of(lengths)
        targets = np.empty(int(offsets[-1]), np.uint32)
        kernels.gather(self._rows, self._longest, ids, offsets, targets, given(None))
        return np.repeat(ids, lengths), targets

    def traverse(self) -> int:
        """Return the sum of all targets, read where they lie."""
        threads = self._threads_for(self.n_arcs)
        sums = np.zeros(threads, np.int64)
        parallel.run(
            kernels.sum_targets, threads, np.zeros(1, np.int64), self._rows, self._longest, sums
        )
        return int(sums.sum())

    def rows(self) -> None:
        """Return None: rows are not contiguous."""

    def compressed(self) -> Compressed:
        """Return a copy as compressed rows, sorted."""
        offsets = offsets_of(self._live.items)
        targets = np.empty(self.n_arcs, np.uint32)
        weights = None
        if self._weights is not None:
            weights = np.empty(self.n_arcs, self._weights.dtype)
        every = np.arange(len(self._live.items), dtype=np.uint32)
        kernels.gather(self._rows, self._longest, every, offsets, targets, given(weights))
        parallel.run(_sort_rows, self._threads_for(len(every)), offsets, targets, given(weights))
        return Compressed(offsets=offsets, targets=targets, weights=weights)

    def compact(self) -> None:
        """Fill the blocks anew in the order of the vertices, without gaps or free blocks."""
        self._fill(self.compressed())

    def check(self) -> None:
        """Raise AssertionError unless each block is in one row or free, and entries add up."""
        rows = self._rows
        live, blocks = rows.live, rows.blocks
        assert int(live.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        assert (live <= rows.filled).all(), "a row has more arcs than entries"
        assert (rows.filled <= blocks.astype(np.int64) * self.width).all(), "a row is too long"
        assert ((rows.first == NONE) == (blocks == 0)).all(), "a row without blocks has one"
        assert int(blocks.max(initial=0)) <= self._longest, "a row has more blocks than the most"
        used = np.zeros(self.held_blocks, np.int64)
        kernels.mark_used(rows, self._longest, used)
        np.add.at(used, self.free.all(), 1)
        assert (used == 1).all(), "a block is lost or used twice"
        arcs = self.arcs_of(np.arange(len(live), dtype=np.uint32))[1]
        assert len(arcs) == self.n_arcs, "entries are missing"
        assert not (arcs == NONE).any(), "a gap is listed as an arc"

    @property
    def held_blocks(self) -> int:
        """Blocks of the pool that are or were in use, or wait in a queue."""
        return self.free.held_with(0)

    @property
    def live_bytes(self) -> int:
        """Bytes of the arcs themselves."""
        return self._item_bytes() * self.n_arcs

    @property
    def held_bytes(self) -> int:
        """Bytes of all blocks, their links included."""
        return self._block_bytes() * self.held_blocks

    @property
    def row_bytes(self) -> int:
        """Bytes of the vertices' records."""
        return self.vertex_bytes * len(self._live.items)

    @property
    def _by_row(self) -> tuple[Growing[np.uint32], ...]:
        return self._first, self._blocks, self._filled, self._live

    @property
    def _rows(self) -> LinkedRows:
        weights = np.empty((0, self.width), np.uint32) if self._weights is None else self._weights
        return LinkedRows(
            first=self._first.items, blocks=self._blocks.items, filled=self._filled.items,
            live=self._live.items, targets=self._targets, weights=weights, links=self._links,
            shape=self.shape, policy=self.policy,
        )  # fmt: skip

    def _threads_for(self, items: int) -> int:
        return self.threads if items > SMALL else 1

    def _item_bytes(self, *, wide: bool = False) -> int:
        if self._weights is None:
            return 4
        return 12 if wide else 4 + int(self._weights.dtype.itemsize)

    def _block_bytes(self, *, wide: bool = False) -> int:
        return self.width * self._item_bytes(wide=wide) + self.link_bytes

    def _afford(self, blocks: int, *, wide: bool = False) -> None:
        """Raise a MemoryBudgetError if so many blocks are beyond the budget."""
        needed = blocks * self._block_bytes(wide=wide)
        if self.budget is not None and needed + self.row_bytes > self.budget:
            raise MemoryBudgetError(
                needed + self.row_bytes,
                self.budget,
                [("blocks", needed), ("rows", self.row_bytes)],
                "raise device_budget, or delete edges and compact()",
            )

    def _fill(self, rows: Compressed) -> None:
        """Begin anew with compressed rows."""
        lengths = np.diff(rows.offsets)
        blocks = -(-lengths // self.width)
        self._first, self._blocks, self._filled, self._live = (
            Growing(np.zeros(len(lengths), np.uint32)) for _ in range(4)
        )
        self._targets = np.empty((0, self.width), np.uint32)
        self._links = np.empty((0, 2), np.uint32)
        self._weights = None
        if self.weighted and rows.weights is not None:
            self._weights = np.empty((0, self.width), rows.weights.dtype)
        self.dirty = np.zeros(0, np.uint8)
        self.n_arcs = len(rows.targets)
        self._longest = int(blocks.max(initial=0))
        self.free = self.free_after(int(blocks.sum()))
        self._grow_pool(self.held_blocks)
        kernels.scatter(rows.offsets, rows.targets, given(rows.weights), self._rows)

    def _grow_pool(self, count: int) -> None:
        """Make the pool hold `count` blocks."""
        held = len(self._targets)
        if count <= held:
            return
        size = count + count // 4

        def longer(array: NDArray[Any]) -> NDArray[Any]:
            grown = np.empty((size, *array.shape[1:]), array.dtype)
            grown[:held] = array
            return grown

        self._targets, self._links = longer(self._targets), longer(self._links)
        if self._weights is not None:
            self._weights = longer(self._weights)
        if self.keeps_dirty:
            self.dirty = np.concatenate([self.dirty, np.ones(size - held, np.uint8)])


@kernel()
def _sort_rows(t, threads, offsets, targets, weights):  # type: ignore[no-untyped-def]
    """Sort each row, with its weights."""
    n = len(offsets) - 1
    for v in range(n * t // threads, n * (t + 1) // threads):
        sort_row(targets, weights, offsets[v], offsets[v + 1])
