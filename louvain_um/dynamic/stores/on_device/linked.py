"""What the stores of linked blocks on a device share: `pages`, `bump` and `vine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from louvain_um.dynamic.stores.on_device.store import DeviceStore, Rebuilt
from louvain_um.dynamic.stores.store import ROW_BYTES, U32, RowLengths

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges


class DeviceLinked(DeviceStore):
    """Rows in linked blocks on a device; targets within a row are in no order.

    What is in the store depends on its batches alone. Algorithms read a compressed copy.
    """

    paged: ClassVar[bool] = False
    chained: ClassVar[bool] = True
    on_device_alone: ClassVar[bool] = True
    holes: ClassVar[bool] = False
    """Whether deletions leave holes, so that rows have fewer arcs than entries."""
    source: ClassVar[str]
    """Where the kernels are that edit rows."""
    width: int
    """Targets in a block."""
    links: ClassVar[int]
    """Words of a block behind its targets."""

    @classmethod
    def block_width(cls, arcs: int, rows: int) -> int:
        """Return the targets in a block, for so many arcs in rows that have some."""
        return cls.width

    @classmethod
    def blocks_begun(cls, used: int) -> int:
        """Return the blocks held at the beginning, with so many in use."""
        return used

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        width = cls.block_width(rows.arcs, rows.held)
        blocks = cls.blocks_begun(rows.total(-(-rows.lengths // width)))
        return item * (width + cls.links) * blocks, (ROW_BYTES + 4 * cls.holes) * rows.vertices

    @property
    def words(self) -> int:
        """Words of a block."""
        return self.width + self.links

    @property
    def held_blocks(self) -> int:
        """Blocks up to the end of the pool."""
        return self.frontier // self.words

    @property
    def row_bytes(self) -> int:
        """Bytes of what finds the rows, and of how many arcs each has."""
        return (ROW_BYTES + 4 * self.holes) * len(self.alive)

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

    def _rebuilt(
        self, changes: DeviceChanges | None, *, compressed: bool = False, aside: bool = False
    ) -> Rebuilt:
        """Return the store as it is in new blocks, in the order of the vertices; or compressed."""
        if self.pool is None:  # as it was given
            offsets = self.xp.zeros(len(self.spans) // 2 + 1, np.int64)
            offsets[1:] = self.spans[1::2]
            targets, weights = self.targets, self.weights
        else:
            offsets, targets, weights = self._compressed_there()
        if not compressed:
            return self._filled(offsets, targets, weights)
        return Rebuilt(
            spans=None, offsets=offsets, classes=None, targets=targets, weights=weights,
            pool=None, frontier=len(targets),
        )  # fmt: skip

    def _filled(self, offsets: Any, targets: Any, weights: Any) -> Rebuilt:
        """Return the store with the arcs of compressed rows, in the order of the vertices."""
        xp, n = self.xp, len(offsets) - 1
        firsts = self._prefix(-(-(offsets[1:] - offsets[:-1]) // self.width))
        places = self.blocks_begun(int(firsts[-1])) * self.words
        self._afford(places + (self.frontier if self.pool else 0), self.weights)
        pool = self._new_pool(places, None if weights is None else weights.dtype)
        new_targets, new_weights = self._arrays(pool)
        spans, live = xp.empty(2 * n, np.int64), xp.empty(n, np.uint32) if self.holes else None
        if n:
            self.device.launch(
                self.source, "fill_linked", self.types, 32 * n, np.int64(n), offsets, targets,
                weights, firsts, np.int64(self.linked), new_targets, new_weights, spans, live,
            )  # fmt: skip
        return Rebuilt(
            spans=spans, offsets=None, classes=None, targets=new_targets, weights=new_weights,
            pool=pool, frontier=places, live=live,
        )  # fmt: skip

    def _compressed_there(self) -> tuple[Any, Any, Any]:
        """Return offsets, targets and weights of compressed rows, on the device."""
        offsets, keys, weights = self._gathered(None)
        if weights is None:
            keys.sort()
        else:
            order = self.xp.argsort(keys)
            keys, weights = keys[order], weights[order]
        return offsets, keys.astype(np.uint32), weights

    def _gathered(self, ids: Any) -> tuple[Any, Any, Any]:
        """Return offsets, keys and weights of some rows, or of all, as they lie."""
        xp = self.xp
        lengths = self.spans[1::2] - self.spans[0::2]
        if self.live is not None:
            lengths = self.live.astype(np.int64)
        offsets = self._prefix(lengths if ids is None else lengths[ids])
        keys = xp.empty(int(offsets[-1]), np.uint64)
        weights = None if self.weights is None else xp.empty(len(keys), self.weights.dtype)
        count = len(offsets) - 1
        if count:
            self.device.launch(
                self.source, "gather_linked", self.types, 32 * count, np.int64(count), ids,
                offsets, self.spans, np.int64(self.linked), self.targets, self.weights, keys,
                weights,
            )  # fmt: skip
        return offsets, keys, weights
