"""Rows anywhere in an array of targets, as engines and algorithms read them, and rows of a part."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.core.numbering import members
from louvain_um.errors import GraphError
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_directed

EMPTY: Final = np.uint32(2**32 - 1)
"""No number of a vertex."""


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


def subgraph(graph: Graph, vertices: NDArray[np.integer]) -> Graph:
    """Return the graph of some vertices and the edges among them."""
    refuse_directed(graph, "directed subgraph")
    chosen = np.asarray(vertices, np.int64)
    if len(chosen) and not (
        chosen[0] >= 0 and chosen[-1] < graph.n_vertices and np.all(np.diff(chosen) > 0)
    ):
        raise GraphError(
            f"vertices must ascend within 0 … {graph.n_vertices - 1}, each once; pass "
            "np.unique(vertices)"
        )
    position = np.full(graph.n_vertices, EMPTY, np.uint32)
    position[chosen] = np.arange(len(chosen), dtype=np.uint32)
    loops = graph.loops[chosen]
    there = graph.there
    part = None if there is None else there.merged(position, loops, sums=False)
    part = (part or _chosen_rows(graph, chosen, position, loops)).renewed(
        names=chosen if graph.names is None else graph.names[chosen],
        kind=graph.kind,
        attributes={name: values[chosen] for name, values in (graph.attributes or {}).items()},
    )
    if graph.kind == "bipartite" and graph.imbalance is not None:
        return part.renewed(imbalance=part.degrees * np.sign(graph.imbalance[chosen]))
    return part


def _chosen_rows(
    graph: Graph, chosen: NDArray[np.int64], position: NDArray[np.uint32], loops: NDArray[np.int64]
) -> Graph:
    """Return the rows of some vertices, whose new numbers are given; EMPTY of others."""
    rows = graph.offsets[chosen + 1] - graph.offsets[chosen]
    # Arcs of the chosen rows, one after the other.
    starts = np.concatenate(([0], np.cumsum(rows)))
    arcs = np.arange(starts[-1]) + np.repeat(graph.offsets[chosen] - starts[:-1], rows)
    targets = position[graph.targets[arcs]]
    inner = targets != EMPTY
    counted = np.concatenate(([0], np.cumsum(inner)))
    return Graph(
        counted[starts].astype(np.int64),
        targets[inner],
        None if graph.weights is None else graph.weights[arcs[inner]],
        loops,
        scale=graph.scale,
        kind=graph.kind,
        check=False,
    )


def unchanged(graph: Any) -> AbstractContextManager[None]:
    """Return what keeps a graph as it is while its rows are read, if it is one that changes."""
    keep: Any = getattr(type(graph), "unchanged", None)  # not a column of a table
    held: AbstractContextManager[None] = nullcontext() if keep is None else keep(graph)
    return held


def induced_graph(graph: Graph, labels: NDArray[np.uint32]) -> Graph:
    """Return the weighted graph of communities 0 … max(labels)."""
    if (counts := graph.counts_there(labels)) is not None:
        made = graph.there.merged(labels, counts[0] // 2)
        if made is not None:
            return cast(Graph, made.renewed(notes=graph.notes))
    starts, vertices = members(labels)
    k = len(starts) - 1
    weights: NDArray[Any] = np.zeros(0, np.uint32) if graph.weights is None else graph.weights
    source = (graph.offsets, graph.targets, weights, graph.weighted, graph.loops)
    offsets, loops = np.zeros(k + 1, np.int64), np.zeros(k, np.int64)
    nothing, none = np.zeros(0, np.uint32), np.zeros(0, np.int64)
    _aggregate(*source, labels, starts, vertices, offsets, loops, nothing, none)
    np.cumsum(offsets, out=offsets)
    targets = np.empty(offsets[-1], np.uint32)
    sums = np.empty(offsets[-1], np.int64)
    _aggregate(*source, labels, starts, vertices, offsets, loops, targets, sums)
    # Of a directed graph's communities, imbalances follow; a bipartite one's have no two modes.
    imbalance = None
    if graph.kind == "directed" and graph.imbalance is not None:
        imbalance = np.zeros(k, np.int64)
        np.add.at(imbalance, labels, graph.imbalance)
    narrow = graph.kind != "signed" and (len(sums) == 0 or int(sums.max()) < 2**32)
    return Graph(
        offsets,
        targets,
        sums.astype(np.uint32) if narrow else sums,
        loops,
        scale=graph.scale,
        notes=graph.notes,
        kind="undirected" if graph.kind == "bipartite" else graph.kind,
        imbalance=imbalance,
        check=False,
    )


@kernel()
def _aggregate(
    offsets, targets, weights, weighted, loops, labels, starts, vertices, out, out_loops, to, sums
):
    """Count each community's neighbours into ``out[c + 1]``; or, given `to`, list them."""
    k = len(starts) - 1
    fill = len(to) > 0
    total = np.zeros(k, np.int64)
    seen = np.full(k, -1, np.int64)
    for c in range(k):
        begin = out[c]
        found = 0
        inside = np.int64(0)
        loop = np.int64(0)
        for i in range(starts[c], starts[c + 1]):
            v = vertices[i]
            loop += loops[v]
            for j in range(offsets[v], offsets[v + 1]):
                d = labels[targets[j]]
                weight = np.int64(weights[j]) if weighted else np.int64(1)
                if d == c:
                    inside += weight
                    continue
                if seen[d] != c:
                    seen[d] = c
                    total[d] = 0
                    if fill:
                        to[begin + found] = d
                    found += 1
                total[d] += weight
        out_loops[c] = loop + inside // 2
        if fill:
            row = to[begin : begin + found]
            row.sort()
            for i in range(found):
                sums[begin + i] = total[row[i]]
        else:
            out[c + 1] = found
