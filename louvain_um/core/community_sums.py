"""Sums over communities: masses, weights inside, and exact squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.graph.graph import Graph


def community_masses(
    labels: NDArray[np.uint32], masses: NDArray[np.int64], communities: int
) -> NDArray[np.int64]:
    """Return the sum of the masses of each community's vertices, int64[communities]."""
    totals = np.zeros(communities, np.int64)
    add_masses(masses, labels, totals)
    return totals


def community_weights(
    graph: Graph, labels: NDArray[np.uint32]
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
    if not len(values):
        return 0
    parts = _squares(values, np.zeros(4, np.int64)).tolist()
    return sum(int(part) << shift for part, shift in zip(parts, (54, 28, 27, 0), strict=True))


@kernel()
def add_masses(masses, numbers, sums):
    """Add each vertex's mass to its community's."""
    for v in range(len(numbers)):
        sums[numbers[v]] += masses[v]


@kernel()
def _squares(values, parts):
    """Sum the products of the halves of each value."""
    for value in values:
        if value == 0:
            continue
        high, low = value >> 27, value & (2**27 - 1)
        # Σ low² may pass 2⁶⁴: its halves are summed separately.
        square = low * low
        parts[0] += high * high
        parts[1] += high * low
        parts[2] += square >> 27
        parts[3] += square & (2**27 - 1)
    return parts


@kernel()
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
