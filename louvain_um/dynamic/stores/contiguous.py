"""What the stores of contiguous ascending rows share: `rows`, `csr` and `ouro`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.cpu.dynamic import contiguous as kernels
from louvain_um.cpu.dynamic.contiguous import NO_PAGE, Places, Rows
from louvain_um.dynamic.stores.store import (
    I64,
    NARROW,
    NO_CHANGES,
    ROW_BYTES,
    U32,
    ArcChanges,
    Compressed,
    Growing,
    Weights,
    given,
    offsets_of,
)

SMALL = 1 << 11
"""Items below which a second thread costs more than it saves."""


class PagedRows:
    """Rows ``targets[begins[v]:ends[v]]``, each in a page, with weights at the same places."""

    classes: NDArray[np.uint8]
    capacities: NDArray[np.int64]
    """Arcs that a page of each class holds."""
    _begins: Growing[np.int64]
    _ends: Growing[np.int64]
    _classes: Growing[np.uint8]
    begins: I64
    ends: I64
    targets: U32
    weights: Weights | None
    threads: int
    budget: int | None
    n_arcs: int
    moved_bytes: int

    def rows(self) -> Rows:
        """Return the rows where they lie."""
        return Rows(self.begins, self.ends, self.targets, given(self.weights))

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each arc u → v, int64[b]; 0 where there is none."""
        found = np.empty(len(u), np.int64)
        parallel.run(kernels.find, self.threads_for(len(u)), self.rows(), u, v, found)
        return found

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        arcs = int((self.ends[ids] - self.begins[ids]).sum())
        u, v = np.empty(arcs, np.uint32), np.empty(arcs, np.uint32)
        kernels.gather(self.rows(), ids, u, v)
        return u, v

    def compressed(self) -> Compressed:
        """Return a copy as compressed rows."""
        return self.copied(NO_CHANGES, offsets_of(self.ends - self.begins), None, self.weights)

    def threads_for(self, items: int) -> int:
        """Return how many threads so many items deserve."""
        return self.threads if items > SMALL else 1

    def lengths_after(self, changes: ArcChanges) -> I64:
        """Return the length of every row after a batch."""
        lengths = self.ends - self.begins
        lengths[changes.rows] += changes.growth
        return lengths

    def copied(
        self, changes: ArcChanges, offsets: I64, size: int | None, like: Weights | None
    ) -> Compressed:
        """Return the rows from `offsets` on, with changes merged in, in new arrays of `size`."""
        size = int(offsets[-1]) if size is None else size
        targets = np.empty(size, np.uint32)
        weights = None if like is None else np.empty(size, like.dtype)
        out = Rows(offsets[:-1], offsets[1:], targets, given(weights))
        parallel.run(
            kernels.rebuild, self.threads_for(self.n_arcs), np.zeros(1, np.int64), self.rows(),
            changes.arrays, out,
        )  # fmt: skip
        return Compressed(offsets=offsets, targets=targets, weights=weights)

    def wide_enough(self, heaviest: int) -> Weights | None:
        """Return an empty array of the type that the weights need after a batch; None for none."""
        if self.weights is None:
            return None
        narrow = self.weights.dtype == np.uint32 and heaviest < NARROW
        return np.empty(0, np.uint32) if narrow else np.empty(0, np.int64)

    def item_bytes(self, weights: Weights | None) -> int:
        """Bytes of a target and its weight."""
        return 4 if weights is None else 4 + weights.dtype.itemsize

    @property
    def live_bytes(self) -> int:
        """Bytes of the arcs themselves."""
        return self.item_bytes(self.weights) * self.n_arcs

    def check(self) -> None:
        """Raise AssertionError unless rows ascend and add up."""
        lengths = self.ends - self.begins
        assert int(lengths.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        assert int(lengths.min(initial=0)) >= 0, "a row ends before it begins"
        fault = kernels.first_disorder(self.rows(), len(self.begins))
        assert fault < 0, f"row {fault} does not ascend"

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        arrays = self._by_row
        for array in arrays:
            array.reserve(count)
        for array, value in zip(arrays, (0, 0, NO_PAGE), strict=True):
            array.extend(count, value)
        self._show()

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        for array in self._by_row:
            array.drop(count)
        self._show()

    @property
    def row_bytes(self) -> int:
        """Bytes of begins, ends and classes."""
        return ROW_BYTES * len(self.begins)

    @property
    def _by_row(self) -> tuple[Growing[Any], ...]:
        return self._begins, self._ends, self._classes

    def _places(self, changes: ArcChanges) -> tuple[Places, NDArray[np.intp]]:
        """Return where touched rows lie and the classes that they want; which change class."""
        count = len(changes.rows)
        begins, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
        classes, wanted = np.empty(count, np.uint8), np.empty(count, np.uint8)
        places = Places(begins, lengths, begins, classes, wanted)
        parallel.run(
            kernels.want_classes, self.threads_for(count), self.rows(), self.classes, changes.rows,
            changes.growth, self.capacities, places,
        )  # fmt: skip
        return places._replace(new_begins=begins.copy()), np.flatnonzero(classes != wanted)

    def _edit(self, changes: ArcChanges, places: Places, moving: NDArray[np.intp]) -> None:
        """Merge changes into the touched rows, of which some move."""
        parallel.run(
            kernels.edit_rows, self.threads_for(len(changes.rows)), np.zeros(1, np.int64),
            self.rows(), changes.arrays, places,
        )  # fmt: skip
        self.classes[changes.rows[moving]] = places.wanted[moving]
        self.n_arcs += changes.arcs
        self.moved_bytes += self.item_bytes(self.weights) * int(places.lengths[moving].sum())

    def _pages(self) -> tuple[I64, I64]:
        """Return where the pages of rows begin, and their capacities, which hold the rows."""
        paged = self.classes != NO_PAGE
        assert (self.ends[~paged] == self.begins[~paged]).all(), "a row without a page has arcs"
        begins, capacities = self.begins[paged], self.capacities[self.classes[paged]]
        assert (self.ends[paged] - begins <= capacities).all(), "a row is too long"
        return begins, capacities

    def _hold(self, begins: I64, ends: I64, classes: NDArray[np.uint8]) -> None:
        """Begin anew with these pages of rows."""
        self._begins, self._ends, self._classes = Growing(begins), Growing(ends), Growing(classes)
        self._show()

    def _show(self) -> None:
        """Let the arrays show all vertices."""
        self.begins, self.ends = self._begins.items, self._ends.items
        self.classes = self._classes.items

    def by_class(
        self, classes: NDArray[np.uint8], rows: NDArray[np.intp]
    ) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield each class that some rows have, with these rows in their order."""
        chosen = classes[rows]
        order = rows[np.argsort(chosen, kind="stable")]
        ends = np.cumsum(np.bincount(chosen, minlength=256))
        for size_class in range(len(self.capacities)):
            begin = ends[size_class - 1] if size_class else 0
            if ends[size_class] > begin:
                yield size_class, order[begin : ends[size_class]]
