"""What all kinds share: the result, options and their checks, keys of the hash streams."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import MemoryBudgetError, OptionError, check_choice
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_VERTICES

Weights = Literal["none", "uniform"]

MASK64: Final = 2**64 - 1

WEIGHT_STREAM: Final = 1
ID_STREAM: Final = 2
"""Streams that all kinds have; a kind's own start at 16."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated graph and its planted communities, if the kind has any."""

    graph: Graph
    labels: NDArray[np.uint32] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """Options that all kinds have."""

    permute: bool
    weights: Weights
    seed: int

    def __post_init__(self) -> None:
        whole_number("seed", self.seed, 0, 2**32 - 1)
        check_choice("weights", self.weights, ("none", "uniform"))

    def key(self, stream: int) -> np.uint64:
        """Return the key of a random stream of the seed."""
        return stream_key(self.seed, stream)

    def vertex_ids(self, n: int) -> NDArray[np.uint64]:
        """Return the permutation of the ids of n vertices, for `hashing.permute`."""
        from louvain_um.generators.hashing import permutation

        return permutation(self.key(ID_STREAM), n, self.permute)

    def graph_of_edges(self, u: NDArray[np.uint32], v: NDArray[np.uint32], n: int) -> Graph:
        """Build the graph of a list of edges; loops are dropped, repeated edges count once."""
        graph = Graph.from_edges(u, v, n_vertices=n, duplicates="once")
        return self._weighted(replace(graph, loops=np.zeros(n, np.int64), check=False))

    def graph_of_rows(
        self, n: int, count: Callable[..., None], fill: Callable[..., None], *args: object
    ) -> Graph:
        """Build a graph from two kernels of `rows`, which count and write its rows."""
        from louvain_um.core import parallel

        threads = parallel.default_threads() if n > 1 << 12 else 1
        offsets = np.zeros(n + 1, np.int64)
        parallel.run(count, threads, *args, offsets)
        np.cumsum(offsets, out=offsets)
        targets = np.empty(int(offsets[-1]), np.uint32)
        parallel.run(fill, threads, *args, offsets, targets)
        return self._weighted(Graph(offsets, targets, None, np.zeros(n, np.int64), check=False))

    def _weighted(self, graph: Graph) -> Graph:
        """Add the requested weights; a weight depends on the edge's two ends."""
        if self.weights == "none":
            return graph
        from louvain_um.core import parallel
        from louvain_um.generators import rows

        values = np.empty(graph.n_arcs, np.uint32)
        parallel.run(
            rows.weigh_arcs,
            parallel.default_threads(),
            np.zeros(1, np.int64),
            self.key(WEIGHT_STREAM),
            graph.offsets,
            graph.targets,
            values,
        )
        return replace(graph, weights=values, check=False)


def mix64(x: int) -> int:
    """Return the splitmix64 finalizer of `x`, a bijection of 64-bit integers."""
    x &= MASK64
    x = (x ^ x >> 30) * 0xBF58_476D_1CE4_E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D0_49BB_1331_11EB & MASK64
    return x ^ x >> 31


def stream_key(seed: int, stream: int) -> np.uint64:
    """Return the key of a random stream of a seed."""
    return np.uint64(mix64(mix64(seed + 0x9E37_79B9_7F4A_7C15) ^ mix64(stream << 32)))


def whole_number(name: str, value: Any, low: int, high: int = MAX_VERTICES) -> int:
    """Return `value` as an int between `low` and `high`; the error names the range."""
    try:
        number = low - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise OptionError(name, value, f"must be a whole number from {low} to {high}")
    return number


def real_number(name: str, value: float, low: float, high: float = math.inf) -> float:
    """Return `value` as a float between `low` and `high`; the error names the range."""
    known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    number = float(value) if known else math.nan
    if not (low <= number <= high and math.isfinite(number)):
        span = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise OptionError(name, value, f"must be a number {span}")
    return number


def check_memory(n: int, arcs: int) -> None:
    """Raise an error if generating takes more than the host's memory."""
    if not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    needed = 12 * arcs + 40 * n
    if needed > memory:
        raise MemoryBudgetError(
            needed,
            memory,
            [("edge list and rows", 12 * arcs)],
            "use fewer vertices or a lower degree",
        )


def power_law(low: int, high: int, exponent: float) -> NDArray[np.uint64]:
    """Return the distribution of whole numbers drawn with probability ∝ x^−exponent."""
    numbers = np.arange(low, high + 1, dtype=np.float64)
    cumulative = np.cumsum(numbers**-exponent)
    # 48 bits: finer than the steps that matter, but coarse enough to hide the last bits of
    # `power`, which differ between machines.
    steps = np.rint(cumulative / cumulative[-1] * 2.0**48).astype(np.uint64)
    table: NDArray[np.uint64] = steps << np.uint64(16)
    table[steps == np.uint64(2**48)] = MASK64
    return table
