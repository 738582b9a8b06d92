"""What every kind shares: the result, the checks, the keys of the hash streams."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.graph.graph import MAX_VERTICES, Graph

Weights = Literal["none", "uniform"]

MASK64: Final = 2**64 - 1

WEIGHT_STREAM: Final = 1
ID_STREAM: Final = 2
"""Streams that every kind has; a kind's own start at 16."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated graph and, where the kind plants them, its communities.

    Parameters
    ----------
    graph : Graph
    labels : uint32[n] or None
        Planted community of each vertex, 0 … k − 1.
    """

    graph: Graph
    labels: NDArray[np.uint32] | None = None


def mix64(x: int) -> int:
    """Return a well-mixed 64-bit image of `x`: splitmix64's finaliser, a bijection."""
    x &= MASK64
    x = (x ^ x >> 30) * 0xBF58_476D_1CE4_E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D0_49BB_1331_11EB & MASK64
    return x ^ x >> 31


def stream_key(seed: int, stream: int) -> np.uint64:
    """Return the key of one stream of a seed's randomness."""
    return np.uint64(mix64(mix64(seed + 0x9E37_79B9_7F4A_7C15) ^ mix64(stream << 32)))


def assemble(
    source: NDArray[np.uint32], target: NDArray[np.uint32], n: int, weights: Weights, seed: int
) -> Graph:
    """Build the graph of a list of edges; loops are dropped, repeated edges count once."""
    graph = Graph.from_edges(source, target, n_vertices=n, duplicates="once")
    return weigh(replace(graph, loops=np.zeros(n, np.int64)), weights, seed)


def weigh(graph: Graph, weights: Weights, seed: int) -> Graph:
    """Give each edge the weight asked for, a function of its two ends."""
    if weights == "none":
        return graph
    from louvain_um.core import parallel
    from louvain_um.generators import rows

    values = np.empty(graph.n_arcs, np.uint32)
    counter = np.zeros(1, np.int64)
    key = stream_key(seed, WEIGHT_STREAM)
    parallel.run(
        rows.weigh_arcs,
        parallel.default_threads(),
        counter,
        key,
        graph.offsets,
        graph.targets,
        values,
    )
    return replace(graph, weights=values)


def check_common(seed: int, weights: str) -> None:
    """Refuse a seed or a kind of weights that no generator knows."""
    whole("seed", seed, 0, 2**32 - 1)
    if weights not in ("none", "uniform"):
        raise OptionError(f"weights must be 'none' or 'uniform', not {weights!r}")


def whole(name: str, value: object, low: int, high: int = MAX_VERTICES) -> int:
    """Return `value` as an int between `low` and `high`, or say what it must be."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise OptionError(f"{name} must be a whole number from {low} to {high}, not {value}")
    return number


def real(name: str, value: float, low: float, high: float = math.inf) -> float:
    """Return `value` as a float between `low` and `high`, or say what it must be."""
    number = float(value) if isinstance(value, int | float | np.number) else math.nan
    if not (low <= number <= high and math.isfinite(number)):
        span = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise OptionError(f"{name} must be a number {span}, not {value}")
    return number


def afford(n: int, arcs: int) -> None:
    """Refuse a graph whose making would not fit the machine: 12 bytes an arc, 40 a vertex."""
    if not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    needed = 12 * arcs + 40 * n
    if needed > memory:
        raise MemoryBudgetError(
            needed,
            memory,
            [("edge list and rows", 12 * arcs)],
            "ask for fewer vertices or a lower degree",
        )


def power_law(low: int, high: int, exponent: float) -> NDArray[np.uint64]:
    """Return the distribution of whole numbers drawn with probability ∝ x^−exponent.

    Returns
    -------
    uint64[high − low + 1]
        Entry k is the smallest 64-bit draw that means more than ``low + k``; the last one
        stands for no limit. Made on the host, once, so that no draw needs a power.
    """
    numbers = np.arange(low, high + 1, dtype=np.float64)
    cumulative = np.cumsum(numbers**-exponent)
    # 48 bits: far below the steps that matter, and coarse enough to hide the last bits of
    # `power`, which differ between machines.
    steps = np.rint(cumulative / cumulative[-1] * 2.0**48).astype(np.uint64)
    table: NDArray[np.uint64] = steps << np.uint64(16)
    table[steps == np.uint64(2**48)] = MASK64
    return table
