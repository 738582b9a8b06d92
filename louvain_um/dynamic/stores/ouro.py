"""ouroGraph: each row contiguous in one page of 2ᵏ words from Ouroboros, in six variants.

``ouro-s-p`` … ``ouro-vl-c``: queues as rings (s), virtualised arrays (va) or virtualised lists
(vl); of pages (p) or of chunks (c). Rows stay ascending, like those of all contiguous stores.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.cpu.dynamic.contiguous import NO_PAGE, Places, classes_for
from louvain_um.dynamic.stores.contiguous import PagedRows
from louvain_um.dynamic.stores.ouro_heap import HeapShape, PageAllocator, Queueing
from louvain_um.dynamic.stores.store import (
    NARROW,
    NO_CHANGES,
    ROW_BYTES,
    ArcChanges,
    Compressed,
    RowLengths,
    afford,
    longer,
)


class OuroStore(PagedRows):
    """Contiguous rows in pages of an Ouroboros heap."""

    name: str
    queueing: ClassVar[Queueing]
    by_chunk: ClassVar[bool]
    allocator: PageAllocator

    def __init__(self, rows: Compressed, threads: int, budget: int | None, **options: Any) -> None:
        self.threads, self.budget = threads, budget
        self.moved_bytes, self.shape = 0, HeapShape.of(options)
        self.unchecked = options.get("update") == "unchecked"
        self.name = ":".join([self.name, *(f"{name}={value}" for name, value in options.items())])
        self.capacities = self.shape.capacities
        self._fill(rows)
        afford(self.budget, self.held_bytes, self.row_bytes)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int, **options: Any) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        shape = HeapShape.of(options)
        allocator = PageAllocator(cls.queueing, by_chunk=cls.by_chunk, shape=shape)
        classes = classes_for(rows.lengths, shape.capacities)
        for size_class in np.unique(classes[classes != NO_PAGE]).tolist():
            allocator.take(size_class, rows.total(classes == size_class))
        return heap_bytes(allocator, item), ROW_BYTES * rows.vertices

    def reserve(self, changes: ArcChanges) -> tuple[Places, NDArray[np.intp]]:
        """Take a page for each row that outgrows its own, or fills less than half of it."""
        places, moving = self._places(changes)
        # A refusal leaves the heap as it was; without a budget there is none to foresee.
        before = None if self.budget is None else copy.deepcopy(self.allocator)
        taken = list(self.by_class(places.wanted, moving))
        for size_class, rows in taken:
            places.new_begins[rows] = self.allocator.take(size_class, len(rows))
        try:
            like = self.wide_enough(changes.heaviest)
            afford(self.budget, heap_bytes(self.allocator, self.item_bytes(like)), self.row_bytes)
            self._grow_pool(wide=changes.heaviest >= NARROW)
        except Exception:
            if before is not None:
                self.allocator = before
            else:
                for size_class, rows in taken:
                    self.allocator.give(size_class, places.new_begins[rows])
            raise
        return places, moving

    def commit(self, changes: ArcChanges, reserved: tuple[Places, NDArray[np.intp]]) -> None:
        """Merge the changes into the touched rows; free the pages they left."""
        places, moving = reserved
        self._edit(changes, places, moving)
        for size_class, rows in self.by_class(places.classes, moving):
            self.allocator.give(size_class, places.begins[rows])

    def compact(self) -> None:
        """Fill a new heap in the order of the vertices."""
        self._fill(self.compressed())

    def check(self) -> None:
        """Raise AssertionError unless rows ascend and no word of the heap is used twice."""
        super().check()
        stride = self.allocator.stride
        held, sizes = ([part] for part in self._pages())
        for size_class, capacity in enumerate(self.capacities):
            held.append(self.allocator.free_begins(size_class))
            sizes.append(np.full(len(held[-1]), capacity))
        for queue in self.allocator.queues:
            held.append(np.array(queue.segments, np.int64) * stride)
            sizes.append(np.full(len(held[-1]), stride))
        held.append(np.array(self.allocator.heap.free, np.int64) * stride)
        sizes.append(np.full(len(held[-1]), stride))
        begins, size = np.concatenate(held), np.concatenate(sizes)
        order = np.argsort(begins)
        ends = begins[order] + size[order]
        assert (ends[:-1] <= begins[order][1:]).all(), "pages overlap"
        assert not len(ends) or ends[-1] <= self.allocator.heap.chunks * stride
        assert int(self.ends.max(initial=0)) <= len(self.targets), "a row lies beyond the pool"

    @property
    def held_bytes(self) -> int:
        """Bytes of all chunks, headers included, and of queues outside them."""
        return heap_bytes(self.allocator, self.item_bytes(self.weights))

    def _fill(self, rows: Compressed) -> None:
        """Begin anew with compressed rows."""
        self.allocator = PageAllocator(self.queueing, by_chunk=self.by_chunk, shape=self.shape)
        lengths = np.diff(rows.offsets)
        classes = classes_for(lengths, self.capacities)
        begins = np.zeros(len(lengths) + 1, np.int64)
        for size_class, chosen in self.by_class(classes, np.arange(len(lengths))):
            begins[chosen] = self.allocator.take(size_class, len(chosen))
        self.begins, self.ends = rows.offsets[:-1], rows.offsets[1:]
        self.targets, self.weights = rows.targets, rows.weights
        self.n_arcs = len(rows.targets)
        places = self.allocator.heap.chunks * self.allocator.stride
        placed = self.copied(NO_CHANGES, begins, places, rows.weights)
        self.targets, self.weights = placed.targets, placed.weights
        self._hold(begins[:-1], begins[:-1] + lengths, classes)

    def _grow_pool(self, *, wide: bool) -> None:
        """Make the pool hold all chunks of the heap, and weights as wide as needed."""
        held, size = len(self.targets), self.allocator.heap.chunks * self.allocator.stride
        if size > held:
            self.targets = longer(self.targets, size + size // 4)
        if self.weights is not None and (wide or size > held):
            self.weights = longer(self.weights, len(self.targets), np.int64 if wide else None)


def heap_bytes(allocator: PageAllocator, item: int) -> int:
    """Return bytes of all chunks, of `item` bytes a word, and of queues outside them."""
    return allocator.heap.chunks * allocator.stride * item + allocator.queue_bytes


STORES: Final = {
    f"ouro-{how}-{held}": type(
        f"Ouro{how.title()}{held.title()}",
        (OuroStore,),
        {"name": f"ouro-{how}-{held}", "queueing": how, "by_chunk": held == "c"},
    )
    for how in ("s", "va", "vl")
    for held in "pc"
}
"""The six variants by name."""

globals().update({variant.__name__: variant for variant in STORES.values()})  # for pickle
