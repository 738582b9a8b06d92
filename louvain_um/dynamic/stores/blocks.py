"""What the stores of linked blocks share: `bump`, `pages`, `vine` and `bal`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.cpu.dynamic import blocks as kernels
from louvain_um.cpu.dynamic.blocks import CHAIN, HOLE
from louvain_um.dynamic.growing import Growing
from louvain_um.dynamic.stores.contiguous import given, offsets_of
from louvain_um.dynamic.stores.row_lengths import RowLengths
from louvain_um.dynamic.stores.store import (
    I64,
    NARROW,
    U32,
    ArcChanges,
    Compressed,
)
from louvain_um.errors import MemoryBudgetError
from louvain_um.graph.merge import sort_row

SMALL = 1 << 10
"""Rows below which a second thread costs more than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks that a batch takes, cut by row, and where those that it frees are listed."""

    new: U32
    new_starts: I64
    free_starts: I64


class BlockStore(ABC):
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
    _weights: Any

    def __init__(self, rows: Compressed, threads: int, budget: int | None) -> None:
        self.threads, self.budget = threads, budget
        self.weighted = rows.weights is not None
        self.moved_bytes = 0
        held = int(np.count_nonzero(np.diff(rows.offsets)))
        self.width = self.block_width(len(rows.targets), held)
        self._fill(rows)
        self._afford(self.held_blocks)

    # What subclasses decide.

    @classmethod
    def block_width(cls, arcs: int, rows: int) -> int:
        """Return the targets in a block, for so many arcs in rows that have some."""
        return cls.width

    @classmethod
    def blocks_begun(cls, used: int) -> int:
        """Return the blocks held at the beginning, with so many in use."""
        return used

    @abstractmethod
    def start_queue(self, used: int) -> None:
        """Begin without free blocks, after `used` ones."""

    @abstractmethod
    def blocks_after(self, count: int) -> int:
        """Return the blocks that will be held once `count` more are in use."""

    @abstractmethod
    def take_blocks(self, count: int) -> U32:
        """Return free blocks without taking them yet; the pool reaches beyond them."""

    @abstractmethod
    def settle_blocks(self, taken: int, freed: U32) -> None:
        """Take the blocks that `take_blocks` returned; give back those that a batch freed."""

    @abstractmethod
    def free_blocks(self) -> U32:
        """Return all free blocks."""

    # The store.

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
            kernels.find, self._threads_for(len(u)), self._rows, self._pool, self.shape, self._most,
            u, v, found,
        )  # fmt: skip
        return found

    def reserve(self, changes: ArcChanges) -> Blocks:
        """Choose free blocks for the rows that grow."""
        count = len(changes.rows)
        needed, spare = np.empty(count, np.int64), np.empty(count, np.int64)
        kernels.count_blocks(
            changes.rows, changes.starts, changes.before, changes.after, self._rows,
            self._live.items, self.width, self.policy, needed, spare,
        )  # fmt: skip
        total = int(needed.sum())
        self._afford(self.blocks_after(total), wide=changes.heaviest >= NARROW)
        if self._weights is not None and changes.heaviest >= NARROW:
            self._weights = self._weights.astype(np.int64, copy=False)
        new = self.take_blocks(total)
        return Blocks(new=new, new_starts=offsets_of(needed), free_starts=offsets_of(spare))

    def commit(self, changes: ArcChanges, reserved: Blocks) -> None:
        """Merge the changes into the touched rows."""
        freed = np.empty(int(reserved.free_starts[-1]), np.uint32)
        most = self._most + int(np.diff(reserved.new_starts).max(initial=0))
        longest = int(np.diff(changes.starts).max(initial=0))
        parallel.run(
            kernels.edit, self._threads_for(len(changes.rows)), np.zeros(1, np.int64),
            changes.arrays, self._rows, self._live.items, self._pool, self.shape, self.policy,
            max(most, -(-longest // self.width)), reserved.new, reserved.new_starts, freed,
            reserved.free_starts, self.dirty,
        )  # fmt: skip
        self.settle_blocks(len(reserved.new), freed)
        self.n_arcs += changes.arcs

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        arrays = (self._first, self._blocks, self._filled, self._live)
        for array in arrays:
            array.reserve(count)
        for array, value in zip(arrays, (HOLE, 0, 0, 0), strict=True):
            array.extend(count, value)

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        for array in (self._first, self._blocks, self._filled, self._live):
            array.drop(count)

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        lengths = self._live.items[ids].astype(np.int64)
        offsets = offsets_of(lengths)
        targets = np.empty(int(offsets[-1]), np.uint32)
        kernels.gather(
            self._rows, self._pool, self.shape, self._most, ids, offsets, targets, given(None)
        )
        return np.repeat(ids, lengths), targets

    def traverse(self) -> int:
        """Return the sum of all targets, read where they lie."""
        threads = self._threads_for(self.n_arcs)
        sums = np.zeros(threads, np.int64)
        parallel.run(
            kernels.sum_targets, threads, np.zeros(1, np.int64), self._rows, self._pool, self.shape,
            self._most, sums,
        )  # fmt: skip
        return int(sums.sum())

    def rows(self) -> None:  # noqa: B027 - None is the answer
        """Return None: rows are not contiguous."""

    def compressed(self) -> Compressed:
        """Return a copy as compressed rows, sorted."""
        offsets = offsets_of(self._live.items)
        targets = np.empty(self.n_arcs, np.uint32)
        weights = None
        if self._weights is not None:
            weights = np.empty(self.n_arcs, self._weights.dtype)
        every = np.arange(len(self._live.items), dtype=np.uint32)
        kernels.gather(
            self._rows, self._pool, self.shape, self._most, every, offsets, targets, given(weights)
        )
        parallel.run(_sort_rows, self._threads_for(len(every)), offsets, targets, given(weights))
        return Compressed(offsets=offsets, targets=targets, weights=weights)

    def compact(self) -> None:
        """Fill the blocks anew in the order of the vertices, without holes or free blocks."""
        self._fill(self.compressed())

    def check(self) -> None:
        """Raise AssertionError unless each block is in one row or free, and entries add up."""
        first, blocks, filled = self._rows
        live = self._live.items
        assert int(live.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        assert (live <= filled).all(), "a row has more arcs than entries"
        assert (filled <= blocks.astype(np.int64) * self.width).all(), "a row is too long"
        assert ((first == HOLE) == (blocks == 0)).all(), "a row without blocks has a first one"
        used = np.zeros(self.held_blocks, np.int64)
        kernels.mark_used(self._rows, self._links, self.shape, self._most, used)
        free = self.free_blocks()
        np.add.at(used, free, 1)
        assert (used == 1).all(), "a block is lost or used twice"
        arcs = self.arcs_of(np.arange(len(live), dtype=np.uint32))[1]
        assert len(arcs) == self.n_arcs, "entries are missing"
        assert not (arcs == HOLE).any(), "a hole is listed as an arc"

    @property
    def held_blocks(self) -> int:
        """Blocks of the pool that are or were in use, or wait in a queue."""
        return self.blocks_after(0)

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
    def _rows(self) -> tuple[U32, U32, U32]:
        return self._first.items, self._blocks.items, self._filled.items

    @property
    def _pool(self) -> tuple[U32, NDArray[Any], U32]:
        weights = np.empty((0, self.width), np.uint32) if self._weights is None else self._weights
        return self._targets, weights, self._links

    @property
    def _most(self) -> int:
        """Blocks of the longest row."""
        return int(self._blocks.items.max(initial=0))

    def _threads_for(self, items: int) -> int:
        return self.threads if items > SMALL else 1

    def _item_bytes(self, *, wide: bool = False) -> int:
        if self._weights is None:
            return 4
        return 12 if wide else 4 + self._weights.dtype.itemsize

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
        n, used = len(lengths), int((-(-lengths // self.width)).sum())
        self._first, self._blocks, self._filled, self._live = (
            Growing(np.zeros(n, np.uint32)) for _ in range(4)
        )
        self._targets = np.empty((0, self.width), np.uint32)
        self._links = np.empty((0, 2), np.uint32)
        self._weights = None
        if self.weighted and rows.weights is not None:
            self._weights = np.empty((0, self.width), rows.weights.dtype)
        self.dirty = np.zeros(0, np.uint8)
        self.n_arcs = len(rows.targets)
        self.start_queue(used)
        self._grow_pool(self.held_blocks)
        kernels.scatter(
            rows.offsets, rows.targets, given(rows.weights), self._rows, self._live.items,
            self._pool, self.shape,
        )  # fmt: skip

    def _grow_pool(self, count: int) -> None:
        """Make the pool hold `count` blocks."""
        held = len(self._targets)
        if count <= held:
            return
        size = count + count // 4

        def longer(array: Any) -> Any:
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
