"""Random graphs with the degrees of a given one: its edges' ends in random pairs.

The configuration model (Molloy, Reed 1995). An order is that of random keys, a hash of a key and a
number, so that a device makes the same graphs (`louvain_um.gpu.generate.generate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.core.numbering import community_weights
from louvain_um.generators.base import WEIGHT_STREAM, stream_key
from louvain_um.graph.graph import Graph

END_STREAM: Final = 48

END_BYTES: Final = 48
"""Of each end of an edge, at least: its vertex, its place in a random order, and the graph."""

N = TypeVar("N", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomGraphs:
    """What random graphs share out: both ends of all edges, and weights as integers, if any."""

    ends: NDArray[np.uint32]
    weights: NDArray[np.int64] | None
    n_vertices: int

    @classmethod
    def like(cls, graph: Graph) -> RandomGraphs:
        """Return the random graphs of a graph's degrees; a loop is an edge with two ends."""
        n, vertices = graph.n_vertices, np.arange(graph.n_vertices, dtype=np.uint32)
        degrees, loops = np.diff(graph.offsets), graph.loops != 0
        check_host_memory(
            END_BYTES * graph.n_arcs,
            f"a random graph of {graph.n_arcs:,} arcs",
            "use a machine with more memory",
        )
        weights = None
        if graph.weights is not None:
            once = np.repeat(vertices, degrees) < graph.targets
            weights = np.concatenate((graph.weights[once], graph.loops[loops]), dtype=np.int64)
        return cls(ends=np.repeat(vertices, degrees + 2 * loops), weights=weights, n_vertices=n)

    def graph(self, seed: int) -> Graph:
        """Return one of them: ends in random pairs, weights likewise.

        Pairs that come again add up, and those with equal ends are loops, so degrees are kept
        exactly.
        """
        ends = shuffled(self.ends, stream_key(seed, END_STREAM))
        weights = None
        if self.weights is not None:
            weights = shuffled(self.weights, stream_key(seed, WEIGHT_STREAM))
        pairs = len(ends) // 2
        return Graph.from_edges(
            ends[:pairs], ends[pairs:], weights, n_vertices=self.n_vertices, duplicates="sum"
        )

    def sums(self, graph: Graph, labels: NDArray[np.uint32]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return, of each community, arcs' weight inside (loops twice) and total degree."""
        return community_weights(graph, labels)


def shuffled(values: NDArray[N], key: np.uint64) -> NDArray[N]:
    """Return values in the random order of a key."""
    from louvain_um.generators.hashing import draws

    bits = place_bits(len(values))
    keys = draws(key, 0, len(values)) << np.uint64(bits)
    keys |= np.arange(len(values), dtype=np.uint64)
    keys.sort()
    order: NDArray[np.uint64] = keys & np.uint64((1 << bits) - 1)
    return values.take(order.view(np.int64))


def place_bits(count: int) -> int:
    """Return the bits of a sort key, all different, that hold one of `count` places."""
    # The others are random.
    return max(count - 1, 1).bit_length()
