"""A batch as users give it, checked and converted to keys and integer weights."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.core.plain_data import exact_numbers, number_array
from louvain_um.cpu.dynamic.net import edge_keys
from louvain_um.errors import GraphError, among, shown, warn
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT

HALF = MAX_TOTAL_WEIGHT // 2
"""An edge's weight counts twice in 2m."""

EDGE_BYTES: Final = 120
"""Of each edge of a batch, at least, while the changes of its arcs are found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a graph accepts in a batch; `by` is the function that errors name, if not `apply`."""

    # If it is `directed`, an edge is the arc from u to v alone.

    n_vertices: int
    alive: NDArray[np.uint8] | None
    weighted: bool
    scale: float
    xp: Any = np
    by: str = ""
    directed: bool = False


Columns = tuple[Any, ...]
"""Ends of edges, and weights or not, as `apply` takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Operations on edges: deletions, then decreases, then insertions."""

    keys: NDArray[np.uint64]
    weights: NDArray[np.int64]
    deletions: int
    decreases: int
    summing: bool
    directed: bool


def read_batch(
    insert: Any, delete: Any, decrease: Any, duplicates: str | None, limits: Limits
) -> Batch:
    """Check the arguments of `DynamicGraph.apply`; nothing of the graph is read but its limits."""
    refuse_options(decrease, duplicates, limits)
    parts = [
        _read("delete", delete, limits, weights="none"),
        _read("decrease", decrease, limits, weights="needed"),
        _read("insert", insert, limits, weights="allowed"),
    ]
    sizes = [len(keys) for keys, _ in parts]
    alone = sizes[2] == sum(sizes)
    keys = parts[2][0] if alone else np.concatenate([keys for keys, _ in parts])
    weights = np.zeros(0, np.int64)
    if any(len(given) for _, given in parts):
        filled = [g if len(g) else np.ones(len(k), np.int64) for k, g in parts]
        weights = filled[2] if alone else np.concatenate(filled)
    summing = limits.weighted if duplicates is None else duplicates == "sum"
    return Batch(
        keys=keys, weights=weights, deletions=sizes[0], decreases=sizes[1], summing=summing,
        directed=limits.directed,
    )  # fmt: skip


def refuse_options(decrease: Any, duplicates: str | None, limits: Limits) -> None:
    """Raise a GraphError for options that are none, or that need weights."""
    if not among(duplicates, None, "once", "sum"):
        raise GraphError(f"duplicates must be 'once' or 'sum', not {shown(duplicates)}")
    if not limits.weighted:
        if duplicates == "sum":
            raise GraphError(
                "duplicates='sum' needs weights; make the graph with DynamicGraph(…, weighted=True)"
            )
        if decrease is not None:
            raise GraphError(
                "decrease needs weights; use delete, or make the graph with "
                "DynamicGraph(…, weighted=True)"
            )


def _read(
    what: str, edges: Columns | None, limits: Limits, *, weights: str
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return keys and integer weights of one argument; weights are empty where each is 1."""
    what = limits.by or what
    none = np.zeros(0, np.int64)
    columns = columns_of(what, edges, limits, weights=weights)
    if columns is None:
        return np.zeros(0, np.uint64), none
    count = len(columns[0])
    check_host_memory(EDGE_BYTES * count, f"a batch of {count:,} edges", "apply fewer at once")
    u, v = (known_ids(columns[k], f"{what}: {name}", limits) for k, name in ((0, "u"), (1, "v")))
    keys = np.empty(len(u), np.uint64)
    edge_keys(u, v, keys, limits.directed)
    if columns[2] is not None:
        return keys, read_weights(columns[2], what, limits.scale)
    if limits.weighted and limits.scale != 1.0 and weights == "allowed":
        return keys, np.full(len(u), unit_weight(limits.scale), np.int64)
    return keys, none


def columns_of(what: str, edges: Columns | None, limits: Limits, *, weights: str) -> Columns | None:
    """Return ends and weights of one argument as arrays of unchecked values."""
    if edges is None:
        return None
    what = limits.by or what
    if weights == "none" and len(edges) == 3:
        raise GraphError(f"{what} takes (u, v) without weights; use decrease=(u, v, w) to subtract")
    if weights == "needed" and len(edges) == 2:
        raise GraphError(f"{what} needs weights; pass {what}=(u, v, w)")
    u, v = (id_array(edges[k], f"{what}: {name}", limits) for k, name in ((0, "u"), (1, "v")))
    if len(u) != len(v):
        raise GraphError(f"{what}: u has {len(u)} entries and v {len(v)}; they must match")
    if len(edges) == 2:
        return u, v, None
    if not limits.weighted:
        raise GraphError(
            f"{what} has weights, but the graph has none; pass {what}=(u, v), or make the "
            "graph with DynamicGraph(…, weighted=True)"
        )
    given = array_of(edges[2], limits)
    if given.shape != (len(u),):
        raise GraphError(
            f"{what}: weights of shape {given.shape} for {len(u)} edges; they must match"
        )
    if given.dtype == object and all(isinstance(w, int | float | np.number) for w in given):
        given = exact_numbers(given.tolist())
        if given.dtype == object:
            raise GraphError(f"{what}: a weight is above 2^52; use smaller weights")
    if given.dtype.kind not in "biuf":
        raise GraphError(f"{what}: weights must be numbers, not {given.dtype}; convert them")
    return u, v, given


def read_ids(values: Any, what: str, limits: Limits) -> NDArray[np.uint32]:
    """Return ids of vertices that are in the graph, in host memory."""
    return known_ids(id_array(values, what, limits), what, limits)


def whole_number(value: Any) -> int:
    """Return an integer as Python's own; TypeError for anything else, booleans included."""
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def id_array(values: Any, what: str, limits: Limits) -> NDArray[Any]:
    """Return ids as an integer array, whatever they are."""
    ids = array_of(values, limits)
    if ids.ndim != 1:
        raise GraphError(f"{what} must be one-dimensional, not of shape {ids.shape}; flatten it")
    if ids.dtype == object and (huge := [i for i in ids if isinstance(i, int) and i >> 63]):
        known_ids(np.array(huge, object), what, limits)  # says what is wrong with them
    if len(ids) and ids.dtype.kind not in "iu":
        raise GraphError(f"{what} must be an array of integers, not {ids.dtype}; convert it")
    return ids


def known_ids(ids: NDArray[Any], what: str, limits: Limits) -> NDArray[np.uint32]:
    """Return ids as uint32; raise a GraphError if there is no such vertex."""
    if len(ids) == 0:
        return np.zeros(0, np.uint32)
    if int(ids.min()) < 0:
        raise GraphError(f"{what} has the negative vertex {ids.min()}; ids begin at 0")
    if int(ids.max()) >= limits.n_vertices:
        raise GraphError(
            f"{what} has the vertex {ids.max()}, but there are {limits.n_vertices}; call "
            "add_vertices first"
        )
    if limits.alive is not None and not (there := limits.alive[ids]).all():
        gone = ids[int(np.argmin(there))]
        raise GraphError(f"{what} has the vertex {gone}, which was removed; use add_vertices")
    return np.ascontiguousarray(ids, np.uint32)


def array_of(values: Any, limits: Limits) -> NDArray[Any]:
    """Return values as an array: on the graph's device if they are there, else in host memory."""
    there: NDArray[Any]
    if limits.xp is not np and isinstance(values, limits.xp.ndarray):
        there = values
        return there
    return host(values)


def host(values: Any) -> NDArray[Any]:
    """Return an array in host memory."""
    there = hasattr(values, "__cuda_array_interface__")  # a pandas Series has a `get`, too
    host: NDArray[Any] = number_array(values.get() if there else values)
    return host


ANEW: Final = "insert all edges into DynamicGraph(0, weighted=True, scale=2**20), say"
"""How to begin with real weights that others will exceed by far."""


def unit_weight(scale: float) -> int:
    """Return the weight 1 as an integer: the scale, at least 1."""
    return max(1, round(scale))


def read_weights(given: NDArray[Any], what: str, scale: float) -> NDArray[np.int64]:
    """Return weights as integers: integers as they are, reals times the scale."""
    if len(given) == 0:
        return np.zeros(0, np.int64)
    if given.dtype.kind == "f":
        given = given.astype(np.float64, copy=False)
        _refuse(np.isnan(given), given, what, "is not a number; leave the edge out")
        _refuse(np.isinf(given), given, what, "is infinite; leave the edge out")
    other = "insert to add" if what == "decrease" else "decrease to subtract"
    _refuse(given < 0, given, what, f"is negative; use {other}")
    if given.dtype.kind == "f":
        scaled = np.rint(given * scale)
        lost = (scaled == 0) & (given > 0)
        _refuse(
            lost,
            given,
            what,
            f"rounds to 0 at scale {scale:g}; use a larger scale, or leave the edge out",
        )
        _refuse(
            scaled >= HALF,
            given,
            what,
            f"is above 2^52 at scale {scale:g}; use a smaller scale: {ANEW}",
        )
        if scale == 1.0 and (scaled != given).any():
            warn(
                f"{what}: weights are rounded to whole numbers, as the scale of the graph is "
                "1; make it with DynamicGraph(…, weighted=True, scale=2**20), say, to keep them"
            )
        return scaled.astype(np.int64)
    _refuse(given >= HALF, given, what, "is above 2^52; use smaller weights")
    if float(given.sum(dtype=np.float64)) >= 2.0**62:
        raise GraphError(f"{what}: the weights add up to more than 2^62; split the batch")
    return np.ascontiguousarray(given, np.int64)


def _refuse(bad: NDArray[np.bool_], values: NDArray[Any], what: str, why: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise GraphError(f"{what}: the weight at index {first} ({values[first]}) {why}")
