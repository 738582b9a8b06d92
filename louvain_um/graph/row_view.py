"""Rows anywhere in an array of targets: what engines and algorithms read of a graph or a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing import Self

    from louvain_um.graph.graph import Graph


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class RowView:
    """An undirected graph whose rows may lie anywhere and in any order.

    Nothing is copied. The rows of a changing graph are valid until its next batch.

    Parameters
    ----------
    begins, ends : int64[n]
        Row `v` is ``targets[begins[v]:ends[v]]``, ascending, without repetition and without `v`.
    targets : uint32[m]
        Rows, and unused places between them.
    weights : uint32[m] or int64[m] or None
        Integer weights at the places of their targets; None when every weight is 1.
    loops : int64[n]
        Weight of each vertex's self-loop.
    degrees : int64[n]
        Weighted degrees; a loop counts twice.
    n_arcs : int
        Sum of the rows' lengths.
    total_weight : int
        Sum of all degrees, 2m.
    scale : float
        As in `Graph`.
    names : array of length n, optional
        The vertices' names, None for vertices without one.
    blocks : louvain_um.cpu.walk.LinkedBlocks, optional
        How rows are cut into linked blocks; by default each is contiguous. Of a row in blocks,
        ``ends - begins`` is the length.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.graph.row_view import RowView
    >>> view = RowView.of(lu.Graph.from_edges([0, 1], [1, 2]))
    >>> view.targets[view.begins[1] : view.ends[1]].tolist()
    [0, 2]
    """

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint32] | NDArray[np.int64] | None
    loops: NDArray[np.int64]
    degrees: NDArray[np.int64]
    n_arcs: int
    total_weight: int
    scale: float = 1.0
    names: NDArray[Any] | None = None
    blocks: Any = None

    @property
    def linked(self) -> bool:
        """Whether rows are in linked blocks."""
        return self.blocks is not None

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Return a view of a graph's compressed rows."""
        return cls(
            begins=graph.offsets[:-1],
            ends=graph.offsets[1:],
            targets=graph.targets,
            weights=graph.weights,
            loops=graph.loops,
            degrees=graph.degrees,
            n_arcs=graph.n_arcs,
            total_weight=graph.total_weight,
            scale=graph.scale,
            names=graph.names,
        )

    def as_graph(self) -> Graph:
        """Return a copy as a graph of compressed rows."""
        from louvain_um.graph.graph import Graph

        lengths = self.ends - self.begins
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.repeat(self.begins - offsets[:-1], lengths) + np.arange(self.n_arcs)
        weights: Any = None if self.weights is None else self.weights[places]
        loops = self.loops.copy()
        targets = self.targets[places]
        return Graph(offsets, targets, weights, loops, self.scale, self.names, check=False)

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return len(self.begins)

    @property
    def max_degree(self) -> int:
        """Largest number of arcs of a vertex."""
        return int((self.ends - self.begins).max(initial=0))
