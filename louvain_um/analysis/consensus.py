"""Consensus of partitions on the arcs of a graph.

References
----------
Lancichinetti, Fortunato: Consensus clustering in complex networks, 2012. Tandon, Albeshri,
Thayananthan, Alhalabi, Radicchi, Fortunato: Fast consensus clustering in complex networks, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.core.numbering import members, number_by_size
from louvain_um.graph.graph import Graph

U32 = NDArray[np.uint32]

MIN_SHARE: Final = 0.2
"""Share of runs below which an arc is dropped: the value of Tandon et al. for Louvain."""

UNDECIDED: Final = 0.02
"""Share of arcs on which runs may still differ at the end; also from Tandon et al."""

MOST_ROUNDS: Final = 20
"""Rounds after which runs that still differ are given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """A partition on which runs agree."""

    labels: U32
    rounds: int
    converged: bool


def find_consensus(
    graph: Graph,
    partitions: Sequence[U32],
    detect: Callable[[Graph, int], Sequence[U32]],
) -> Consensus:
    """Return the partition on which runs agree."""
    found = list(partitions)
    for number in range(MOST_ROUNDS):
        counts = arc_counts(graph, found)
        kept = _kept_arcs(graph, counts, len(found))
        undecided = np.count_nonzero(counts[kept] < len(found))
        if undecided == 0:
            return Consensus(labels=_components(graph, kept), rounds=number, converged=True)
        if undecided <= UNDECIDED * np.count_nonzero(kept):
            return Consensus(labels=number_by_size(found[0]), rounds=number, converged=True)
        graph = _reweighted(graph, counts, kept)
        found = list(detect(graph, number))
    return Consensus(labels=number_by_size(found[0]), rounds=MOST_ROUNDS, converged=False)


def arc_counts(graph: Graph, partitions: Sequence[U32]) -> NDArray[np.uint32]:
    """Return the number of partitions in which both ends of each arc are together, uint32[arcs]."""
    counts = np.zeros(graph.n_arcs, np.uint32)
    for labels in partitions:
        _count(graph.offsets, graph.targets, labels, counts)
    return counts


def certainty(labels: U32, partitions: Sequence[U32]) -> NDArray[np.float64]:
    """Return how sure each vertex is of its community, float64[n]."""
    starts, vertices = members(labels)
    met = np.zeros(len(labels), np.int64)
    for other in partitions:
        _meet(starts, vertices, other, met)
    others = (np.diff(starts) - 1)[labels] if len(labels) else np.zeros(0, np.int64)
    shares = met / np.maximum(others * len(partitions), 1)
    found: NDArray[np.float64] = np.where(others > 0, shares, 1.0)
    return found


def _kept_arcs(graph: Graph, counts: NDArray[np.uint32], runs: int) -> NDArray[np.bool_]:
    kept = counts >= MIN_SHARE * runs
    _keep_strongest(graph.offsets, graph.targets, counts, kept)
    return kept


def _reweighted(graph: Graph, counts: NDArray[np.uint32], kept: NDArray[np.bool_]) -> Graph:
    """Return the graph of the kept arcs, weighted by the runs that agree."""
    before = np.concatenate(([0], np.cumsum(kept)))
    return Graph(
        before[graph.offsets].astype(np.int64),
        graph.targets[kept],
        counts[kept],
        np.zeros(graph.n_vertices, np.int64),
        check=False,
    )


def _components(graph: Graph, kept: NDArray[np.bool_]) -> U32:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    before = np.concatenate(([0], np.cumsum(kept)))
    targets = graph.targets[kept].astype(np.int64)
    arrays = (np.ones(len(targets), np.int8), targets, before[graph.offsets])
    n = graph.n_vertices
    return number_by_size(connected_components(csr_array(arrays, shape=(n, n)), directed=False)[1])


@kernel()
def _count(offsets, targets, labels, counts):
    for v in range(len(labels)):
        for j in range(offsets[v], offsets[v + 1]):
            if labels[targets[j]] == labels[v]:
                counts[j] += np.uint32(1)


@kernel()
def _meet(starts, vertices, labels, met):
    """Add to each vertex the members of its community that share its label."""
    count = np.zeros(len(labels) + 1, np.int64)
    for c in range(len(starts) - 1):
        for i in range(starts[c], starts[c + 1]):
            count[labels[vertices[i]]] += 1
        for i in range(starts[c], starts[c + 1]):
            met[vertices[i]] += count[labels[vertices[i]]] - 1
        for i in range(starts[c], starts[c + 1]):
            count[labels[vertices[i]]] = 0


@kernel()
def _keep_strongest(offsets, targets, counts, kept):
    """Keep the strongest arc, both ways, of each vertex that would lose all its arcs."""
    for v in range(len(offsets) - 1):
        best = np.int64(-1)
        for j in range(offsets[v], offsets[v + 1]):
            if kept[j]:
                best = np.int64(-1)
                break
            if best < 0 or counts[j] > counts[best]:
                best = np.int64(j)
        if best >= 0 and counts[best] > 0:
            kept[best] = True
            low, high = offsets[targets[best]], offsets[targets[best] + 1]
            while low < high:
                middle = (low + high) // 2
                if targets[middle] < v:
                    low = middle + 1
                else:
                    high = middle
            kept[low] = True
