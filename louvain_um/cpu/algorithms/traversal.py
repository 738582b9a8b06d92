"""Traversal on the CPU: BFS pushes and pulls frontiers; shortest paths take near and far piles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import atomic_add, atomic_min, compare_and_swap, kernel
from louvain_um.cpu.algorithms.operators import (
    ROWS,
    SERIAL_ARCS,
    advance,
    arcs_before,
    arrays,
    claim_rows,
)
from louvain_um.cpu.walk import INLINE, after, piece_of, row

PULL_SHARE = 14
"""Pull where the frontier has more than this part of the arcs that are not visited (Beamer)."""

PUSH_SHARE = 24
"""Push again where the frontier has less than this part of the vertices, and shrinks (Beamer)."""

FOUND = 1 << 12
"""Vertices that a thread keeps before it appends them to the shared queue."""

WORDS = 32
"""Words of the bitmap, of 64 vertices each, that a thread claims at a time."""


def bfs(rows: Any, source: int, threads: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return distances int32[n] and parents int64[n], −1 for what is not reached."""
    n, tuple_ = rows.n_vertices, arrays(rows)
    distances, parents = np.full(n, -1, np.int32), np.full(n, -1, np.int64)
    queue, before = np.empty(n, np.uint32), np.empty(n + 1, np.int64)
    smallest = parents.view(np.uint64)  # in which −1 is the largest number
    distances[source], parents[source], queue[0] = 0, source, source
    unvisited, begin, end, level = rows.n_arcs, 0, 1, 0
    arcs = int(rows.ends[source] - rows.begins[source])
    while begin < end:
        if arcs < SERIAL_ARCS or (threads == 1 and not pulls(arcs, unvisited)):
            begin, end, level, arcs, passed = push_serially(
                tuple_, queue, begin, end, distances, smallest, level, arcs, unvisited, threads
            )
            unvisited -= passed
        elif not pulls(arcs, unvisited):
            unvisited -= arcs
            arcs_before(tuple_, queue[begin:end], end - begin, before)
            found = np.array([end, 0], np.int64)
            parallel.run(
                push, threads, tuple_, queue[begin:end], before[: end - begin + 1],
                np.zeros(1, np.int64), queue, found, distances, smallest, level,
            )  # fmt: skip
            begin, end, arcs, level = end, int(found[0]), int(found[1]), level + 1
        else:
            front = np.zeros((n + 63) // 64, np.uint64)
            mark(queue[begin:end], front)
            width = end - begin
            while True:
                unvisited -= arcs
                next_, found = np.zeros_like(front), np.zeros(2, np.int64)
                parallel.run(
                    pull, threads, tuple_, np.zeros(1, np.int64), front, next_, found, distances,
                    smallest, level,
                )  # fmt: skip
                before_width, width, arcs = width, int(found[0]), int(found[1])
                front, level = next_, level + 1
                if pushes_again(width, before_width, n):
                    break
            begin, end = end, end + width
            unmark(front, queue, begin)
            # What was pulled before the last level is in no queue, and need not be.
    return distances, parents


@kernel(**INLINE)
def pulls(arcs, unvisited):
    """Return whether to pull into a frontier with so many arcs."""
    return arcs * PULL_SHARE > unvisited


def pushes_again(width: int, before: int, n: int) -> bool:
    """Return whether to push from a frontier that has so many vertices, and had `before`."""
    return width == 0 or (width <= before and width * PUSH_SHARE < n)


@kernel(**INLINE)
def append(rows, found, count, queue, tail):
    """Append what a thread has found to the queue at tail[0]; add its arcs to tail[1]."""
    at = atomic_add(tail, 0, count[0])
    arcs = 0
    for i in range(count[0]):
        queue[at + i] = found[i]
        begin, end = row(rows, found[i])
        arcs += np.int64(end - begin)
    atomic_add(tail, 1, arcs)
    count[0] = 0


@kernel(**INLINE)
def reach(state, u, arc, _k):
    """Reach an arc's target from `u`, in the frontier of `level`."""
    rows, distances, parents, level, found, count, queue, tail = state
    v = rows[2][arc]
    distance = distances[v]
    if distance == -1:
        distance = compare_and_swap(distances, v, np.int32(-1), np.int32(level + 1))
        if distance == -1:
            distance = np.int32(level + 1)
            found[count[0]] = v
            count[0] += 1
            if count[0] == FOUND:
                append(rows, found, count, queue, tail)
    if distance == level + 1 and parents[v] > u:
        atomic_min(parents, v, np.uint64(u))


@kernel()
def push(t, threads, rows, frontier, before, counter, queue, tail, distances, parents, level):
    """Reach the targets of a frontier; append them to `queue`."""
    found, count = np.empty(FOUND, np.uint32), np.zeros(1, np.int64)
    state = (rows, distances, parents, level, found, count, queue, tail)
    advance(rows, frontier, before, counter, reach, state)
    append(rows, found, count, queue, tail)


@kernel()
def push_serially(rows, queue, begin, end, distances, parents, level, arcs, unvisited, threads):
    """Push level by level until the frontier is empty, or worth several threads or a pull."""
    targets = rows[2]
    passed = 0
    while begin < end and (
        arcs < SERIAL_ARCS or (threads == 1 and not pulls(arcs, unvisited - passed))
    ):
        passed += arcs
        arcs = 0
        last = end
        for i in range(begin, last):
            u = queue[i]
            piece = piece_of(rows, u)
            while piece.arc < piece.stop:
                for arc in range(piece.arc, piece.stop):
                    v = targets[arc]
                    if distances[v] == -1:
                        distances[v] = level + 1
                        parents[v] = u
                        queue[end] = v
                        end += 1
                        low, high = row(rows, v)
                        arcs += np.int64(high - low)
                    elif distances[v] == level + 1 and parents[v] > u:
                        parents[v] = u
                piece = after(rows, piece)
        begin, level = last, level + 1
    return begin, end, level, arcs, passed


@kernel()
def pull(t, threads, rows, counter, front, next_, found, distances, parents, level):
    """Let each vertex that is not reached look for its smallest neighbour in the frontier."""
    targets = rows[2]
    n, reached, arcs = len(distances), 0, 0
    low, high = claim_rows(counter, len(front), WORDS)
    while low < high:
        for word in range(low, high):
            bits = np.uint64(0)
            for v in range(64 * word, min(64 * word + 64, n)):
                if distances[v] != -1:
                    continue
                piece = piece_of(rows, v)
                while piece.arc < piece.stop and distances[v] == -1:
                    for arc in range(piece.arc, piece.stop):
                        u = targets[arc]
                        if front[u >> np.uint32(6)] >> np.uint64(u & np.uint32(63)) & np.uint64(1):
                            distances[v] = level + 1
                            parents[v] = u
                            bits |= np.uint64(1) << np.uint64(v & 63)
                            reached += 1
                            begin, end = row(rows, v)
                            arcs += np.int64(end - begin)
                            break
                    piece = after(rows, piece)
            next_[word] = bits
        low, high = claim_rows(counter, len(front), WORDS)
    atomic_add(found, 0, reached)
    atomic_add(found, 1, arcs)


@kernel()
def mark(items, bits):
    """Set the bits of some vertices."""
    for i in range(len(items)):
        v = items[i]
        bits[v >> np.uint32(6)] |= np.uint64(1) << np.uint64(v & np.uint32(63))


@kernel()
def unmark(bits, queue, end):
    """Append the vertices whose bits are set, ascending."""
    for word in range(len(bits)):
        left = bits[word]
        v = 64 * word
        while left:
            if left & np.uint64(1):
                queue[end] = v
                end += 1
            left >>= np.uint64(1)
            v += 1


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
        near, next_, limit = relax_narrow_frontiers(
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
def relax_narrow_frontiers(rows, near, next_, far, sizes, where, distances, limit, width, threads):
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
    low, high = claim_rows(counter, n, ROWS)
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
        low, high = claim_rows(counter, n, ROWS)
    if t == 0:
        parents[source] = source
