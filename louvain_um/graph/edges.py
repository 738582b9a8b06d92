"""The edges of a graph, each once, in blocks; real weights as they were read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.graph.graph_data import GraphData
from louvain_um.graph.shortest_weights import weights_to_write

BLOCK_ARCS = 1 << 20
"""Arcs handled at a time."""

Edges = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]


def vertex_ranges(graph: GraphData) -> Iterator[tuple[int, int]]:
    """Yield ranges of vertices with about `BLOCK_ARCS` arcs."""
    n, start = graph.n_vertices, 0
    while start < n:
        stop = int(np.searchsorted(graph.offsets, graph.offsets[start] + BLOCK_ARCS, "right")) - 1
        stop = min(max(stop, start + 1), n, start + BLOCK_ARCS)
        yield start, stop
        start = stop


def edges(graph: GraphData) -> Iterator[Edges]:
    """Yield each edge once, loops included, block by block; real weights as floats."""
    decimals = weights_to_write(graph)
    for start, stop in vertex_ranges(graph):
        low, high = int(graph.offsets[start]), int(graph.offsets[stop])
        u = np.repeat(np.arange(start, stop), np.diff(graph.offsets[start : stop + 1]))
        v = graph.targets[low:high].astype(np.int64)
        upper = u < v
        u, v = u[upper], v[upper]
        loops = np.flatnonzero(graph.loops[start:stop]) + start
        w: NDArray[Any] | None = None
        if graph.weights is not None:
            w = graph.weights[low:high][upper].astype(np.int64)
        if len(loops):
            u, v = np.concatenate((u, loops)), np.concatenate((v, loops))
            if w is not None:
                w = np.concatenate((w, graph.loops[loops]))
            order = np.lexsort((v, u))
            u, v, w = u[order], v[order], None if w is None else w[order]
        yield u, v, None if w is None else decimals(w)


def all_edges(
    graph: GraphData,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[Any] | None]:
    """Return the two ends of all edges, loops included, and their weights, if there are any."""
    parts = [(u.astype(np.uint32), v.astype(np.uint32), w) for u, v, w in edges(graph)] or [
        (np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.int64))
    ]
    u = np.concatenate([part[0] for part in parts])
    v = np.concatenate([part[1] for part in parts])
    if graph.weights is None:
        return u, v, None
    return u, v, np.concatenate([part[2] for part in parts if part[2] is not None])
