"""An undirected graph that changes in batches of edges."""

from __future__ import annotations

import copy
import functools
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar
from uuid import uuid4
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core import parallel
from louvain_um.core.interrupts import uninterrupted
from louvain_um.core.numbering import distinct
from louvain_um.cpu.dynamic import net
from louvain_um.cpu.dynamic.contiguous import Rows
from louvain_um.cpu.walk import LinkedBlocks
from louvain_um.dynamic.batches.batch import ANEW, Limits, read_ids, whole_number
from louvain_um.dynamic.batches.changes import NO_VERTICES, Change, EdgeError
from louvain_um.dynamic.batches.names import (
    Names,
    are_names,
    edge_columns,
    graph_of_start,
    weights_at,
)
from louvain_um.dynamic.contents import Contents, HostContents
from louvain_um.dynamic.declared import (
    VERTEX_BYTES,
    GraphBudget,
    StoreMemory,
    refuse_many_arcs,
    refuse_many_vertices,
)
from louvain_um.dynamic.stores import DEVICE_STORES, share_of, store_class
from louvain_um.dynamic.stores.store import ROW_BYTES, Compressed, Growing, Store, given
from louvain_um.errors import GraphError, OptionError, among, check_switch, checks_kinds, shown
from louvain_um.events import announcing
from louvain_um.gpu.runtime.device import device_of
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT, MAX_VERTICES, Duplicates
from louvain_um.graph.row_view import RowView
from louvain_um.options import Budget, Options

if TYPE_CHECKING:
    from louvain_um.dynamic.stores.attributes import Attributes


P = ParamSpec("P")
R = TypeVar("R")


def one_at_a_time(
    method: Callable[Concatenate[DynamicGraph, P], R],
) -> Callable[Concatenate[DynamicGraph, P], R]:
    """Let threads that call such methods of one graph wait for each other."""

    @functools.wraps(method)
    def call(self: DynamicGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **kwargs)

    return call


def changing(
    method: Callable[Concatenate[DynamicGraph, P], R],
) -> Callable[Concatenate[DynamicGraph, P], R]:
    """Let threads wait as `one_at_a_time` does; refuse a call by what reads the rows itself."""

    @functools.wraps(method)
    def call(self: DynamicGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            if self._in_use:
                raise GraphError("the graph is in use by the run that called this; change it later")
            self._leave_to_pickles()
            return method(self, *args, **kwargs)

    return call


def rows_there(graph: Graph) -> Any:
    """Return what the current device holds of a graph, or else the graph."""
    from louvain_um.gpu.graph import there_of

    return there_of(graph) or graph


class Pickled:
    """Lives, as a value among a graph's attributes, as long as what pickles these."""

    def __reduce__(self) -> tuple[type[bool], tuple[()]]:
        return bool, ()


class DynamicGraph:
    """An undirected graph that changes in batches of edges.

    Rows stay ascending, so that `louvain`, `leiden` and the algorithms read them where they lie
    and give what they give for `snapshot()`. What a graph holds depends on its batches alone:
    neither on the order of edges in a batch, nor on the store, the threads or the device.

    Parameters
    ----------
    graph_or_n : Graph, DeviceGraph, int or anything `as_graph` takes
        The graph to begin with, or a number of vertices without edges.
    weighted : bool, optional
        Whether edges have weights; by default if the given graph has.
    scale : float, optional
        Real weights are multiplied by it and rounded; a power of two. By default that of the
        given graph, or 1. It is fixed, whatever the total weight becomes.
    store : {"rows", "csr", …}
        How arcs are kept. "rows" suits everything; the others are for comparison. Options follow
        a name: ``"pages:page=128:order=sorted"``. `louvain_um.dynamic.stores` has all of them.
        With ``"pages:directed=yes"`` an edge is an arc from u to v, for operators and products.
    device : {"auto", "cpu", "cuda", "cuda:N"}
        Where the arcs are; "auto" is the device of the given graph, or else the CPU. Of a graph on
        a device `snapshot` is a `DeviceGraph`, and `louvain` finds its communities there. "bal" is
        edited on the host; a device has a replica, to which algorithms there push changed blocks
        first.
    memory : str
        Memory policy of the arcs on a device: what it says of the group "graph". With "auto" arcs
        past the budget lie on the host, with "zero_copy" all do, with "device" none; those of
        "pages" and "ouro-…" never do.
    device_budget : int or str, optional
        Bytes that the graph may hold, such as "8GiB". A batch that needs more, on the CPU or with
        `memory="device"`, is refused before anything is changed.
    names : bool
        Whether to keep the names of the given graph's vertices. Edges then go by names, and an
        edge of a new name makes a vertex of it. A graph without vertices takes names, too, if its
        first edges have text for ends.
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
    Change(epoch 2: 1 edge deleted, 1 edge missing)
    """

    scale: float
    """Power of two by which real weights were multiplied; divide by it to show them."""

    total_weight: int
    """Sum of all degrees, 2m, as an integer (real weights times `scale`)."""

    epoch: int
    """Batches applied so far."""

    origin: str
    """Distinguishes the graph, and copies of it, from others."""

    _in_use: bool

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
        names: bool = True,
        threads: int | None = None,
    ) -> None:
        Options(device=device, memory=memory, threads=threads)  # refuses what is none
        self._renew_unsaved()
        chosen = store_class(store, device)
        share = share_of(memory)  # refuses anything but a policy, on the CPU, too
        budget = Budget.parse(device_budget)
        if budget.fraction is not None:
            raise OptionError("device_budget", device_budget, "must be a size, like '8GiB'")
        self.threads = threads or parallel.default_threads()
        check_switch("names", names)
        graph = graph_of_start(graph_or_n)
        whole = store.partition(":")[0] in DEVICE_STORES  # on a device, not a replica
        if device == "auto" and whole and device_of(graph, device).startswith("cuda"):
            device = device_of(graph, device)
            chosen = store_class(store, device)
        placed = {"share": share} if device.startswith("cuda") else {}
        shared = placed and whole and scale in (None, graph.scale)
        held = rows_there(graph) if shared else graph
        weights = weights_at(held, weighted, scale)
        self.scale = float(scale if scale is not None else graph.scale)
        self._budget = GraphBudget(budget.nbytes)
        self._weighted = weights is not None
        if not placed:
            refuse_many_arcs(store, graph.offsets, 4 if weights is None else 4 + weights.itemsize)
        offsets, loops = graph.offsets, graph.loops
        rows = Compressed(offsets=offsets, targets=held.targets, weights=weights)
        factor = int(self.scale / graph.scale)
        self._alive = Growing(np.ones(graph.n_vertices, np.uint8))
        self._dead = 0
        named = names and graph.names is not None
        self._names = Names(graph.names.tolist()) if named and graph.names is not None else None
        self._may_have_names = names and graph.n_vertices == 0
        self.total_weight = graph.total_weight * factor
        self.epoch = 0
        self.origin = uuid4().hex
        self._refuse_total(self.total_weight)
        limit = self._budget.of_arcs(graph.n_vertices)
        with self._budget.counting(graph.n_vertices):
            built = chosen(rows, self.threads, limit, **placed)
        self._hold(built, loops * factor, graph.degrees * factor)

    @classmethod
    def restored(
        cls,
        graph: Graph,
        alive: NDArray[np.bool_],
        epoch: int,
        removed: NDArray[np.uint32] | None = None,
        **options: Any,
    ) -> DynamicGraph:
        """Return a graph that was saved: a snapshot, which vertices are alive, and its epoch.

        `removed` are the other vertices in the order in which ``ids=queue`` uses them again, by
        default ascending.

        Raises
        ------
        GraphError
            `alive` or `removed` does not fit the graph, or a removed vertex has edges.
        """
        if not isinstance(graph, Graph):
            raise GraphError(f"graph must be a Graph, as snapshot() gives, not {shown(graph)}")
        if getattr(alive, "dtype", None) != np.bool_ or alive.shape != (graph.n_vertices,):
            raise GraphError(f"alive must be bool[{graph.n_vertices}]")
        if graph.degrees[~alive].any():
            raise GraphError("a removed vertex has edges")
        ascending = np.flatnonzero(~alive).astype(np.uint32)
        removed = ascending if removed is None else removed
        if getattr(removed, "dtype", None) != np.uint32 or not np.array_equal(
            np.sort(removed), ascending
        ):
            raise GraphError("removed must be the vertices that are not alive, as uint32")
        restored = cls(graph, **options)
        restored._mark_alive(removed, 0)
        restored._dead = len(removed)
        restored.epoch = epoch
        return restored

    @changing
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
            `scale`; without it each weighs 1. ``u == v`` is a loop. Also an array of shape
            (b, 2), a list of tuples, a pandas table (columns as in `as_graph`), or a networkx
            graph or its `edges`. In a graph with names the ends are names, and new ones make
            vertices, in sorted order.
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
        Change(epoch 2: 1 edge deleted, 1 edge changed)
        """
        if not among(missing, "count", "raise"):
            raise GraphError(f"missing must be 'count' or 'raise', not {shown(missing)}")
        given = {
            what: edge_columns(what, edges, weighted=self.weighted and what != "delete")
            for what, edges in (("insert", insert), ("delete", delete), ("decrease", decrease))
        }
        return self._applied(given, duplicates, refuse_missing=missing == "raise")

    def _applied(
        self,
        given: dict[str, Any],
        duplicates: Duplicates | None = None,
        *,
        refuse_missing: bool,
        by: str = "",
    ) -> Change:
        """Apply a batch of columns; errors name what was called, or the argument of `apply`."""
        with announcing("update"), self._contents.errors(), self._named(given) as columns:
            limits = replace(self._limits, by=by)
            edges = self._contents.net(columns, duplicates, limits, refuse_missing=refuse_missing)
            self._carry_out(edges)
        return self._change(edges)

    @changing
    def edit_edges(self, u: ArrayLike, v: ArrayLike, w: ArrayLike) -> Change:
        """Replace the weights of edges, which must be there; nothing moves.

        Parameters
        ----------
        u, v : array of int, or of names
            Ends of the edges. If an edge is given twice, its weights add up.
        w : array of number
            Their new weights; 0 deletes an edge.

        Returns
        -------
        Change
            The edges that weigh something else than before.

        Raises
        ------
        GraphError
            An edge that is not there, and what `apply` refuses.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.DynamicGraph(3, weighted=True)
        >>> _ = g.apply(insert=([0, 1], [1, 2], [2, 3]))
        >>> g.edit_edges([0], [1], [9])
        Change(epoch 2: 1 edge changed)
        >>> g.weights_of([0, 1], [1, 2]).tolist()
        [9, 3]
        """
        if not self.weighted:
            raise GraphError(
                "edit_edges sets weights, and the graph has none; make it with "
                "DynamicGraph(…, weighted=True)"
            )
        given = {"insert": (u, v, w), "delete": (u, v), "decrease": None}
        return self._applied(given, refuse_missing=True, by="edit_edges")

    @changing
    def add_vertices(
        self, k: int | Sequence[Any], *, reuse: bool = False
    ) -> range | NDArray[np.uint32]:
        """Add vertices without edges; return their ids.

        Parameters
        ----------
        k : int or list
            How many; in a graph with names, their names.
        reuse : bool
            Whether ids of removed vertices are used again: the lowest first, or, with the store's
            option ``ids=queue``, those that were removed first. The result is then an array,
            uint32[k], ascending.

        Examples
        --------
        >>> import louvain_um as lu
        >>> lu.DynamicGraph(3).add_vertices(2)
        range(3, 5)
        """
        given, fresh_names = k, self._names.fresh(k) if self._names else []
        try:
            k = len(fresh_names) if self._names else whole_number(k)
        except TypeError:
            k = -1
        if k < 0:
            raise GraphError(f"add_vertices takes a whole number of at least 0, not {shown(given)}")
        check_switch("reuse", reuse)
        if reuse and self._names:
            raise GraphError("vertices with names get new ids; leave out reuse=True")
        count = min(k, self._dead) if reuse else 0
        first, fresh = self.n_vertices, k - count
        if first + fresh > MAX_VERTICES:
            raise GraphError(
                f"{first + fresh} vertices; at most {MAX_VERTICES} are supported; use reuse=True"
            )
        self._afford_vertices(first + fresh)
        self._alive.reserve(fresh)
        with self._contents.errors():
            self._contents.add_vertices(fresh)
            try:
                again = self._removed(count)
            except BaseException:
                self._contents.drop_vertices(fresh)
                raise
        self._alive.extend(fresh, 1)
        self._mark_alive(again, 1)
        if count and hasattr(self._store, "attributes"):
            self._store.attributes.clear(again)
        self._dead -= count
        if self._names:
            self._names.add(fresh_names)
        if not reuse:
            return range(first, first + fresh)
        return np.concatenate([again, np.arange(first, first + fresh, dtype=np.uint32)])

    @changing
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
        Change(epoch 1: 2 edges deleted, 1 vertex removed)
        """
        if self._names:
            ids = self._names.ids_of(ids, "remove_vertices")
        gone = distinct(read_ids(ids, "remove_vertices: ids", self._host_limits))
        with announcing("update"), self._contents.errors():
            u, v = getattr(self._store, "edges_of", self._store.arcs_of)(gone)
            loops = gone[self._contents.find(gone, gone) > 0]
            delete = (np.concatenate([u, loops]), np.concatenate([v, loops]))
            columns = {"insert": None, "delete": delete, "decrease": None}
            edges = self._contents.net(columns, None, self._limits, refuse_missing=False)
            with uninterrupted():
                self._carry_out(edges)
                self._mark_alive(gone, 0)
                self._dead += len(gone)
                if self._names:
                    self._names.remove(gone)
        return self._change(edges, gone)

    @changing
    def compact(self) -> None:
        """Drop unused places of the store; nothing else changes."""
        with announcing("compact"), self._contents.errors():
            self._store.compact()

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
        edges = self.n_arcs if self.directed else self.n_arcs // 2
        return edges + int(np.count_nonzero(self._contents.host_loops()))

    @property
    def directed(self) -> bool:
        """Whether an edge is an arc of one direction; only ``pages:directed=yes`` has such."""
        return bool(getattr(self._store, "directed", False))

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return self._weighted

    @property
    @one_at_a_time
    def degrees(self) -> NDArray[np.int64]:
        """Weighted degree of each vertex, int64[n]; a loop counts twice. A copy."""
        return self._contents.host_degrees().copy()

    @property
    @one_at_a_time
    def alive(self) -> NDArray[np.bool_]:
        """Which vertices were not removed, bool[n]. A copy."""
        return self._alive.items.astype(np.bool_)

    @property
    @one_at_a_time
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
            host_bytes=0 if self.device_store is None else self.device_store.host_bytes,
        )

    def has_edges(self, u: ArrayLike, v: ArrayLike) -> NDArray[np.bool_]:
        """Return which edges are in the graph, bool[b]."""
        return self.weights_of(u, v) > 0

    @one_at_a_time
    def weights_of(self, u: ArrayLike, v: ArrayLike) -> NDArray[np.int64]:
        """Return the integer weight of each edge, int64[b]: 0 where there is none."""
        limits = replace(self._host_limits, alive=None)
        if self._names:
            u, v = self._names.ids_of(u, "u"), self._names.ids_of(v, "v")
        a, b = read_ids(u, "u", limits), read_ids(v, "v", limits)
        if len(a) != len(b):
            raise GraphError(f"u has {len(a)} entries and v {len(b)}; they must match")
        with announcing("query"), self._contents.errors():
            return self._contents.find(a, b)

    @one_at_a_time
    def neighbours(self, v: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the neighbours of a vertex and the integer weights of its edges."""
        if self._names:
            ids = self._names.ids_of([v], "neighbours").astype(np.uint32)
        else:
            try:
                ids = read_ids([whole_number(v)], "neighbours", self._host_limits)
            except TypeError:
                raise GraphError(f"neighbours takes the id of one vertex, not {shown(v)}") from None
        with announcing("query"), self._contents.errors():
            loop = ids[self._contents.find(ids, ids) > 0]
            found = np.sort(np.concatenate([self._store.arcs_of(ids)[1], loop]))
            weights = self._contents.find(np.repeat(ids, len(found)), found)
        return (self._names.at(found) if self._names else found), weights

    @checks_kinds
    def to_networkx(self, attributes: Mapping[str, NDArray[Any]] | None = None) -> Any:
        """Return the graph as a `networkx.Graph`, without removed vertices."""
        found = self.host_snapshot().to_networkx(attributes)
        if self._names is None:
            found.remove_nodes_from(np.flatnonzero(self._alive.items == 0).tolist())
        return found

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Keep the rows as they are: other threads wait, and changes by this one are refused."""
        with self.lock:
            before = self._in_use
            try:
                self._in_use = True
                yield
            finally:
                self._in_use = before

    @one_at_a_time
    def view(self) -> RowView:
        """Return contiguous rows for engines: where they lie, or as a compressed copy."""
        self.refuse_directed()
        return self._view_of(self._rows())

    @one_at_a_time
    def linked_view(self) -> RowView:
        """Return the rows where they lie, also those in linked blocks, for algorithms."""
        if not hasattr(self._store, "walked"):
            return self.view()
        walked = self._store.walked()
        return self._view_of(Rows(*walked[:4]), LinkedBlocks(*walked[4:]))

    def _view_of(self, rows: Rows, blocks: LinkedBlocks | None = None) -> RowView:
        return RowView(
            begins=rows.begins,
            ends=rows.ends,
            targets=rows.targets,
            weights=rows.weights if self.weighted else None,
            blocks=blocks,
            loops=self._contents.host_loops(),
            degrees=self._contents.host_degrees(),
            n_arcs=self.n_arcs,
            total_weight=self.total_weight,
            scale=self.scale,
            names=self.names,
        )

    @one_at_a_time
    def device_view(self) -> Any:
        """Return contiguous rows in a device's memory: where they lie, or as a compressed copy."""
        self.refuse_directed()
        store = self.device_store
        return None if store is None else self._device_view(store.loops, store.contiguous_rows())

    @one_at_a_time
    def linked_device_view(self) -> Any:
        """Return the rows where they lie, also those in linked blocks, for algorithms."""
        store = self.device_store
        if store is None and getattr(self._store, "device", None) is not None:  # of the replica
            replicated: Any = self._store
            loops = replicated.device.xp.asarray(self._contents.host_loops().view(np.uint64))
            return self._device_view(loops, replicated.walked_there())
        if not hasattr(store, "walked"):
            return self.device_view()
        return self._device_view(store.loops, store.walked())

    def _device_view(self, loops: Any, rows: tuple[Any, ...]) -> Any:
        from louvain_um.gpu.algorithms.workspace import KernelRows

        begins, ends, targets, weights, *linked = rows
        return KernelRows(
            begins=begins,
            ends=ends,
            targets=targets,
            weights=weights,
            loops=loops if bool(loops.any()) else None,
            n_arcs=self.n_arcs,
            total_weight=self.total_weight,
            linked=linked[0] if linked else 0,
        )

    @one_at_a_time
    def snapshot(self) -> Any:
        """Return the graph as it is now, in arrays of its own; removed vertices are isolated."""
        self.refuse_directed()
        store = self.device_store
        if store is None or store.host_bytes:
            return self.host_snapshot()
        from louvain_um.gpu.graph import DeviceGraph

        offsets, targets, weights = store.device_rows()
        loops = store.loops.copy() if bool(store.loops.any()) else None
        return DeviceGraph(offsets, targets, weights, loops, self.scale)

    @one_at_a_time
    def host_snapshot(self) -> Graph:
        """Return the graph as it is now in host memory, wherever it is."""
        self.refuse_directed()
        rows = self._store.compressed()
        return Graph(
            rows.offsets,
            rows.targets,
            rows.weights,
            self._contents.host_loops().copy(),
            self.scale,
            self.names,
            check=False,
        )

    @one_at_a_time
    def digest(self) -> str:
        """Return a hash of vertices, edges and weights, 32 hexadecimal digits."""
        rows = self._rows()
        threads = self.threads if self.n_arcs > 1 << 15 else 1
        sums = np.zeros((threads, 2), np.uint64)
        parallel.run(
            net.digest, threads, rows, self._contents.host_loops(), self._alive.items, sums
        )
        first, second = (int(total) for total in sums.sum(axis=0, dtype=np.uint64))
        text = f"{self.n_vertices} {self.weighted} {self.scale.hex()} {first} {second}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @one_at_a_time
    def check(self) -> None:
        """Raise AssertionError unless store, degrees and totals agree; takes passes over all."""
        self._store.check()
        if not self.directed:
            self.host_snapshot().validate()
        rows, degrees = self._store.compressed(), self._contents.host_degrees()
        weights = np.ones(self.n_arcs, np.int64) if rows.weights is None else rows.weights
        sums = np.append(0, np.cumsum(weights, dtype=np.int64))[rows.offsets]
        expected = np.diff(sums) + 2 * self._contents.host_loops()
        assert np.array_equal(expected, degrees), "degrees do not add up"
        assert int(degrees.sum()) == self.total_weight, "the total weight does not add up"
        assert len(rows.targets) == self.n_arcs, "the arcs do not add up"
        gone = self._alive.items == 0
        assert not gone[rows.targets].any(), "an edge leads to a removed vertex"
        assert not degrees[gone].any(), "a removed vertex has edges"

    def refuse_directed(self) -> None:
        """Raise an OptionError if edges are arcs of one direction, which no `Graph` has."""
        if self.directed:
            remedy = "leave out directed=yes; only spmv, advance and pairs to intersect take it"
            raise OptionError("store", self.store, remedy, problem="the graph is directed")

    @one_at_a_time
    def __getstate__(self) -> dict[str, Any]:
        # Another thread may change the graph while it is pickled: it copies everything first.
        state = self._saved() | {"_in_use": (pickled := Pickled())}
        self._pickles.add(pickled)
        return state

    def _leave_to_pickles(self) -> None:
        """Continue with copies of all attributes if others are being pickled."""
        if len(self._pickles):
            self.__dict__.update(self._copied({}))
            self._pickles.clear()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    @one_at_a_time
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo[id(self)] = object.__new__(type(self))
        copied.__setstate__(self._copied(memo))
        return copied

    def _copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        """Return a copy of all attributes that are saved."""
        return copy.deepcopy(self._saved(), memo)

    def _saved(self) -> dict[str, Any]:
        """Return the attributes that copies and pickles of the graph have, too."""
        unsaved = ("lock", "_in_use", "_pickles")
        return {name: value for name, value in self.__dict__.items() if name not in unsaved}

    def _renew_unsaved(self) -> None:
        """Set the other attributes as those of a graph that nothing uses."""
        self.lock, self._in_use = threading.RLock(), False
        self._pickles = WeakSet[Pickled]()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._renew_unsaved()

    def __repr__(self) -> str:
        kind = "weighted" if self.weighted else "unweighted"
        return (
            f"DynamicGraph({self.n_vertices:,} vertices, {self.n_edges:,} edges, {kind}, store "
            f"{self.store!r}, epoch {self.epoch:,})"
        )

    @property
    def linked(self) -> bool:
        """Whether rows are in linked blocks."""
        return getattr(self._store, "linked", 0) > 0

    @property
    def dead_count(self) -> int:
        """Number of vertices that were removed and not revived."""
        return self._dead

    @property
    @one_at_a_time
    def removed(self) -> NDArray[np.uint32]:
        """Removed vertices in the order in which their ids are used again, uint32[k]. A copy."""
        queue = getattr(self._store, "ids", None)
        if queue is None:
            return np.flatnonzero(self._alive.items == 0).astype(np.uint32)
        there = self.device_store
        ids = queue.peek(len(queue)) if there is None else there.device.get(queue.free())
        return np.asarray(ids, np.uint32)

    @property
    def device_store(self) -> Any:
        """The store if it is on a device, else None."""
        return None if isinstance(self._contents, HostContents) else self._contents

    @property
    def device_budget(self) -> int | None:
        """Bytes that the graph may hold; None if there is no limit."""
        return self._budget.nbytes

    @property
    def attributes(self) -> Attributes:
        """Attributes of edges and vertices, which stores in linked blocks have."""
        found: Attributes | None = getattr(self._store, "attributes", None)
        if found is None:
            remedy = "use store='bal' or 'pages', which have attributes"
            raise OptionError("store", self._store.name, remedy)
        return found

    @property
    def _store(self) -> Store:
        store: Store = self._contents.store
        return store

    @property
    def _limits(self) -> Limits:
        return Limits(
            n_vertices=self.n_vertices,
            alive=self._alive.items if self._dead else None,
            weighted=self.weighted,
            scale=self.scale,
            xp=self._contents.xp,
            directed=self.directed,
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
        return Rows(copy.offsets[:-1], copy.offsets[1:], copy.targets, given(copy.weights))

    @contextmanager
    def _named(self, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Translate names; add vertices for new ones, taken back if the batch is refused."""
        texts = any(are_names(columns) for columns in given.values())
        if self._names is None and not (texts and self._may_have_names and not self.n_vertices):
            if texts:
                raise GraphError("the vertices of this graph have no names; pass their ids")
            yield given
            return
        epoch = self.epoch
        names, self._names = self._names, self._names or Names([])
        count = 0
        try:
            fresh = self._names.unknown(*(given["insert"] or ())[:2])
            self.add_vertices(fresh)
            count = len(fresh)
            yield self._names.translated(given)
        except BaseException as error:
            named = error.named(self._names.of) if isinstance(error, EdgeError) else None
            if self.epoch == epoch:  # else it came after the batch
                self._drop_vertices(count)
                self._names = names
            if named:
                raise named from None
            raise

    def _drop_vertices(self, count: int) -> None:
        """Undo adding the last vertices, which have no edges."""
        self._alive.drop(count)
        self._contents.drop_vertices(count)
        if self._names:
            self._names.drop(count)

    def _hold(self, store: Any, loops: NDArray[np.int64], degrees: NDArray[np.int64]) -> None:
        """Keep arcs in a store, and the loops and degrees of vertices where it is."""
        if hasattr(store, "hold_vertices"):
            store.hold_vertices(loops, degrees)
            self._contents: Contents = store
        else:
            self._contents = HostContents(store, loops, degrees)

    def _mark_alive(self, ids: NDArray[np.uint32], alive: int) -> None:
        """Record whether some vertices are alive."""
        self._alive.items[ids] = alive
        self._contents.mark_alive(ids, alive)
        queue = getattr(self._store, "ids", None)
        if queue is not None and not alive and len(ids):
            queue.extend(ids)

    def _removed(self, count: int) -> NDArray[np.uint32]:
        """Return ids of removed vertices to use again: those that a store queues, or the lowest."""
        queue = getattr(self._store, "ids", None)
        if count == 0:
            return NO_VERTICES
        return self.removed[:count] if queue is None else np.sort(queue.pop(count))

    def _carry_out(self, edges: Any) -> None:
        """Carry out the net changes of a batch; what can fail comes before what is written."""
        gain = edges.gain
        self._refuse_total(self.total_weight + gain)
        with self._budget.counting(self.n_vertices):
            reserved = self._contents.reserve(edges)
        with uninterrupted():
            self._contents.commit(edges, reserved)
            self.total_weight += gain
            self.epoch += 1

    def _change(self, edges: Any, removed: NDArray[np.uint32] = NO_VERTICES) -> Change:
        return Change(
            epoch=self.epoch,
            u=edges.u,
            v=edges.v,
            before=edges.before,
            after=edges.after,
            missing=edges.missing,
            total_weight=self.total_weight,
            origin=self.origin,
            removed=removed,
        )

    def _refuse_total(self, total: int) -> None:
        if total >= MAX_TOTAL_WEIGHT:
            raise GraphError(
                f"all weights, twice, would add up to {total:.3g}, above 2^53; use smaller weights"
                + (f", or {ANEW}" if self.scale > 1 else "")
            )

    def _afford_vertices(self, vertices: int) -> None:
        """Refuse vertices that do not fit in addition; give the store what is left."""
        new, store = vertices - self.n_vertices, self.device_store
        if store is None:
            refuse_many_vertices(new)
        if self._budget.nbytes is None:
            return
        more, arcs = new * (VERTEX_BYTES + ROW_BYTES), self._budget.of_arcs(vertices)
        if store is not None and self._budget.exceeded(self.memory, more):
            store.give_way(max(0, (arcs or 0) - ROW_BYTES * new))
        self._budget.refuse_vertices(self.memory, more, vertices)
        self._store.budget = arcs
