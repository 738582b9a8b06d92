"""Statistics of a graph that a plan needs besides its size: degrees, and samples of its arcs."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.parallel import over_pieces
from louvain_um.gpu.memory.packed import MOST_WEIGHT
from louvain_um.graph.graph import Graph
from louvain_um.placement.model.workload import LocalStructure


class DegreeStats(NamedTuple):
    """Statistics of the arcs per vertex."""

    max_degree: int
    degree_squares: int
    isolated: int = 0
    hub_arcs: int | None = None
    clustering: float | None = None
    weights16: bool = False
    structure: LocalStructure | None = None


HUB_DEGREE: Final = 1024
"""Arcs of a vertex above which it may take a table of its own (`launch.BLOCK_MAX`)."""


def graph_stats(graph: Graph) -> DegreeStats:
    """Return the statistics of a graph on the host, samples of its arcs among them."""
    offsets, targets = graph.offsets, graph.targets
    return degree_stats(offsets)._replace(
        clustering=sampled_clustering(offsets, targets),
        weights16=fit16(graph.weights),
        structure=sampled_structure(offsets, targets),
    )


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
    return _joined_share(offsets, targets, u, v)


def _joined_share(offsets: Any, targets: Any, u: Any, v: Any) -> float:
    """Return the share of pairs of vertices that an arc joins."""
    if not len(u):
        return 0.0
    # The shorter of both rows is searched.
    longer = offsets[u + 1] - offsets[u] > offsets[v + 1] - offsets[v]
    u, v = np.where(longer, v, u), np.where(longer, u, v)
    low, end = offsets[u], offsets[u + 1]
    high, last = end, len(targets) - 1
    for _ in range(int((end - low).max()).bit_length() + 1):
        middle = (low + high) // 2
        before = (low < high) & (targets[np.minimum(middle, last)] < v)
        low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
    joined = (low < end) & (targets[np.minimum(low, last)] == v)
    return float(joined.mean())


SAMPLED: Final = 1 << 12
WALKS: Final = 1 << 5
STEPS: Final = 4
"""Paths and walks that are sampled, walks from the same vertex, and steps of each."""

SAMPLED_FROM: Final = 1 << 20
"""Arcs from which sampling takes less than a run does."""


def sampled_structure(offsets: Any, targets: Any) -> LocalStructure | None:
    """Return samples of what is near a vertex; None for graphs whose runs take as long."""
    arcs = len(targets)
    if arcs < SAMPLED_FROM:
        return None
    drawn = iter(structure_draws())

    def neighbour(vertices: Any) -> Any:
        low = offsets[vertices]
        many = offsets[vertices + 1] - low
        return targets[low + (next(drawn) * many).astype(np.int64)].astype(np.int64)

    u = targets[(next(drawn) * arcs).astype(np.int64)].astype(np.int64)
    v = neighbour(u)
    of_u, of_v = neighbour(u), neighbour(v)
    path = (of_u != v) & (of_v != u) & (of_u != of_v)
    squares = _joined_share(offsets, targets, of_u[path], of_v[path])
    at = np.repeat(u[: SAMPLED // WALKS], WALKS)
    for _ in range(STEPS):
        at = neighbour(at)
    return structure_of(squares, at)


def structure_of(squares: float, ends: NDArray[np.integer[Any]]) -> LocalStructure:
    """Return what samples say, of the share of paths that an arc closes and of ends of walks."""
    walks = ends.astype(np.int64) + (np.arange(SAMPLED) // WALKS << 32)
    _, met = np.unique(walks, return_counts=True)
    return LocalStructure(
        squares=squares, collisions=float((met * (met - 1)).sum() / (SAMPLED * (WALKS - 1)))
    )


@cache
def structure_draws() -> NDArray[np.float64]:
    """Return numbers from 0 to 1 that draw arcs, three neighbours and the steps of walks."""
    drawn = np.random.default_rng(1).random((4 + STEPS, SAMPLED))
    drawn.flags.writeable = False
    return drawn


@cache
def wedge_draws(wedges: int = WEDGES) -> NDArray[np.float64]:
    """Return numbers from 0 to 1 that draw arcs and, at the end of each, two neighbours."""
    drawn = np.random.default_rng(0).random((3, wedges))
    drawn.flags.writeable = False
    return drawn
