"""Number communities by descending size, list their members, and sum over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.compiled import kernel
from louvain_um.errors import GraphError
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
    if (there := graph.counts_there(labels)) is not None:
        return there[0], there[1]
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
        community = labels[v]
        within = 2 * loops[v]
        degree = 2 * loops[v]
        for j in range(offsets[v], offsets[v + 1]):
            weight = np.int64(weights[j]) if weighted else np.int64(1)
            degree += weight
            if labels[targets[j]] == community:
                within += weight
        inside[community] += within
        totals[community] += degree


UNSEEN = np.uint32(2**32 - 1)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different integers of an array, ascending."""
    # By sorting: `np.unique` hashes integers since NumPy 2.3, which takes many times as long.
    found = np.sort(values, axis=None)
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found


def dense_uint32(labels: ArrayLike) -> NDArray[np.uint32]:
    """Return labels as uint32 below twice their number; renumbered only if they are not."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise GraphError(f"labels must be one-dimensional, not of shape {array.shape}")
    if len(array) == 0:
        return np.zeros(0, np.uint32)
    if array.dtype.kind not in "biu":
        raise GraphError(f"labels must be integers or text, not {array.dtype}; convert them")
    if array.min() >= 0 and array.max() < 2 * len(array):
        return np.ascontiguousarray(array, np.uint32)
    return np.unique(array, return_inverse=True)[1].astype(np.uint32)


def number_by_size(labels: ArrayLike) -> NDArray[np.uint32]:
    """Renumber communities by descending size, ties by their smallest member."""
    dense = dense_uint32(labels)
    numbered = np.empty(len(dense), np.uint32)
    if len(dense):
        _number(dense, np.full(int(dense.max()) + 1, UNSEEN, np.uint32), numbered)
    return numbered


def community_sizes(labels: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the number of members of communities 0 … max(labels)."""
    sizes = np.zeros(int(labels.max()) + 1 if len(labels) else 0, np.int64)
    _count(labels, sizes)
    return sizes


def members(labels: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return starts int64[k + 1] and vertices uint32[n], ascending within each community."""
    starts = np.zeros(int(labels.max()) + 2 if len(labels) else 1, np.int64)
    _count(labels, starts[1:])
    np.cumsum(starts, out=starts)
    vertices = np.empty(len(labels), np.uint32)
    _list_members(labels, starts[:-1].copy(), vertices)
    return starts, vertices


def agreement(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the communities that two partitions have in common, by their smallest members."""
    starts, vertices = members(one)
    common = np.empty(len(one), np.uint32)
    size = int(other.max()) + 1 if len(other) else 0
    _intersect(starts, vertices, other, np.full(size, UNSEEN, np.uint32), common)
    return common


@kernel()
def _intersect(starts, vertices, other, last, common):
    """Name each vertex by the first of its community with its other label; `last` has UNSEEN."""
    first = np.empty(len(last), np.uint32)
    for c in range(len(starts) - 1):
        for i in range(starts[c], starts[c + 1]):
            v = vertices[i]
            label = other[v]
            if last[label] != c:
                last[label] = c
                first[label] = v
            common[v] = first[label]


@kernel()
def _count(labels, sizes):
    for v in range(len(labels)):
        sizes[labels[v]] += 1


@kernel()
def _list_members(labels, next_, vertices):
    for v in range(len(labels)):
        c = labels[v]
        vertices[next_[c]] = v
        next_[c] += 1


@kernel()
def _number(labels, rename, numbered):
    # Numbering by first appearance puts ties in the order of their smallest member; a
    # stable counting sort by size then keeps that order.
    k = 0
    for v in range(len(labels)):
        if rename[labels[v]] == UNSEEN:
            rename[labels[v]] = k
            k += 1
    sizes = np.zeros(k, np.uint32)
    for v in range(len(labels)):
        sizes[rename[labels[v]]] += np.uint32(1)
    largest = np.int64(sizes.max())
    starts = np.zeros(largest + 2, np.uint32)
    for c in range(k):
        starts[largest - np.int64(sizes[c]) + 1] += np.uint32(1)
    for i in range(largest + 1):
        starts[i + 1] += starts[i]
    for c in range(k):
        at = largest - np.int64(sizes[c])
        sizes[c] = starts[at]
        starts[at] += np.uint32(1)
    for v in range(len(labels)):
        numbered[v] = sizes[rename[labels[v]]]
