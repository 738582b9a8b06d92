"""ouroGraph: each row contiguous in one page of 2ᵏ words from Ouroboros, in six variants.

``ouro-s-p`` … ``ouro-vl-c``: queues as rings (s), virtualised arrays (va) or virtualised lists
(vl); of pages (p) or of chunks (c). Rows stay ascending, like those of all contiguous stores.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.cpu.dynamic import merge
from louvain_um.cpu.dynamic.size_classes import NONE, classes_for, want_classes
from louvain_um.dynamic.stores.contiguous import PagedRows, by_class, given
from louvain_um.dynamic.stores.ouro_heap import CAPACITIES, STRIDE, Allocator, Queueing
from louvain_um.dynamic.stores.row_lengths import RowLengths
from louvain_um.dynamic.stores.store import (
    I64,
    NARROW,
    NO_CHANGES,
    ROW_BYTES,
    ArcChanges,
    Compressed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Where the touched rows lie and go, and which of them change page."""

    old_begins: I64
    lengths: I64
    new_begins: I64
    old: NDArray[np.uint8]
    wanted: NDArray[np.uint8]
    moving: NDArray[np.intp]


class OuroStore(PagedRows):
    """Contiguous rows in pages of an Ouroboros heap."""

    name: ClassVar[str]
    queueing: ClassVar[Queueing]
    by_chunk: ClassVar[bool]
    allocator: Allocator

    def __init__(self, rows: Compressed, threads: int, budget: int | None) -> None:
        self.threads, self.budget = threads, budget
        self.moved_bytes = 0
        self._fill(rows)
        self.afford(self.held_bytes, self.row_bytes)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        allocator = Allocator(cls.queueing, by_chunk=cls.by_chunk)
        classes = classes_for(rows.lengths, CAPACITIES)
        for size_class in np.unique(classes[classes != NONE]).tolist():
            allocator.take(size_class, rows.total(classes == size_class))
        return heap_bytes(allocator, item), ROW_BYTES * rows.vertices

    def reserve(self, changes: ArcChanges) -> Moved:
        """Take a page for each row that outgrows its own, or fills less than half of it."""
        count = len(changes.rows)
        old_begins, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
        old, wanted = np.empty(count, np.uint8), np.empty(count, np.uint8)
        parallel.run(
            want_classes, self.threads_for(count), changes.rows, changes.growth, self.begins,
            self.ends, self.classes, CAPACITIES, old_begins, lengths, old, wanted,
        )  # fmt: skip
        moving = np.flatnonzero(old != wanted)
        new_begins = old_begins.copy()
        # A refusal leaves the heap as it was; without a budget there is none to foresee.
        before = None if self.budget is None else copy.deepcopy(self.allocator)
        taken = list(by_class(wanted, moving, len(CAPACITIES)))
        for size_class, rows in taken:
            new_begins[rows] = self.allocator.take(size_class, len(rows))
        try:
            like = self.wide_enough(changes.heaviest)
            self.afford(heap_bytes(self.allocator, self.item_bytes(like)), self.row_bytes)
            self._grow_pool(wide=changes.heaviest >= NARROW)
        except Exception:
            if before is not None:
                self.allocator = before
            else:
                for size_class, rows in taken:
                    self.allocator.give(size_class, new_begins[rows])
            raise
        return Moved(
            old_begins=old_begins,
            lengths=lengths,
            new_begins=new_begins,
            old=old,
            wanted=wanted,
            moving=moving,
        )

    def commit(self, changes: ArcChanges, reserved: Moved) -> None:
        """Merge the changes into the touched rows; free the pages they left."""
        parallel.run(
            merge.edit_rows, self.threads_for(len(changes.rows)), np.zeros(1, np.int64),
            reserved.old_begins, reserved.lengths, reserved.new_begins, changes.arrays,
            self.begins, self.ends, self.targets, given(self.weights),
        )  # fmt: skip
        self.classes[changes.rows] = reserved.wanted
        for size_class, rows in by_class(reserved.old, reserved.moving, len(CAPACITIES)):
            self.allocator.give(size_class, reserved.old_begins[rows])
        self.n_arcs += changes.arcs
        moved = int(reserved.lengths[reserved.moving].sum())
        self.moved_bytes += self.item_bytes(self.weights) * moved

    def compact(self) -> None:
        """Fill a new heap in the order of the vertices."""
        self._fill(self.compressed())

    def check(self) -> None:
        """Raise AssertionError unless rows ascend and no word of the heap is used twice."""
        super().check()
        paged = np.flatnonzero(self.classes != NONE)
        held = [self.begins[paged]]
        sizes = [CAPACITIES[self.classes[paged]]]
        assert (self.ends[paged] - self.begins[paged] <= sizes[0]).all(), "a row is too long"
        for size_class, capacity in enumerate(CAPACITIES):
            held.append(self.allocator.free_begins(size_class))
            sizes.append(np.full(len(held[-1]), capacity))
        for queue in self.allocator.queues:
            held.append(np.array(queue.chunks(), np.int64) * STRIDE)
            sizes.append(np.full(len(held[-1]), STRIDE))
        held.append(np.array(self.allocator.heap.free, np.int64) * STRIDE)
        sizes.append(np.full(len(held[-1]), STRIDE))
        begins, size = np.concatenate(held), np.concatenate(sizes)
        order = np.argsort(begins)
        ends = begins[order] + size[order]
        assert (ends[:-1] <= begins[order][1:]).all(), "pages overlap"
        assert not len(ends) or ends[-1] <= self.allocator.heap.chunks * STRIDE
        assert int(self.ends.max(initial=0)) <= len(self.targets), "a row lies beyond the pool"

    @property
    def held_bytes(self) -> int:
        """Bytes of all chunks, headers included, and of queues outside them."""
        return heap_bytes(self.allocator, self.item_bytes(self.weights))

    def _fill(self, rows: Compressed) -> None:
        """Begin anew with compressed rows."""
        self.allocator = Allocator(self.queueing, by_chunk=self.by_chunk)
        lengths = np.diff(rows.offsets)
        classes = classes_for(lengths, CAPACITIES)
        begins = np.zeros(len(lengths), np.int64)
        for size_class, chosen in by_class(classes, np.arange(len(lengths)), len(CAPACITIES)):
            begins[chosen] = self.allocator.take(size_class, len(chosen))
        self.begins, self.ends = rows.offsets[:-1], rows.offsets[1:]
        self.targets, self.weights = rows.targets, rows.weights
        self.n_arcs = len(rows.targets)
        size = self.allocator.heap.chunks * STRIDE
        self.targets, self.weights = self.copied(NO_CHANGES, begins, size, self.weights)
        self._hold(begins, begins + lengths, classes)

    def _grow_pool(self, *, wide: bool) -> None:
        """Make the pool hold all chunks of the heap, and weights as wide as needed."""
        held, size = len(self.targets), self.allocator.heap.chunks * STRIDE
        if size > held:
            targets = np.empty(size + size // 4, np.uint32)
            targets[:held] = self.targets
            self.targets = targets
        if self.weights is not None and (wide or size > held):
            kind = np.int64 if wide else self.weights.dtype
            weights = np.empty(len(self.targets), kind)
            weights[: len(self.weights)] = self.weights
            self.weights = weights


def heap_bytes(allocator: Allocator, item: int) -> int:
    """Return bytes of all chunks, of `item` bytes a word, and of queues outside them."""
    return allocator.heap.chunks * STRIDE * item + allocator.queue_bytes


def _variant(how: Queueing, chunks: bool) -> type[OuroStore]:
    """Return the class of a variant."""
    name = f"ouro-{how}-{'c' if chunks else 'p'}"
    fields = {"name": name, "queueing": how, "by_chunk": chunks}
    return type(f"Ouro{how.title()}{'Chunks' if chunks else 'Pages'}", (OuroStore,), fields)


QUEUES: Final[tuple[Queueing, ...]] = ("s", "va", "vl")

STORES: Final = {
    variant.name: variant
    for variant in (_variant(how, chunks) for how in QUEUES for chunks in (False, True))
}
"""The six variants by name."""

globals().update({variant.__name__: variant for variant in STORES.values()})  # for pickle
