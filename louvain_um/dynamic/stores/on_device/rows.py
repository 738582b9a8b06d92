"""Stores in the memory of a device: `rows` and `csr`, the twins of those on the host.

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

from louvain_um.cpu.dynamic.size_classes import CAPACITIES, NONE, capacities_for
from louvain_um.dynamic.stores.on_device.pools import UNLIMITED, Device, DevicePools
from louvain_um.dynamic.stores.row_lengths import RowLengths
from louvain_um.dynamic.stores.rows import LEAST_FREE, MOST_FREE
from louvain_um.dynamic.stores.store import I64, NARROW, ROW_BYTES, U32, Compressed
from louvain_um.errors import OptionError
from louvain_um.gpu.dynamic.batch_arrays import COUNTS, MOST_BLOCKS, batch_struct, long_rows
from louvain_um.gpu.dynamic.pool import Pool
from louvain_um.gpu.runtime.structs import packing

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges

REBUILD_SHARE: Final = 0.03
"""Share of the arcs from which on a batch rebuilds: one pass over all costs less here."""


def with_free(places: int) -> int:
    """Return so many places with those that may be free before a rebuild, but for `LEAST_FREE`."""
    return ceil(places / (1 - MOST_FREE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The whole store after a batch: rows as spans in a pool, or as offsets in arrays."""

    spans: Any
    offsets: Any
    classes: Any
    targets: Any
    weights: Any
    pool: Pool | None
    frontier: int


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


class DeviceRows(DevicePools):
    """Contiguous ascending rows in pages of size classes, or without gaps, on a device.

    Also the loops and degrees of its vertices, and which are alive: `hold_vertices` gives them.

    Parameters
    ----------
    rows : Compressed
    threads : int
        Not used.
    budget : int, optional
        Bytes of the device for arcs and rows.
    device : Device, optional
        By default the current CUDA device.
    share : float, optional
        Share of the budget, or of the device, that arcs may take before they go to the host; by
        default they never do, and what does not fit is refused.

    Raises
    ------
    OptionError
        A share below 1, where arcs stay on the device.
    """

    name: ClassVar[str] = "rows"
    paged: ClassVar[bool] = True
    chained: ClassVar[bool] = False
    on_device_alone: ClassVar[bool] = False
    """Whether arcs cannot go to the host: what does not fit the device is refused."""
    spans: Any
    classes: Any
    targets: Any
    weights: Any
    longest: int
    """Arcs of the longest row that there has been, or more."""

    def __init__(
        self,
        rows: Compressed,
        threads: int,
        budget: int | None,
        device: Device | None = None,
        *,
        share: float | None = None,
    ) -> None:
        if self.on_device_alone and share is not None and share < 1:
            raise OptionError(
                remedy=f"the store {self.name!r} keeps its arcs on the device: use memory='auto' "
                "or 'device', or store='rows'"
            )
        if device is None:
            from louvain_um.gpu.dynamic.cuda import Cuda

            device = Cuda()
        self.device, self.xp, self.budget = device, device.xp, budget
        self.share = share if device.maps and not self.on_device_alone else None
        self.pool: Pool | None = None
        self.spare: Pool | None = None
        with device.errors():
            self._load(rows)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        places = rows.total(capacities_for(rows.lengths) if cls.paged else rows.lengths)
        return item * places, ROW_BYTES * rows.vertices

    @classmethod
    def most_places(cls, rows: RowLengths) -> int:
        """Return the places of the pool at most, free ones included, if rebuilds fit the budget."""
        places = cls.sizes(rows, 1)[0]
        return with_free(places) if cls.paged else places

    def _load(self, rows: Compressed) -> None:
        """Copy rows to the device."""
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
                self.targets, self.weights, self.loops, np.int64(self.chained), u, v, found,
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
        return {
            **places, "frontier": self.frontier, "chained": int(self.chained),
            "in_place": self._most_in_place(),
        }  # fmt: skip

    def _most_in_place(self) -> int:
        """Return how many arcs may change without a rebuild that is certain beforehand."""
        return int(REBUILD_SHARE * self.n_arcs) if self.budget is None else UNLIMITED

    def read_counts(self) -> dict[str, int]:
        """Return what kernels counted; waits for them."""
        values = packing(COUNTS).whole.unpack_from(self.device.read(self.counts))
        return dict(zip(COUNTS.names or (), values, strict=True))

    def reserve(self, changes: DeviceChanges) -> Rebuilt | None:
        """Take memory for a batch; return the rebuilt store if it is to be rebuilt."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return None
        if self.weights is not None and counts["heaviest"] >= NARROW:
            self._widen(batch)
        twice = self.frontier + self._rebuilt_arcs(counts["gained"])
        fits = self.budget is None or self._bytes(twice) + self.row_bytes <= self.budget
        if not self.paged or (fits and counts["arcs"] > int(REBUILD_SHARE * self.n_arcs)):
            self._afford(twice, self.weights)
            return self._rebuilt(changes)
        frontier = self.frontier + counts["fresh"]
        crowded = self.free_arcs + counts["freed"] > max(MOST_FREE * frontier, LEAST_FREE)
        if crowded and (fits or self.share is not None):
            return self._rebuilt(changes)
        self._afford(frontier + counts["room"], self.weights)
        self.free_spare()
        assert self.pool is not None
        self.pool.grow(frontier + counts["room"], self._here())
        self.targets, self.weights = self._arrays(self.pool)
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
            self._merge(batch, counts)
        self.device.launch(
            "batches", "end_batch", self.types, counts["arcs"] + counts["edges"], batch,
            self.loops, changes.edges,
        )  # fmt: skip

    def _merge(self, batch: Any, counts: dict[str, int]) -> None:
        """Merge the changes into the touched rows."""
        rows, frontier = counts["rows"], self.frontier + counts["fresh"]
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

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""
        xp = self.xp

        def longer(array: Any, value: int) -> Any:
            return xp.concatenate([array, xp.full(count, value, array.dtype)])

        # All or none: memory may run out.
        spans = xp.concatenate([self.spans, xp.zeros(2 * count, np.int64)])
        loops, degrees, alive = (
            longer(array, value)
            for array, value in ((self.loops, 0), (self.degrees, 0), (self.alive, 1))
        )
        classes = None if self.classes is None else longer(self.classes, int(NONE))
        self.spans, self.classes = spans, classes
        self.loops, self.degrees, self.alive = loops, degrees, alive

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
        if self.host_bytes:
            return int(self.compressed().targets.sum(dtype=np.int64))
        return int(self.device_rows()[1].astype(np.int64).sum())

    def rows(self) -> None:
        """Return None: the rows are not in host memory."""

    def contiguous_rows(self) -> tuple[Any, Any, Any, Any]:
        """Return begins, ends, targets and weights, where they lie on the device."""
        self.free_spare()
        begins, ends = (self.xp.ascontiguousarray(self.spans[side::2]) for side in (0, 1))
        return begins, ends, self.targets, self.weights

    def device_rows(self) -> tuple[Any, Any, Any]:
        """Return offsets, targets and weights of compressed rows, on the device."""
        self.free_spare()
        built = self._rebuilt(None, compressed=True)
        return built.offsets, built.targets, built.weights

    def compressed(self) -> Compressed:
        """Return a copy in host memory as compressed rows."""
        built = self._rebuilt(None, compressed=True, aside=self.host_bytes > 0)
        offsets = self.device.get(built.offsets)
        if built.pool is None:
            targets = self.device.get(built.targets)
            weights = None if built.weights is None else self.device.get(built.weights)
        else:
            targets, weights, *_ = *built.pool.fetched(built.frontier), None
        if weights is not None and weights.dtype == np.uint64:
            weights = weights.view(np.int64)
        return Compressed(offsets=offsets, targets=targets, weights=weights)

    def compact(self) -> None:
        """Rebuild the pool in the order of the vertices, without free pages."""
        self._afford(self.frontier + self._rebuilt_arcs(0), self.weights)
        self._take(self._rebuilt(None), 0)

    def give_way(self, budget: int) -> None:
        """Keep to a smaller budget, if arcs may go to the host."""
        if self.share is not None:
            self.budget = budget
            self.compact()

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

    def _rebuilt_arcs(self, gained: int) -> int:
        """Return the places of the pool after a rebuild, at most: pages are half full or more.

        0 where the rebuild itself refuses what does not fit.
        """
        if self.on_device_alone:
            return 0
        return (2 if self.paged else 1) * (self.n_arcs + max(gained, 0))

    def _prefix(self, lengths: Any) -> Any:
        """Return where rows of these lengths begin, and their sum."""
        offsets = self.xp.zeros(len(lengths) + 1, np.int64)
        self.xp.cumsum(lengths, out=offsets[1:])
        return offsets

    def _rebuilt(
        self,
        changes: DeviceChanges | None,
        *,
        compressed: bool = False,
        aside: bool = False,
    ) -> Rebuilt:
        """Return the store after a batch, or as it is, rows in the order of their vertices.

        Compressed rows are in arrays of the device, or, `aside`, in a pool on the host.
        """
        kind, pool = None if self.weights is None else self.weights.dtype, None
        laid = self._laid_out(changes, compressed=compressed)
        if compressed and not aside:
            targets = self.xp.empty(laid.places, np.uint32)
            weights = None if kind is None else self.xp.empty(laid.places, kind)
        else:
            pool = self._new_pool(laid.places, kind, 0 if aside else None)
            targets, weights = self._arrays(pool)
        self._copy_rows(laid, targets, weights)
        return Rebuilt(
            spans=laid.spans,
            offsets=laid.offsets,
            classes=laid.classes,
            targets=targets,
            weights=weights,
            pool=pool,
            frontier=laid.places,
        )

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

    def _take(self, built: Rebuilt, gained: int) -> None:
        """Replace the store's arrays."""
        # Without a budget, memory stays for the next rebuild if that follows at once.
        self.pool, self.spare = built.pool, self.pool if self.budget is None else None
        self.spans, self.classes = built.spans, built.classes
        self.targets, self.weights = built.targets, built.weights
        if built.pool is not None and built.pool.on_host:
            built.pool.bring(self._here())  # the old pool has gone
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
