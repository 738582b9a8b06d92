"""Stores in the memory of a device: `rows` and `csr`, the twins of those on the host.

Pages come from the end of the pool by prefix sum, in the order of the rows. Freed ones are only
counted: before too many are free, the pool is rebuilt, which is one pass over the arcs. A batch
merges the touched rows into their new pages, or into room behind all pages, from where they are
copied back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np

from louvain_um.cpu.dynamic.size_classes import CAPACITIES, NONE
from louvain_um.dynamic.stores.rows import LEAST_FREE, MOST_FREE, REBUILD_SHARE, ROOM
from louvain_um.dynamic.stores.store import I64, NARROW, U32, Compressed
from louvain_um.errors import MemoryBudgetError
from louvain_um.gpu.dynamic.batch_arrays import COUNTS, MOST_BLOCKS, batch_struct, long_rows

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges

VERTEX_BYTES: Final = 17
"""Bytes of a row's begin, end and class."""


class Device(Protocol):
    """Arrays and kernels: CuPy and a GPU, or NumPy and emulated kernels."""

    xp: Any

    def threads(self, source: str, kernel: str, types: str = "") -> int:
        """Return how many threads of a kernel are resident at once, at most."""

    def launch(self, source: str, kernel: str, types: str, items: int, *args: Any) -> None:
        """Run a kernel with a thread per item, at most as many as are resident."""

    def address(self, array: Any) -> int:
        """Return where an array is; 0 for None."""

    def clear(self, array: Any) -> None:
        """Fill an array with zero bytes."""

    def get(self, array: Any) -> Any:
        """Copy to the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The whole store after a batch: rows as spans, or as offsets."""

    spans: Any
    offsets: Any
    classes: Any
    targets: Any
    weights: Any
    frontier: int


class DeviceRows:
    """Contiguous ascending rows in pages of size classes, or without gaps, on a device.

    Also the loops and degrees of its vertices, and which are alive: `hold_vertices` gives them.
    """

    name: ClassVar[str] = "rows"
    paged: ClassVar[bool] = True
    spans: Any
    classes: Any
    targets: Any
    weights: Any
    longest: int
    """Arcs of the longest row that there has been, or more."""

    def __init__(
        self, rows: Compressed, threads: int, budget: int | None, device: Device | None = None
    ) -> None:
        if device is None:
            from louvain_um.gpu.dynamic.cuda import Cuda

            device = Cuda()
        self.device, self.xp, self.budget = device, device.xp, budget
        put, n = self.xp.asarray, len(rows.offsets) - 1
        self.counts = self.xp.zeros(COUNTS.itemsize, np.uint8)
        self.partials = self.xp.empty(2 * MOST_BLOCKS, np.int64)
        self.spans = put(np.stack([rows.offsets[:-1], rows.offsets[1:]], axis=1).ravel())
        self.classes = None
        self.targets = put(rows.targets)
        self.weights = None if rows.weights is None else put(_unsigned(rows.weights))
        self.n_arcs = self.frontier = len(rows.targets)
        self.free_arcs = self.moved_bytes = 0
        self.longest = int(np.diff(rows.offsets).max(initial=0))
        self.loops, self.degrees = self.xp.zeros(n, np.uint64), self.xp.zeros(n, np.uint64)
        self.alive = self.xp.ones(n, np.uint8)
        self._afford(self._rebuilt_arcs(0), self.weights)
        self._take(self._rebuilt(None), 0)
        self.moved_bytes = 0

    def hold_vertices(self, loops: I64, degrees: I64) -> None:
        """Take loops and degrees of all vertices, int64[n], from the host."""
        self.loops = self.xp.asarray(loops.view(np.uint64))
        self.degrees = self.xp.asarray(degrees.view(np.uint64))

    def loops_here(self) -> I64:
        """Return the loops in host memory, int64[n]."""
        loops: I64 = self.device.get(self.loops).view(np.int64)
        return loops

    def degrees_here(self) -> I64:
        """Return the degrees in host memory, int64[n]."""
        degrees: I64 = self.device.get(self.degrees).view(np.int64)
        return degrees

    def mark_alive(self, ids: U32, alive: int) -> None:
        """Say whether some vertices are alive."""
        self.alive[self.xp.asarray(ids)] = alive

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each edge, int64[b]; 0 where there is none. Loops are edges here."""
        weights: I64 = self.device.get(self.find_there(self.xp.asarray(u), self.xp.asarray(v)))
        return weights

    def find_there(self, u: Any, v: Any) -> Any:
        """Return the same on the device, of arrays there."""
        found = self.xp.empty(len(u), np.int64)
        if len(u):
            self.device.launch(
                "merge", "find_arcs", self.types, len(u), np.int64(len(u)), self.spans,
                self.targets, self.weights, self.loops, u, v, found,
            )  # fmt: skip
        return found

    def batch_fields(self) -> dict[str, int]:
        """Return what kernels of a batch read of the store; see `Batch` in batch.cuh."""
        arrays = {
            name: getattr(self, name)
            for name in (
                "loops", "degrees", "spans", "classes", "targets", "weights", "partials",
                "counts",
            )
        }  # fmt: skip
        places = {name: self.device.address(array) for name, array in arrays.items()}
        return {**places, "frontier": self.frontier}

    def read_counts(self) -> dict[str, int]:
        """Return what kernels counted; waits for them."""
        record = self.device.get(self.counts).view(COUNTS)[0]
        return dict(zip(COUNTS.names or (), record.item(), strict=True))

    def reserve(self, changes: DeviceChanges) -> Rebuilt | None:
        """Take memory for a batch; return the rebuilt store if it is to be rebuilt."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return None
        if self.weights is not None and counts["heaviest"] >= NARROW:
            self._widen(batch)
        twice = self.frontier + self._rebuilt_arcs(counts["gained"])
        fits = self.budget is None or self._bytes(twice) + self.row_bytes <= self.budget
        if not self.paged or (fits and counts["arcs"] > REBUILD_SHARE * self.n_arcs):
            self._afford(twice, self.weights)
            return self._rebuilt(changes)
        frontier = self.frontier + counts["fresh"]
        free = self.free_arcs + counts["freed"]
        if fits and free > max(MOST_FREE * frontier, LEAST_FREE):
            return self._rebuilt(changes)
        self._afford(frontier + counts["room"], self.weights)
        self._grow_pool(frontier + counts["room"])
        return None

    def commit(self, changes: DeviceChanges, reserved: Rebuilt | None) -> None:
        """Merge the changes into the touched rows, or take the rebuilt ones; fill `changes`."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return
        rows = counts["rows"]
        self.longest = max(self.longest, counts["longest"])
        if reserved is not None:
            self._take(reserved, counts["gained"])
        elif rows:
            frontier = self.frontier + counts["fresh"]
            most = self.device.threads("merge", "merge_rows", self.types)
            each = max(1, min(32, 32 * rows // most))
            self.device.launch(
                "merge", "merge_rows", self.types, 32 * -(-rows // each), batch, np.int64(rows),
                np.int64(each), np.int64(frontier), self.targets, self.weights, self.spans,
                self.classes,
            )  # fmt: skip
            self.frontier = frontier
            self.free_arcs += counts["freed"]
            self.n_arcs += counts["gained"]
            self.moved_bytes += self._bytes(counts["moved"])
        self.device.launch(
            "batches", "end_batch", self.types, counts["arcs"] + counts["edges"], batch,
            self.loops, changes.u, changes.v, changes.before, changes.after,
        )  # fmt: skip

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        xp = self.xp

        def longer(array: Any, value: int) -> Any:
            return xp.concatenate([array, xp.full(count, value, array.dtype)])

        self.spans = xp.concatenate([self.spans, xp.zeros(2 * count, np.int64)])
        self.loops, self.degrees = longer(self.loops, 0), longer(self.degrees, 0)
        self.alive = longer(self.alive, 1)
        self.classes = None if self.classes is None else longer(self.classes, int(NONE))

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        n = len(self.alive) - count
        self.spans = self.spans[: 2 * n]
        for name in ("loops", "degrees", "alive"):
            setattr(self, name, getattr(self, name)[:n])
        self.classes = None if self.classes is None else self.classes[:n]

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        xp = self.xp
        rows = xp.asarray(ids)
        begins, ends = self.spans[0::2][rows], self.spans[1::2][rows]
        lengths = ends - begins
        work = self._prefix(lengths)
        places = xp.repeat(begins - work[:-1], self.device.get(lengths).tolist())
        targets = self.targets[places + xp.arange(len(places))]
        return np.repeat(ids, self.device.get(lengths)), self.device.get(targets)

    def traverse(self) -> int:
        """Return the sum of all targets."""
        return int(self.device_rows()[1].astype(np.int64).sum())

    def rows(self) -> None:
        """Return None: the rows are not in host memory."""

    def device_rows(self) -> tuple[Any, Any, Any]:
        """Return offsets, targets and weights of compressed rows, on the device."""
        built = self._rebuilt(None, compressed=True)
        return built.offsets, built.targets, built.weights

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
        self._take(self._rebuilt(None), 0)

    def check(self) -> None:
        """Raise AssertionError unless pages do not overlap and rows add up."""
        begins, ends = self.device.get(self.spans).reshape(-1, 2).T
        assert int((ends - begins).sum()) == self.n_arcs, "the rows do not add up to the arcs"
        held = np.flatnonzero(ends > begins)
        held = held[np.argsort(begins[held])]
        sizes = (ends - begins)[held]
        if self.paged:
            sizes = CAPACITIES[self.device.get(self.classes)[held]]
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
        return VERTEX_BYTES * len(self.alive)

    @property
    def types(self) -> str:
        """Template arguments of the kernels that run on the store."""
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

    def _prefix(self, lengths: Any) -> Any:
        """Return where rows of these lengths begin, and their sum."""
        offsets = self.xp.zeros(len(lengths) + 1, np.int64)
        self.xp.cumsum(lengths, out=offsets[1:])
        return offsets

    def _widen(self, batch: Any) -> None:
        """Make room for weights beyond 32 bits."""
        if self.weights.dtype == np.uint64:
            return
        self._afford(2 * self.frontier, self.xp.empty(0, np.uint64))
        self.weights = self.weights.astype(np.uint64)
        batch.set(weights=self.device.address(self.weights))

    def _rebuilt(self, changes: DeviceChanges | None, *, compressed: bool = False) -> Rebuilt:
        """Return the store after a batch, or as it is, rows in the order of their vertices."""
        xp, n = self.xp, len(self.spans) // 2
        offsets = xp.empty(n + 1, np.int64) if compressed else None
        spans = None if compressed else xp.empty(2 * n, np.int64)
        paged = self.paged and not compressed
        classes = xp.empty(n, np.uint8) if paged else None
        if changes is None or changes.batch is None:
            arcs, rows, gained = 0, 0, 0
            aside = xp.empty(long_rows(self.n_arcs), np.uint32)
            self.device.clear(self.counts)
            batch = batch_struct(
                **self.batch_fields(), listed=0, long_rows=self.device.address(aside)
            )
        else:
            arcs, rows, gained = (changes.counts[name] for name in ("arcs", "rows", "gained"))
            batch = changes.batch
        self.device.launch(
            "merge", "lay_out_rows", "", n, batch, np.int64(n), np.int64(rows), spans,
            offsets, classes,
        )  # fmt: skip
        frontier = self.n_arcs + gained
        if paged:
            frontier = self.read_counts()["frontier"]
        size = int(frontier * ROOM) if paged else frontier
        targets = xp.empty(size, np.uint32)
        weights = None if self.weights is None else xp.empty(size, self.weights.dtype)
        if n:
            self.device.launch(
                "merge", "rebuild_rows", self.types, self.n_arcs + arcs + n, batch, np.int64(n),
                np.int64(rows), offsets if compressed else spans, np.int64(1 if compressed else 2),
                targets, weights,
            )  # fmt: skip
        return Rebuilt(
            spans=spans,
            offsets=offsets,
            classes=classes,
            targets=targets,
            weights=weights,
            frontier=frontier,
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

    def _take(self, built: Rebuilt, gained: int) -> None:
        """Replace the store's arrays."""
        self.spans, self.classes = built.spans, built.classes
        self.targets, self.weights = built.targets, built.weights
        self.frontier, self.free_arcs = built.frontier, 0
        self.n_arcs += gained
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
