"""Statistics of a graph's degrees that a plan needs besides its size."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.parallel import over_pieces
from louvain_um.gpu.memory.clustering import sampled_clustering
from louvain_um.gpu.memory.packed import MOST_WEIGHT


class DegreeStats(NamedTuple):
    """Statistics of the arcs per vertex."""

    max_degree: int
    degree_squares: int
    isolated: int = 0
    hub_arcs: int | None = None
    clustering: float | None = None
    weights16: bool = False


HUB_DEGREE: Final = 1024
"""Arcs of a vertex above which it may take a table of its own (`launch.BLOCK_MAX`)."""


def graph_stats(graph: Any) -> DegreeStats:
    """Return the statistics of a graph, a sample of its triangles among them."""
    found = degree_stats(graph.offsets)
    clustering = sampled_clustering(graph.offsets, graph.targets)
    return found._replace(clustering=clustering, weights16=fit16(graph.weights))


def fit16(weights: Any) -> bool:
    """Return whether there are weights, none of which takes more than 16 bits."""
    if weights is None:
        return False
    if not isinstance(weights, np.ndarray):
        return not len(weights) or int(weights.max()) <= MOST_WEIGHT
    return all(over_pieces(lambda piece: int(piece.max()) <= MOST_WEIGHT, weights))


def degree_stats(offsets: NDArray[np.int64]) -> DegreeStats:
    """Return the degree statistics of a graph."""
    found = over_pieces(_piece_stats, offsets, overlap=1)
    if not found:
        return DegreeStats(0, 0, 0, 0)
    most, squares, isolated, hub_arcs = zip(*found, strict=True)
    return DegreeStats(max(most), sum(squares), sum(isolated), sum(hub_arcs))


def _piece_stats(offsets: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """Return the most arcs, their squares' sum, vertices without arcs and arcs of hubs."""
    arcs = np.diff(offsets)
    real = arcs.astype(np.float64)  # squares of more than 2**31 arcs overflow integers
    squares = int(np.einsum("i,i->", real, real))
    hub_arcs = int(arcs[arcs > HUB_DEGREE].sum())
    return int(arcs.max()), squares, int((arcs == 0).sum()), hub_arcs
