"""Check that arrays are a graph: compiled code trusts them without looking."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.errors import GraphError

DESCENDING: Final = 1
BEYOND: Final = 2
LOOP: Final = 3
ORDER: Final = 4
MISSING: Final = 5
UNEQUAL: Final = 6


def validate_rows(
    offsets: NDArray[np.int64], targets: NDArray[np.uint32], weights: NDArray[Any] | None
) -> None:
    """Raise a GraphError unless compressed rows are those of an undirected graph."""
    n = len(offsets) - 1
    given = np.empty(0, np.uint32) if weights is None else weights
    fault, v, t = _first_fault(offsets, targets, given, np.zeros(n, np.int64))
    if fault:
        what = {
            DESCENDING: f"offsets fall after vertex {v}; they must ascend to the number of targets",
            BEYOND: f"vertex {v} has the target {t}, but there are {n} vertices",
            LOOP: f"vertex {v} is a target of its own; store the weight of its loop in loops",
            ORDER: f"the targets of vertex {v} do not ascend at {t}; sort each row, without "
            "repetition",
            MISSING: f"the rows of vertices {v} and {t} disagree on their edge; store each edge in "
            "both rows",
            UNEQUAL: f"the edge of vertices {v} and {t} has two weights; store the same in both "
            "rows",
        }
        raise GraphError(f"{what[fault]}, or use Graph.from_edges")


@kernel()
def _first_fault(offsets, targets, weights, used):
    """Return kind, vertex and target of the first fault; 0 for none."""
    n = len(offsets) - 1
    for v in range(n):
        if offsets[v + 1] < offsets[v] or offsets[v + 1] > len(targets):
            return DESCENDING, v, 0
        for j in range(offsets[v], offsets[v + 1]):
            t = np.int64(targets[j])
            if t >= n:
                return BEYOND, v, t
            if t == v:
                return LOOP, v, t
            if j > offsets[v] and np.int64(targets[j - 1]) >= t:
                return ORDER, v, t
    for v in range(n):
        for j in range(offsets[v], offsets[v + 1]):
            t = np.int64(targets[j])
            place = offsets[t] + used[t]
            if place >= offsets[t + 1] or np.int64(targets[place]) != v:
                return MISSING, v, t
            if len(weights) > 0 and weights[place] != weights[j]:
                return UNEQUAL, v, t
            used[t] += 1
    return 0, 0, 0
