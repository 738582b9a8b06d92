"""Directed, two-mode and signed graphs: what they keep in addition to symmetric rows.

Engines need the sum of the weights of both directions of an edge. Directions matter to a vertex's
imbalance only, its out-degree less its in-degree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError
from louvain_um.graph import rows

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]


def directed_rows(
    u: U32, v: U32, weights: I64 | None, n: int, *, summing: bool, threads: int
) -> tuple[rows.SortedRows, I64]:
    """Return rows that hold the sum of both directions, and each vertex's imbalance."""
    listed = len(u)
    u, v, weights = _merge_pairs(u, v, weights, summing=summing)
    made = rows.compress(u, v, weights, n, summing=True, threads=threads)
    # Exact: sums of weights are below 2^53.
    out, into = (np.bincount(ends, weights, n).astype(np.int64) for ends in (u, v))
    if made.weights is not None and bool((made.weights == 1).all()):
        made = replace(made, weights=None)
    return replace(made, repeats=listed - len(u)), out - into


def signed_rows(
    u: U32, v: U32, weights: I64, n: int, *, summing: bool, threads: int
) -> rows.SortedRows:
    """Return rows with weights of both signs."""
    listed = len(u)
    u, v, weights = _merge_pairs(
        np.minimum(u, v), np.maximum(u, v), weights, summing=summing, signed=True
    )
    repeats, kept = listed - len(u), weights != 0
    u, v, weights = u[kept], v[kept], weights[kept]
    # Rows are built with the number of each edge for its weight, from 1.
    numbers = np.arange(1, len(u) + 1, dtype=np.int64)
    made = rows.compress(u, v, numbers, n, summing=False, threads=threads)
    known = np.concatenate((np.zeros(1, np.int64), weights))
    assert made.weights is not None
    return replace(
        made,
        weights=known[made.weights],
        loops=known[made.loops],
        repeats=repeats,
        weightless=int(np.count_nonzero(~kept)),
    )


def refuse_directed(graph: Any, what: str) -> None:
    """Raise a GraphError for a directed graph, whose rows do not say which arc leads where."""
    if getattr(graph, "kind", "undirected") == "directed":
        raise GraphError(
            f"a directed Graph keeps sums of both directions only, so it has no {what}; use the "
            "source, or read it with symmetrize=True (--symmetrize)"
        )


def refuse_kinds(graph: Any, what: str) -> None:
    """Raise a GraphError for directed and signed graphs where their kind would be lost."""
    kind = getattr(graph, "kind", "undirected")
    if kind in ("directed", "signed"):
        also = ", or leave out its negative edges" if kind == "signed" else ""
        raise GraphError(
            f"{what} undirected graphs without negative weights, but this one is {kind}; read it "
            f"without {kind}=True (--{kind}){also}"
        )


def mode_imbalance(u: U32, v: U32, degrees: I64) -> I64:
    """Return plus or minus the degree of the vertices that edges lead from, or to."""
    first = np.zeros(len(degrees), np.bool_)
    first[u] = True
    both = v[first[v]]
    if len(both):
        raise GraphError(
            f"vertex {both[0]} is at both ends of edges, so the graph has no two modes; correct it"
        )
    return np.where(first, degrees, -degrees)


def two_colouring(graph: Any) -> I64:
    """Return the imbalance of a bipartite graph, the smallest vertex of each part in mode one."""
    forest = None if graph.there is None else graph.there.forest()
    if forest is not None:
        # Its parts are those of the graph, and so are its modes if no edge is within one.
        first = _first_mode(forest)
        counts = graph.counts_there(first.astype(np.uint32))
        if counts is not None and not counts[0].any():
            return cast("I64", np.where(first, graph.degrees, -graph.degrees))
    return cast("I64", np.where(_first_mode(graph), graph.degrees, -graph.degrees))


def _first_mode(graph: Any) -> NDArray[np.bool_]:
    """Return which vertices are in mode one, that of the smallest vertex of each part."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, dijkstra

    # Components of the double cover, in which vertex v is v and n + v, and each edge joins one of
    # both kinds: two for a bipartite part, of which one holds its first mode as v.
    n = graph.n_vertices
    targets, ones = graph.targets.astype(np.int64), np.ones(graph.n_arcs, np.int8)
    offsets = np.concatenate((graph.offsets, np.full(n, graph.offsets[-1])))
    cover = csr_array((ones, targets + n, offsets), shape=(2 * n, 2 * n))
    parts, part = connected_components(cover, directed=False)
    one, other = part[:n], part[n:]
    odd = one == other
    if odd.any() or graph.has_loops:
        where = ", a loop"
        if odd.any():
            start, source = int(np.argmax(odd)), np.repeat(np.arange(n), np.diff(graph.offsets))
            rows = csr_array((ones, targets, graph.offsets), shape=(n, n))
            depth = dijkstra(rows, indices=start, unweighted=True)
            bad = (depth[source] == depth[targets]) & (one[source] == one[start])
            vertex = source[int(np.argmax(bad))]
            names = getattr(graph, "names", None)
            where = f" through vertex {vertex if names is None else names[vertex]}"
        raise GraphError(
            f"the graph is not bipartite: it has a cycle of odd length{where}; read it with "
            "bipartite=True (--bipartite) if its two columns are of different kinds, or use "
            "another objective"
        )
    smallest = np.full(parts, n)
    smallest[one[::-1]] = np.arange(n)[::-1]
    return cast("NDArray[np.bool_]", smallest[one] < smallest[other])


def _merge_pairs(
    u: U32, v: U32, weights: I64 | None, *, summing: bool, signed: bool = False
) -> tuple[U32, U32, I64]:
    """Return each pair of ends once, with its weight."""
    if weights is None:
        weights = np.ones(len(u), np.int64)
    keys = u.astype(np.uint64) << np.uint64(32) | v.astype(np.uint64)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.concatenate((keys[:1] == keys[:1], keys[1:] != keys[:-1])))
    if len(first) == len(u):
        return u, v, weights
    sorted_ = weights[order]
    if summing:
        merged = np.add.reduceat(sorted_, first)
    elif signed:
        high, low = np.maximum.reduceat(sorted_, first), np.minimum.reduceat(sorted_, first)
        merged = np.where(high >= -low, high, low)
    else:
        merged = np.maximum.reduceat(sorted_, first)
    return u[order[first]], v[order[first]], merged
