"""Bytes of a changing graph: declared before there is one, and held to a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.dynamic.stores import DEVICE_STORES, device_store, options_of, store_class
from louvain_um.dynamic.stores.store import ROW_BYTES, RowLengths
from louvain_um.errors import MemoryBudgetError, OptionError, check_choice
from louvain_um.gpu.dynamic.batch_arrays import MOST_LISTED, scratch_places
from louvain_um.gpu.dynamic.cuda import SLACK
from louvain_um.gpu.dynamic.follow_arrays import follow_bytes
from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
from louvain_um.placement.program.program import Accesses


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicSize:
    """The size of a graph that will change; its plan has bytes, not times.

    How full blocks and pages of a store are depends on the lengths of its rows: `of` takes those
    of a graph, for which a store that is just built is planned exactly.

    Parameters
    ----------
    n_vertices, n_arcs : int
        At the beginning; an undirected edge is two arcs.
    growth : float
        Arcs at most, relative to the beginning.
    batch : int
        Edges of a batch, at most.
    weighted : bool
        Whether arcs have weights, of 32 bits.
    follow : bool
        Whether a `Tracker` follows.
    hub : int
        Arcs of the longest row; they count for following.
    store : str
        A store of `louvain_um.dynamic.stores.STORES`.
    device : {"cuda", "cpu"}, optional
        By default a GPU if it has the store. On the CPU the plan has what the graph holds, all of
        it on the host, but not what batches take.
    rows : RowLengths, optional
        Lengths of the rows at the beginning; by default random ones.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.dynamic.declared import DynamicSize
    >>> size = DynamicSize(n_vertices=1 << 22, n_arcs=156_000_000, batch=1_000_000)
    >>> {phase: held >> 20 for phase, held in lu.plan(dynamic=size).device_bytes.items()}
    {'update': 1303, 'rebuild': 2056}
    >>> graph = lu.Graph.from_edges([0, 1, 2, 0], [1, 2, 0, 3])
    >>> plan = lu.plan(dynamic=DynamicSize.of(graph, store="bump", device="cpu"))
    >>> {array.name: array.nbytes for array in plan.program.arrays}
    {'arcs': 256, 'rows': 64, 'loops': 32, 'degrees': 32, 'alive': 4}
    >>> lu.DynamicGraph(graph, store="bump").memory.total_bytes
    388
    """

    n_vertices: int
    n_arcs: int
    growth: float = 1.0
    batch: int = 10_000
    weighted: bool = False
    follow: bool = False
    hub: int = 0
    store: str = "rows"
    device: Literal["cuda", "cpu"] | None = None
    rows: RowLengths | None = None

    @classmethod
    def of(cls, graph: Any, **options: Any) -> Self:
        """Return the size of a graph that a `DynamicGraph` will begin with.

        Parameters
        ----------
        graph : Graph or anything `as_graph` takes
        **options
            Other fields.
        """
        from louvain_um.formats.reading import as_graph

        found = as_graph(graph)
        lengths = np.diff(found.offsets)
        known: dict[str, Any] = {
            "n_vertices": found.n_vertices,
            "n_arcs": len(found.targets),
            "weighted": found.weights is not None,
            "hub": int(lengths.max(initial=0)),
            "rows": RowLengths.of(lengths),
        }
        return cls(**(known | options))

    def __post_init__(self) -> None:
        for name in ("n_vertices", "n_arcs", "batch", "hub"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise OptionError(name, value, "must be a whole number of at least 0")
        if self.batch > MOST_LISTED:
            raise OptionError("batch", self.batch, f"must be at most {MOST_LISTED:,}")
        if not 1 <= self.growth < 1e6:
            raise OptionError("growth", self.growth, "must be a number of at least 1")
        store_class(self.store)  # refuses what is none
        if self.device is not None:
            check_choice("device", self.device, ("cuda", "cpu"))
        if self.on_device and not self._has_device:
            raise OptionError(
                remedy=f"the store {self.store!r} does not run on a device; use device='cpu'"
            )
        if self.follow and not (self.on_device and not device_store(self.store).chained):
            raise OptionError(
                remedy="following is planned for contiguous rows on a device; use store='rows'"
            )
        lengths = self.rows
        if lengths and (lengths.vertices, lengths.arcs) != (self.n_vertices, self.n_arcs):
            raise OptionError(remedy="n_vertices and n_arcs must be those of rows")

    @property
    def on_device(self) -> bool:
        """Whether the graph is on a device."""
        return (self.device or ("cuda" if self._has_device else "cpu")) == "cuda"

    @property
    def _has_device(self) -> bool:
        return self.store.partition(":")[0] in DEVICE_STORES

    @property
    def item(self) -> int:
        """Bytes of an arc: its target, and a weight of 32 bits."""
        return 8 if self.weighted else 4

    @property
    def largest(self) -> RowLengths:
        """Lengths of the rows once the graph has grown."""
        if self.rows is None:
            return RowLengths.random(self.n_vertices, ceil(self.n_arcs * self.growth))
        return self.rows.grown(self.growth)

    @property
    def store_bytes(self) -> tuple[int, int]:
        """Bytes of arcs and of what finds the rows, of a store just built at its largest."""
        options = options_of(self.store)
        found = device_store(self.store) if self.on_device else store_class(self.store).func
        sizes: tuple[int, int] = found.sizes(self.largest, self.item, **options)
        return sizes


def declare(size: DynamicSize) -> Program:
    """Return the arrays as a program."""
    n, arcs = size.n_vertices, ceil(size.n_arcs * size.growth)
    held, found = size.store_bytes
    vertices = _kept("vertices", (("loops", n, "u8"), ("degrees", n, "u8"), ("alive", n, "u1")))
    if not size.on_device:
        kept = [*_kept("arcs", (("arcs", held, "u1"),)), *_kept("rows", (("rows", found, "u1"),))]
        arrays = [replace(array, on_device=False) for array in [*kept, *vertices]]
        return Program(name="dynamic", arrays=arrays, phases=[Phase(name="update")], timed=False)
    store = device_store(size.store)
    phases: tuple[str, ...] = ("update",) if store.chained else ("update", "rebuild")
    rows = (("spans", 2 * n, "i8"), ("classes", n, "u1"), ("links", found - ROW_BYTES * n, "u1"))
    arrays = [
        *_kept("rows", rows if store.chained else rows[:2]),
        *vertices,
        *_pool(size, store, ceil(held // size.item * (1 + SLACK))),
        *_batch(size, phases, n, arcs, paged=store.paged),
    ]
    if size.follow:
        phases += ("renew",)
        for name, nbytes in follow_bytes(n, arcs, size.hub).items():
            arrays.append(_array(f"following.{name}", nbytes, "u1", "following", None))
        arrays.append(_array("run", run_bytes(size, n, arcs), "u1", "run", ("renew",)))
    return Program(
        name="dynamic", arrays=arrays, phases=[Phase(name=name) for name in phases], timed=False
    )


def run_bytes(size: DynamicSize, vertices: int, arcs: int) -> int:
    """Return what a renewal takes: a compressed copy of the rows, and a run of Leiden on it."""
    from louvain_um.gpu.memory.array_specs import declare as declare_run
    from louvain_um.gpu.memory.shape import Shape, sums_of_ones
    from louvain_um.placement.layout import device_bytes_in_core

    shape = Shape(
        vertices=vertices,
        arcs=arcs,
        weight_bytes=4 if size.weighted else 0,
        sum_bytes=8 if size.weighted else sums_of_ones(arcs),
        method="leiden",
    )
    return device_bytes_in_core(declare_run(shape))


def _array(
    name: str, shape: int, dtype: str, group: str, phases: tuple[str, ...] | None
) -> ProgramArray:
    """Return an array that must be on the device."""
    return ProgramArray(
        name=name, shape=shape, dtype=dtype, group=group, phases=phases, on_device=True
    )


def _arcs(name: str, places: int, phases: tuple[str, ...] | None, reads: Accesses) -> ProgramArray:
    """Return an array of a pool, which may end on the host."""
    return ProgramArray(
        name=name, shape=places, dtype="u4", group="graph", phases=phases, reads=reads,
        writes=Stream(),
    )  # fmt: skip


def _kept(group: str, arrays: tuple[tuple[str, int, str], ...]) -> list[ProgramArray]:
    """Return arrays that live as long as the graph."""
    return [_array(name, shape, dtype, group, None) for name, shape, dtype in arrays]


def _pool(size: DynamicSize, store: Any, places: int) -> list[ProgramArray]:
    """Return targets and weights, and those that a rebuild makes before the old ones go."""
    names = ("targets", "weights") if size.weighted else ("targets",)
    options = options_of(size.store)
    most = ceil(store.most_places(size.largest, **options) * (1 + SLACK))
    kept = [_arcs(name, most, None, Stream()) for name in names]
    if store.chained:  # edited where they lie
        return kept
    phases = ("rebuild",) if store.paged else ("update", "rebuild")
    return kept + [_arcs(f"new_{name}", places, phases, ()) for name in names]


def _batch(
    size: DynamicSize, phases: tuple[str, ...], vertices: int, arcs: int, *, paged: bool
) -> list[ProgramArray]:
    """Return what a batch takes while it is carried out; a rebuild is part of one."""
    places, scratch = scratch_places(
        size.batch, vertices, arcs, weighted=size.weighted, ordered=size.weighted, paged=paged
    )
    del places
    given = [("given", size.batch, "i8"), ("order", 2 * size.batch, "i8")]
    return [
        _array(name, shape, dtype, "batch", phases)
        for name, shape, dtype in (
            ("keys", 2 * size.batch, "u8"),
            ("sorting", 2 * size.batch, "u8"),
            *(given if size.weighted else ()),
            ("scratch", scratch, "u1"),
            ("change", 24 * size.batch, "u1"),
        )
    ]


VERTEX_BYTES: Final = 17
"""Bytes of a vertex's loop, degree, and whether it is alive."""


def refuse_many_vertices(count: int) -> None:
    """Raise if the host has no memory for so many more vertices."""
    check_host_memory(
        count * (VERTEX_BYTES + ROW_BYTES),
        f"a changing graph of {count:,} more vertices",
        "check the number of vertices, or use a machine with more memory",
    )


def refuse_many_arcs(store: str, offsets: NDArray[np.int64], item: int) -> None:
    """Raise if the host has no memory for a graph in a store, of `item` bytes an arc."""
    counts = np.bincount(np.diff(offsets))
    rows = RowLengths(lengths=np.flatnonzero(counts), counts=counts[counts > 0])
    held, found = store_class(store).func.sizes(rows, item, **options_of(store))
    check_host_memory(
        VERTEX_BYTES * rows.vertices + held + found,
        f"a changing graph of {rows.vertices:,} vertices and {rows.arcs:,} arcs",
        "use a machine with more memory",
    )


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
    host_bytes : int
        Of a graph on a device: bytes of its arcs that lie on the host, past the budget.
    """

    live_bytes: int
    held_bytes: int
    row_bytes: int
    vertex_bytes: int
    moved_bytes: int
    bytes_per_arc: float
    host_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Bytes held in all."""
        return self.held_bytes + self.row_bytes + self.vertex_bytes

    @property
    def device_bytes(self) -> int:
        """Bytes that count against the budget: all but those on the host past it."""
        return max(0, self.held_bytes - self.host_bytes) + self.row_bytes + self.vertex_bytes


@dataclass(frozen=True, slots=True)
class GraphBudget:
    """Bytes that a changing graph may hold; its store gets what the vertices leave."""

    nbytes: int | None

    def of_arcs(self, vertices: int) -> int | None:
        """Return what the budget leaves to the store after so many vertices."""
        return None if self.nbytes is None else max(0, self.nbytes - VERTEX_BYTES * vertices)

    @contextmanager
    def counting(self, vertices: int) -> Iterator[None]:
        """Let errors of the store report the budget of the whole graph, vertices included."""
        try:
            yield
        except MemoryBudgetError as error:
            if self.nbytes is None or error.budget != self.of_arcs(vertices):
                raise
            held = VERTEX_BYTES * vertices
            raise MemoryBudgetError(
                error.needed + held, self.nbytes, [*error.largest, ("vertices", held)],
                error.remedy,
            ) from None  # fmt: skip

    def exceeded(self, memory: StoreMemory, more: int) -> bool:
        """Whether so many bytes more would be beyond the budget."""
        return self.nbytes is not None and memory.device_bytes + more > self.nbytes

    def refuse_vertices(self, memory: StoreMemory, more: int, vertices: int) -> None:
        """Raise if so many bytes more, with which there are `vertices`, are beyond the budget."""
        if self.nbytes is not None and self.exceeded(memory, more):
            held = vertices * (VERTEX_BYTES + ROW_BYTES)
            raise MemoryBudgetError(
                memory.device_bytes + more, self.nbytes, [("vertices", held)], "raise device_budget"
            )
