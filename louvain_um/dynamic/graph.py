"""An undirected graph that changes in batches of edges."""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core import parallel
from louvain_um.cpu.dynamic import net
from louvain_um.dynamic.batch import Limits, read_batch, read_ids
from louvain_um.dynamic.change import Change
from louvain_um.dynamic.changes import EdgeChanges, arc_changes, net_changes, weights_before
from louvain_um.dynamic.growing import Growing
from louvain_um.dynamic.stores import store_class
from louvain_um.dynamic.stores.contiguous import given
from louvain_um.dynamic.stores.store import Compressed, Rows
from louvain_um.errors import DeviceUnavailableError, GraphError, MemoryBudgetError, OptionError
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT, MAX_VERTICES, Duplicates
from louvain_um.graph.row_view import RowView
from louvain_um.options import Budget, Options

VERTEX_BYTES = 17
"""Bytes of a vertex's loop, degree, and whether it is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMemory:
    """Bytes of a changing graph.

    Parameters
    ----------
    live_bytes : int
        Targets and weights of the arcs.
    held_bytes : int
        Places that arcs occupy or left: live ones, room in pages, free pages.
    row_bytes, vertex_bytes : int
        What finds the rows; loops, degrees and which vertices are alive.
    moved_bytes : int
        Bytes of rows that batches copied from one place to another so far.
    bytes_per_arc : float
        `held_bytes` over the number of arcs; 0 without arcs.
    """

    live_bytes: int
    held_bytes: int
    row_bytes: int
    vertex_bytes: int
    moved_bytes: int
    bytes_per_arc: float

    @property
    def total_bytes(self) -> int:
        """Bytes held in all."""
        return self.held_bytes + self.row_bytes + self.vertex_bytes


class DynamicGraph:
    """An undirected graph that changes in batches of edges.

    Rows stay ascending, so that `louvain`, `leiden` and the algorithms read them where they lie
    and give what they give for `snapshot()`. What a graph holds depends on its batches alone:
    neither on the order of edges in a batch, nor on the store, the threads or the device.

    Parameters
    ----------
    graph_or_n : Graph, int or anything `as_graph` takes
        The graph to begin with, or a number of vertices without edges.
    weighted : bool, optional
        Whether edges have weights; by default if the given graph has.
    scale : float, optional
        Real weights are multiplied by it and rounded; a power of two. By default that of the
        given graph, or 1. It is fixed, whatever the total weight becomes.
    store : {"rows", "csr"}
        How arcs are kept: `louvain_um.dynamic.stores.STORES` says what each is. "rows" suits
        everything; the others are for comparison.
    device : {"auto", "cpu"}
        Where the graph is.
    memory : str
        Memory policy of the arrays on a device.
    device_budget : int or str, optional
        Bytes that the graph may hold, such as "8GiB". A batch that needs more is refused before
        anything is changed.
    threads : int, optional
        Threads; all cores by default.

    Raises
    ------
    GraphError
        The given graph is none, or its weights do not fit `weighted` and `scale`.
    OptionError
        No such store, or a budget that is no number of bytes.
    MemoryBudgetError
        The graph does not fit into the budget.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.DynamicGraph(5)
    >>> g.apply(insert=([0, 1, 2, 3], [1, 2, 0, 4]))
    Change(epoch 1: 4 edges inserted)
    >>> g.has_edges([0, 3], [2, 0]).tolist()
    [True, False]
    >>> lu.louvain(g, device="cpu").labels.tolist()
    [0, 0, 0, 1, 1]
    >>> g.apply(delete=([0, 0], [1, 4]))
    Change(epoch 2: 1 edges deleted, 1 edges missing)
    """

    def __init__(
        self,
        graph_or_n: Any = 0,
        weighted: bool | None = None,
        scale: float | None = None,
        store: str = "rows",
        device: str = "auto",
        memory: str = "auto",
        device_budget: int | str | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        chosen = store_class(store)
        Options(device=device, memory=memory, threads=threads)  # refuses what is none
        if device.startswith("cuda"):
            raise DeviceUnavailableError(
                "changing graphs are kept in host memory so far; use device='cpu' or 'auto'"
            )
        budget = Budget.parse(device_budget)
        if budget.fraction is not None:
            raise OptionError("device_budget", device_budget, "must be a size, like '8GiB'")
        self.threads = threads or parallel.default_threads()
        graph = _graph_of(graph_or_n)
        weights = _weights_of(graph, weighted, scale)
        self.scale = float(scale if scale is not None else graph.scale)
        _refuse_scale(self.scale)
        self._budget = budget.nbytes
        self._weighted = weights is not None
        rows = Compressed(offsets=graph.offsets, targets=graph.targets, weights=weights)
        factor = int(self.scale / graph.scale)
        self._loops = Growing(graph.loops * factor)
        self._degrees = Growing(graph.degrees * factor)
        self._alive = Growing(np.ones(graph.n_vertices, np.uint8))
        self._dead = 0
        self.total_weight = graph.total_weight * factor
        """Sum of all degrees, 2m, as an integer (real weights times `scale`)."""
        self.epoch = 0
        """Batches applied so far."""
        self._refuse_total(self.total_weight)
        self._store = chosen(rows, self.threads, self._budget_of_arcs(graph.n_vertices))

    @property
    def store(self) -> str:
        """Name of the store."""
        return self._store.name

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated and removed ones included."""
        return len(self._loops.items)

    @property
    def n_arcs(self) -> int:
        """Number of arcs: twice the edges that are not loops."""
        return self._store.n_arcs

    @property
    def n_edges(self) -> int:
        """Number of distinct edges, loops included."""
        return self.n_arcs // 2 + int(np.count_nonzero(self._loops.items))

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return self._weighted

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Weighted degree of each vertex, int64[n]; a loop counts twice. A copy."""
        return self._degrees.items.copy()

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which vertices were not removed, bool[n]. A copy."""
        return self._alive.items.astype(np.bool_)

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
        )

    def apply(
        self,
        insert: Any = None,
        delete: Any = None,
        decrease: Any = None,
        *,
        duplicates: Duplicates | None = None,
        missing: Literal["count", "raise"] = "count",
    ) -> Change:
        """Apply a batch: deletions, then decreases, then insertions. All of it, or nothing.

        Parameters
        ----------
        insert : (u, v) or (u, v, w), optional
            Edges to insert: arrays of int of length b, NumPy's or CuPy's; order and direction do
            not matter. `w` is one array of integers, or of floats, which are multiplied by
            `scale`; without it each weighs 1. ``u == v`` is a loop.
        delete : (u, v), optional
            Edges to delete, whatever they weigh.
        decrease : (u, v, w), optional
            Weights to subtract; an edge of which nothing is left is deleted. An edge that the same
            batch deletes is not decreased.
        duplicates : {"once", "sum"}, optional
            What insertions of one edge count for, its weight before the batch included: the
            largest weight, or the sum. By default "once" in an unweighted graph, where an edge
            that is there already changes nothing, and "sum" in a weighted one.
        missing : {"count", "raise"}
            Whether edges to delete or decrease that are not there are counted or refused.

        Returns
        -------
        Change
            The edges that are now otherwise than before.

        Raises
        ------
        GraphError
            Vertices out of range or removed; arrays of unequal length or of the wrong type;
            weights negative, NaN, infinite or not representable; more subtracted than is there.
        MemoryBudgetError
            The graph would not fit into the budget. As with every error, nothing has changed.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.DynamicGraph(3, weighted=True)
        >>> _ = g.apply(insert=([0, 1, 0], [1, 0, 2], [2, 3, 1]))
        >>> g.weights_of([0, 0], [1, 2]).tolist()
        [5, 1]
        >>> g.apply(decrease=([0, 0], [1, 2], [1, 1]))
        Change(epoch 2: 1 edges deleted, 1 edges changed)
        """
        if missing not in ("count", "raise"):
            raise GraphError(f"missing must be 'count' or 'raise', not {missing!r}")
        batch = read_batch(insert, delete, decrease, duplicates, self._limits)
        edges = net_changes(
            batch, self._store, self._loops.items, refuse_missing=missing == "raise"
        )
        self._carry_out(edges)
        return self._change(edges)

    def add_vertices(self, k: int, *, reuse: bool = False) -> range | NDArray[np.uint32]:
        """Add vertices without edges; return their ids.

        Parameters
        ----------
        k : int
        reuse : bool
            Whether ids of removed vertices are used again, lowest first; the result is then an
            array, uint32[k], ascending.

        Examples
        --------
        >>> import louvain_um as lu
        >>> lu.DynamicGraph(3).add_vertices(2)
        range(3, 5)
        """
        k = operator.index(k)
        if k < 0:
            raise GraphError(f"the number of vertices to add must be at least 0, not {k}")
        again = np.flatnonzero(self._alive.items == 0)[: k if reuse else 0].astype(np.uint32)
        first, fresh = self.n_vertices, k - len(again)
        if first + fresh > MAX_VERTICES:
            raise GraphError(
                f"{first + fresh} vertices; at most {MAX_VERTICES} are supported; use reuse=True"
            )
        self._afford_vertices(first + fresh)
        for array in (self._loops, self._degrees):
            array.reserve(fresh)
        self._alive.reserve(fresh)
        self._store.add_vertices(fresh)
        self._loops.extend(fresh, 0)
        self._degrees.extend(fresh, 0)
        self._alive.extend(fresh, 1)
        self._alive.items[again] = 1
        self._dead -= len(again)
        if not reuse:
            return range(first, first + fresh)
        return np.concatenate([again, np.arange(first, first + fresh, dtype=np.uint32)])

    def remove_vertices(self, ids: ArrayLike) -> Change:
        """Delete all edges of some vertices, loops included, and remove these.

        The other vertices keep their ids. A removed vertex stays in labels as an isolated one.

        Parameters
        ----------
        ids : array of int
            Repetitions count once.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2], [1, 2, 0]))
        >>> g.remove_vertices([1])
        Change(epoch 1: 2 edges deleted, 1 vertices removed)
        """
        gone = np.unique(read_ids(ids, "remove_vertices: ids", self._limits)).astype(np.uint32)
        u, v = self._store.arcs_of(gone)
        loops = gone[self._loops.items[gone] > 0]
        delete = (np.concatenate([u, loops]), np.concatenate([v, loops]))
        batch = read_batch(None, delete, None, None, self._limits)
        edges = net_changes(batch, self._store, self._loops.items, refuse_missing=False)
        self._carry_out(edges)
        self._alive.items[gone] = 0
        self._dead += len(gone)
        return self._change(edges, gone)

    def has_edges(self, u: ArrayLike, v: ArrayLike) -> NDArray[np.bool_]:
        """Return which edges are in the graph, bool[b].

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.DynamicGraph(lu.Graph.from_edges([0, 1], [1, 2]))
        >>> g.has_edges([1, 0], [0, 2]).tolist()
        [True, False]
        """
        return self.weights_of(u, v) > 0

    def weights_of(self, u: ArrayLike, v: ArrayLike) -> NDArray[np.int64]:
        """Return the integer weight of each edge, int64[b]: 0 where there is none.

        In an unweighted graph every weight is 1. Divide by `scale` for real weights.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.DynamicGraph(lu.Graph.from_edges([0, 1], [1, 1], [4, 3]))
        >>> g.weights_of([1, 1, 0], [0, 1, 0]).tolist()
        [4, 3, 0]
        """
        limits = Limits(
            n_vertices=self.n_vertices, alive=None, weighted=self.weighted, scale=self.scale
        )
        a, b = read_ids(u, "u", limits), read_ids(v, "v", limits)
        if len(a) != len(b):
            raise GraphError(f"u has {len(a)} entries and v {len(b)}; they must match")
        return weights_before(self._store, self._loops.items, a, b)

    def view(self) -> RowView:
        """Return the rows for engines and algorithms: where they lie, or as a compressed copy.

        The stores "rows" and "csr" copy nothing; their view is valid until the next batch.
        """
        rows = self._rows()
        return RowView(
            begins=rows.begins,
            ends=rows.ends,
            targets=rows.targets,
            weights=rows.weights,
            loops=self._loops.items,
            degrees=self._degrees.items,
            n_arcs=self.n_arcs,
            total_weight=self.total_weight,
        )

    def snapshot(self) -> Graph:
        """Return the graph as it is now, in arrays of its own; removed vertices are isolated."""
        rows = self._store.compressed()
        return Graph(
            rows.offsets,
            rows.targets,
            rows.weights,
            self._loops.items.copy(),
            self.scale,
            check=False,
        )

    def digest(self) -> str:
        """Return a hash of vertices, edges and weights, 32 hexadecimal digits.

        Equal for equal contents, in every store, after whatever batches.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.Graph.from_edges([0, 1], [1, 2])
        >>> lu.DynamicGraph(g).digest() == lu.DynamicGraph(g, store="csr").digest()
        True
        """
        rows = self._rows()
        threads = self.threads if self.n_arcs > 1 << 15 else 1
        sums = np.zeros((threads, 2), np.uint64)
        parallel.run(
            net.digest, threads, rows.begins, rows.ends, rows.targets, given(rows.weights),
            self._loops.items, self._alive.items, sums,
        )  # fmt: skip
        first, second = (int(total) for total in sums.sum(axis=0, dtype=np.uint64))
        text = f"{self.n_vertices} {self.weighted} {self.scale.hex()} {first} {second}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def compact(self) -> None:
        """Drop unused places of the store; nothing else changes."""
        self._store.compact()

    def check(self) -> None:
        """Raise AssertionError unless store, degrees and totals agree; takes passes over all."""
        self._store.check()
        graph = self.snapshot()
        graph.validate()
        assert np.array_equal(graph.degrees, self._degrees.items), "degrees do not add up"
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
    def _limits(self) -> Limits:
        return Limits(
            n_vertices=self.n_vertices,
            alive=self._alive.items if self._dead else None,
            weighted=self.weighted,
            scale=self.scale,
        )

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

    def _carry_out(self, edges: EdgeChanges) -> None:
        """Carry out the net changes of a batch; what can fail comes before what is written."""
        gain = 2 * _exact_sum(edges.after - edges.before)
        self._refuse_total(self.total_weight + gain)
        arcs = arc_changes(edges)
        reserved = self._store.reserve(arcs)

        self._store.commit(arcs, reserved)
        net.add_at(self._degrees.items, arcs.rows, arcs.gains)
        if edges.loops:
            same = edges.u == edges.v
            rows = edges.u[same]
            self._loops.items[rows] = edges.after[same]
            self._degrees.items[rows] += 2 * (edges.after - edges.before)[same]
        self.total_weight += gain
        self.epoch += 1

    def _change(self, edges: EdgeChanges, removed: NDArray[np.uint32] | None = None) -> Change:
        return Change(
            epoch=self.epoch,
            u=edges.u,
            v=edges.v,
            before=edges.before,
            after=edges.after,
            missing=edges.missing,
            total_weight=self.total_weight,
            removed=np.zeros(0, np.uint32) if removed is None else removed,
        )

    def _refuse_total(self, total: int) -> None:
        if total >= MAX_TOTAL_WEIGHT:
            raise GraphError(
                f"all weights, twice, would add up to {total:.3g}, above 2^53; use smaller weights"
            )

    def _budget_of_arcs(self, vertices: int) -> int | None:
        """Return what the budget leaves to the store."""
        if self._budget is None:
            return None
        return max(0, self._budget - VERTEX_BYTES * vertices)

    def _afford_vertices(self, vertices: int) -> None:
        """Refuse vertices that do not fit beside what is there; tell the store what it has left."""
        if self._budget is None:
            return
        new = vertices - self.n_vertices
        needed = self.memory.total_bytes + new * (VERTEX_BYTES + 17)
        if needed > self._budget:
            raise MemoryBudgetError(
                needed,
                self._budget,
                [("vertices", vertices * (VERTEX_BYTES + 17))],
                "raise device_budget",
            )
        self._store.budget = self._budget_of_arcs(vertices)


def _graph_of(graph_or_n: Any) -> Graph:
    """Return the graph to begin with."""
    if isinstance(graph_or_n, Graph):
        return graph_or_n
    try:
        n = operator.index(graph_or_n)
    except TypeError:
        from louvain_um.formats.reading import graph_of

        return graph_of(graph_or_n)
    if not 0 <= n <= MAX_VERTICES:
        raise GraphError(f"the number of vertices must lie in 0 … {MAX_VERTICES}, not {n}")
    none = np.zeros(0, np.uint32)
    return Graph(np.zeros(n + 1, np.int64), none, None, np.zeros(n, np.int64), check=False)


def _weights_of(
    graph: Graph, weighted: bool | None, scale: float | None
) -> NDArray[np.uint32] | NDArray[np.int64] | None:
    """Return the weights to begin with, at the scale asked for; None for an unweighted graph."""
    factor = 1.0 if scale is None else scale / graph.scale
    if factor != 1.0:
        _refuse_scale(float(scale or 0))
        if factor < 1:
            raise GraphError(
                f"scale {scale:g} is below the graph's {graph.scale:g}; pass at least that"
            )
    if weighted is False and graph.weighted:
        raise GraphError(
            "the graph has weights; leave out weighted=False, or build it without weights"
        )
    if graph.weights is None:
        if not weighted:
            if factor != 1.0:
                raise GraphError("scale is for real weights; pass weighted=True with it")
            return None
        weights: NDArray[Any] = np.ones(graph.n_arcs, np.uint32)
    else:
        weights = graph.weights
    if factor == 1.0:
        return weights
    heavier = weights.astype(np.int64) * int(factor)
    return heavier.astype(np.uint32) if heavier.max(initial=0) < 2**32 else heavier


def _refuse_scale(scale: float) -> None:
    mantissa, exponent = np.frexp(scale)
    if not (np.isfinite(scale) and mantissa == 0.5 and exponent <= 53):
        raise OptionError("scale", scale, "must be a power of two up to 2^52")


def _exact_sum(values: NDArray[np.int64]) -> int:
    """Return the sum; a float sum first, as an integer one may overflow."""
    rough = float(values.sum(dtype=np.float64))
    return int(values.sum()) if abs(rough) < 2.0**60 else int(rough)
