"""GraphVine on a device: rows as complete binary trees of blocks from a queue allocated ahead.

Blocks are as wide, and as many, as those of the twin on the host; which row gets which is told by
a prefix sum. None is ever given back, so that the queue is the numbers from its front on. A
deletion leaves a hole for good; `compact` is an extension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from louvain_um.dynamic.stores.on_device.linked import DeviceLinked
from louvain_um.dynamic.stores.on_device.store import Rebuilt
from louvain_um.dynamic.stores.store import NARROW, Compressed
from louvain_um.dynamic.stores.vine import VineStore

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges


class DeviceVine(DeviceLinked):
    """Rows in trees of blocks on a device.

    Attributes
    ----------
    width : int
        Targets in a block.
    front : int
        Blocks that rows have.
    """

    name: ClassVar[str] = "vine"
    holes: ClassVar[bool] = True
    source: ClassVar[str] = "trees"
    links: ClassVar[int] = 2
    front: int

    block_width = VineStore.block_width
    blocks_begun = VineStore.blocks_begun

    @property
    def linked(self) -> int:
        """Words of a block."""
        return self.words

    def reserve(self, changes: DeviceChanges) -> Rebuilt | None:
        """Choose blocks for the rows that grow; allocate more if the queue is too short."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return None
        if self.weights is not None and counts["heaviest"] >= NARROW:
            self._widen(batch)
        width = self.width
        growing = self._count_blocks(changes, width)
        if self.front == 0:  # the first edges decide how wide blocks are
            width = self.block_width(counts["gained"], growing)
            self._count_blocks(changes, width)
        held, wanted = self.held_blocks, self.front + counts["taken"]
        places = (held if wanted <= held else max(2 * held, wanted)) * (width + self.links)
        self._afford(places, self.weights)
        self.free_spare()
        assert self.pool is not None
        self.pool.grow(places, self._here())
        self.targets, self.weights = self._arrays(self.pool)
        self.width, self.frontier = width, places
        return None

    def check(self) -> None:
        """Raise AssertionError unless trees are whole, and every block is in one or free."""
        begins, ends = self.device.get(self.spans).reshape(-1, 2).T
        entries, live = ends - begins, self.device.get(self.live)
        assert int(live.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        assert self.front <= self.held_blocks, "rows have more blocks than there are"
        words = self.device.get(self.targets[: self.frontier]).reshape(-1, self.words)
        blocks, arcs, seen = -(-entries // self.width), np.zeros_like(entries), []
        rows = np.flatnonzero(entries)
        number, block = np.ones_like(rows), begins[rows] // self.words
        while len(rows):
            seen.append(block)
            left = entries[rows] - (number - 1) * self.width
            filled = words[block, : self.width] != 0xFFFFFFFF
            filled &= np.arange(self.width) < left[:, None]
            np.add.at(arcs, rows, filled.sum(axis=1))
            links = words[block, self.width :].astype(np.int64).ravel()
            rows, number = np.repeat(rows, 2), (2 * number[:, None] + np.arange(2)).ravel()
            there = number <= blocks[rows]
            rows, number, block = rows[there], number[there], links[there]
        found = np.sort(np.concatenate([*seen, np.zeros(0, np.int64)]))
        assert np.array_equal(found, np.arange(self.front)), "a block is lost, or in two trees"
        assert np.array_equal(arcs, live), "a row has other arcs than it tells"

    def _load(self, rows: Compressed) -> None:
        """Copy rows to the device."""
        held = int(np.count_nonzero(np.diff(rows.offsets)))
        self.width = self.block_width(len(rows.targets), held)
        super()._load(rows)

    def _count_blocks(self, changes: DeviceChanges, width: int) -> int:
        """Count the blocks of a width that rows need; return how many rows get arcs."""
        rows = changes.counts["rows"]
        self.device.launch(
            "trees", "count_blocks", self.types, 32 * rows, changes.batch, np.int64(rows),
            np.int64(width + self.links),
        )  # fmt: skip
        counted = self.read_counts()
        changes.counts["taken"] = counted["taken"]
        return counted["given"]

    def _merge(self, batch: Any, counts: dict[str, int]) -> None:
        """Edit the touched rows."""
        rows = counts["rows"]
        self.device.launch(
            "trees", "edit_trees", self.types, 32 * rows, batch, np.int64(self.front),
            np.int64(self.words), np.int64(rows), self.targets, self.weights, self.spans,
        )  # fmt: skip
        self.n_arcs += counts["gained"]
        self.front += counts["taken"]

    def _take(self, built: Rebuilt, gained: int) -> None:
        """Replace the store's arrays; the queue begins behind the rows' blocks."""
        front = int((-(-built.live.astype(np.int64) // self.width)).sum())  # memory may lack
        super()._take(built, gained)
        self.front = front


STORES: Final = {"vine": DeviceVine}
