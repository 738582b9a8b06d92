"""How good a partition is: exact sums first, one rounding at the end."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from louvain_um.errors import GraphError
from louvain_um.graph import Graph


def modularity(graph: Graph, labels: ArrayLike, resolution: float = 1.0) -> float:
    """Return Newman's modularity of a partition, with a resolution (Reichardt and Bornholdt).

    Parameters
    ----------
    graph : Graph
    labels : array of int, length n
        Community of each vertex; any integers.
    resolution : float
        γ in Σ_c [ 2·in_c / 2m − γ (degree_c / 2m)² ].

    Returns
    -------
    float
        The exact value rounded once or twice, the same on every machine; 0 without edges.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> round(lu.modularity(g, [0, 0, 0, 1, 1, 1]), 4)
    0.3571
    """
    dense = dense_labels(graph, labels)
    inside, totals = community_weights(graph, dense)
    return modularity_of_sums(
        int(inside.sum()), sum_of_squares(totals), graph.total_weight, resolution
    )


def modularity_of_sums(inside: int, squares: int, total: int, resolution: float) -> float:
    """Return modularity from exact integers.

    Parameters
    ----------
    inside : int
        Σ_c of the weight of arcs inside, both directions, loops twice.
    squares : int
        Σ_c degree_c².
    total : int
        2m.
    """
    if total == 0:
        return 0.0
    return inside / total - resolution * (squares / (total * total))


def dense_labels(graph: Graph, labels: ArrayLike) -> NDArray[np.int64]:
    """Return labels renumbered 0 … k − 1, or say why they do not fit the graph."""
    array = np.asarray(labels)
    if array.shape != (graph.n_vertices,):
        raise GraphError(f"{graph.n_vertices} labels expected, got an array of {array.shape}")
    if array.dtype.kind not in "biu" and len(array):
        raise GraphError(f"labels must be integers, not {array.dtype}")
    if len(array) and 0 <= array.min() and array.max() < 2 * len(array):
        return array.astype(np.int64, copy=False)
    return np.unique(array, return_inverse=True)[1].astype(np.int64, copy=False)


def community_weights(
    graph: Graph, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each community, arcs' weight inside (loops twice) and total degree."""
    k = int(labels.max()) + 1 if len(labels) else 0
    inside, totals = np.zeros(k, np.int64), np.zeros(k, np.int64)
    weights: NDArray[Any] = np.zeros(0, np.uint32) if graph.weights is None else graph.weights
    _community_weights(
        graph.offsets, graph.targets, weights, graph.weighted, graph.loops, labels, inside, totals
    )
    return inside, totals


def sum_of_squares(values: NDArray[np.int64]) -> int:
    """Return Σ values² exactly, for values below 2⁵³."""
    high, low = values >> 27, values & (2**27 - 1)
    # Σ low² may pass 2⁶⁴: its halves are summed apart.
    square = low * low
    return (
        (int((high * high).sum()) << 54)
        + (int((high * low).sum()) << 28)
        + (int((square >> 27).sum()) << 27)
        + int((square & (2**27 - 1)).sum())
    )


@njit(nogil=True, cache=True)
def _community_weights(offsets, targets, weights, weighted, loops, labels, inside, totals):
    for v in range(len(labels)):
        own = labels[v]
        within = 2 * loops[v]
        degree = 2 * loops[v]
        for j in range(offsets[v], offsets[v + 1]):
            weight = np.int64(weights[j]) if weighted else np.int64(1)
            degree += weight
            if labels[targets[j]] == own:
                within += weight
        inside[own] += within
        totals[own] += degree
