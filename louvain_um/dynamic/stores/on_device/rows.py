"""Stores in the memory of a device: `rows` and `csr`, the counterparts of those on the host.

Pages come from the end of the pool by prefix sum, in the order of the rows. Freed ones are only
counted: before too many are free, the pool is rebuilt, which is one pass over the arcs. A batch
merges the touched rows into their new pages, or into room behind all pages, from where they are
copied back. The pool grows where it lies, and past a budget on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from louvain_um.cpu.dynamic.contiguous import CAPACITIES, NO_PAGE, capacities_for
from louvain_um.dynamic.stores.on_device.store import UNLIMITED, DeviceStore, RebuiltOnDevice
from louvain_um.dynamic.stores.rows import LEAST_FREE, MOST_FREE
from louvain_um.dynamic.stores.store import NARROW, ROW_BYTES, U32, RowLengths
from louvain_um.gpu.dynamic.batch_arrays import batch_struct, long_rows

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges

REBUILD_SHARE: Final = 0.03
"""Share of the arcs from which on a batch rebuilds: one pass over all costs less here."""

ROWS_SHARE: Final = 0.75
"""The same of the rows: where they are long, merging most of them is a pass over all, too."""


def with_free(places: int) -> int:
    """Return so many places with those that may be free before a rebuild, but for `LEAST_FREE`."""
    return ceil(places / (1 - MOST_FREE))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """Where all rows go, and how much they take up: in the pool, and of pages from queues."""

    batch: Any
    held: Any
    """What the batch points to."""
    rows: int
    arcs: int
    spans: Any
    offsets: Any
    classes: Any
    places: int
    queued: int


class DeviceRows(DeviceStore):
    """Contiguous ascending rows in pages of size classes, or without gaps, on a device."""

    name: ClassVar[str] = "rows"
    paged: ClassVar[bool] = True

    @classmethod
    def sizes(cls, rows: RowLengths, item: int, **options: Any) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        places = rows.total(capacities_for(rows.lengths) if cls.paged else rows.lengths)
        return item * places, ROW_BYTES * rows.vertices

    @classmethod
    def most_places(cls, rows: RowLengths, **options: Any) -> int:
        """Return the places of the pool at most, free ones included, if rebuilds fit the budget."""
        places = cls.sizes(rows, 1, **options)[0]
        return with_free(places) if cls.paged else places

    def _most_in_place(self) -> int:
        """Return how many arcs may change without a rebuild that is certain beforehand."""
        return int(REBUILD_SHARE * self.n_arcs) if self.budget is None else UNLIMITED

    def reserve(self, changes: DeviceChanges) -> RebuiltOnDevice | None:
        """Take memory for a batch; return the rebuilt store if it is to be rebuilt."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return None
        if self.weights is not None and counts["heaviest"] >= NARROW:
            self._widen(batch)
        twice = self.frontier + self._rebuilt_arcs(counts["gained"])
        fits = self.budget is None or self._bytes(twice) + self.row_bytes <= self.budget
        many = counts["arcs"] > int(REBUILD_SHARE * self.n_arcs)
        many |= min(counts["arcs"], counts["rows"]) > ROWS_SHARE * len(self.alive)
        if not self.paged or (fits and many):
            self._afford(twice, self.weights)
            return self._rebuilt(changes)
        frontier = self.frontier + counts["fresh"]
        crowded = self.free_arcs + counts["freed"] > max(MOST_FREE * frontier, LEAST_FREE)
        if crowded and (fits or self.share is not None):
            return self._rebuilt(changes)
        self._grow_pool(frontier + counts["room"])
        return None

    def _merge(self, changes: DeviceChanges) -> None:
        """Merge the changes into the touched rows."""
        batch, counts = changes.batch, changes.counts
        rows, frontier = counts["rows"], self.frontier + counts["fresh"]
        most = self.device.threads("merge", "merge_rows", self.types)
        each = max(1, min(32, 32 * rows // most))
        self.device.launch(
            "merge", "merge_rows", self.types, 32 * -(-rows // each), batch, np.int64(rows),
            np.int64(each), np.int64(frontier), self.targets, self.weights, self.spans,
            self.classes,
        )  # fmt: skip
        self._edited(counts)

    def _edited(self, counts: dict[str, int]) -> None:
        """Count what a batch did to the pool."""
        self.frontier += counts["fresh"]
        self.free_arcs += counts["freed"]
        self.n_arcs += counts["gained"]
        self.moved_bytes += self._bytes(counts["moved"])

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        places, owners = self._places(self.xp.asarray(ids))
        return ids[self.device.get(owners)], self.device.get(self.targets[places])

    def _places(self, rows: Any) -> tuple[Any, Any]:
        """Return where the arcs of some rows are, and whose each is."""
        begins = self.spans[0::2][rows]
        offsets = self._prefix(self.spans[1::2][rows] - begins)
        arcs = self.xp.arange(int(offsets[-1]))
        owners = self.xp.searchsorted(offsets, arcs, side="right") - 1
        return begins[owners] + arcs - offsets[owners], owners

    def contiguous_rows(self) -> tuple[Any, Any, Any, Any]:
        """Return begins, ends, targets and weights, where they lie on the device."""
        self.free_spare()
        begins, ends = (self.xp.ascontiguousarray(self.spans[side::2]) for side in (0, 1))
        return begins, ends, self.targets, self.weights

    def check(self) -> None:
        """Raise AssertionError unless pages do not overlap and rows add up."""
        _, sizes, _ = self._pages()
        if self.paged:
            assert self.free_arcs == self.frontier - sizes.sum(), "free pages do not add up"

    def _pages(self) -> tuple[Any, Any, Any]:
        """Return begins, sizes and classes of the rows' separate pages, in their order."""
        begins, ends = self.device.get(self.spans).reshape(-1, 2).T
        lengths = sizes = ends - begins
        classes = lengths if self.classes is None else self.device.get(self.classes)
        assert int(lengths.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        held = np.flatnonzero(lengths)
        held = held[np.argsort(begins[held])]
        if self.paged:
            assert ((lengths > 0) == (classes != NO_PAGE)).all(), "a row without a page"
            sizes = np.append(CAPACITIES, np.zeros(256 - len(CAPACITIES), np.int64))[classes]
        assert (lengths <= sizes).all(), "a row is too long"
        limits = np.append(begins[held][1:], self.frontier)
        assert (begins[held] + sizes[held] <= limits).all(), "pages overlap"
        return begins[held], sizes[held], classes[held]

    def _rebuilt_arcs(self, gained: int) -> int:
        """Return the places of the pool after a rebuild, at most: pages are half full or more."""
        if self.on_device_alone:
            return 0
        return (2 if self.paged else 1) * (self.n_arcs + max(gained, 0))

    def _rebuilt(
        self, changes: DeviceChanges | None, *, compressed: bool = False, aside: bool = False
    ) -> RebuiltOnDevice:
        """Return the store after a batch, or as it is, rows in the order of their vertices."""
        kind, pool = None if self.weights is None else self.weights.dtype, None
        laid = self._laid_out(changes, compressed=compressed)
        if compressed and not aside:
            targets = self.xp.empty(laid.places, np.uint32)
            weights = None if kind is None else self.xp.empty(laid.places, kind)
        else:
            pool = self._new_pool(laid.places, kind, 0 if aside else None)
            targets, weights = self._arrays(pool)
        self._copy_rows(laid, targets, weights)
        return RebuiltOnDevice(
            spans=laid.spans, offsets=laid.offsets, classes=laid.classes, targets=targets,
            weights=weights, pool=pool, frontier=laid.places,
        )  # fmt: skip

    def _laid_out(self, changes: DeviceChanges | None, *, compressed: bool = False) -> LaidOut:
        """Return where all rows go in the order of their vertices, after a batch or as they are."""
        xp, n = self.xp, len(self.spans) // 2
        offsets = xp.empty(n + 1, np.int64) if compressed else None
        spans = None if compressed else xp.empty(2 * n, np.int64)
        paged = self.paged and not compressed
        classes = xp.empty(n, np.uint8) if paged else None
        if changes is None or changes.batch is None:
            arcs, rows, gained = 0, 0, 0
            listed = xp.empty(long_rows(self.n_arcs), np.uint64)
            self.device.clear(self.counts)
            batch = batch_struct(
                **self.batch_fields(), listed=0, long_rows=self.device.address(listed)
            )
            held = listed
        else:
            arcs, rows, gained = (changes.counts[name] for name in ("arcs", "rows", "gained"))
            batch, held = changes.batch, changes.held
        self.device.launch(
            "merge", "lay_out_rows", "", n, batch, np.int64(n), np.int64(rows), spans,
            offsets, classes,
        )  # fmt: skip
        places, queued = self.n_arcs + gained, 0
        if paged:
            counts = self.read_counts()
            places, queued = counts["frontier"], counts["held"]
        return LaidOut(
            batch=batch, held=held, rows=rows, arcs=arcs, spans=spans, offsets=offsets,
            classes=classes, places=places, queued=queued,
        )  # fmt: skip

    def _copy_rows(self, laid: LaidOut, targets: Any, weights: Any) -> None:
        """Copy all rows to where they go, with the changes of a batch merged in."""
        n = len(self.spans) // 2
        if n:
            self.device.launch(
                "merge", "rebuild_rows", self.types, self.n_arcs + laid.arcs + n, laid.batch,
                np.int64(n), np.int64(laid.rows),
                laid.spans if laid.offsets is None else laid.offsets,
                np.int64(2 if laid.offsets is None else 1), laid.classes, targets, weights,
            )  # fmt: skip


class DeviceCsr(DeviceRows):
    """Compressed sparse rows on a device, rebuilt by every batch."""

    name: ClassVar[str] = "csr"
    paged: ClassVar[bool] = False


STORES: Final = {"rows": DeviceRows, "csr": DeviceCsr}
"""The stores that a device has, by name."""
