"""Stores of linked blocks on a device: `bump`, `pages` and `vine`.

A batch's changes are found by the kernels that `rows` has; a warp then edits each touched row where
it lies, takes blocks from a concurrent queue as the row grows, and gives back those that empty. All
blocks are alike, so that the host knows beforehand how many a batch may need: it is whole, or
refused before it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from louvain_um.cpu.dynamic.linked import DENSE
from louvain_um.dynamic.declared import VERTEX_BYTES
from louvain_um.dynamic.stores.attributes import Attributes
from louvain_um.dynamic.stores.blocks import KINDS, Blocks, ends_of, held_for
from louvain_um.dynamic.stores.on_device.store import DeviceStore, RebuiltOnDevice
from louvain_um.dynamic.stores.store import NARROW, ROW_BYTES, U32, Compressed, RowLengths, afford
from louvain_um.placement.hardware import THREADS

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.device_batch import DeviceChanges
    from louvain_um.gpu.dynamic.cuda import Pool

NONE: Final = 0xFFFFFFFF
"""No block, and no target."""

LANES: Final = {None: 0, "vertex": 0, "thread": 1, "warp": 32, "block": THREADS}
"""Threads that edit an arc by the option `update`; 0 where a warp edits a row."""

QUEUE: Final = np.dtype(
    {
        "names": ["count", "front", "back", "ring", "mask", "cut", "asked"],
        "formats": [np.uint64] * 7,
        "offsets": [0, 8, 16, 24, 32, 128, 136],
        "itemsize": 256,
    }
)
"""`BlockQueue` of linked.cu."""


class DeviceQueue:
    """Numbers in a ring on a device, first in, first out: free blocks, or removed vertices' ids."""

    # There is room for `places` at least. `cut` have ever been in use: threads continue from there.

    def __init__(self, device: Any, places: int, cut: int = 0) -> None:
        self.device = device
        self._begin(places, cut, device.xp.zeros(0, np.uint32))

    def reserve(self, places: int) -> None:
        """Have room for so many numbers."""
        if places > len(self.ring):
            self._begin(places, int(self.state()["cut"]), self.free())

    def state(self) -> Any:
        """Return a copy of the counters; waits for kernels."""
        return self.device.read(self.counters).view(QUEUE)[0].copy()

    def free(self) -> Any:
        """Return the numbers in the queue."""
        state = self.state()
        places = int(state["front"]) + self.device.xp.arange(int(state["count"]))
        return self.ring[places & (len(self.ring) - 1)]

    def supply(self) -> tuple[Any, ...]:
        """Return the queue and what it holds now, as kernels take them."""
        state = self.state()
        return self.counters, *(np.int64(state[key]) for key in ("count", "front", "cut", "asked"))

    def extend(self, items: U32) -> None:
        """Append items, for which there is room."""
        back, count = np.int64(self.state()["back"]), np.int64(len(items))
        there = self.device.xp.asarray(items)
        self.device.launch("linked", "give_ids", "", len(items), self.counters, back, count, there)

    def pop(self, count: int) -> Any:
        """Take the first items, in any order."""
        taken = self.device.xp.empty(count, np.uint32)
        self.device.launch(
            "linked", "take_ids", "", count, *self.supply(), np.int64(count), taken
        )  # fmt: skip
        return self.device.get(taken)

    def _begin(self, places: int, cut: int, free: Any) -> None:
        """Make a ring for so many numbers, of which some are free."""
        xp = self.device.xp
        ring = xp.full(1 << max(places - 1, 0).bit_length(), NONE, np.uint32)
        ring[: len(free)] = free
        state = np.zeros(1, QUEUE)
        state["count"] = state["back"] = len(free)
        state["ring"], state["mask"] = self.device.address(ring), len(ring) - 1
        state["cut"] = cut
        self.ring, self.counters = ring, xp.asarray(state.view(np.uint8))


class DeviceLinked(Blocks, DeviceStore):
    """Rows in linked blocks on a device; where these lie depends on how threads met at the queue.

    What is in the store depends on its batches alone. Targets within a row are in any order, until
    they are read by an algorithm.

    Attributes
    ----------
    width : int
        Entries in a block.
    queue, ids : DeviceQueue
        Free blocks, and ids of removed vertices.
    """

    paged: ClassVar[bool] = False
    chained: ClassVar[bool] = True
    on_device_alone: ClassVar[bool] = True
    queue: Any = None
    ids: DeviceQueue | None = None

    def __init__(self, rows: Compressed, *arguments: Any, **options: Any) -> None:
        placed = {name: options.pop(name) for name in ("share", "device") if name in options}
        held = int(np.count_nonzero(np.diff(rows.offsets)))
        self._begin(len(rows.targets), held, options, 4 if rows.weights is None else 8)
        super().__init__(rows, *arguments, **placed)

    def _load(self, rows: Compressed) -> None:
        self.attributes = Attributes(self, self.options)
        if self.options.get("ids") == "queue":
            self.ids = DeviceQueue(self.device, len(rows.offsets) - 1)
        super()._load(rows)

    @classmethod
    def sizes(cls, rows: RowLengths, item: int, **options: Any) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        width = cls.block_width(rows.arcs, rows.held, options, cls.entry_words(options, item))
        used = rows.total(-(-rows.lengths // width))
        rings = 4 * cls._queued(used) + cls.ring_bytes(rows.vertices, options)
        return cls.block_bytes(rows, item, options), cls._bytes_of_rows(rows.vertices) + rings

    @classmethod
    def _bytes_of_rows(cls, vertices: int) -> int:
        """Bytes of what finds the rows, of their order, of their arcs, and of free records."""
        held = cls.records(vertices)
        return (ROW_BYTES + 4 * (cls.policy != DENSE)) * held + VERTEX_BYTES * (held - vertices)

    @classmethod
    def _queued(cls, blocks: int) -> int:
        """Return the places of a queue for so many blocks: none where rows keep theirs."""
        return 1 if cls.policy != DENSE else 1 << max(blocks - 1, 0).bit_length()

    @property
    def held_blocks(self) -> int:
        """Blocks up to the end of the pool."""
        return self.frontier // self.words

    @property
    def row_bytes(self) -> int:
        """Bytes of what finds the rows, and of the queue."""
        rings = sum(int(queue.ring.nbytes) for queue in (self.queue, self.ids) if queue)
        return self._bytes_of_rows(self.n_rows) + rings

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.alive)

    @property
    def live_bytes(self) -> int:
        """Bytes of the arcs themselves."""
        return self.entry * super().live_bytes

    def reserve(self, changes: DeviceChanges) -> RebuiltOnDevice | None:
        """Have as many blocks, free or at the end of the pool, as rows may take."""
        counts, batch = changes.counts, changes.batch
        if batch is None:
            return None
        if self.weights is not None and counts["heaviest"] >= NARROW:
            self._widen(batch)
        state, width = self.queue.state(), self.width
        held, counted = self.held_blocks, self._count_blocks(changes)
        counts["taken"] = counted["taken"]
        if int(state["cut"]) == 0:  # the first edges decide how wide blocks are
            self.width = self.block_width(
                counts["gained"], counted["given"], self.options, self.entry
            )
            held = self.held_blocks if "reserve" in self.options else held
            counts["taken"] = self._count_blocks(changes)["taken"] - counted["taken"]
        used = int(state["cut"]) + max(0, counts["taken"] - int(state["count"]))
        held = self._held_for(held, used) if counts["taken"] else held
        try:
            self._have(used, held)
        except BaseException:
            self.width = width
            raise
        self.frontier = held * self.words
        return None

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs, if the records that are held for them fit the budget."""
        n = self.n_rows
        more = self._bytes_of_rows(n + count) - self._bytes_of_rows(n)
        afford(self.budget, self.held_bytes, self.row_bytes + more)
        if self.ids is not None:
            self.ids.reserve(n + count)
        super().add_vertices(count)

    def find_there(self, u: Any, v: Any) -> Any:
        """Return the weight of each edge; by `query=entries` a thread looks at each entry."""
        if self.options.get("query") != "entries":
            return super().find_there(u, v)
        xp, lengths = self.xp, self.spans[1::2] - self.spans[0::2]
        swap, loop = lengths[v] < lengths[u], u == v  # the shorter row, as by a thread per pair
        u, v = xp.where(swap, v, u), xp.where(swap, u, v)
        found = xp.where(loop, self.loops[u], 0).astype(np.int64)
        firsts, places, owners = self._listed(u, xp.where(loop, 0, lengths[u]))
        if blocks := len(places):
            self.device.launch(
                "linked", "find_listed", self.types, blocks * self.width, np.int64(blocks), u, v,
                firsts, self.spans, np.int64(self.linked), places, owners, self.targets,
                self.weights, found,
            )  # fmt: skip
        return found

    def commit(self, changes: DeviceChanges, reserved: RebuiltOnDevice | None) -> None:
        """Merge the changes into the touched rows; fill `changes`."""
        if changes.batch is None:
            return
        with self.attributes.moving(self.touched(changes)):
            super().commit(changes, reserved)

    def compact(self) -> None:
        """Fill the blocks anew in the order of the vertices, without gaps or free blocks."""
        with self.attributes.moving(self.xp.arange(self.n_rows, dtype=np.uint32)):
            super().compact()

    def placed(self, rows: Any) -> tuple[Any, Any]:
        """Return the arcs of some rows as ascending keys, and their places."""
        return self._gathered(rows, places=True)[1:]

    def walked(self) -> tuple[Any, Any, Any, Any, int]:
        """Return begins, ends, targets, weights and linking of ascending rows where they lie."""
        self._sort()
        begins = self.xp.ascontiguousarray(self.spans[0::2])
        return begins, begins + self._lengths(), self.targets, self.weights, self.linked

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""
        return ends_of(self.device.get(self._gathered(self.xp.asarray(ids))[1]))

    def mentions(self, ids: U32) -> Any:
        """Return the arcs to some vertices as keys in host memory: a warp looks at each row."""
        vertices, keys = self.xp.asarray(ids), self.xp.empty(0, np.uint64)
        for _ in range(2):  # which counts them first
            found = self.xp.zeros(1, np.uint64)
            self.device.launch(
                "linked", "find_mentions", "", 32 * self.n_rows, np.int64(self.n_rows), self.spans,
                np.int64(self.linked), self.targets, np.int64(len(ids)), vertices,
                np.int64(len(keys)), keys, found,
            )  # fmt: skip
            if len(keys) == int(found[0]):
                break
            keys = self.xp.empty(int(found[0]), np.uint64)
        return self.device.get(keys)

    def contiguous_rows(self) -> tuple[Any, Any, Any, Any]:
        """Return begins, ends, targets and weights of a compressed copy on the device."""
        offsets, targets, weights = self.device_rows()
        return offsets[:-1], offsets[1:], targets, weights

    def check(self) -> None:
        """Raise AssertionError unless rows are whole, and every block is in one place."""
        get, xp, ids = self.device.get, self.xp, self.xp.arange(self.n_rows, dtype=np.uint32)
        lengths, live = self.spans[1::2] - self.spans[0::2], get(self._lengths())
        assert int(live.sum()) == self.n_arcs, "the rows do not add up to the arcs"
        cut, free = int(self.queue.state()["cut"]), get(self.queue.free())
        assert cut <= self.held_blocks, "rows have more blocks than there are"
        firsts, places, owners = self._listed(ids, lengths)
        number = xp.arange(len(places)) - firsts[owners]
        left = (lengths[owners] - number * self.width)[:, None]
        entries = xp.arange(self.width)
        filled = self.targets[places[:, None] + entries * self.step] != NONE
        arcs = get((filled & (entries < left)).sum(axis=1))
        found = np.bincount(get(owners), arcs, self.n_rows)
        assert np.array_equal(found, live), "a row has another number of arcs"
        if not self.tree:
            last = get(self.targets[places[firsts[1:][lengths > 0] - 1] + self.link])
            assert (last == NONE).all(), "a chain does not end"
        blocks = np.sort(np.concatenate([get(places) // self.words, free.astype(np.int64)]))
        assert np.array_equal(blocks, np.arange(cut)), "blocks are lost, or in two rows"
        queued = get(self.queue.ring)
        assert (queued != NONE).sum() == len(free), "the queue has a number too many"

    def _listed(self, rows: Any, lengths: Any) -> tuple[Any, Any, Any]:
        """Return where the blocks of some rows begin in a list, the list, and whose each is."""
        firsts = self._prefix(-(-lengths // self.width))
        blocks = int(firsts[-1])
        places, owners = self.xp.empty(blocks, np.int64), self.xp.empty(blocks, np.uint32)
        if blocks:
            self.device.launch(
                "linked", "list_rows", "", len(rows), np.int64(len(rows)), rows, firsts,
                self.spans, np.int64(self.linked), self.targets, places, owners,
            )  # fmt: skip
        return firsts, places, owners

    def _begun(self, used: int) -> int:
        """Return the blocks to hold with so many in use; of a new store, those of `reserve`."""
        least, share = self.blocks_begun(used, self.options), int(self.options.get("reserve", 0))
        if share == 0 or self.pool is not None:
            return least
        free = self.device.free_bytes() if self.budget is None else self.budget - self.row_bytes
        return max(least, share * free // 100 // self._bytes(self.words))

    def _held_for(self, held: int, used: int) -> int:
        """Return the blocks to hold with so many in use."""
        return held_for(held, used) if self.blocks_begun(0, self.options) else max(held, used)

    def _have(self, used: int, held: int) -> None:
        """Have room for so many blocks, and for numbers of those that are freed."""
        queued = self._queued(used)
        ring = 4 * queued * (queued > len(self.queue.ring))  # in addition to the one in use
        self._grow_pool(held * self.words, -(-ring // self._bytes(1)))
        self.queue.reserve(queued)

    def _count_blocks(self, changes: DeviceChanges) -> dict[str, int]:
        """Add the blocks that rows need to `taken`, and the rows that get longer to `given`."""
        rows = changes.counts["rows"]
        self.device.launch(
            "linked", "count_blocks", self.types, 32 * rows, changes.batch, np.int64(self.linked),
            np.int64(rows), np.int64(LANES[self.options.get("update")] > 0),
        )  # fmt: skip
        return self.read_counts()

    def _merge(self, changes: DeviceChanges) -> None:
        """Edit the touched rows: a warp each, or update by update."""
        rows, held = changes.counts["rows"], self.held_blocks
        batch: Any = changes.batch
        lanes = LANES[self.options.get("update")]
        if lanes:
            self._edit("edit_arcs", 2 * lanes * batch.value("listed"), batch, lanes)
            held = 0  # as many as rows took
        else:
            lanes = 1 if self.options.get("worker") == "thread" else 32
            self._edit("edit_linked", lanes * rows, batch, lanes, rows)
        self.n_arcs += changes.counts["gained"]
        self.frontier = self._held_for(held, int(self.queue.state()["cut"])) * self.words
        if self.options.get("order") == "sorted":
            self._sort()

    def _edit(self, kernel: str, items: int, batch: Any, *how: int) -> None:
        """Launch a kernel that carries a batch out, or a part of it."""
        self.device.launch(
            "linked", kernel, self.types, items, batch, np.int64(self.linked),
            *self.queue.supply(), *map(np.int64, how), self.targets, self.weights, self.spans,
            self.ascending,
        )  # fmt: skip

    def _sort(self) -> None:
        """Sort the rows that batches changed where they lie, gaps last."""
        ids = self.xp.flatnonzero(self.ascending == 0).astype(np.uint32)
        if not len(ids):
            return
        with self.attributes.moving(ids):
            offsets, keys, weights = self._gathered(ids)
            self.device.launch(
                "linked", "order_linked", self.types, 32 * len(ids), np.int64(len(ids)), ids,
                offsets, self.spans, np.int64(self.linked), keys, weights, self.targets,
                self.weights,
            )  # fmt: skip
        self.ascending[ids] = 1

    def _lengths(self) -> Any:
        """Return the arcs of all rows, int64[n]."""
        if self.live is not None:
            return self.live.astype(np.int64)
        return self.spans[1::2] - self.spans[0::2]

    def _rebuilt(
        self, changes: DeviceChanges | None, *, compressed: bool = False, aside: bool = False
    ) -> RebuiltOnDevice:
        """Return the store as it is in new blocks, in the order of the vertices; or compressed."""
        if self.pool is None:  # as it was given
            offsets = self.xp.zeros(len(self.spans) // 2 + 1, np.int64)
            offsets[1:] = self.spans[1::2]
            targets, weights = self.targets, self.weights
        else:
            offsets, keys, weights = self._gathered(None)
            targets = keys.astype(np.uint32)
        if compressed:
            return RebuiltOnDevice(
                targets=targets, weights=weights, frontier=len(targets), offsets=offsets
            )
        xp, n = self.xp, len(offsets) - 1
        firsts = self._prefix(-(-(offsets[1:] - offsets[:-1]) // self.width))
        places = self._begun(int(firsts[-1])) * self.words
        self._afford(places + (self.frontier if self.pool else 0), self.weights)
        pool = self._new_pool(places, None if weights is None else weights.dtype)
        new_targets, new_weights = self._arrays(pool)
        spans, live = (
            xp.empty(2 * n, np.int64),
            xp.empty(n, np.uint32) if self.policy != DENSE else None,
        )
        if n:
            self.device.launch(
                "linked", "fill_linked", self.types, 32 * n, np.int64(n), offsets, targets,
                weights, firsts, np.int64(self.linked), new_targets, new_weights, spans, live,
            )  # fmt: skip
        return RebuiltOnDevice(
            targets=new_targets, weights=new_weights, frontier=places, pool=pool, spans=spans,
            live=live,
        )  # fmt: skip

    def _gathered(self, ids: Any, *, places: bool = False) -> tuple[Any, Any, Any]:
        """Return offsets, ascending keys, and weights, or places, of some rows, or of all."""
        xp, lengths = self.xp, self._lengths()
        offsets = self._prefix(lengths if ids is None else lengths[ids])
        count, keys = len(offsets) - 1, xp.empty(int(offsets[-1]), np.uint64)
        at = xp.empty(len(keys), np.int64) if places else None
        none = places or self.weights is None
        weights = None if none else xp.empty(len(keys), self.weights.dtype)
        if count:
            self.device.launch(
                "linked", "gather_linked", self.types, 32 * count, np.int64(count), ids,
                offsets, self.spans, np.int64(self.linked), self.targets, self.weights, keys,
                weights, at,
            )  # fmt: skip
        values = at if places else weights
        if values is None:
            keys.sort()
            return offsets, keys, None
        order = xp.argsort(keys)
        return offsets, keys[order], values[order]

    def _take(self, built: RebuiltOnDevice, gained: int) -> None:
        """Replace the store's arrays; no block is in the queue then."""
        arcs = built.spans[1::2] - built.spans[0::2] if built.live is None else built.live
        used = int((-(-arcs.astype(np.int64) // self.width)).sum())
        ascending = self.xp.ones(len(arcs), np.uint8)  # for these memory may lack
        self.queue = DeviceQueue(self.device, self._queued(used), used)
        super()._take(built, gained)
        self.ascending = ascending
        super().add_vertices(0)

    def _bytes(self, arcs: int, weights: Any = None) -> int:
        return arcs * self.word_bytes(super()._bytes(1, weights), self.entry)

    def _new_pool(self, places: int, weights: Any, here: int | None = None) -> Pool:
        """Return another pool; weights of 32 bits have no array of their own if in blocks."""
        inside = self.entry > 1 and weights is not None and np.dtype(weights).itemsize == 4
        return super()._new_pool(places, None if inside else weights, here)

    def _arrays(self, pool: Pool) -> tuple[Any, Any]:
        """Return targets and weights of a pool."""
        targets, weights = super()._arrays(pool)
        inside = self.weights is not None and weights is None
        return targets, targets[self.word(1) :] if inside else weights


STORES: Final = {
    kind.name: type(f"Device{kind.__name__}", (kind, DeviceLinked), {"__doc__": kind.__doc__})
    for kind in KINDS
}
"""The stores by name."""
