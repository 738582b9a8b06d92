"""The part of a graph among some of its vertices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_directed


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
    position = np.full(graph.n_vertices, len(chosen), np.uint32)
    position[chosen] = np.arange(len(chosen), dtype=np.uint32)
    rows = graph.offsets[chosen + 1] - graph.offsets[chosen]
    # Arcs of the chosen rows, one after the other.
    starts = np.concatenate(([0], np.cumsum(rows)))
    arcs = np.arange(starts[-1]) + np.repeat(graph.offsets[chosen] - starts[:-1], rows)
    targets = position[graph.targets[arcs]]
    inner = targets < len(chosen)
    counted = np.concatenate(([0], np.cumsum(inner)))
    part = Graph(
        counted[starts].astype(np.int64),
        targets[inner],
        None if graph.weights is None else graph.weights[arcs[inner]],
        graph.loops[chosen],
        scale=graph.scale,
        names=chosen if graph.names is None else graph.names[chosen],
        kind=graph.kind,
        check=False,
    )
    if graph.kind == "bipartite" and graph.imbalance is not None:
        return replace(part, imbalance=part.degrees * np.sign(graph.imbalance[chosen]), check=False)
    return part
