"""What a changing graph holds, and how it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core import parallel
from louvain_um.cpu.dynamic import net
from louvain_um.dynamic.batches.batch import Limits, read_ids, whole_number
from louvain_um.dynamic.batches.changes import weights_before
from louvain_um.dynamic.batches.names import Names
from louvain_um.dynamic.growing import Growing
from louvain_um.dynamic.memory import VERTEX_BYTES, GraphBudget, StoreMemory
from louvain_um.dynamic.stores.contiguous import given
from louvain_um.dynamic.stores.store import Rows, Store
from louvain_um.errors import GraphError
from louvain_um.events import announcing
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import RowView


class Contents:
    """A changing graph as it is now: `DynamicGraph` without what changes it."""

    scale: float
    """Power of two by which real weights were multiplied; divide by it to show them."""

    total_weight: int
    """Sum of all degrees, 2m, as an integer (real weights times `scale`)."""

    epoch: int
    """Batches applied so far."""

    origin: str
    """Tells the graph, and copies of it, from others."""

    threads: int
    _store: Store
    _weighted: bool
    _loops: Growing[np.int64]
    _degrees: Growing[np.int64]
    _alive: Growing[np.uint8]
    _dead: int
    _names: Names | None
    _budget: GraphBudget

    @property
    def store(self) -> str:
        """Name of the store."""
        return self._store.name

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated and removed ones included."""
        return len(self._alive.items)

    @property
    def n_arcs(self) -> int:
        """Number of arcs: twice the edges that are not loops."""
        return self._store.n_arcs

    @property
    def n_edges(self) -> int:
        """Number of distinct edges, loops included."""
        return self.n_arcs // 2 + int(np.count_nonzero(self._loops_here()))

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return self._weighted

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Weighted degree of each vertex, int64[n]; a loop counts twice. A copy."""
        return self._weighted_degrees().copy()

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which vertices were not removed, bool[n]. A copy."""
        return self._alive.items.astype(np.bool_)

    @property
    def names(self) -> NDArray[Any] | None:
        """Name of each vertex, None for removed ones; None in a graph whose vertices have none."""
        return None if self._names is None else self._names.array()

    @property
    def memory(self) -> StoreMemory:
        """Bytes of the graph."""
        store = self._store
        return StoreMemory(
            live_bytes=store.live_bytes,
            held_bytes=store.held_bytes,
            row_bytes=store.row_bytes,
            vertex_bytes=VERTEX_BYTES * self.n_vertices,
            moved_bytes=store.moved_bytes,
            bytes_per_arc=store.held_bytes / store.n_arcs if store.n_arcs else 0.0,
            host_bytes=0 if self._device is None else self._device.host_bytes,
        )

    def has_edges(self, u: ArrayLike, v: ArrayLike) -> NDArray[np.bool_]:
        """Return which edges are in the graph, bool[b]."""
        return self.weights_of(u, v) > 0

    def weights_of(self, u: ArrayLike, v: ArrayLike) -> NDArray[np.int64]:
        """Return the integer weight of each edge, int64[b]: 0 where there is none."""
        limits = replace(self._host_limits, alive=None)
        if self._names:
            u, v = self._names.ids_of(u, "u"), self._names.ids_of(v, "v")
        a, b = read_ids(u, "u", limits), read_ids(v, "v", limits)
        if len(a) != len(b):
            raise GraphError(f"u has {len(a)} entries and v {len(b)}; they must match")
        with announcing("query"), self._telling():
            return self._weights_of(a, b)

    def neighbours(self, v: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the neighbours of a vertex and the integer weights of its edges."""
        if self._names:
            ids = self._names.ids_of([v], "neighbours").astype(np.uint32)
        else:
            try:
                ids = read_ids([whole_number(v)], "neighbours", self._host_limits)
            except TypeError:
                raise GraphError(f"neighbours takes the id of one vertex, not {v!r}") from None
        with announcing("query"), self._telling():
            loop = ids[self._weights_of(ids, ids) > 0]
            found = np.sort(np.concatenate([self._store.arcs_of(ids)[1], loop]))
            weights = self._weights_of(np.repeat(ids, len(found)), found)
        return (self._names.at(found) if self._names else found), weights

    def to_networkx(self, attributes: Mapping[str, NDArray[Any]] | None = None) -> Any:
        """Return the graph as a `networkx.Graph`, without removed vertices."""
        found = self.host_snapshot().to_networkx(attributes)
        if self._names is None:
            found.remove_nodes_from(np.flatnonzero(self._alive.items == 0).tolist())
        return found

    def view(self) -> RowView:
        """Return the rows for engines and algorithms: where they lie, or as a compressed copy."""
        rows = self._rows()
        return RowView(
            begins=rows.begins,
            ends=rows.ends,
            targets=rows.targets,
            weights=rows.weights,
            loops=self._loops_here(),
            degrees=self._weighted_degrees(),
            n_arcs=self.n_arcs,
            total_weight=self.total_weight,
            scale=self.scale,
            names=self.names,
        )

    def device_view(self) -> Any:
        """Return the rows where they lie in a device's memory, for its algorithms."""
        store = self._device
        if store is None:
            return None
        from louvain_um.gpu.algorithms.launch import DeviceRows

        loops = store.loops if bool(store.loops.any()) else None
        begins, ends, targets, weights = store.contiguous_rows()
        return DeviceRows(
            begins=begins,
            ends=ends,
            targets=targets,
            weights=weights,
            loops=loops,
            n_arcs=self.n_arcs,
            total_weight=self.total_weight,
        )

    def snapshot(self) -> Any:
        """Return the graph as it is now, in arrays of its own; removed vertices are isolated."""
        store = self._device
        if store is None or store.host_bytes:
            return self.host_snapshot()
        from louvain_um.gpu.graph import DeviceGraph

        offsets, targets, weights = store.device_rows()
        loops = store.loops.copy() if bool(store.loops.any()) else None
        return DeviceGraph(offsets, targets, weights, loops, self.scale)

    def host_snapshot(self) -> Graph:
        """Return the graph as it is now in host memory, wherever it is."""
        rows = self._store.compressed()
        return Graph(
            rows.offsets,
            rows.targets,
            rows.weights,
            self._loops_here().copy(),
            self.scale,
            self.names,
            check=False,
        )

    def digest(self) -> str:
        """Return a hash of vertices, edges and weights, 32 hexadecimal digits."""
        rows = self._rows()
        threads = self.threads if self.n_arcs > 1 << 15 else 1
        sums = np.zeros((threads, 2), np.uint64)
        parallel.run(
            net.digest, threads, rows.begins, rows.ends, rows.targets, given(rows.weights),
            self._loops_here(), self._alive.items, sums,
        )  # fmt: skip
        first, second = (int(total) for total in sums.sum(axis=0, dtype=np.uint64))
        text = f"{self.n_vertices} {self.weighted} {self.scale.hex()} {first} {second}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def check(self) -> None:
        """Raise AssertionError unless store, degrees and totals agree; takes passes over all."""
        self._store.check()
        graph = self.host_snapshot()
        graph.validate()
        assert np.array_equal(graph.degrees, self._weighted_degrees()), "degrees do not add up"
        assert graph.total_weight == self.total_weight, "the total weight does not add up"
        assert graph.n_arcs == self.n_arcs, "the arcs do not add up"
        assert not graph.degrees[self._alive.items == 0].any(), "a removed vertex has edges"

    def __repr__(self) -> str:
        kind = "weighted" if self.weighted else "unweighted"
        return (
            f"DynamicGraph({self.n_vertices:,} vertices, {self.n_edges:,} edges, {kind}, store "
            f"{self.store!r}, epoch {self.epoch:,})"
        )

    @property
    def dead_count(self) -> int:
        """Number of vertices that were removed and not revived."""
        return self._dead

    @property
    def device_store(self) -> Any:
        """The store if it is on a device, else None."""
        return self._device

    @property
    def device_budget(self) -> int | None:
        """Bytes that the graph may hold; None if there is no limit."""
        return self._budget.nbytes

    @property
    def _device(self) -> Any:
        """Return the store if it is on a device."""
        return self._store if hasattr(self._store, "device_rows") else None

    def _telling(self) -> AbstractContextManager[None]:
        """Turn failures of a device within a block into errors of this package."""
        there = self._device
        return nullcontext() if there is None else there.device.errors()

    def _weighted_degrees(self) -> NDArray[np.int64]:
        """Return degrees, in host memory."""
        return self._degrees.items if self._device is None else self._device.degrees_here()

    def _loops_here(self) -> NDArray[np.int64]:
        """Return loops, in host memory."""
        return self._loops.items if self._device is None else self._device.loops_here()

    def _weights_of(self, u: NDArray[np.uint32], v: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the weight of each edge; 0 where there is none."""
        if self._device is not None:
            return self._store.find(u, v)
        return weights_before(self._store, self._loops.items, u, v)

    @property
    def _limits(self) -> Limits:
        return Limits(
            n_vertices=self.n_vertices,
            alive=self._alive.items if self._dead else None,
            weighted=self.weighted,
            scale=self.scale,
            xp=np if self._device is None else self._device.xp,
        )

    @property
    def _host_limits(self) -> Limits:
        return replace(self._limits, xp=np)

    def _rows(self) -> Rows:
        """Return the rows where they lie, or a compressed copy."""
        rows = self._store.rows()
        if rows is not None:
            return rows
        copy = self._store.compressed()
        return Rows(
            begins=copy.offsets[:-1],
            ends=copy.offsets[1:],
            targets=copy.targets,
            weights=copy.weights,
        )
