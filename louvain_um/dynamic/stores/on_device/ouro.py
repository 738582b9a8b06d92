"""ouroGraph on a device: each row in one page of an Ouroboros heap, by its concurrent queues.

The kernels of a batch are those of `rows`; what differs is where rows lie. Threads take pages of
4·2ᵏ arcs side by side before a batch is merged, and free afterwards those that rows left. A batch
for which the heap lacks a page gives back what it took, and rebuilds the store in a larger heap, or
is refused. Rows longer than a chunk lie behind the heap, by prefix sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from louvain_um.core.interrupts import uninterrupted
from louvain_um.cpu.dynamic.contiguous import CAPACITIES, capacities_for
from louvain_um.dynamic.stores.on_device.rows import DeviceRows, LaidOut, with_free
from louvain_um.dynamic.stores.on_device.store import UNLIMITED, RebuiltOnDevice
from louvain_um.dynamic.stores.ouro_heap import HeapShape
from louvain_um.dynamic.stores.ouroboros import (
    LEAST_BYTES,
    LEAST_CHUNKS,
    VARIANTS,
    Ouroboros,
    most_chunks,
)
from louvain_um.dynamic.stores.rows import LEAST_FREE, MOST_FREE, ROOM
from louvain_um.dynamic.stores.store import NARROW, ROW_BYTES, RowLengths
from louvain_um.errors import GraphError, MemoryBudgetError
from louvain_um.gpu.dynamic.cuda import Pool

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges

OTHER_CHUNKS: Final = 32
"""Chunks in addition to full ones: a queue begins with one, and each size may leave one begun."""

QUEUE_BYTES: Final = 256
"""Bytes of rings and tables for each chunk of 8 KiB or less, or more."""

FIXED_BYTES: Final = 1 << 17
"""Bytes of a heap's counters and of the shortest rings and tables, or more."""


def classes_of(shape: HeapShape) -> tuple[int, int]:
    """Return which classes are pages of the heap, but for odd ones, which hold no 4·2ᵏ arcs."""
    return 2 * (shape.page // 16).bit_length() - 2, 2 * (shape.chunk // 16).bit_length() - 1


def heap_chunks(shape: HeapShape, queued: int, spare: int, room: float) -> int:
    """Return the chunks of a heap for pages of so many arcs."""
    return spare + -(-int(room * queued) // (shape.chunk // 4))


def heap_bytes(shape: HeapShape, chunks: int) -> int:
    """Return the bytes of a heap of so many chunks."""
    each = shape.stride + max(1, shape.chunk // 8192) * QUEUE_BYTES
    least = max(LEAST_BYTES, LEAST_CHUNKS * shape.stride)
    return max(least, (FIXED_BYTES + chunks * each + 3) // 4 * 4)


def _parts(rows: RowLengths, shape: HeapShape) -> tuple[int, int]:
    """Return the places of a new heap for the rows, and of those that lie behind it."""
    least, queued = classes_of(shape)
    places = np.concatenate([CAPACITIES[least:queued:2], CAPACITIES[queued:]])
    room = capacities_for(rows.lengths, places)
    inside = room <= shape.chunk // 4
    chunks = heap_chunks(shape, rows.total(room * inside), OTHER_CHUNKS, ROOM)
    return heap_bytes(shape, chunks) // 4, rows.total(room * ~inside)


class DeviceOuro(DeviceRows):
    """Rows in pages of an Ouroboros heap on a device, in one of six variants."""

    # What is in the store depends on its batches alone; where it lies also depends on how threads
    # met at the queues.

    on_device_alone: ClassVar[bool] = True
    variant: ClassVar[str]
    heap: Ouroboros
    taken: int
    """Arcs that the pages of rows have room for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        chosen = {
            name: options.pop(name) for name in ("chunk", "page", "update") if name in options
        }
        self.shape, self.unchecked = HeapShape.of(chosen), chosen.get("update") == "unchecked"
        self.least, self.queued = classes_of(self.shape)
        names = [self.name, *(f"{name}={value}" for name, value in chosen.items())]
        self.name = ":".join(names)  # type: ignore[misc]
        super().__init__(*arguments, **options)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int, **options: Any) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        heap, behind = _parts(rows, HeapShape.of(options))
        return item * (heap + behind), ROW_BYTES * rows.vertices

    @classmethod
    def most_places(cls, rows: RowLengths, **options: Any) -> int:
        """Return the places of the pool at most, free ones included, if rebuilds fit the budget."""
        heap, behind = _parts(rows, HeapShape.of(options))
        return heap + with_free(behind)

    def batch_fields(self) -> dict[str, int]:
        """Return what kernels of a batch read of the store; see `Batch` in batch.cuh."""
        pages = {"queued": self.queued, "least": self.least, "in_place": UNLIMITED}
        return super().batch_fields() | pages

    def reserve(self, changes: DeviceChanges) -> RebuiltOnDevice | None:
        """Take memory and pages for a batch; return the store in a new heap if this one is full."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return None
        if self.weights is not None and counts["heaviest"] >= NARROW:
            self._widen(batch)
            self._follow()
        frontier = self.frontier + counts["fresh"]
        free, behind = self.free_arcs + counts["freed"], frontier - self.heap.nbytes // 4
        crowded = free > max(MOST_FREE * behind, LEAST_FREE)
        # About as much again; else batches go on where the store lies, while they fit there.
        fits = self.budget is None or self._bytes(2 * frontier) + self.row_bytes <= self.budget
        full = 4 * (self.taken + counts["taken"]) > self.heap.chunks * self.shape.chunk
        if full or (crowded and fits):
            return self._rebuilt(changes)
        self._grow_pool(frontier + counts["room"])
        self._follow()
        places = {name: self.device.address(getattr(self, name)) for name in ("targets", "weights")}
        batch.set(**places)
        return None if self._took_pages(batch, counts) else self._rebuilt(changes)

    def check(self) -> None:
        """Raise AssertionError unless rows add up and each has a page of its own."""
        begins, sizes, classes = self._pages()
        queued = classes < self.queued
        assert ((begins < self.heap.nbytes // 4) == queued).all(), "a row is out of place"
        assert self.taken == sizes[queued].sum(), "pages of the heap do not add up"
        pages = np.bincount(classes[queued], minlength=self.queued)
        assert not pages[1::2].any(), "a page is no power of two"
        assert not pages[: self.least].any(), "a page is smaller than the smallest"
        used = tuple(pages[self.least :: 2].tolist())
        assert self.heap.statistics().used_pages == used, "pages are lost"
        behind = self.frontier - self.heap.nbytes // 4
        assert self.free_arcs == behind - sizes[~queued].sum(), "free pages do not add up"

    def _merge(self, changes: DeviceChanges) -> None:
        """Merge the changes into the touched rows, or edit these; free the pages that they left."""
        batch, counts = changes.batch, changes.counts
        if self.unchecked:
            self.device.launch(
                "merge", "edit_pages", self.types, 32 * counts["rows"], batch,
                np.int64(counts["rows"]), self.targets, self.weights, self.spans, self.classes,
            )  # fmt: skip
            self._edited(counts)
            self._sort(self.touched(changes))
        else:
            super()._merge(changes)
        if counts["given"]:
            self._free_pages(batch, counts["rows"], undo=False)
        self.taken += counts["taken"] - counts["given"]

    def _sort(self, rows: Any) -> None:
        """Sort some rows where they lie."""
        places, owners = self._places(rows)
        order = self.xp.argsort(owners.astype(np.uint64) << np.uint64(32) | self.targets[places])
        for array in (self.targets, self.weights):
            if array is not None:
                array[places] = array[places][order]

    def _look_up(self, changes: DeviceChanges) -> None:
        """Find where arcs go that were not looked up; rows are rebuilt by their places."""
        batch = changes.batch
        if batch is None or not self.unchecked:
            return
        batch.set(unchecked=0)
        self.device.clear(self.counts)
        arcs = 2 * int(batch.value("listed"))
        self.device.launch("batches", "net_batch", self.types, arcs, batch)
        if self.read_counts()["arcs"] != changes.counts["arcs"]:
            raise GraphError("a batch inserts an edge that is there; leave out update=unchecked")

    def _took_pages(self, batch: Any, counts: dict[str, int]) -> bool:
        """Take pages for the rows of a batch: all, or none, as if it is interrupted."""
        rows, took = counts["rows"], False
        if not counts["taken"]:
            return True
        try:
            with uninterrupted():
                self.device.launch(
                    "queued", "take_pages", self.heap.struct, rows, batch, self.heap.handle,
                    np.int64(rows), front=self.shape.front,
                )  # fmt: skip
                took = self.read_counts()["lacking"] == 0
                if not took:
                    self._free_pages(batch, rows, undo=True)
        except BaseException:
            if took:
                self._free_pages(batch, rows, undo=True)
            raise
        return took

    def _free_pages(self, batch: Any, rows: int, *, undo: bool) -> None:
        """Free pages that rows of a batch left, or that they would have moved to."""
        self.device.launch(
            "queued", "free_pages", self.heap.struct, rows, batch, self.heap.handle,
            np.int64(rows), np.int64(undo), np.int64(self.heap.nbytes // 4),
            front=self.shape.front,
        )  # fmt: skip

    def _follow(self) -> None:
        """Let the heap know where the pool is, which moves where memory cannot be mapped."""
        memory = self.targets[: self.heap.nbytes // 4].view(np.uint8)
        if self.device.address(memory) != int(self.heap.handle.value("control")):
            self.heap.moved(memory)

    def _rebuilt(
        self, changes: DeviceChanges | None, *, compressed: bool = False, aside: bool = False
    ) -> RebuiltOnDevice:
        """Return the store after a batch, or as it is, in a new heap; or compressed rows."""
        if compressed:
            return super()._rebuilt(changes, compressed=True, aside=aside)
        if changes is not None:
            self._look_up(changes)
        laid = self._laid_out(changes)
        lacking = self.read_counts()["lacking"]
        n, end, spare = len(self.spans) // 2, 0, OTHER_CHUNKS
        while True:
            pool, heap = self._begun(laid, spare)
            shift, end = heap.nbytes // 4 - end, heap.nbytes // 4
            if n:
                self.device.launch(
                    "queued", "place_rows", heap.struct, n, self.counts, heap.handle, np.int64(n),
                    np.int64(self.queued), np.int64(shift), laid.classes, laid.spans,
                    front=self.shape.front,
                )  # fmt: skip
            before, lacking = lacking, self.read_counts()["lacking"]
            if lacking == before:
                break
            spare += heap.chunks
            del pool, heap  # before a larger one is made
        targets, weights = self._arrays(pool)
        self._copy_rows(laid, targets, weights)
        return RebuiltOnDevice(
            spans=laid.spans, classes=laid.classes, targets=targets, weights=weights,
            pool=pool, frontier=end + laid.places, heap=heap, taken=laid.queued,
        )  # fmt: skip

    def _begun(self, laid: LaidOut, spare: int) -> tuple[Pool, Ouroboros]:
        """Return a new pool that begins with a heap, with room to grow if that fits the budget."""
        present = laid.places + (self.frontier if self.pool else 0)
        for room in (ROOM, 1.0):
            chunks = heap_chunks(self.shape, laid.queued, spare, room)
            nbytes = heap_bytes(self.shape, chunks)
            if self.budget is None or self._bytes(present + nbytes // 4) <= self.budget:
                break
        if chunks > most_chunks(self.shape):
            most = most_chunks(self.shape) * self.shape.stride
            raise MemoryBudgetError(nbytes, most, [("heap", nbytes)], "use store='rows'")
        self._afford(present + nbytes // 4, self.weights)
        kind = None if self.weights is None else self.weights.dtype
        pool = self._new_pool(nbytes // 4 + laid.places, kind)
        memory = pool.arrays[0][: nbytes // 4].view(np.uint8)
        sizes = {"chunk": self.shape.chunk, "page": self.shape.page}
        heap = Ouroboros(nbytes, self.variant, memory=memory, device=self.device, **sizes)
        return pool, heap

    def _take(self, built: RebuiltOnDevice, gained: int) -> None:
        """Replace the store's arrays, and its heap."""
        super()._take(built, gained)
        self.heap, self.taken = built.heap, built.taken


STORES: Final = {
    f"ouro-{variant}": type(
        f"DeviceOuro{variant.title().replace('-', '')}",
        (DeviceOuro,),
        {"name": f"ouro-{variant}", "variant": variant},
    )
    for variant in VARIANTS
}
"""The six variants by name."""
