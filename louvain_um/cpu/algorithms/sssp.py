"""Shortest paths on the CPU: near and far piles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import atomic_add, atomic_min, compare_and_swap
from louvain_um.cpu.algorithms.operators import (
    SERIAL_ARCS,
    STRETCH,
    advance,
    arcs_before,
    arrays,
    claim_rows,
)
from louvain_um.cpu.walk import INLINE, after, piece_of, row

UNREACHED = np.uint64(0xFFFFFFFFFFFFFFFF)
"""−1 as an unsigned number: the largest, so that minima replace it."""

WIDTH = 8
"""The limit between near and far grows by so many mean weights per mean degree: enough vertices
at a time to be shared by threads (Davidson and others take 32, for the lanes of a warp)."""

NEAR, FAR = np.uint8(1), np.uint8(2)
"""Which piles a vertex is in, as bits: it is in each at most once, so that piles have `n` items."""


def sssp(rows: Any, source: int, threads: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distances int64[n] and parents int64[n], −1 for what is not reached."""
    n, tuple_ = rows.n_vertices, arrays(rows)
    mean_weight = rows.total_weight / max(1, rows.n_arcs)
    width = max(1, int(WIDTH * mean_weight * n / max(1, rows.n_arcs)))
    distances, parents = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    least, where = distances.view(np.uint64), np.zeros(n, np.uint8)
    near, next_, far = (np.empty(n, np.uint32) for _ in range(3))
    before = np.empty(n + 1, np.int64)
    distances[source], near[0], where[source] = 0, source, NEAR
    sizes = np.array([1, 0], np.int64)  # of the near and the far pile
    limit = width
    while True:
        near, next_, limit = settle(
            tuple_, near, next_, far, sizes, where, least, limit, width, threads
        )
        if sizes[0] == 0:
            break
        count = int(sizes[0])
        frontier, sizes[0] = near[:count], 0
        arcs_before(tuple_, frontier, count, before)
        leave(frontier, where)
        parallel.run(
            relax_frontier, threads, tuple_, frontier, before[: count + 1], np.zeros(1, np.int64),
            next_, far, sizes, where, least, limit,
        )  # fmt: skip
        near, next_ = next_, near
    parallel.run(find_parents, threads, tuple_, np.zeros(1, np.int64), source, least, parents)
    return distances, parents


@kernel(**INLINE)
def weight_of(weights, arc):
    """Return the weight of an arc."""
    return np.uint64(weights[arc]) if len(weights) > 0 else np.uint64(1)


@kernel(**INLINE)
def relax(state, u, arc, _k):
    """Offer a path by way of `u`; put the target on a pile if that is shorter."""
    targets, weights, near, far, sizes, where, distances, limit = state
    v = targets[arc]
    length = distances[u] + weight_of(weights, arc)
    if length >= distances[v] or atomic_min(distances, v, length) <= length:
        return
    pile = NEAR if length < limit else FAR
    seen = where[v]
    while not seen & pile:
        old = compare_and_swap(where, v, seen, np.uint8(seen | pile))
        if old == seen:
            if pile == NEAR:
                near[atomic_add(sizes, 0, 1)] = v
            else:
                far[atomic_add(sizes, 1, 1)] = v
            return
        seen = old


@kernel()
def relax_frontier(
    t, threads, rows, frontier, before, counter, near, far, sizes, where, distances, limit
):
    """Relax the arcs of a frontier; `near` becomes the next one."""
    state = (rows[2], rows[3], near, far, sizes, where, distances, limit)
    advance(rows, frontier, before, counter, relax, state)


@kernel()
def leave(frontier, where):
    """Take vertices off the near pile."""
    for i in range(len(frontier)):
        where[frontier[i]] &= ~NEAR


@kernel()
def settle(rows, near, next_, far, sizes, where, distances, limit, width, threads):
    """Work on narrow frontiers, and raise the limit, until a frontier is worth several threads."""
    limit, width = np.uint64(limit), np.uint64(width)
    while True:
        if sizes[0] == 0:
            limit = raise_limit(near, far, sizes, where, distances, limit, width)
            if sizes[0] == 0:
                return near, next_, limit
        arcs = np.uint64(0)
        for i in range(sizes[0]):
            begin, end = row(rows, near[i])
            arcs += end - begin
        if threads > 1 and arcs >= SERIAL_ARCS:
            return near, next_, limit
        count = sizes[0]
        sizes[0] = 0
        for i in range(count):
            u = near[i]
            where[u] &= ~NEAR
            piece = piece_of(rows, u)
            while piece.arc < piece.stop:
                for arc in range(piece.arc, piece.stop):
                    v = rows[2][arc]
                    length = distances[u] + weight_of(rows[3], arc)
                    if length < distances[v]:
                        distances[v] = length
                        pile = NEAR if length < limit else FAR
                        if not where[v] & pile:
                            where[v] |= pile
                            if pile == NEAR:
                                next_[sizes[0]] = v
                                sizes[0] += 1
                            else:
                                far[sizes[1]] = v
                                sizes[1] += 1
                piece = after(rows, piece)
        near, next_ = next_, near


@kernel(**INLINE)
def raise_limit(near, far, sizes, where, distances, limit, width):
    """Move what is near now from the far pile to the empty near one; return the new limit."""
    closest = UNREACHED
    for i in range(sizes[1]):
        if limit <= distances[far[i]] < closest:
            closest = distances[far[i]]
    raised = closest + width
    if raised < closest:
        raised = UNREACHED
    left = 0
    for i in range(sizes[1]):
        v = far[i]
        if distances[v] >= raised:
            far[left] = v
            left += 1
            continue
        where[v] &= ~FAR
        if distances[v] >= limit:
            near[sizes[0]] = v
            sizes[0] += 1
            where[v] |= NEAR
    sizes[1] = left
    return raised


@kernel()
def find_parents(t, threads, rows, counter, source, distances, parents):
    """Set each reached vertex's parent: its smallest neighbour on a shortest path to it."""
    n = len(parents)
    low, high = claim_rows(counter, n, STRETCH)
    while low < high:
        for v in range(low, high):
            if distances[v] == UNREACHED or v == source:
                continue
            piece = piece_of(rows, v)
            while piece.arc < piece.stop and parents[v] < 0:
                for arc in range(piece.arc, piece.stop):
                    u = rows[2][arc]
                    if distances[u] + weight_of(rows[3], arc) == distances[v]:
                        parents[v] = u
                        break
                piece = after(rows, piece)
        low, high = claim_rows(counter, n, STRETCH)
    if t == 0:
        parents[source] = source
