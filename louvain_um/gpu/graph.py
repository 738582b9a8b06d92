"""Graphs whose arrays are on the device."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from louvain_um.errors import GraphError
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds
from louvain_um.placement.memory import copies

if TYPE_CHECKING:
    from typing import Self

    import cupy


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """An undirected graph like `Graph`, its arrays in the memory of one CUDA device."""

    offsets: cupy.ndarray
    targets: cupy.ndarray
    weights: cupy.ndarray | None = None
    loops: cupy.ndarray | None = None
    scale: float = 1.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        weights: Any = self.weights
        if weights is None or not len(weights):
            return
        with nullcontext() if isinstance(weights, np.ndarray) else weights.device:
            if int(weights.min()) == 0:
                raise GraphError(
                    f"the weight of arc {int(weights.argmin())} is 0, which connects nothing; "
                    "leave out such edges, as Graph.from_edges does"
                )

    @classmethod
    def from_host(cls, graph: Graph) -> Self:
        """Copy a graph to the current device."""
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
        weights = None if self.weights is None else copies.fetched(self.weights)
        if weights is not None and weights.dtype == np.uint64:
            weights = weights.view(np.int64)
        if self.loops is None:
            loops = np.zeros(self.n_vertices, np.int64)
        else:
            loops = copies.fetched(self.loops).view(np.int64)
        offsets, targets = copies.fetched(self.offsets), copies.fetched(self.targets)
        return Graph(offsets, targets, weights, loops, self.scale, notes=self.notes, check=check)

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

    @cached_property
    def has_loops(self) -> bool:
        """Whether a vertex has a loop."""
        return self.loops is not None and bool(self.loops.any())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays: tuple[Any, ...] = (self.offsets, self.targets, self.weights, self.loops)
        return sum(array.nbytes for array in arrays if array is not None)

    def __repr__(self) -> str:
        kind = "weighted" if self.weighted else "unweighted"
        return f"DeviceGraph({self.n_vertices:,} vertices, {self.n_arcs:,} arcs, {kind})"
