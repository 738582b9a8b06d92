"""faimGraph on a device: rows as chains of pages of 64 bytes, by a concurrent queue of free pages.

A batch's changes are found by the kernels that `rows` has; a warp then edits each touched row where
it lies, takes pages as the row grows, and gives back those that empty. All pages are alike, so that
the host knows beforehand how many a batch may need: it is whole, or refused before it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from louvain_um.dynamic.stores.on_device.store import DeviceStore, Rebuilt
from louvain_um.dynamic.stores.row_lengths import RowLengths
from louvain_um.dynamic.stores.store import NARROW, ROW_BYTES, U32

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges

PAGE: Final = 16
"""Words of a page: 15 targets, and the number of the next page."""

CHAINED: Final = PAGE - 1

QUEUE: Final = np.dtype(
    {
        "names": ["count", "front", "back", "ring", "mask", "cut", "asked"],
        "formats": [np.uint64] * 7,
        "offsets": [0, 8, 16, 24, 32, 128, 136],
        "itemsize": 256,
    }
)
"""`PageQueue` of chains.cu."""


def places_of(pages: int) -> int:
    """Return the places of a queue that holds so many pages: a power of two."""
    return 1 << max(pages - 1, 0).bit_length()


class DevicePages(DeviceStore):
    """Rows in chained pages on a device; targets within a row are in no order.

    What is in the store depends on its batches alone; where it lies also depends on how threads
    met at the queue. Algorithms read a compressed copy.
    """

    name: ClassVar[str] = "pages"
    paged: ClassVar[bool] = False
    chained: ClassVar[bool] = True
    on_device_alone: ClassVar[bool] = True
    ring: Any = np.zeros(0, np.uint32)
    queue: Any

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        pages = rows.total(-(-rows.lengths // CHAINED))
        return item * PAGE * pages, ROW_BYTES * rows.vertices + 4 * places_of(pages)

    @property
    def row_bytes(self) -> int:
        """Bytes of what finds the rows, and of the queue."""
        return super().row_bytes + int(self.ring.nbytes)

    def reserve(self, changes: DeviceChanges) -> Rebuilt | None:
        """Have as many pages, free or at the end of the pool, as rows may take."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return None
        if self.weights is not None and counts["heaviest"] >= NARROW:
            self._widen(batch)
        state = self._state()
        pages = int(state["cut"]) + max(0, counts["taken"] - int(state["count"]))
        ring = 4 * places_of(pages) if pages > len(self.ring) else 0  # beside the one in use
        self._afford(pages * PAGE + -(-ring // self._bytes(1)), self.weights)
        self.free_spare()
        assert self.pool is not None
        self.pool.grow(pages * PAGE, self._here())
        self.targets, self.weights = self._arrays(self.pool)
        if pages > len(self.ring):
            count, front = int(state["count"]), int(state["front"])
            places = (front + self.xp.arange(count)) & (len(self.ring) - 1)
            self._begin_queue(int(state["cut"]), pages, self.ring[places])
        return None

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        _, keys, _ = self._gathered(self.xp.asarray(ids))
        found = self.device.get(keys)
        return (found >> np.uint64(32)).astype(np.uint32), found.astype(np.uint32)

    def traverse(self) -> int:
        """Return the sum of all targets, read where they lie."""
        _, keys, _ = self._gathered(None)
        return int((keys & np.uint64(0xFFFFFFFF)).sum())

    def contiguous_rows(self) -> tuple[Any, Any, Any, Any]:
        """Return begins, ends, targets and weights of a compressed copy on the device."""
        offsets, targets, weights = self.device_rows()
        return offsets[:-1], offsets[1:], targets, weights

    def check(self) -> None:
        """Raise AssertionError unless chains are whole, and every page is in one place."""
        begins, ends = self.device.get(self.spans).reshape(-1, 2).T
        lengths, state = ends - begins, self._state()
        assert int(lengths.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        cut, count, front = (int(state[name]) for name in ("cut", "count", "front"))
        assert cut * PAGE == self.frontier, "the frontier is elsewhere"
        next_of = self.device.get(self.targets[: self.frontier])[CHAINED::PAGE].astype(np.int64)
        places = (front + np.arange(count)) & (len(self.ring) - 1)
        seen = [self.device.get(self.ring)[places].astype(np.int64)]
        held, left = begins[lengths > 0] // PAGE, lengths[lengths > 0]
        while len(held):
            seen.append(held)
            last = left <= CHAINED
            assert (next_of[held[last]] == 0xFFFFFFFF).all(), "a chain does not end"
            held, left = next_of[held[~last]], left[~last] - CHAINED
        pages = np.sort(np.concatenate(seen))
        assert np.array_equal(pages, np.arange(cut)), "pages are lost, or in two chains"
        rest = self.device.get(self.ring)
        assert (np.delete(rest, places) == 0xFFFFFFFF).all(), "the queue has a number too many"

    def _merge(self, batch: Any, counts: dict[str, int]) -> None:
        """Edit the touched rows."""
        rows, state = counts["rows"], self._state()
        begun = (np.int64(state[name]) for name in ("count", "front", "cut", "asked"))
        self.device.launch(
            "chains", "edit_chains", self.types, 32 * rows, batch, self.queue, *begun,
            np.int64(rows), self.targets, self.weights, self.spans,
        )  # fmt: skip
        self.n_arcs += counts["gained"]
        self.frontier = int(self._state()["cut"]) * PAGE

    def _rebuilt(
        self, changes: DeviceChanges | None, *, compressed: bool = False, aside: bool = False
    ) -> Rebuilt:
        """Return the store as it is in new chains, in the order of the vertices; or compressed."""
        xp, n = self.xp, len(self.spans) // 2
        if self.pool is None:  # as it was given
            offsets, targets, weights = xp.zeros(n + 1, np.int64), self.targets, self.weights
            offsets[1:] = self.spans[1::2]
        else:
            offsets, targets, weights = self._compressed_there()
        if compressed:
            return Rebuilt(
                spans=None, offsets=offsets, classes=None, targets=targets, weights=weights,
                pool=None, frontier=len(targets),
            )  # fmt: skip
        firsts = self._prefix((offsets[1:] - offsets[:-1] + CHAINED - 1) // CHAINED)
        places = int(firsts[-1]) * PAGE
        self._afford(places + (self.frontier if self.pool else 0), self.weights)
        pool = self._new_pool(places, None if weights is None else weights.dtype)
        new_targets, new_weights = self._arrays(pool)
        spans = xp.empty(2 * n, np.int64)
        if n:
            self.device.launch(
                "chains", "fill_chains", self.types, 32 * n, np.int64(n), offsets, targets,
                weights, firsts, new_targets, new_weights, spans,
            )  # fmt: skip
        return Rebuilt(
            spans=spans, offsets=None, classes=None, targets=new_targets, weights=new_weights,
            pool=pool, frontier=places,
        )  # fmt: skip

    def _take(self, built: Rebuilt, gained: int) -> None:
        """Replace the store's arrays; no page is free then."""
        pages = built.frontier // PAGE
        self._begin_queue(pages, pages, self.xp.zeros(0, np.uint32))  # for which memory may lack
        super()._take(built, gained)

    def _gathered(self, ids: Any) -> tuple[Any, Any, Any]:
        """Return offsets, keys and weights of some rows, or of all, as they lie."""
        xp = self.xp
        lengths = self.spans[1::2] - self.spans[0::2]
        offsets = self._prefix(lengths if ids is None else lengths[ids])
        keys = xp.empty(int(offsets[-1]), np.uint64)
        weights = None if self.weights is None else xp.empty(len(keys), self.weights.dtype)
        count = len(offsets) - 1
        if count:
            self.device.launch(
                "chains", "gather_chains", self.types, 32 * count, np.int64(count), ids, offsets,
                self.spans, self.targets, self.weights, keys, weights,
            )  # fmt: skip
        return offsets, keys, weights

    def _compressed_there(self) -> tuple[Any, Any, Any]:
        """Return offsets, targets and weights of compressed rows, on the device."""
        offsets, keys, weights = self._gathered(None)
        if weights is None:
            keys.sort()
        else:
            order = self.xp.argsort(keys)
            keys, weights = keys[order], weights[order]
        return offsets, keys.astype(np.uint32), weights

    def _state(self) -> Any:
        """Return a copy of the queue's counters; waits for kernels."""
        return self.device.read(self.queue).view(QUEUE)[0].copy()

    def _begin_queue(self, cut: int, pages: int, free: Any) -> None:
        """Make a queue with room for so many pages, of which some are free."""
        xp = self.xp
        ring = xp.full(places_of(pages), 0xFFFFFFFF, np.uint32)
        ring[: len(free)] = free
        state = np.zeros(1, QUEUE)
        state["count"] = state["back"] = len(free)
        state["ring"], state["mask"] = self.device.address(ring), len(ring) - 1
        state["cut"] = cut
        self.ring, self.queue = ring, xp.asarray(state.view(np.uint8))


STORES: Final = {"pages": DevicePages}
