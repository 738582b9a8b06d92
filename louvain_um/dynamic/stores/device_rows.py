"""Stores in the memory of a device: `rows` and `csr`, the twins of those on the host.

Pages come from the end of the pool by prefix sum, in the order of the rows. Freed ones are only
counted: before too many are free, the pool is rebuilt, which is one pass over the arcs. A batch
merges the touched rows into their new pages, or into room behind all pages, from where they are
copied back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from louvain_um.cpu.dynamic.size_classes import CAPACITIES, NONE
from louvain_um.dynamic.stores.rows import LEAST_FREE, MOST_FREE, REBUILD_SHARE, ROOM
from louvain_um.dynamic.stores.store import I64, NARROW, NO_CHANGES, U32, ArcChanges, Compressed
from louvain_um.errors import MemoryBudgetError


class Device(Protocol):
    """Arrays and kernels: CuPy and a GPU, or NumPy and emulated kernels."""

    xp: Any

    def launch(self, kernel: str, types: str, items: int, *args: Any) -> None:
        """Run a kernel of `batches.cu` that has so many items of work."""

    def get(self, array: Any) -> Any:
        """Copy to the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Where touched rows lie, go, and are merged; the state of the pool after the batch.

    Rows with `back` are merged into the room behind all pages and copied back.
    """

    rows: Any
    begins: Any
    lengths: Any
    pages: Any
    merged: Any
    back: Any
    classes: Any
    frontier: int
    free_arcs: int
    moved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The whole store after a batch."""

    begins: Any
    ends: Any
    classes: Any
    targets: Any
    weights: Any
    frontier: int


class DeviceRows:
    """Contiguous ascending rows in pages of size classes, or without gaps, on a device."""

    name: ClassVar[str] = "rows"
    paged: ClassVar[bool] = True
    begins: Any
    ends: Any
    classes: Any
    targets: Any
    weights: Any

    def __init__(
        self, rows: Compressed, threads: int, budget: int | None, device: Device | None = None
    ) -> None:
        if device is None:
            from louvain_um.gpu.dynamic.cuda import Cuda

            device = Cuda()
        self.device, self.xp, self.budget = device, device.xp, budget
        put = self.xp.asarray
        self.begins, self.ends = put(rows.offsets[:-1]), put(rows.offsets[1:])
        self.targets = put(rows.targets)
        self.weights = None if rows.weights is None else put(_unsigned(rows.weights))
        self.n_arcs = self.frontier = len(rows.targets)
        self.free_arcs = self.moved_bytes = 0
        self.capacities = put(np.append(CAPACITIES, np.zeros(256 - len(CAPACITIES), np.int64)))
        self._afford(self._rebuilt_arcs(0), self.weights)
        self._take(self._rebuilt(NO_CHANGES, self.weights), NO_CHANGES)
        self.moved_bytes = 0

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each arc u → v, int64[b]; 0 where there is none."""
        weights: I64 = self.device.get(self.find_there(self.xp.asarray(u), self.xp.asarray(v)))
        return weights

    def find_there(self, u: Any, v: Any) -> Any:
        """Return the same on the device, of arrays there."""
        found = self.xp.empty(len(u), np.int64)
        if len(u):
            self.device.launch(
                "find_arcs", self._types, len(u), np.int64(len(u)), self.begins, self.ends,
                self.targets, self.weights, u, v, found,
            )  # fmt: skip
        return found

    def reserve(self, changes: ArcChanges) -> Moved | Rebuilt:
        """Decide where each touched row goes, and take memory for it."""
        if self.weights is not None and changes.heaviest >= NARROW:
            self._afford(2 * self.frontier, self.xp.empty(0, np.uint64))
            self.weights = self.weights.astype(np.uint64, copy=False)
        twice = self.frontier + self._rebuilt_arcs(changes.arcs)
        fits = self.budget is None or self._bytes(twice) + self.row_bytes <= self.budget
        if not self.paged or (fits and len(changes.keys) > REBUILD_SHARE * self.n_arcs):
            self._afford(twice, self.weights)
            return self._rebuilt(changes, self.weights)
        moves = self._moves(changes)
        if fits and moves.free_arcs > max(MOST_FREE * moves.frontier, LEAST_FREE):
            return self._rebuilt(changes, self.weights)
        room = int(self.xp.where(moves.back, moves.lengths, 0).sum()) + len(changes.keys)
        self._afford(moves.frontier + room, self.weights)
        self._grow_pool(moves.frontier + room)
        return moves

    def commit(self, changes: ArcChanges, reserved: Moved | Rebuilt) -> None:
        """Merge the changes into the touched rows, or take the rebuilt ones."""
        if isinstance(reserved, Rebuilt):
            self._take(reserved, changes)
            return
        xp, rows = self.xp, reserved.rows
        self._merge(
            changes, reserved.begins, reserved.lengths, xp.asarray(changes.starts), reserved.merged,
            self.targets, self.weights,
        )  # fmt: skip
        after = reserved.lengths + xp.asarray(changes.growth)
        kept = xp.where(reserved.back, after, 0)
        work = self._prefix(kept)
        if len(rows):
            self.device.launch(
                "copy_rows", self._types, self._bound(changes, reserved), np.int64(len(rows)), work,
                reserved.merged, reserved.pages, self.targets, self.weights,
            )  # fmt: skip
        self.begins[rows], self.ends[rows] = reserved.pages, reserved.pages + after
        self.classes[rows] = reserved.classes
        self.frontier, self.free_arcs = reserved.frontier, reserved.free_arcs
        self.n_arcs += changes.arcs
        self.moved_bytes += self._bytes(reserved.moved)

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        xp = self.xp
        self.begins = xp.concatenate([self.begins, xp.zeros(count, np.int64)])
        self.ends = xp.concatenate([self.ends, xp.zeros(count, np.int64)])
        self.classes = xp.concatenate([self.classes, xp.full(count, NONE, np.uint8)])

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        n = len(self.begins) - count
        self.begins, self.ends, self.classes = self.begins[:n], self.ends[:n], self.classes[:n]

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        xp = self.xp
        rows = xp.asarray(ids)
        lengths = self.ends[rows] - self.begins[rows]
        work = self._prefix(lengths)
        places = xp.repeat(self.begins[rows] - work[:-1], self.device.get(lengths).tolist())
        targets = self.targets[places + xp.arange(len(places))]
        return np.repeat(ids, self.device.get(lengths)), self.device.get(targets)

    def traverse(self) -> int:
        """Return the sum of all targets."""
        return int(self.device_rows()[1].astype(np.int64).sum())

    def rows(self) -> None:
        """Return None: the rows are not in host memory."""

    def device_rows(self) -> tuple[Any, Any, Any]:
        """Return offsets, targets and weights of compressed rows, on the device."""
        lengths = self.ends - self.begins
        offsets = self._prefix(lengths)
        targets, weights = self._copied(NO_CHANGES, lengths, offsets[:-1], self.n_arcs)
        return offsets, targets, weights

    def compressed(self) -> Compressed:
        """Return a copy in host memory as compressed rows."""
        rows = self.device_rows()
        offsets, targets = self.device.get(rows[0]), self.device.get(rows[1])
        weights = None if rows[2] is None else self.device.get(rows[2])
        if weights is not None and weights.dtype == np.uint64:
            weights = weights.view(np.int64)
        return Compressed(offsets=offsets, targets=targets, weights=weights)

    def compact(self) -> None:
        """Rebuild the pool in the order of the vertices, without free pages."""
        self._afford(self.frontier + self._rebuilt_arcs(0), self.weights)
        self._take(self._rebuilt(NO_CHANGES, self.weights), NO_CHANGES)

    def check(self) -> None:
        """Raise AssertionError unless pages do not overlap and rows add up."""
        begins, ends = self.device.get(self.begins), self.device.get(self.ends)
        classes = self.device.get(self.classes)
        assert int((ends - begins).sum()) == self.n_arcs, "the rows do not add up to the arcs"
        held = np.flatnonzero(ends > begins)
        held = held[np.argsort(begins[held])]
        sizes = CAPACITIES[classes[held]] if self.paged else (ends - begins)[held]
        assert (ends[held] - begins[held] <= sizes).all(), "a row is too long"
        limits = np.append(begins[held][1:], self.frontier)
        assert (begins[held] + sizes <= limits).all(), "pages overlap"
        if self.paged:
            assert self.free_arcs == self.frontier - sizes.sum(), "free pages do not add up"

    @property
    def live_bytes(self) -> int:
        """Bytes of the arcs themselves."""
        return self._bytes(self.n_arcs)

    @property
    def held_bytes(self) -> int:
        """Bytes of the pool up to its frontier."""
        return self._bytes(self.frontier)

    @property
    def row_bytes(self) -> int:
        """Bytes of begins, ends and classes."""
        return 17 * len(self.begins)

    @property
    def _types(self) -> str:
        if self.weights is None:
            return "Unweighted"
        return "u32" if self.weights.dtype == np.uint32 else "u64"

    def _bytes(self, arcs: int, weights: Any = None) -> int:
        weights = self.weights if weights is None else weights
        return arcs * (4 if weights is None else 4 + weights.dtype.itemsize)

    def _afford(self, arcs: int, weights: Any) -> None:
        """Raise a MemoryBudgetError if a pool of so many arcs is beyond the budget."""
        needed = self._bytes(arcs, weights)
        if self.budget is not None and needed + self.row_bytes > self.budget:
            raise MemoryBudgetError(
                needed + self.row_bytes,
                self.budget,
                [("arcs", needed), ("rows", self.row_bytes)],
                "raise device_budget, or delete edges and compact()",
            )

    def _rebuilt_arcs(self, gained: int) -> int:
        """Return the places of the pool after a rebuild, at most: pages are half full or more."""
        return (2 if self.paged else 1) * (self.n_arcs + max(gained, 0))

    def _bound(self, changes: ArcChanges, moves: Moved) -> int:
        """Return a bound of the work of a batch: for the number of blocks."""
        return max(len(changes.keys), len(moves.rows)) * 8

    def _prefix(self, lengths: Any) -> Any:
        """Return where rows of these lengths begin, and their sum."""
        offsets = self.xp.zeros(len(lengths) + 1, np.int64)
        self.xp.cumsum(lengths, out=offsets[1:])
        return offsets

    def _classes_for(self, lengths: Any) -> Any:
        """Return the smallest class that holds each length; `NONE` for 0."""
        known = self.capacities[: len(CAPACITIES)]
        found = self.xp.searchsorted(known, lengths).astype(np.uint8)
        return self.xp.where(lengths == 0, NONE, found).astype(np.uint8)

    def _merge(
        self, changes: ArcChanges, begins: Any, lengths: Any, starts: Any, out: Any, targets: Any,
        weights: Any,
    ) -> None:  # fmt: skip
        """Write rows from `out` on, with the changes starts[r] … starts[r + 1] merged in."""
        xp, put = self.xp, self.xp.asarray
        items = self.n_arcs + len(changes.keys)
        if len(begins) == 0 or items == 0:
            return
        before, after = put(changes.before), put(changes.after)
        gained = self._prefix((before == 0).astype(np.int64) - (after == 0).astype(np.int64))
        work = self._prefix(lengths + xp.diff(starts))
        self.device.launch(
            "merge_rows", self._types, items, np.int64(len(begins)), work, begins, lengths, starts,
            out, put(changes.keys), before, after, gained, self.targets, self.weights, targets,
            weights,
        )  # fmt: skip

    def _copied(self, changes: ArcChanges, lengths: Any, begins: Any, size: int) -> tuple[Any, Any]:
        """Return targets and weights of all rows in new arrays, with changes merged in."""
        xp, n = self.xp, len(self.begins)
        targets = xp.empty(size, np.uint32)
        weights = None if self.weights is None else xp.empty(size, self.weights.dtype)
        keys = xp.asarray(changes.keys)
        edges = xp.arange(n + 1, dtype=np.uint64) << np.uint64(32)
        starts = xp.searchsorted(keys, edges).astype(np.int64)
        self._merge(changes, self.begins, self.ends - self.begins, starts, begins, targets, weights)
        return targets, weights

    def _rebuilt(self, changes: ArcChanges, like: Any) -> Rebuilt:
        """Return the store after a batch, rows in the order of their vertices."""
        xp = self.xp
        lengths = self.ends - self.begins
        lengths[xp.asarray(changes.rows)] += xp.asarray(changes.growth)
        classes = self._classes_for(lengths)
        begins = self._prefix(self.capacities[classes] if self.paged else lengths)
        frontier = int(begins[-1])
        size = int(frontier * ROOM) if self.paged else frontier
        targets, weights = self._copied(changes, lengths, begins[:-1], size)
        return Rebuilt(
            begins=begins[:-1],
            ends=begins[:-1] + lengths,
            classes=classes,
            targets=targets,
            weights=weights,
            frontier=frontier,
        )

    def _moves(self, changes: ArcChanges) -> Moved:
        """Choose pages for the touched rows; nothing is written to the store."""
        xp = self.xp
        rows = xp.asarray(changes.rows)
        begins, old = self.begins[rows], self.classes[rows]
        lengths = self.ends[rows] - begins
        after = lengths + xp.asarray(changes.growth)
        held = self.capacities[old]
        stays = (after > 0) & (held // 2 <= after) & (after <= held)
        wanted = xp.where(stays, old, self._classes_for(after)).astype(np.uint8)
        moving = wanted != old
        fresh = self._prefix(xp.where(moving, self.capacities[wanted], 0))
        pages = xp.where(moving, self.frontier + fresh[:-1], begins)
        frontier = self.frontier + int(fresh[-1])
        room = self._prefix(xp.where(moving, 0, lengths + xp.diff(xp.asarray(changes.starts))))
        return Moved(
            rows=rows,
            begins=begins,
            lengths=lengths,
            pages=pages,
            merged=xp.where(moving, pages, frontier + room[:-1]),
            back=~moving,
            classes=wanted,
            frontier=frontier,
            free_arcs=self.free_arcs + int(xp.where(moving, held, 0).sum()),
            moved=int(xp.where(moving, lengths, 0).sum()),
        )

    def _grow_pool(self, size: int) -> None:
        """Make the pool reach to `size`; rows stay where they are."""
        if size <= len(self.targets):
            return

        def longer(array: Any) -> Any:
            grown = self.xp.empty(int(size * ROOM), array.dtype)
            grown[: self.frontier] = array[: self.frontier]
            return grown

        self.targets = longer(self.targets)
        self.weights = None if self.weights is None else longer(self.weights)

    def _take(self, built: Rebuilt, changes: ArcChanges) -> None:
        """Replace the store's arrays."""
        self.begins, self.ends, self.classes = built.begins, built.ends, built.classes
        self.targets, self.weights = built.targets, built.weights
        self.frontier, self.free_arcs = built.frontier, 0
        self.n_arcs += changes.arcs
        self.moved_bytes += self.live_bytes


class DeviceCsr(DeviceRows):
    """Compressed sparse rows on a device, rebuilt by every batch."""

    name: ClassVar[str] = "csr"
    paged: ClassVar[bool] = False


def _unsigned(weights: Any) -> Any:
    """Return weights as kernels take them."""
    return weights.view(np.uint64) if weights.dtype == np.int64 else weights


STORES: Final = {"rows": DeviceRows, "csr": DeviceCsr}
"""The stores that a device has, by name."""
