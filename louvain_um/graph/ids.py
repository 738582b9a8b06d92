"""What compiled code trusts without looking: ids of vertices, and arrays that are a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.plain_data import plain_array
from louvain_um.errors import GraphError
from louvain_um.graph.integer_weights import SMALL, refuse
from louvain_um.graph.limits import MAX_VERTICES

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


# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"


AS_NAMES = "number vertices from 0, or pass names as text to as_graph"
TOO_LARGE = f"outside the range of vertex ids; {AS_NAMES}"


@dataclass(frozen=True, slots=True)
class Ids:
    """Whole numbers in 32 bits, and the smallest and largest as they were; 0, −1 of none."""

    # `values` are of no use where those do not fit.

    values: NDArray[np.uint32]
    least: int
    largest: int


def narrowed(ids: NDArray[Any]) -> Ids:
    """Return integers in 32 bits, the same array if its type is uint32."""
    if len(ids) == 0:
        return Ids(np.zeros(0, np.uint32), 0, -1)
    if len(ids) > SMALL and ids.dtype in (np.int64, np.int32) and ids.flags.c_contiguous:
        threads = parallel.default_threads()
        lows, highs = np.empty(threads, np.int64), np.empty(threads, np.int64)
        values = np.empty(len(ids), np.uint32)
        parallel.run(_narrow, threads, ids, values, lows, highs)
        return Ids(values, int(lows.min()), int(highs.max()))
    ends = parallel.over_pieces(lambda piece: (int(piece.min()), int(piece.max())), ids)
    least, most = zip(*ends, strict=True)
    return Ids(ids.astype(np.uint32, copy=False), min(least), max(most))


def vertex_ids(values: ArrayLike, what: str) -> Ids:
    """Return vertex ids; the error names the first that is no id."""
    ids = plain_array(values, what)
    if ids.ndim != 1:
        raise GraphError(f"{what} must be one-dimensional, not of shape {ids.shape}")
    if len(ids) == 0:
        return narrowed(ids)
    if ids.dtype.kind == "f":
        refuse(ids != np.floor(ids), ids, f"not a whole number; {AS_NAMES}", what)
        refuse(np.abs(ids) > np.float64(MAX_VERTICES), ids, TOO_LARGE, what)
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        raise GraphError(f"{what} must be integers, not {ids.dtype}; {AS_NAMES}")
    found = narrowed(ids)
    if found.least < 0:
        refuse(ids < 0, ids, f"negative; {AS_NAMES}", what)
    if found.largest >= MAX_VERTICES:
        refuse(ids >= MAX_VERTICES, ids, TOO_LARGE, what)
    return found


@kernel()
def _narrow(t, threads, ids, values, least, most):
    """Write a thread's ids in 32 bits; note the smallest and the largest."""
    first = len(ids) * t // threads
    low, high = np.int64(ids[first]), np.int64(ids[first])
    for i in range(first, len(ids) * (t + 1) // threads):
        low, high = min(low, np.int64(ids[i])), max(high, np.int64(ids[i]))
        values[i] = np.uint32(ids[i])
    least[t], most[t] = low, high
