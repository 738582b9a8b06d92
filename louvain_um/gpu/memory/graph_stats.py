"""Statistics of a graph that a plan needs besides its size: degrees, and a sample of triangles."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.parallel import over_pieces
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


WEDGES: Final = 1 << 13
"""Pairs of neighbours that are sampled: the share that is joined is right to within 0.01."""


def sampled_clustering(offsets: Any, targets: Any, wedges: int = WEDGES) -> float:
    """Return the share of pairs of neighbours that are neighbours of each other."""
    arcs = len(targets)
    if arcs < 2:
        return 0.0
    drawn = wedge_draws(wedges)
    centre = targets[(drawn[0] * arcs).astype(np.int64)].astype(np.int64)
    low, high = offsets[centre], offsets[centre + 1]
    first, second = (low + (part * (high - low)).astype(np.int64) for part in drawn[1:])
    distinct = first != second
    u, v = targets[first[distinct]].astype(np.int64), targets[second[distinct]].astype(np.int64)
    # The shorter of both rows is searched.
    longer = offsets[u + 1] - offsets[u] > offsets[v + 1] - offsets[v]
    u, v = np.where(longer, v, u), np.where(longer, u, v)
    low, end = offsets[u], offsets[u + 1]
    high = end
    for _ in range(int(high_bit(int((end - low).max())) if len(u) else 0)):
        middle = (low + high) // 2
        before = (low < high) & (targets[np.minimum(middle, arcs - 1)] < v)
        low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
    joined = (low < end) & (targets[np.minimum(low, arcs - 1)] == v)
    return float(joined.mean()) if len(u) else 0.0


@cache
def wedge_draws(wedges: int = WEDGES) -> NDArray[np.float64]:
    """Return numbers from 0 to 1 that draw arcs and, at the end of each, two neighbours."""
    drawn = np.random.default_rng(0).random((3, wedges))
    drawn.flags.writeable = False
    return drawn


def high_bit(number: int) -> int:
    """Return the steps of a binary search among so many."""
    return number.bit_length() + 1
