"""What the stores in the memory of a device share; they take `DeviceChanges`, not `ArcChanges`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from louvain_um.cpu.dynamic.contiguous import NO_PAGE
from louvain_um.dynamic.stores.store import I64, ROW_BYTES, U32, Compressed, RowLengths, afford
from louvain_um.errors import OptionError
from louvain_um.gpu.dynamic.batch_arrays import COUNTS, MOST_BLOCKS
from louvain_um.gpu.dynamic.cuda import Pool
from louvain_um.gpu.level import unsigned
from louvain_um.gpu.runtime.launch import packing

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.batch import Limits
    from louvain_um.dynamic.batches.device_batch import DeviceChanges
    from louvain_um.gpu.dynamic.cuda import CudaDevice


UNLIMITED: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltOnDevice:
    """The whole store after a batch: rows as spans in a pool, or as offsets in arrays."""

    # In a new `heap`, pages with room for so many arcs are taken.

    targets: Any
    weights: Any
    frontier: int
    pool: Pool | None = None
    spans: Any = None
    live: Any = None
    classes: Any = None
    offsets: Any = None
    heap: Any = None
    taken: int = 0


OF_VERTICES: Final = {
    "spans": (2, 0),
    "live": (1, 0),
    "classes": (1, int(NO_PAGE)),
    "ascending": (1, 1),
    "loops": (1, 0),
    "degrees": (1, 0),
    "alive": (1, 1),
}
"""Arrays with so many words for each vertex, and what these are at first."""


class DeviceStore(ABC):
    """Rows of arcs on a device, wherever a subclass puts them.

    Also the loops and degrees of its vertices, and which are alive: `hold_vertices` gives them.

    Parameters
    ----------
    rows : Compressed
    threads : int
        Not used.
    budget : int, optional
        Bytes of the device for arcs and rows.
    device : louvain_um.gpu.dynamic.cuda.CudaDevice, optional
        By default the current CUDA device.
    share : float, optional
        Share of the budget, or of the device, that arcs may take before they go to the host; by
        default they never do, and what does not fit is refused.

    Raises
    ------
    OptionError
        A share below 1, where arcs stay on the device.
    """

    name: ClassVar[str]
    chained: ClassVar[bool] = False
    """Whether rows are in linked blocks."""
    on_device_alone: ClassVar[bool] = False
    """Whether arcs cannot go to the host: what does not fit the device is refused."""
    paged: ClassVar[bool]
    directed: bool = False
    unchecked: bool = False
    """Whether edges to insert are not there, which is not looked up."""
    device: CudaDevice
    share: float | None
    pool: Pool | None
    spare: Pool | None
    targets: Any
    weights: Any
    spans: Any
    live: Any
    """Arcs of each row, if its span counts gaps, too; else None."""
    classes: Any
    ascending: Any = None
    """Whether each row in linked blocks is in order; else None."""
    longest: int
    """Arcs of the longest row that there has been, or more."""
    rooms: Mapping[str, Any] = {}
    """Arrays with words for each vertex, and for those that they have room for."""

    # What subclasses decide.

    @classmethod
    @abstractmethod
    def sizes(cls, rows: RowLengths, item: int, **options: Any) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""

    @classmethod
    def most_places(cls, rows: RowLengths, **options: Any) -> int:
        """Return the places of the pool at most, free ones included, if rebuilds fit the budget."""
        return cls.sizes(rows, 1, **options)[0]

    @classmethod
    def records(cls, vertices: int) -> int:
        """Return the vertices that arrays are made for if there are so many."""
        return vertices

    @abstractmethod
    def reserve(self, changes: DeviceChanges) -> RebuiltOnDevice | None:
        """Take memory for a batch; return the rebuilt store if it is to be rebuilt."""

    @abstractmethod
    def _merge(self, changes: DeviceChanges) -> None:
        """Merge the changes into the touched rows."""

    @abstractmethod
    def _rebuilt(
        self, changes: DeviceChanges | None, *, compressed: bool = False, aside: bool = False
    ) -> RebuiltOnDevice:
        """Return the store after a batch, or as it is, rows in the order of their vertices."""

    @abstractmethod
    def contiguous_rows(self) -> tuple[Any, Any, Any, Any]:
        """Return begins, ends, targets and weights of rows on the device."""

    # The store.

    def __init__(
        self, rows: Compressed, threads: int, budget: int | None,
        device: CudaDevice | None = None, *, share: float | None = None,
    ) -> None:  # fmt: skip
        if self.on_device_alone and share is not None and share < 1:
            raise OptionError(
                remedy=f"the store {self.name!r} keeps its arcs on the device: use memory='auto' "
                "or 'device', or store='rows'"
            )
        if device is None:
            from louvain_um.gpu.dynamic.cuda import CudaDevice

            device = CudaDevice()
        self.device, self.xp, self.budget = device, device.xp, budget
        self.share = share if device.maps and not self.on_device_alone else None
        self.pool: Pool | None = None
        self.spare: Pool | None = None
        with device.errors():
            self._load(rows)

    def _load(self, rows: Compressed) -> None:
        """Copy rows to the device."""
        put, n = self.xp.asarray, len(rows.offsets) - 1
        self.counts = self.xp.zeros(COUNTS.itemsize, np.uint8)
        self.partials = self.xp.empty(2 * MOST_BLOCKS, np.int64)
        self.spans = put(np.stack([rows.offsets[:-1], rows.offsets[1:]], axis=1).ravel())
        self.live = self.classes = None
        self.targets = put(rows.targets)
        self.weights = None if rows.weights is None else put(unsigned(rows.weights))
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
        DeviceStore.add_vertices(self, 0)

    def host_loops(self) -> I64:
        """Return the loops in host memory, int64[n]."""
        loops: I64 = self.device.get(self.loops).view(np.int64)
        return loops

    def host_degrees(self) -> I64:
        """Return the degrees in host memory, int64[n]."""
        degrees: I64 = self.device.get(self.degrees).view(np.int64)
        return degrees

    def mark_alive(self, ids: U32, alive: int) -> None:
        """Record whether some vertices are alive."""
        if len(ids):
            self.alive[self.xp.asarray(ids)] = alive

    @property
    def store(self) -> DeviceStore:
        """The store itself, which holds all contents of a graph."""
        return self

    def net(
        self, columns: dict[str, Any], duplicates: str | None, limits: Limits, *,
        refuse_missing: bool,
    ) -> DeviceChanges:  # fmt: skip
        """Return what a batch changes, in arrays on the device."""
        from louvain_um.dynamic.batches.device_batch import net_changes_there

        return net_changes_there(columns, duplicates, self, limits, refuse_missing=refuse_missing)

    def errors(self) -> AbstractContextManager[None]:
        """Turn failures of the device within a block into errors of this package."""
        return self.device.errors()

    @property
    def linked(self) -> int:
        """How rows are linked, as kernels take it; see linked.cuh."""
        return 0

    def touched(self, changes: DeviceChanges) -> Any:
        """Return the rows that a batch touches, uint32[r], ascending."""
        assert changes.batch is not None
        begin = changes.batch.value("rows") - self.device.address(changes.held[-1])
        return changes.held[-1][begin : begin + 4 * changes.counts["rows"]].view(np.uint32)

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
                self.targets, self.weights, self.loops, np.int64(self.linked), u, v, found,
            )  # fmt: skip
        return found

    def batch_fields(self) -> dict[str, int]:
        """Return what kernels of a batch read of the store; see `Batch` in batch.cuh."""
        arrays = {
            name: getattr(self, name)
            for name in (
                "loops", "degrees", "spans", "live", "classes", "targets", "weights", "partials",
                "counts",
            )
        }  # fmt: skip
        places = {name: self.device.address(array) for name, array in arrays.items()}
        return {
            **places, "frontier": self.frontier, "linked": self.linked,
            "in_place": self._most_in_place(), "unchecked": int(self.unchecked),
        }  # fmt: skip

    def _most_in_place(self) -> int:
        """Return how many arcs may change without a rebuild that is certain beforehand."""
        return UNLIMITED

    def read_counts(self) -> dict[str, int]:
        """Return what kernels counted; waits for them."""
        values = packing(COUNTS).whole.unpack_from(self.device.read(self.counts).data)
        return dict(zip(COUNTS.names or (), values, strict=True))

    def commit(self, changes: DeviceChanges, reserved: RebuiltOnDevice | None) -> None:
        """Merge the changes into the touched rows, or take the rebuilt ones; fill `changes`."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return
        rows = counts["rows"]
        self.longest = max(self.longest, counts["longest"])
        if reserved is not None:
            self._take(reserved, counts["gained"])
        elif rows:
            self._merge(changes)
        self.device.launch(
            "batches", "end_batch", self.types, counts["arcs"] + counts["edges"], batch,
            self.loops, changes.edges,
        )  # fmt: skip

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs; arrays that are full are copied to such for more `records`."""
        xp, rooms, n = self.xp, dict[str, Any](), len(self.alive) + count
        for name, (words, value) in OF_VERTICES.items():
            array, size = getattr(self, name), words * self.records(n)
            if array is None:
                continue
            room = self.rooms.get(name, array)
            if self.device.address(room) != self.device.address(array):  # another array by now
                room = array
            room[len(array) : words * n] = value
            if len(room) < size:
                room = xp.concatenate([array, xp.full(size - len(array), value, array.dtype)])
            rooms[name] = room
        for name, room in rooms.items():  # all or none: memory may have run out
            setattr(self, name, room[: OF_VERTICES[name][0] * n])
        self.rooms = rooms

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""
        n = len(self.alive) - count
        for name, (words, _) in OF_VERTICES.items():
            array = getattr(self, name)
            setattr(self, name, None if array is None else array[: words * n])

    def rows(self) -> None:
        """Return None: the rows are not in host memory."""
        return None

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

    def _rebuilt_arcs(self, gained: int) -> int:
        """Return the places of the pool after a rebuild, at most."""
        return 0

    def _prefix(self, lengths: Any) -> Any:
        """Return where rows of these lengths begin, and their sum."""
        offsets = self.xp.zeros(len(lengths) + 1, np.int64)
        self.xp.cumsum(lengths, out=offsets[1:])
        return offsets

    def _take(self, built: RebuiltOnDevice, gained: int) -> None:
        """Replace the store's arrays."""
        # Without a budget, memory stays for the next rebuild if that follows at once.
        self.pool, self.spare = built.pool, self.pool if self.budget is None else None
        self.spans, self.live, self.classes = built.spans, built.live, built.classes
        self.targets, self.weights = built.targets, built.weights
        if built.pool is not None and built.pool.on_host:
            built.pool.bring(self._here())  # the old pool has gone
        self.frontier, self.free_arcs = built.frontier, 0
        self.n_arcs += gained
        self.moved_bytes += self.live_bytes

    # Its memory.

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
        return ROW_BYTES * len(self.alive)

    @property
    def types(self) -> str:
        """Template arguments of the kernels that run on the store."""
        if self.weights is None:
            return "Unweighted"
        return "u32" if self.weights.dtype == np.uint32 else "u64"

    def _bytes(self, arcs: int, weights: Any = None) -> int:
        weights = self.weights if weights is None else weights
        return arcs * (4 if weights is None else 4 + weights.dtype.itemsize)

    @property
    def host_bytes(self) -> int:
        """Bytes of the pool, up to its frontier, that lie on the host."""
        if self.pool is None or not self.pool.on_host:
            return 0
        return max(0, self.held_bytes - self.pool.on_device)

    def give_way(self, budget: int) -> None:
        """Keep to a smaller budget, if arcs may go to the host."""
        if self.share is not None:
            self.budget = budget
            self.compact()

    def free_spare(self) -> None:
        """Free the memory that waits for the next rebuild: something else comes first."""
        self.spare = None

    def _here(self) -> int:
        """Return bytes of the device that pools may take."""
        if self.share is None or (self.budget is None and self.share == 1):
            return UNLIMITED  # what is beyond the budget has been refused
        if self.budget is None:
            return 0
        return int(self.share * max(0, self.budget - self.row_bytes))

    def _afford(self, arcs: int, weights: Any) -> None:
        """Raise a MemoryBudgetError if a pool of so many arcs is beyond the budget."""
        if self.share is None:  # else the host takes what is beyond it
            afford(self.budget, self._bytes(arcs, weights), self.row_bytes)

    def _widen(self, batch: Any) -> None:
        """Make room for weights beyond 32 bits."""
        if self.weights.dtype == np.uint64:
            return
        self._afford(2 * self.frontier, self.xp.empty(0, np.uint64))
        wide = self._new_pool(self.frontier, np.uint64)
        targets, weights = wide.arrays
        # By kernels: CUDA's own copies stop where the host's memory begins.
        self.xp.add(self.targets[: self.frontier], 0, out=targets[: self.frontier])
        narrow = self.weights[: self.frontier]
        self.xp.add(narrow, 0, out=weights[: len(narrow)])
        self.pool, self.spare = wide, None
        self.targets, self.weights = targets, weights
        batch.set(targets=self.device.address(targets), weights=self.device.address(weights))

    def _grow_pool(self, places: int, besides: int = 0) -> None:
        """Make the pool hold so many places, if with what comes besides they fit the budget."""
        self._afford(places + besides, self.weights)
        self.free_spare()
        assert self.pool is not None
        self.pool.grow(places, self._here())
        self.targets, self.weights = self._arrays(self.pool)

    def _new_pool(self, places: int, weights: Any, here: int | None = None) -> Pool:
        """Return another pool, at most `here` bytes of it on the device."""
        dtypes = [np.dtype(kind) for kind in (np.uint32, weights) if kind is not None]
        pool, self.spare = self.spare, None
        if pool is None or pool.dtypes != dtypes:
            pool = Pool(self.device, dtypes, self.budget if self.share is None else None)
        if here is None:
            held = self.pool.on_device if self.share is not None and self.pool else 0
            here = max(0, self._here() - held)
        pool.grow(places, here)
        return pool

    def _arrays(self, pool: Pool) -> tuple[Any, Any]:
        """Return targets and weights of a pool."""
        return pool.arrays[0], pool.arrays[1] if len(pool.arrays) > 1 else None
