"""How many triangles a graph has, from a sample: what its coarse levels keep depends on that."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
    apart = first != second
    u, v = targets[first[apart]].astype(np.int64), targets[second[apart]].astype(np.int64)
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
