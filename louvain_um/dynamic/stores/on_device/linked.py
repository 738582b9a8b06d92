"""What the stores of linked blocks on a device share: `pages`, `bump` and `vine`."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from louvain_um.dynamic.stores.on_device.store import DeviceStore, Rebuilt
from louvain_um.dynamic.stores.store import ROW_BYTES, U32

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

    @property
    @abstractmethod
    def held_blocks(self) -> int:
        """Blocks up to the end of the pool."""

    @abstractmethod
    def _filled(self, offsets: Any, targets: Any, weights: Any) -> Rebuilt:
        """Return the store with the arcs of compressed rows, in the order of the vertices."""

    @property
    def row_bytes(self) -> int:
        """Bytes of what finds the rows, and of how many arcs each has."""
        return self.bytes_of_rows(len(self.alive))

    @classmethod
    def bytes_of_rows(cls, vertices: int) -> int:
        """Return the same for so many vertices."""
        return (ROW_BYTES + 4 * cls.holes) * vertices

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
