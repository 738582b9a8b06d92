"""The arrays of a graph from a list of edges, ids checked.

`louvain_um.graph.integer_weights` rounds the weights, `louvain_um.graph.rows` sorts the edges into
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.headroom import check_host_memory, give_back
from louvain_um.core.plain_data import plain_array
from louvain_um.errors import GraphError, among, check_switch, shown
from louvain_um.graph import kinds, rows
from louvain_um.graph.ids import vertex_ids
from louvain_um.graph.integer_weights import SMALL, quantise, weight_array
from louvain_um.graph.limits import MAX_VERTICES, Duplicates, GraphKind, check_kind

ROWS = 1 << 12
"""Rows that a thread adds up at a time."""

COMPRESS: ContextVar[Callable[..., rows.SortedRows]] = ContextVar("compress", default=rows.compress)
"""What makes the rows of undirected graphs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The rows of a graph, its scale and its notes; see `Graph`."""

    rows: rows.SortedRows
    scale: float
    notes: tuple[str, ...]
    imbalance: NDArray[np.int64] | None = None


@contextmanager
def rows_made_by(compress: Callable[..., rows.SortedRows]) -> Iterator[None]:
    """Let a function that equals `rows.compress` make the rows of graphs within a block."""
    before = COMPRESS.set(compress)
    try:
        yield
    finally:
        COMPRESS.reset(before)


def build(
    source: ArrayLike,
    target: ArrayLike,
    weights: ArrayLike | None,
    *,
    n_vertices: int | None,
    duplicates: Duplicates | None,
    allow_rounding: bool = False,
    kind: GraphKind = "undirected",
) -> Built:
    """Build the arrays of a graph; `Graph.from_edges` documents the arguments."""
    sources, targets = vertex_ids(source, "source"), vertex_ids(target, "target")
    u, v = sources.values, targets.values
    if len(u) != len(v):
        raise GraphError(
            f"source has {len(u)} entries and target {len(v)}; pass both ends of each edge"
        )
    n = max(sources.largest, targets.largest) + 1
    if n_vertices is not None:
        given = _count(n_vertices, "n_vertices")
        if n > given:
            raise GraphError(f"vertex {n - 1} needs n_vertices of at least {n}, not {given}")
        n = given
    if n > MAX_VERTICES:
        raise GraphError(f"{n} vertices; at most {MAX_VERTICES} are supported")
    if not among(duplicates, None, "once", "sum"):
        raise GraphError(f"duplicates must be 'once' or 'sum', not {shown(duplicates)}")
    check_kind(kind)
    check_switch("allow_rounding", allow_rounding)

    # Offsets and loops; a record for each arc, with its weight if it has one.
    summed = weights is not None or duplicates == "sum"
    check_host_memory(
        16 * n + (32 if summed else 16) * len(u),
        f"a graph of {n:,} vertices and {len(u):,} edges",
        "check the number of vertices, or use a machine with more memory",
    )
    scale = 1.0
    notes: tuple[str, ...] = ()
    integers: NDArray[np.int64] | None = None
    if weights is not None and plain_array(weights, "weights").ndim != 1:
        raise GraphError(f"weights must be one-dimensional, not of shape {np.shape(weights)}")
    if weights is not None:
        values = weight_array(weights, allow_rounding)
        if kind == "signed" and values.dtype.kind in "if":
            integers, scale, notes = quantise(np.abs(values), allow_rounding)
            integers = np.where(values < 0, -integers, integers)
        else:
            integers, scale, notes = quantise(values, allow_rounding)
            if rows.SPENT.get():
                give_back(values)
        if len(integers) != len(u):
            raise GraphError(
                f"{len(integers)} weights for {len(u)} edges; pass one weight for each edge"
            )
    summing = duplicates == "sum" or (duplicates is None and weights is not None)
    if summing and integers is None:
        integers = np.ones(len(u), np.int64)

    threads = parallel.default_threads() if len(u) > SMALL else 1
    imbalance = None
    if kind == "directed":
        made, imbalance = kinds.directed_rows(u, v, integers, n, summing=summing, threads=threads)
    elif kind == "signed" and integers is not None:
        made = kinds.signed_rows(u, v, integers, n, summing=summing, threads=threads)
    else:
        made = COMPRESS.get()(u, v, integers, n, summing=summing, threads=threads)
    if kind == "bipartite":
        made = made.here()
        degrees = weighted_degrees(made.offsets, made.weights, made.loops)
        imbalance = kinds.mode_imbalance(u, v, degrees)
    notes += merge_notes(len(u), made.repeats, made.weightless, made.n_loops, summing)
    return Built(rows=made, scale=scale, notes=notes, imbalance=imbalance)


def weighted_degrees(
    offsets: NDArray[np.int64],
    weights: NDArray[np.uint32] | NDArray[np.int64] | None,
    loops: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the degree of each vertex, int64[n]: its arcs' weights and twice its loop."""
    degrees = np.empty(len(loops), np.int64)
    threads = parallel.default_threads() if len(loops) > parallel.PIECE else 1
    parallel.run(_sum_rows, threads, offsets, weights, loops, degrees)
    return degrees


def without_zeros(
    offsets: NDArray[np.int64],
    targets: NDArray[np.uint32],
    weights: NDArray[np.uint32] | NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32] | NDArray[np.int64]]:
    """Return rows without their arcs of weight 0."""
    kept = weights != 0
    before = np.zeros(len(weights) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    return before[offsets], targets[kept], weights[kept]


def _count(value: Any, what: str) -> int:
    """Return a number of vertices as an integer, NumPy's included."""
    try:
        count = -1 if isinstance(value, bool | np.bool_) else index(value)
    except TypeError:
        count = -1
    if count < 0:
        raise GraphError(f"{what} must be a whole number of at least 0, not {shown(value)}")
    return count


def merge_notes(
    listed: int, repeats: int, weightless: int, loops: int, summing: bool
) -> tuple[str, ...]:
    """Return notes on edges of weight 0, edges listed more than once and loops."""
    notes = left_out(weightless)
    if repeats:
        verb = "repeats" if repeats == 1 else "repeat"
        what = (
            "their weights add up; duplicates='once' counts each once"
            if summing
            else "each counts once; duplicates='sum' adds them up"
        )
        notes += (
            f"{repeats:,} of {listed:,} edges {verb} one listed before, in either direction: "
            f"{what}",
        )
    return notes + loop_note(loops)


def loop_note(loops: int) -> tuple[str, ...]:
    """Return a note on the number of loops, if there are any."""
    if not loops:
        return ()
    what = (
        "1 edge is a loop and counts" if loops == 1 else f"{loops:,} edges are loops; each counts"
    )
    return (f"{what} twice in its vertex's degree",)


def left_out(edges: int) -> tuple[str, ...]:
    """Return a note on the number of edges of weight 0, if there are any."""
    if not edges:
        return ()
    what = "1 edge has weight 0 and is" if edges == 1 else f"{edges:,} edges have weight 0 and are"
    return (f"{what} left out: weight 0 connects nothing",)


@kernel()
def _sum_rows(thread, threads, offsets, weights, loops, degrees):
    for begin in range(thread * ROWS, len(loops), threads * ROWS):
        for v in range(begin, min(begin + ROWS, len(loops))):
            total = 2 * loops[v]
            if weights is None:
                total += offsets[v + 1] - offsets[v]
            else:
                for j in range(offsets[v], offsets[v + 1]):
                    total += np.int64(weights[j])
            degrees[v] = total
