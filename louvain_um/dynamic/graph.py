"""An undirected graph that changes in batches of edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core import parallel
from louvain_um.core.interrupts import uninterrupted
from louvain_um.cpu.dynamic import net
from louvain_um.dynamic.batches.batch import read_batch, read_ids, whole_number
from louvain_um.dynamic.batches.changes import EdgeChanges, EdgeError, arc_changes, net_changes
from louvain_um.dynamic.batches.device_batch import DeviceChanges, net_changes_there
from louvain_um.dynamic.batches.edge_columns import edge_columns
from louvain_um.dynamic.batches.names import Names, are_names
from louvain_um.dynamic.batches.start import graph_of_start, refuse_scale, weights_at
from louvain_um.dynamic.change import Change
from louvain_um.dynamic.contents import Contents
from louvain_um.dynamic.growing import Growing
from louvain_um.dynamic.memory import VERTEX_BYTES, GraphBudget, refuse_many_vertices
from louvain_um.dynamic.stores import share_of, store_class
from louvain_um.dynamic.stores.store import ROW_BYTES, Compressed
from louvain_um.errors import GraphError, OptionError, check_switch
from louvain_um.events import announcing
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT, MAX_VERTICES, Duplicates
from louvain_um.options import Budget, Options


class DynamicGraph(Contents):
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
    store : {"rows", "csr", …}
        How arcs are kept: `louvain_um.dynamic.stores.STORES` says what each is. "rows" suits
        everything; the others are for comparison.
    device : {"auto", "cpu", "cuda", "cuda:N"}
        Where the arcs are; "auto" is the CPU. On a device there are all stores but "bal".
        `snapshot` is a `DeviceGraph` then, and `louvain` finds its
        communities there.
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
        chosen = store_class(store, device)
        share = share_of(memory)  # refuses what is no policy, on the CPU, too
        placed = {"share": share} if device.startswith("cuda") else {}
        budget = Budget.parse(device_budget)
        if budget.fraction is not None:
            raise OptionError("device_budget", device_budget, "must be a size, like '8GiB'")
        self.threads = threads or parallel.default_threads()
        check_switch("names", names)
        graph = graph_of_start(graph_or_n)
        weights = weights_at(graph, weighted, scale)
        self.scale = float(scale if scale is not None else graph.scale)
        refuse_scale(self.scale)
        self._budget = GraphBudget(budget.nbytes)
        self._weighted = weights is not None
        rows = Compressed(offsets=graph.offsets, targets=graph.targets, weights=weights)
        factor = int(self.scale / graph.scale)
        self._loops = Growing(graph.loops * factor)
        self._degrees = Growing(graph.degrees * factor)
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
            self._store = chosen(rows, self.threads, limit, **placed)
        if self._device is not None:
            self._hand_over()

    @classmethod
    def restored(
        cls, graph: Graph, alive: NDArray[np.bool_], epoch: int, **options: Any
    ) -> DynamicGraph:
        """Return a graph that was saved: a snapshot, which vertices are alive, and its epoch.

        Raises
        ------
        GraphError
            `alive` does not fit the graph, or a removed vertex has edges.
        """
        if alive.dtype != np.bool_ or alive.shape != (graph.n_vertices,):
            raise GraphError(f"alive must be bool[{graph.n_vertices}]")
        if graph.degrees[~alive].any():
            raise GraphError("a removed vertex has edges")
        restored = cls(graph, **options)
        restored._alive.items[:] = alive
        restored._dead = int(np.count_nonzero(~alive))
        restored.epoch = epoch
        return restored

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
        if missing not in ("count", "raise"):
            raise GraphError(f"missing must be 'count' or 'raise', not {missing!r}")
        given = {
            what: edge_columns(what, edges, weighted=self.weighted and what != "delete")
            for what, edges in (("insert", insert), ("delete", delete), ("decrease", decrease))
        }
        with announcing("update"), self._telling(), self._named(given) as columns:
            edges = self._net(columns, duplicates, refuse_missing=missing == "raise")
            self._carry_out(edges)
        return self._change(edges)

    def add_vertices(
        self, k: int | Sequence[Any], *, reuse: bool = False
    ) -> range | NDArray[np.uint32]:
        """Add vertices without edges; return their ids.

        Parameters
        ----------
        k : int or list
            How many; in a graph with names, their names.
        reuse : bool
            Whether ids of removed vertices are used again, lowest first; the result is then an
            array, uint32[k], ascending.

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
            raise GraphError(f"add_vertices takes a whole number of at least 0, not {given!r}")
        check_switch("reuse", reuse)
        if reuse and self._names:
            raise GraphError("vertices with names get new ids; leave out reuse=True")
        again = np.flatnonzero(self._alive.items == 0)[: k if reuse else 0].astype(np.uint32)
        first, fresh = self.n_vertices, k - len(again)
        if first + fresh > MAX_VERTICES:
            raise GraphError(
                f"{first + fresh} vertices; at most {MAX_VERTICES} are supported; use reuse=True"
            )
        self._afford_vertices(first + fresh)
        sums = (self._loops, self._degrees) if self._device is None else ()
        for array in sums:
            array.reserve(fresh)
        self._alive.reserve(fresh)
        with self._telling():
            self._store.add_vertices(fresh)
        for array in sums:
            array.extend(fresh, 0)
        self._alive.extend(fresh, 1)
        self._mark_alive(again, 1)
        self._dead -= len(again)
        if self._names:
            self._names.add(fresh_names)
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
        Change(epoch 1: 2 edges deleted, 1 vertex removed)
        """
        if self._names:
            ids = self._names.ids_of(ids, "remove_vertices")
        gone = np.unique(read_ids(ids, "remove_vertices: ids", self._host_limits))
        with announcing("update"), self._telling():
            u, v = self._store.arcs_of(gone)
            loops = gone[self._weights_of(gone, gone) > 0]
            delete = (np.concatenate([u, loops]), np.concatenate([v, loops]))
            edges = self._net({"insert": None, "delete": delete, "decrease": None}, None)
            with uninterrupted():
                self._carry_out(edges)
                self._mark_alive(gone, 0)
                self._dead += len(gone)
                if self._names:
                    self._names.remove(gone)
        return self._change(edges, gone)

    def compact(self) -> None:
        """Drop unused places of the store; nothing else changes."""
        with announcing("compact"), self._telling():
            self._store.compact()

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
            told = error.named(self._names.of) if isinstance(error, EdgeError) else None
            if self.epoch == epoch:  # else it came after the batch
                self._drop_vertices(count)
                self._names = names
            if told:
                raise told from None
            raise

    def _drop_vertices(self, count: int) -> None:
        """Undo adding the last vertices, which have no edges."""
        for array in (self._loops, self._degrees) if self._device is None else ():
            array.drop(count)
        self._alive.drop(count)
        self._store.drop_vertices(count)
        if self._names:
            self._names.drop(count)

    def _hand_over(self) -> None:
        """Let the store on a device hold loops and degrees."""
        self._device.hold_vertices(self._loops.items, self._degrees.items)
        self._loops = self._degrees = Growing(np.zeros(0, np.int64))

    def _mark_alive(self, ids: NDArray[np.uint32], alive: int) -> None:
        """Say whether some vertices are alive."""
        self._alive.items[ids] = alive
        if self._device is not None and len(ids):
            self._device.mark_alive(ids, alive)

    def _net(
        self,
        columns: dict[str, Any],
        duplicates: Duplicates | None,
        *,
        refuse_missing: bool = False,
    ) -> EdgeChanges | DeviceChanges:
        """Return what a batch changes, in arrays where the graph is."""
        if self._device is not None:
            return net_changes_there(
                columns, duplicates, self._device, self._limits, refuse_missing=refuse_missing
            )
        batch = read_batch(**columns, duplicates=duplicates, limits=self._limits)
        return net_changes(batch, self._store, self._loops.items, refuse_missing=refuse_missing)

    def _carry_out(self, edges: EdgeChanges | DeviceChanges) -> None:
        """Carry out the net changes of a batch; what can fail comes before what is written."""
        gain = edges.gain
        self._refuse_total(self.total_weight + gain)
        arcs: Any = arc_changes(edges) if isinstance(edges, EdgeChanges) else edges
        with self._budget.counting(self.n_vertices):
            reserved = self._store.reserve(arcs)

        with uninterrupted():
            self._store.commit(arcs, reserved)
            if isinstance(edges, EdgeChanges):
                net.add_at(self._degrees.items, arcs.rows, arcs.gains)
                self._set_loops(edges)
            self.total_weight += gain
            self.epoch += 1

    def _set_loops(self, edges: EdgeChanges) -> None:
        """Write the loops that a batch changes."""
        if edges.loops:
            same = edges.u == edges.v
            rows, after = edges.u[same], edges.after[same]
            self._loops.items[rows] = after
            self._degrees.items[rows] += 2 * (after - edges.before[same])

    def _change(
        self, edges: EdgeChanges | DeviceChanges, removed: NDArray[np.uint32] | None = None
    ) -> Change:
        return Change(
            epoch=self.epoch,
            u=edges.u,
            v=edges.v,
            before=edges.before,
            after=edges.after,
            missing=edges.missing,
            total_weight=self.total_weight,
            origin=self.origin,
            removed=np.zeros(0, np.uint32) if removed is None else removed,
        )

    def _refuse_total(self, total: int) -> None:
        if total >= MAX_TOTAL_WEIGHT:
            raise GraphError(
                f"all weights, twice, would add up to {total:.3g}, above 2^53; use smaller weights"
            )

    def _afford_vertices(self, vertices: int) -> None:
        """Refuse vertices that do not fit beside what is there; tell the store what it has left."""
        new = vertices - self.n_vertices
        if self._device is None:
            refuse_many_vertices(new)
        if self._budget.nbytes is None:
            return
        more, arcs = new * (VERTEX_BYTES + ROW_BYTES), self._budget.of_arcs(vertices)
        if self._device is not None and self._budget.exceeded(self.memory, more):
            self._device.give_way(max(0, (arcs or 0) - ROW_BYTES * new))
        self._budget.refuse_vertices(self.memory, more, vertices)
        self._store.budget = arcs
