"""Compressed sparse rows, merged and rebuilt by every batch: the baseline of every comparison."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from louvain_um.dynamic.stores.contiguous import ContiguousRows
from louvain_um.dynamic.stores.store import (
    I64,
    ArcChanges,
    Compressed,
    RowLengths,
    afford,
    offsets_of,
)


class CsrStore(ContiguousRows):
    """Compressed rows without a gap: the least memory.

    Every batch copies all arcs, so that its time is proportional to the graph, however small it is.
    """

    name: ClassVar[str] = "csr"

    def __init__(self, rows: Compressed, threads: int, budget: int | None) -> None:
        self.threads, self.budget = threads, budget
        self.moved_bytes = 0
        self.n_arcs = len(rows.targets)
        self.targets, self.weights = rows.targets, rows.weights
        self.offsets = rows.offsets
        afford(self.budget, self.live_bytes, self.row_bytes)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        return item * rows.arcs, 8 * (rows.vertices + 1)

    @property
    def offsets(self) -> I64:
        """Where each row begins, and the arcs of all."""
        return self._offsets

    @offsets.setter
    def offsets(self, offsets: I64) -> None:
        self._offsets = offsets
        self.begins, self.ends = offsets[:-1], offsets[1:]

    def reserve(self, changes: ArcChanges) -> Compressed | None:
        """Return the arrays after the batch; None if nothing changes."""
        if len(changes.rows) == 0:
            return None
        like = self.wide_enough(changes.heaviest)
        size = self.item_bytes(like) * (self.n_arcs + changes.arcs)
        afford(self.budget, size + self.live_bytes, self.row_bytes)
        return self.copied(changes, offsets_of(self.lengths_after(changes)), None, like)

    def commit(self, changes: ArcChanges, reserved: Compressed | None) -> None:
        """Take the arrays after the batch."""
        if reserved is None:
            return
        self.offsets = reserved.offsets
        self.targets, self.weights = reserved.targets, reserved.weights
        self.n_arcs = len(self.targets)
        self.moved_bytes += self.live_bytes

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        self.offsets = np.concatenate([self.offsets, np.full(count, self.n_arcs, np.int64)])

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        self.offsets = self.offsets[: len(self.offsets) - count]

    def compact(self) -> None:
        """Nothing is unused."""

    def check(self) -> None:
        """Raise AssertionError unless rows ascend and follow each other."""
        super().check()
        assert len(self.targets) == self.n_arcs == self.offsets[-1], "targets lie beyond all rows"

    @property
    def held_bytes(self) -> int:
        """Bytes that arcs occupy."""
        return self.live_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of the offsets."""
        return self.offsets.nbytes


STORES: Final = {"csr": CsrStore}
