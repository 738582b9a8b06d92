"""Graphs whose arrays are on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds
from louvain_um.graph.limits import checked_names
from louvain_um.placement.memory import copies, cuda_calls

if TYPE_CHECKING:
    import cupy

ARRAYS: Final = "offsets", "targets", "weights", "loops"
"""The arrays of a graph, in the order in which a `Graph` takes them."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """An undirected graph like `Graph`, its arrays in the memory of one CUDA device."""

    offsets: cupy.ndarray
    targets: cupy.ndarray
    weights: cupy.ndarray | None = None
    loops: cupy.ndarray | None = None
    scale: float = 1.0
    notes: tuple[str, ...] = ()
    check: InitVar[bool] = True

    def __post_init__(self, check: bool) -> None:
        weights: Any = self.weights
        if weights is None or not len(weights) or not check:
            return
        with nullcontext() if isinstance(weights, np.ndarray) else weights.device:
            if int(weights.min()) == 0:
                raise GraphError(
                    f"the weight of arc {int(weights.argmin())} is 0, which connects nothing; "
                    "leave out such edges, as Graph.from_edges does"
                )

    @classmethod
    def of(cls, made: Any, loops: Any = None) -> Self:
        """Return a graph of rows that were made on the device without loops, and of these loops."""
        return cls(made.offsets, made.targets, made.weights, loops, made.scale, check=False)

    @classmethod
    def from_host(cls, graph: Graph) -> Self:
        """Copy a graph to the current device; one that is there already is shared."""
        if (there := there_of(graph)) is not None:
            return there  # type: ignore[return-value]
        refuse_kinds(graph, "a DeviceGraph holds")
        weights: Any = graph.weights
        if weights is not None and weights.dtype == np.int64:
            weights = weights.view(np.uint64)
        loops = graph.loops.view(np.uint64) if graph.has_loops else None
        return cls(
            copies.sent(graph.offsets),
            copies.sent(graph.targets),
            None if weights is None else copies.sent(weights),
            None if loops is None else copies.sent(loops),
            graph.scale,
            graph.notes,
        )

    def to_host(self, *, check: bool = True) -> Graph:
        """Copy to host memory; `check` as in `Graph`."""
        arrays = {name: self.fetched(name) for name in ARRAYS}
        return Graph(**arrays, scale=self.scale, notes=self.notes, check=check)

    def as_graph(self, *, checked: bool = False) -> FetchedGraph:
        """Return a `Graph` whose arrays stay where they are until something asks for them.

        They are checked then, unless they are `checked`.
        """
        about: Any = {"scale": self.scale, "names": None, "notes": self.notes}
        return FetchedGraph.of(self, **about, checked=checked)

    def fetched(self, name: str, part: slice = slice(None)) -> Any:
        """Return one of the arrays, or a part of it, as a `Graph` has it, in host memory."""
        array = getattr(self, name)
        if array is None:
            return np.zeros(self.n_vertices, np.int64)[part] if name == "loops" else None
        array = array[part]
        found = array if type(array) is np.ndarray else copies.fetched(array)
        return found.view(np.int64) if found.dtype == np.uint64 else found

    @property
    def device_index(self) -> int:
        """Number of the device."""
        return int(self.offsets.device.id)

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return len(self.offsets) - 1

    @property
    def n_arcs(self) -> int:
        """Number of arcs: twice the edges that are not loops."""
        return len(self.targets)

    @property
    def weighted(self) -> bool:
        """Whether arcs carry weights."""
        return self.weights is not None

    @property
    def names(self) -> None:
        """No names: vertices are 0 … n − 1."""
        return

    @cached_property
    def total_weight(self) -> int:
        """Sum of all degrees, 2m, as an integer (real weights times `scale`)."""
        arcs = self.n_arcs if self.weights is None else int(self.weights.sum(dtype=np.uint64))
        loops = 0 if self.loops is None else int(self.loops.sum(dtype=np.uint64))
        return arcs + 2 * loops

    @property
    def has_loops(self) -> bool:
        """Whether a vertex has a loop."""
        return self.n_loops > 0

    def community_counts(
        self, labels: NDArray[np.uint32], *, parts: bool
    ) -> NDArray[np.int64] | None:
        """Return what communities add up to (`gpu/relabel/relabel.py`); None without room."""
        from louvain_um.gpu.relabel.relabel import community_counts

        return self._made(lambda device: community_counts(device, self, labels, parts=parts))

    def is_valid(self) -> bool:
        """Return whether the rows are those of an undirected graph; False also without room."""
        from louvain_um.gpu.building.build import Builder

        rows = self.offsets, self.targets, self.weights
        return bool(self._made(lambda device: Builder(device).are_rows(*rows)))

    def merged(
        self, labels: NDArray[np.uint32], loops: NDArray[np.int64], *, sums: bool = True
    ) -> FetchedGraph | None:
        """Return `Builder.merged` of the graph with these loops; None without room."""
        from louvain_um.gpu.building.build import Builder

        def make(device: Any) -> FetchedGraph:
            given = copies.sent(loops.view(np.uint64)) if loops.any() else None
            made = Builder(device).merged(self, copies.sent(labels), len(loops), sums=sums)
            return DeviceGraph.of(made, given).as_graph(checked=True)

        return self._made(make)

    def agreed(
        self,
        partitions: Sequence[NDArray[np.uint32]],
        least: int,
        choose: Callable[[NDArray[np.uint64], int], NDArray[np.uint32]],
    ) -> tuple[FetchedGraph, int] | None:
        """Return the graph of agreement (`analysis/ensemble.py`), and its arcs without agreement.

        None without room.
        """
        from louvain_um.gpu.building.build import Builder
        from louvain_um.gpu.relabel.relabel import agreed_counts

        def make(device: Any) -> tuple[FetchedGraph, int]:
            counts, undecided = agreed_counts(device, self, partitions, least, choose)
            counted = replace(self, weights=counts, loops=None, scale=1.0, notes=(), check=False)
            made = Builder(device).merged(counted, None, self.n_vertices, sums=False)
            return DeviceGraph.of(made).as_graph(checked=True), undecided

        return self._made(make)

    def forest(self) -> Graph | None:
        """Return a spanning forest, in host memory; None without room."""
        from louvain_um.gpu.algorithms import launches, workspace

        def make(device: Any) -> Graph:
            space = workspace.PLAIN
            found = launches.spanning_forest(workspace.KernelRows.of(self), space)
            edges = space.get("edges", found.edges[: found.size])
            ends = (edges >> np.uint64(32)).astype(np.uint32), edges.astype(np.uint32)
            return Graph.from_edges(*ends, n_vertices=self.n_vertices)

        return self._made(make)

    def _made(self, step: Callable[[Any], T]) -> T | None:
        """Return what a step makes with the device; None without room for it."""
        from cupy.cuda.memory import OutOfMemoryError

        from louvain_um.gpu.dynamic.cuda import CudaDevice

        with cuda_calls.current(self.device_index):
            device = CudaDevice()
            try:
                return step(device)
            except OutOfMemoryError:
                return None
            finally:
                device.free_cached()

    @cached_property
    def n_loops(self) -> int:
        """Number of vertices with a loop."""
        return 0 if self.loops is None else int((self.loops != 0).sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays: tuple[Any, ...] = (self.offsets, self.targets, self.weights, self.loops)
        return sum(array.nbytes for array in arrays if array is not None)

    def __repr__(self) -> str:
        kind = "weighted" if self.weighted else "unweighted"
        return f"DeviceGraph({self.n_vertices:,} vertices, {self.n_arcs:,} arcs, {kind})"


class FetchedGraph(Graph):
    """A graph whose arrays are on a device; each comes to host memory when something asks for it.

    `there` is the graph on the device, where runs use it; None once it has left the device. Arcs
    that are not `checked` come together, and are.
    """

    checked = True

    @classmethod
    def of(cls, there: DeviceGraph, **more: Any) -> Self:
        """Return an undirected graph with arrays on a device; `more` are fields of `Graph`."""
        made = object.__new__(cls)
        names = more.pop("names")
        names = None if names is None else checked_names(names, there.n_vertices)
        made.__dict__.update(there=there, names=names, **more)
        if there.weights is None:
            made.__dict__["weights"] = None
        return made

    def __getattr__(self, name: str) -> Any:
        there = self.there
        if name in ARRAYS and there is not None:
            if self.checked or name in ("offsets", "loops"):
                self.__dict__[name] = there.fetched(name)
            else:
                here = there.to_host()
                self.__dict__.update({each: getattr(here, each) for each in ARRAYS}, checked=True)
        if name not in self.__dict__:  # another thread may have brought it
            raise AttributeError(name)
        return self.__dict__[name]

    def __reduce__(self) -> Any:
        return Graph, (*(getattr(self, field.name) for field in fields(self)), False)

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        there = self.there
        return super().n_vertices if there is None else there.n_vertices

    @property
    def n_arcs(self) -> int:
        """Number of arcs: twice the edges that are not loops."""
        there = self.there
        return super().n_arcs if there is None else there.n_arcs

    @property
    def n_edges(self) -> int:
        """Number of distinct edges, loops included."""
        there = self.there
        return super().n_edges if there is None else there.n_arcs // 2 + there.n_loops

    @property
    def weighted(self) -> bool:
        """Whether arcs carry weights."""
        return "weights" not in self.__dict__ or self.weights is not None

    @cached_property
    def total_weight(self) -> int:
        """Sum of all degrees, 2m, as an integer (real weights times `scale`)."""
        there = self.there
        return super().total_weight if there is None else there.total_weight

    @cached_property
    def has_loops(self) -> bool:
        """Whether a vertex has a loop."""
        there = self.there
        return super().has_loops if there is None else there.has_loops

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Weighted degree of each vertex, int64[n]; a loop counts twice."""
        counts = self.counts_there(np.arange(self.n_vertices, dtype=np.uint32))
        return super().degrees if counts is None else counts[1]

    @property
    def nbytes(self) -> int:
        """Bytes of offsets, targets, weights and loops."""
        there = self.there
        if there is None:
            return super().nbytes
        return int(there.nbytes) + (8 * there.n_vertices if there.loops is None else 0)

    def arcs(
        self, begin: int, end: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32] | NDArray[np.int64] | None]:
        """Return targets and weights of some arcs, in host memory, where the others do not come."""
        there, part = self.there, slice(begin, end)
        if there is None or "targets" in self.__dict__:
            return super().arcs(begin, end)
        if not self.checked:
            self.validate()
            self.__dict__["checked"] = True
        return there.fetched("targets", part), there.fetched("weights", part)

    def validate(self) -> None:
        """Raise a GraphError unless the rows are those of an undirected graph."""
        there = self.there
        if there is None or not there.is_valid() or int(self.loops.min(initial=0)) < 0:
            super().validate()

    def leave_device(self) -> Self:
        """Bring all arrays to host memory, and give those of the device back."""
        import cupy

        for name in ARRAYS:
            getattr(self, name)
        self.__dict__["there"] = None
        cupy.get_default_memory_pool().free_all_blocks()
        return self


def there_of(graph: Graph) -> DeviceGraph | None:
    """Return what the current device holds of a graph, if it does."""
    there: DeviceGraph | None = graph.there if isinstance(graph, FetchedGraph) else None
    if there is None or there.device_index != cuda_calls.current_device():
        return None
    return there
