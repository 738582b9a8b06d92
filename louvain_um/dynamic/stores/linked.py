"""Stores of linked blocks in host memory: `bump`, `pages`, `vine` and `bal`."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from louvain_um.core import parallel
from louvain_um.cpu.dynamic import linked as kernels
from louvain_um.cpu.dynamic.linked import NONE, LinkedRows, TakenBlocks
from louvain_um.cpu.walk import blocks_of
from louvain_um.dynamic.stores.attributes import Attributes
from louvain_um.dynamic.stores.blocks import HIGH, KINDS, Bal, Blocks, FreeBlocks, Queue, ends_of
from louvain_um.dynamic.stores.store import (
    EMPTY_I64,
    EMPTY_U32,
    I64,
    NARROW,
    U32,
    ArcChanges,
    Compressed,
    Growing,
    RowLengths,
    afford,
    given,
    longer,
    offsets_of,
)
from louvain_um.errors import OptionError

SMALL = 1 << 10
"""Rows below which a second thread costs more than it saves."""


class LinkedStore(Blocks):
    """Rows in linked blocks of one size; a row is sorted before an algorithm reads it."""

    xp: ClassVar[Any] = np
    free: FreeBlocks
    _separate: Any
    """Weights in an array of their own, at the places of their targets; None if there are none."""
    _longest: int
    """Blocks of the longest row that there has been."""

    def __init__(self, rows: Compressed, threads: int, budget: int | None, **options: Any) -> None:
        for option in {"query", "reserve", "update", "worker"} & options.keys():
            remedy = f"leave out {option}, or use device='cuda'"
            raise OptionError("store", self.name, remedy, problem=f"{self.name} is on the CPU")
        self.threads, self.budget = threads, budget
        self.weighted = rows.weights is not None
        self.moved_bytes = 0
        held = int(np.count_nonzero(np.diff(rows.offsets)))
        self._begin(len(rows.targets), held, options, 8 if self.weighted else 4)
        self.attributes = Attributes(self, options)
        self.ids = Queue() if options.get("ids") == "queue" else None
        if self.ids is not None:
            self.ids.reserve(len(rows.offsets) - 1)
        self._fill(rows)
        self._afford(self.held_blocks)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int, **options: Any) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        records = cls.vertex_bytes * cls.records(rows.vertices)
        ring = cls.ring_bytes(rows.vertices, options)
        return cls.block_bytes(rows, item, options), records + ring

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each arc u → v, int64[b]; 0 where there is none."""
        found = np.empty(len(u), np.int64)
        parallel.run(
            kernels.find, self._threads_for(len(u)), self._entries, u, v, found, self.directed
        )
        return found

    def reserve(self, changes: ArcChanges) -> TakenBlocks:
        """Choose free blocks for the rows that grow."""
        if self.n_arcs == 0 and not self._blocks.items.any():
            width = self.block_width(changes.arcs, len(changes.rows), self.options, self.entry)
            if width != self.width:  # as the first edges decide
                self.width = width
                self._fill(self.compressed())
        count = len(changes.rows)
        needed, spare = np.empty(count, np.int64), np.empty(count, np.int64)
        kernels.count_blocks(self._rows, changes.arrays, needed, spare)
        total = int(needed.sum())
        self._afford(self.free.held_with(total), wide=changes.heaviest >= NARROW)
        if self._weights is not None and changes.heaviest >= NARROW:
            self._separate = self._weights.astype(np.int64, copy=False)
        self._grow_pool(self.free.held_with(total))
        free_starts = offsets_of(spare)
        freed = np.empty(int(free_starts[-1]), np.uint32)
        return TakenBlocks(self.free.first(total), offsets_of(needed), freed, free_starts)

    def commit(self, changes: ArcChanges, reserved: TakenBlocks) -> None:
        """Merge the changes into the touched rows."""
        most = self._longest + int(np.diff(reserved.new_starts).max(initial=0))
        with self.attributes.moving(changes.rows):
            parallel.run(
                kernels.edit, self._threads_for(len(changes.rows)), np.zeros(1, np.int64),
                self._rows, changes.arrays, reserved, most, self.dirty,
            )  # fmt: skip
        self.free.exchange(len(reserved.new), reserved.freed)
        blocks = self._blocks.items[changes.rows]
        self._longest = max(self._longest, int(blocks.max(initial=0)))
        self.n_arcs += changes.arcs
        if self.options.get("order") == "sorted":
            self._sort(changes.rows)

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        n = len(self._live.items) + count
        for array in self._by_row:
            array.reserve(count, self.records(n) if self.doubles else None)
        if self.ids is not None:
            self.ids.reserve(n)
        for array in self._by_row:
            array.extend(count, 0)

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        for array in self._by_row:
            array.drop(count)

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        return ends_of(self.placed(ids)[0])

    def placed(self, rows: U32) -> tuple[Any, I64]:
        """Return the arcs of some rows as ascending keys, and their places."""
        counts = self._live.items[rows].astype(np.int64)
        offsets = offsets_of(counts)
        found, places = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.int64)
        kernels.gather(self._entries, rows, offsets, found, given(None), places)
        keys = np.repeat(rows, counts).astype(np.uint64) << HIGH | found
        order = np.argsort(keys)
        return keys[order], places[order]

    def mentions(self, ids: U32) -> Any:
        """Return the arcs to some vertices as keys: the entries of all rows are looked at."""
        keys = np.empty(kernels.mentions(self._entries, ids, np.empty(0, np.uint64)), np.uint64)
        kernels.mentions(self._entries, ids, keys)
        return keys

    def rows(self) -> None:
        """Return None: rows are not contiguous."""

    def walked(self) -> tuple[Any, ...]:
        """Return rows for `louvain_um.cpu.walk`, ascending: the touched ones are sorted first."""
        self._sort(np.flatnonzero(self._ascending.items == 0).astype(np.uint32))
        begins, lengths, *pool = self._pieces(self._live.items)
        return begins, begins + lengths, *pool

    def compressed(self) -> Compressed:
        """Return a copy as compressed rows, sorted."""
        offsets = offsets_of(self._live.items)
        targets = np.empty(self.n_arcs, np.uint32)
        weights = None if self._weights is None else np.empty(self.n_arcs, self._weights.dtype)
        every = np.arange(len(self._live.items), dtype=np.uint32)
        self.walked()
        kernels.gather(
            self._pieces(self._live.items), every, offsets, targets, given(weights), EMPTY_I64
        )
        return Compressed(offsets=offsets, targets=targets, weights=weights)

    def compact(self) -> None:
        """Fill the blocks anew in the order of the vertices, without gaps or free blocks."""
        with self.attributes.moving(np.arange(self.n_rows, dtype=np.uint32)):
            self._fill(self.compressed())

    def check(self) -> None:
        """Raise AssertionError unless each block is in one row or free, and entries add up."""
        rows = self._rows
        live, blocks = rows.live, rows.blocks
        assert int(live.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        assert (live <= rows.filled).all(), "a row has more arcs than entries"
        assert (rows.filled <= blocks.astype(np.int64) * self.width).all(), "a row is too long"
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
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._live.items)

    @property
    def live_bytes(self) -> int:
        """Bytes of the arcs themselves."""
        return self._item_bytes() * self.entry * self.n_arcs

    @property
    def held_bytes(self) -> int:
        """Bytes of all blocks, their links included."""
        return self._item_bytes() * self.words * self.held_blocks

    @property
    def row_bytes(self) -> int:
        """Bytes of the vertices' records, and of the queue of removed vertices."""
        ring = 0 if self.ids is None else int(self.ids.ring.nbytes)
        return self.vertex_bytes * self.records(self.n_rows) + ring

    @property
    def _by_row(self) -> tuple[Growing[Any], ...]:
        return self._begins, self._blocks, self._filled, self._live, self._ascending

    @property
    def _rows(self) -> LinkedRows:
        arrays = (array.items for array in self._by_row[:5])
        shape = self.width, self.words, self.link, self.step, self.tree, self.policy
        return LinkedRows._make((*arrays, self.targets, given(self._weights), *shape))

    @property
    def _weights(self) -> Any:
        """Weights at the places of their targets, wherever they lie; None if all are 1."""
        inside = self.weighted and self._separate is None
        return self.targets[self.word(1) :] if inside else self._separate

    @property
    def _entries(self) -> tuple[Any, ...]:
        """Rows with their gaps; lengths instead of ends."""
        return self._pieces(self._filled.items)

    def _pieces(self, lengths: U32) -> tuple[Any, ...]:
        shape = blocks_of(self.width, self.words, self.link, self.step, tree=self.tree)
        return self._begins.items, lengths, self.targets, given(self._weights), *shape

    def _sort(self, chosen: U32) -> None:
        """Sort some rows where they lie."""
        if len(chosen) == 0:
            return
        with self.attributes.moving(chosen):
            parallel.run(
                kernels.sort_rows, self._threads_for(len(chosen)), np.zeros(1, np.int64),
                self._rows, chosen, self._longest, self.dirty,
            )  # fmt: skip

    def _threads_for(self, items: int) -> int:
        return self.threads if items > SMALL else 1

    def _item_bytes(self, *, wide: bool = False) -> int:
        if self._weights is None:
            return 4
        item = 12 if wide else 4 + int(self._weights.dtype.itemsize)
        return self.word_bytes(item, self.entry)

    def _afford(self, blocks: int, *, wide: bool = False) -> None:
        """Raise a MemoryBudgetError if so many blocks are beyond the budget."""
        needed = blocks * self.words * self._item_bytes(wide=wide)
        afford(self.budget, needed, self.row_bytes)

    def _fill(self, rows: Compressed) -> None:
        """Begin anew with compressed rows."""
        lengths = np.diff(rows.offsets)
        blocks = -(-lengths // self.width)
        self._begins = Growing(np.zeros(len(lengths), np.int64))
        self._blocks, self._filled, self._live = (
            Growing(np.zeros(len(lengths), np.uint32)) for _ in range(3)
        )
        self._ascending = Growing(np.zeros(len(lengths), np.uint8))
        self.targets, self._separate = EMPTY_U32, None
        if rows.weights is not None and (self.entry == 1 or rows.weights.dtype != np.uint32):
            self._separate = np.empty(0, rows.weights.dtype)
        self.dirty = np.zeros(0, np.uint8)
        self.n_arcs = len(rows.targets)
        self._longest = int(blocks.max(initial=0))
        used = int(blocks.sum())
        begun = self.blocks_begun(used, self.options)
        self.free = FreeBlocks(used, begun, stacked=self.stacked)
        self._grow_pool(self.held_blocks)
        kernels.scatter(rows.offsets, rows.targets, given(rows.weights), self._rows)

    def _grow_pool(self, count: int) -> None:
        """Make the pool hold `count` blocks."""
        held = len(self.targets) // self.words
        if count <= held:
            return
        size = count + count // 4
        self.targets = longer(self.targets, size * self.words)
        if self._separate is not None:
            self._separate = longer(self._separate, size * self.words)
        if self.keeps_dirty:
            self.dirty = np.concatenate([self.dirty, np.ones(size - held, np.uint8)])


class BalStore(Bal, LinkedStore):
    """Blocks in host memory, chained both ways; those written to are pushed to a replica.

    Attributes of edges are pushed with their blocks.

    Parameters
    ----------
    device : louvain_um.gpu.dynamic.cuda.CudaDevice, optional
        Where the replica is; it has the host's blocks at the same places.
    """

    def __init__(
        self, rows: Compressed, threads: int, budget: int | None, device: Any = None,
        share: float | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.device, self.replica = device, dict[Any, Any]()
        self.changed: list[U32] = []
        super().__init__(rows, threads, budget, **options)

    def commit(self, changes: ArcChanges, reserved: TakenBlocks) -> None:
        """Merge the changes into the touched rows."""
        super().commit(changes, reserved)
        if self.device is not None:
            self.changed.append(changes.rows)

    def wrote(self, rows: U32, places: I64) -> None:
        """Mark what is to be pushed."""
        self.dirty[places // self.words] = 1
        self.changed.append(rows)

    def compact(self) -> None:
        """Fill the blocks anew in the order of the vertices, without gaps or free blocks."""
        super().compact()
        self.replica.clear()  # all rows have moved

    def push(self) -> dict[Any, Any]:
        """Send the rows and blocks changed since the last call to the device; return all there."""
        # `moved_bytes` counts what is sent. A replica that is too small is sent anew.
        begins, ends, targets, weights, *_ = self.walked()
        touched = np.zeros(len(begins), np.bool_)
        for rows in self.changed:
            touched[rows] = True
        by_block: dict[Any, Any] = {
            "targets": targets,
            "weights": weights if self.weighted else None,
        }
        by_block |= {("edges", name): array for name, array in self.attributes.edges().items()}
        by_row: dict[Any, Any] = {"begins": begins, "lengths": ends - begins}
        by_row |= {("vertices", name): each for name, each in self.attributes.vertices().items()}
        parts = (
            (by_block, np.flatnonzero(self.dirty[: self.held_blocks]), (-1, self.words)),
            (by_row, np.flatnonzero(touched), (-1,)),
        )
        for arrays, changed, shape in parts:
            for key, array in arrays.items():
                if array is None:
                    continue
                values, held = array.reshape(shape), self.replica.get(key)
                if held is None or held.shape != values.shape or held.dtype != values.dtype:
                    self.replica[key] = self.device.xp.asarray(values).copy()
                    self.moved_bytes += values.nbytes
                elif len(changed):
                    sent = values[changed]
                    held[self.device.xp.asarray(changed)] = self.device.xp.asarray(sent)
                    self.moved_bytes += sent.nbytes + changed.nbytes
        self.dirty[:] = 0
        self.changed.clear()
        return self.replica

    def walked_there(self) -> tuple[Any, Any, Any, Any, int]:
        """Return begins, ends, targets, weights and linking of the rows of the replica."""
        there = self.push()
        weights = there["weights"].ravel() if "weights" in there else None
        begins = there["begins"]
        return begins, begins + there["lengths"], there["targets"].ravel(), weights, self.linked


STORES: Final = {"bal": BalStore} | {
    kind.name: type(f"{kind.__name__}Store", (kind, LinkedStore), {"__doc__": kind.__doc__})
    for kind in KINDS
}
"""The stores by name."""

globals().update({kind.__name__: kind for kind in STORES.values()})  # for pickle
