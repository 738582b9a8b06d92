"""faimGraph on a device: rows as chains of pages of 64 bytes, by a concurrent queue of free pages.

A batch's changes are found by the kernels that `rows` has; a warp then edits each touched row where
it lies, takes pages as the row grows, and gives back those that empty. All pages are alike, so that
the host knows beforehand how many a batch may need: it is whole, or refused before it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from louvain_um.dynamic.stores.on_device.linked import DeviceLinked
from louvain_um.dynamic.stores.on_device.store import Rebuilt
from louvain_um.dynamic.stores.store import NARROW, RowLengths

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges

PAGE: Final = 16
"""Words of a page: 15 targets, and the number of the next page."""

CHAINED: Final = PAGE - 1

CHAINS: Final = 1
"""`linked` of a store whose rows are chains."""

NONE: Final = 0xFFFFFFFF
"""No page, and no target."""

QUEUE: Final = np.dtype(
    {
        "names": ["count", "front", "back", "ring", "mask", "cut", "asked"],
        "formats": [np.uint64] * 7,
        "offsets": [0, 8, 16, 24, 32, 128, 136],
        "itemsize": 256,
    }
)
"""`PageQueue` of chains.cu."""


class DevicePages(DeviceLinked):
    """Rows in chained pages on a device; where these lie depends on how threads met at the queue.

    Attributes
    ----------
    ring, queue : array
        Numbers of free pages, and the counters of the queue.
    """

    name: ClassVar[str] = "pages"
    source: ClassVar[str] = "chains"
    linked = CHAINS
    width = CHAINED
    links: ClassVar[int] = 1
    ring: Any = np.zeros(0, np.uint32)
    queue: Any

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        held, found = super().sizes(rows, item)
        return held, found + 4 * cls.queued(held // (item * PAGE))

    @classmethod
    def queued(cls, pages: int) -> int:
        """Return the places of a queue for so many pages: a power of two."""
        return 1 << max(pages - 1, 0).bit_length()

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
        short = self.queued(pages) > len(self.ring)
        ring = 4 * self.queued(pages) * short  # beside the one in use
        self._afford(pages * PAGE + -(-ring // self._bytes(1)), self.weights)
        self.free_spare()
        assert self.pool is not None
        self.pool.grow(pages * PAGE, self._here())
        self.targets, self.weights = self._arrays(self.pool)
        if short:
            count, front = int(state["count"]), int(state["front"])
            places = (front + self.xp.arange(count)) & (len(self.ring) - 1)
            self._begin_queue(int(state["cut"]), pages, self.ring[places])
        return None

    def check(self) -> None:
        """Raise AssertionError unless chains are whole, and every page is in one place."""
        begins, ends = self.device.get(self.spans).reshape(-1, 2).T
        entries, state = ends - begins, self._state()
        live = self.device.get(self.live) if self.holes else entries
        assert int(live.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        cut, count, front = (int(state[name]) for name in ("cut", "count", "front"))
        assert cut * PAGE == self.frontier, "the frontier is elsewhere"
        words = self.device.get(self.targets[: self.frontier]).reshape(-1, PAGE)
        next_of, arcs = words[:, CHAINED].astype(np.int64), np.zeros_like(entries)
        places = (front + np.arange(count)) & (len(self.ring) - 1)
        seen = [self.device.get(self.ring)[places].astype(np.int64)]
        rows = np.flatnonzero(entries)
        held, left = begins[rows] // PAGE, entries[rows]
        while len(held):
            seen.append(held)
            filled = words[held, :CHAINED] != NONE
            arcs[rows] += (filled & (np.arange(CHAINED) < left[:, None])).sum(axis=1)
            last = left <= CHAINED
            assert (next_of[held[last]] == NONE).all(), "a chain does not end"
            held, left, rows = next_of[held[~last]], left[~last] - CHAINED, rows[~last]
        assert np.array_equal(arcs, live), "a row has other arcs than it tells"
        pages = np.sort(np.concatenate(seen))
        assert np.array_equal(pages, np.arange(cut)), "pages are lost, or in two chains"
        rest = self.device.get(self.ring)
        assert (np.delete(rest, places) == NONE).all(), "the queue has a number too many"

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

    def _take(self, built: Rebuilt, gained: int) -> None:
        """Replace the store's arrays; no page is free then."""
        pages = built.frontier // PAGE
        self._begin_queue(pages, pages, self.xp.zeros(0, np.uint32))  # for which memory may lack
        super()._take(built, gained)

    def _state(self) -> Any:
        """Return a copy of the queue's counters; waits for kernels."""
        return self.device.read(self.queue).view(QUEUE)[0].copy()

    def _begin_queue(self, cut: int, pages: int, free: Any) -> None:
        """Make a queue with room for so many pages, of which some are free."""
        xp = self.xp
        ring = xp.full(self.queued(pages), NONE, np.uint32)
        ring[: len(free)] = free
        state = np.zeros(1, QUEUE)
        state["count"] = state["back"] = len(free)
        state["ring"], state["mask"] = self.device.address(ring), len(ring) - 1
        state["cut"] = cut
        self.ring, self.queue = ring, xp.asarray(state.view(np.uint8))


STORES: Final = {"pages": DevicePages}
