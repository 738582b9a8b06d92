"""Components by union, spanning forests by Borůvka's rounds, triangles, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import atomic_add, atomic_min, compare_and_swap, kernel
from louvain_um.cpu.algorithms.operators import ROWS, arrays, claim_rows, filter, intersect
from louvain_um.cpu.algorithms.traversal import weight_of
from louvain_um.cpu.walk import INLINE, WHOLE, after, piece_of, row

FIRST_ARCS = 2
"""Arcs of each vertex that are joined before the largest component is guessed."""

SAMPLES = 1024
"""Vertices that the guess looks at."""


def components(rows: Any, threads: int) -> NDArray[np.uint32]:
    """Return the smallest member of each vertex's component, uint32[n]."""
    n, tuple_ = rows.n_vertices, arrays(rows)
    parents = np.arange(n, dtype=np.uint32)
    parallel.run(join_first, threads, tuple_, np.zeros(1, np.int64), parents)
    parallel.run(flatten, threads, np.zeros(1, np.int64), parents)
    roots, counts = np.unique(parents[:: max(1, n // SAMPLES)], return_counts=True)
    largest = int(roots[counts.argmax()]) if n else 0
    parallel.run(join_rest, threads, tuple_, np.zeros(1, np.int64), parents, np.uint32(largest))
    parallel.run(flatten, threads, np.zeros(1, np.int64), parents)
    return parents


@kernel(**INLINE)
def join(parents, u, v):
    """Join the components of two vertices: the larger root goes below the smaller one."""
    a, b = parents[u], parents[v]
    while a != b:
        high, low = max(a, b), min(a, b)
        seen = parents[high]
        if seen == low or (seen == high and compare_and_swap(parents, high, high, low) == high):
            break
        a, b = parents[parents[high]], parents[low]


@kernel()
def join_first(t, threads, rows, counter, parents):
    """Join every vertex to its first neighbours."""
    n = len(parents)
    low, high = claim_rows(counter, n, ROWS)
    while low < high:
        for v in range(low, high):
            piece = piece_of(rows, v)
            for arc in range(piece.arc, min(piece.arc + np.uint64(FIRST_ARCS), piece.stop)):
                join(parents, np.uint32(v), rows[2][arc])
        low, high = claim_rows(counter, n, ROWS)


@kernel()
def join_rest(t, threads, rows, counter, parents, largest):
    """Join every vertex to its other neighbours; those in the largest component need not be."""
    n = len(parents)
    low, high = claim_rows(counter, n, ROWS)
    while low < high:
        for v in range(low, high):
            if parents[v] == largest:
                continue
            piece = piece_of(rows, v)
            arc = min(piece.arc + np.uint64(FIRST_ARCS), piece.stop)
            while arc < piece.stop or piece.left:
                for other in range(arc, piece.stop):
                    join(parents, np.uint32(v), rows[2][other])
                piece = after(rows, piece)
                arc = piece.arc
        low, high = claim_rows(counter, n, ROWS)


@kernel()
def flatten(t, threads, counter, parents):
    """Point every vertex to its root."""
    n = len(parents)
    low, high = claim_rows(counter, n, ROWS)
    while low < high:
        for v in range(low, high):
            root = parents[v]
            while parents[root] != root:
                root = parents[root]
            parents[v] = root
        low, high = claim_rows(counter, n, ROWS)


NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""No arc, no pair, and more than any weight."""

HALF = np.uint64(32)


def spanning_forest(rows: Any, threads: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the forest's edges, smaller end << 32 | larger end, ascending, and their weights."""
    n, tuple_ = rows.n_vertices, arrays(rows)
    component, hook = np.arange(n, dtype=np.uint32), np.arange(n, dtype=np.uint32)
    live, next_live = np.arange(n, dtype=np.uint32), np.empty(n, np.uint32)
    roots, next_roots = live.copy(), np.empty(n, np.uint32)
    choice = np.empty(n, np.uint64)
    weight, pair = np.full(n, NONE, np.uint64), np.full(n, NONE, np.uint64)
    edges, weights = np.empty(n, np.uint64), np.empty(n, np.int64)
    count, tails = np.zeros(1, np.int64), np.zeros(2, np.int64)
    width, components = n, n

    def run(kernel: Any, *arguments: Any) -> None:
        parallel.run(kernel, threads, *arguments, np.zeros(1, np.int64))

    while width:
        run(lightest, tuple_, live[:width], component, choice, weight)
        run(first_of_equals, tuple_, live[:width], component, choice, weight, pair)
        run(
            hook_components, roots[:components], component, weight, pair, hook, edges, weights,
            count,
        )  # fmt: skip
        tails[:] = 0
        run(keep, live[:width], roots[:components], hook, choice, next_live, next_roots, tails)
        run(follow, roots[:components], hook, component, weight, pair)
        live, next_live, width = next_live, live, int(tails[0])
        roots, next_roots, components = next_roots, roots, int(tails[1])
    order = np.argsort(edges[: count[0]])
    return edges[order], weights[order]


@kernel()
def lightest(t, threads, rows, live, component, choice, weight, counter):
    """Choose each vertex's lightest arc that leaves its component; lower the component's weight."""
    targets, weights = rows[2], rows[3]
    low, high = claim_rows(counter, len(live), ROWS)
    while low < high:
        for i in range(low, high):
            v = live[i]
            fragment = component[v]
            piece = piece_of(rows, v)
            best, best_weight = NONE, NONE
            while piece.arc < piece.stop and (len(weights) or best == NONE):
                for arc in range(piece.arc, piece.stop):
                    if (
                        weight_of(weights, arc) < best_weight
                        and component[targets[arc]] != fragment
                    ):
                        best, best_weight = arc, weight_of(weights, arc)
                        if len(weights) == 0:
                            break
                piece = after(rows, piece)
            choice[v] = best
            if best_weight < weight[fragment]:
                atomic_min(weight, fragment, best_weight)
        low, high = claim_rows(counter, len(live), ROWS)


@kernel()
def first_of_equals(t, threads, rows, live, component, choice, weight, pair, counter):
    """Find each component's smallest pair of ends among its lightest arcs."""
    low, high = claim_rows(counter, len(live), ROWS)
    while low < high:
        for i in range(low, high):
            v = live[i]
            arc, fragment = choice[v], component[v]
            if arc == NONE or weight_of(rows[3], arc) != weight[fragment]:
                continue
            a, b = np.uint64(v), np.uint64(rows[2][arc])
            ends = min(a, b) << HALF | max(a, b)
            if ends < pair[fragment]:
                atomic_min(pair, fragment, ends)
        low, high = claim_rows(counter, len(live), ROWS)


@kernel()
def hook_components(
    t, threads, roots, component, weight, pair, hook, edges, weights, count, counter
):
    """Join each component to the one its edge leads to; of two that chose one edge, the larger."""
    low, high = claim_rows(counter, len(roots), ROWS)
    while low < high:
        for i in range(low, high):
            fragment = roots[i]
            ends = pair[fragment]
            if ends == NONE:
                continue
            a, b = component[ends >> HALF], component[np.uint64(np.uint32(ends))]
            other = b if a == fragment else a
            if pair[other] == ends and fragment < other:
                continue
            hook[fragment] = other
            at = atomic_add(count, 0, 1)
            edges[at], weights[at] = ends, np.int64(weight[fragment])
        low, high = claim_rows(counter, len(roots), ROWS)


@kernel(**INLINE)
def has_choice(choice, v):
    """Return whether an arc of a vertex left its component: others never will."""
    return choice[v] != NONE


@kernel(**INLINE)
def is_root(hook, v):
    """Return whether a component was hooked to no other."""
    return hook[v] == v


@kernel()
def keep(t, threads, live, roots, hook, choice, next_live, next_roots, tails, counter):
    """Keep the vertices and the components that the next round has to look at."""
    items = len(live) + len(roots)
    low, high = claim_rows(counter, items, ROWS)
    while low < high:
        filter(live, low, min(high, len(live)), has_choice, choice, next_live, tails[:1])
        first = max(low - len(live), 0)
        filter(roots, first, max(high - len(live), 0), is_root, hook, next_roots, tails[1:])
        low, high = claim_rows(counter, items, ROWS)


@kernel()
def follow(t, threads, roots, hook, component, weight, pair, counter):
    """Bring every vertex into its new component; clear what the old ones chose."""
    for i in range(len(roots) * t // threads, len(roots) * (t + 1) // threads):
        weight[roots[i]] = NONE
        pair[roots[i]] = NONE
    low, high = claim_rows(counter, len(component), ROWS)
    while low < high:
        for v in range(low, high):
            root = component[v]
            while hook[root] != root:
                # Halving: other threads may do the same, or read either value.
                hook[root] = hook[hook[root]]
                root = hook[root]
            component[v] = root
        low, high = claim_rows(counter, len(component), ROWS)


STEP = 64
"""Rows that a thread claims at a time: few, since the longest take 10^5 times the shortest's."""

SLICES = 20
"""Parts after which progress is announced."""


def triangles(
    rows: Any, threads: int, counted: Callable[[int, int, int], None]
) -> NDArray[np.int64]:
    """Return the number of triangles of each vertex, int64[n].

    `counted` is called now and then: with a running number, the vertices left, and all.
    """
    n, tuple_ = rows.n_vertices, arrays(rows)
    begins = np.zeros(n + 1, np.int64)
    parallel.run(count_upward, threads, tuple_, np.zeros(1, np.int64), begins)
    np.cumsum(begins, out=begins)
    targets = np.empty(int(begins[n]), np.uint32)
    parallel.run(keep_upward, threads, tuple_, np.zeros(1, np.int64), begins, targets)
    upward = (begins[:-1], begins[1:], targets, np.empty(0, np.uint32), *WHOLE)
    counts = np.zeros(n, np.int64)
    marked = np.zeros((threads, n), np.bool_)
    counter = np.zeros(1, np.int64)
    for part in range(SLICES):
        last = n * (part + 1) // SLICES
        counter[0] = n * part // SLICES
        parallel.run(count_triangles, threads, upward, counter, last, marked, counts)
        counted(part, n - last, n)
    return counts


@kernel(**INLINE)
def is_above(rows, v, u):
    """Return whether `u` comes after `v` in the order of degrees, ties by number."""
    low, high = row(rows, v)
    begin, end = row(rows, u)
    return end - begin > high - low or (end - begin == high - low and u > v)


@kernel()
def count_upward(t, threads, rows, counter, begins):
    """Count each vertex's neighbours of higher degree in ``begins[v + 1]``."""
    n = len(begins) - 1
    low, high = claim_rows(counter, n, STEP)
    while low < high:
        for v in range(low, high):
            count, piece = 0, piece_of(rows, v)
            while piece.arc < piece.stop:
                for arc in range(piece.arc, piece.stop):
                    count += is_above(rows, v, rows[2][arc])
                piece = after(rows, piece)
            begins[v + 1] = count
        low, high = claim_rows(counter, n, STEP)


@kernel()
def keep_upward(t, threads, rows, counter, begins, targets):
    """Write each vertex's neighbours of higher degree."""
    n = len(begins) - 1
    low, high = claim_rows(counter, n, STEP)
    while low < high:
        for v in range(low, high):
            at, piece = begins[v], piece_of(rows, v)
            while piece.arc < piece.stop:
                for arc in range(piece.arc, piece.stop):
                    if is_above(rows, v, rows[2][arc]):
                        targets[at] = rows[2][arc]
                        at += 1
                piece = after(rows, piece)
        low, high = claim_rows(counter, n, STEP)


@kernel(**INLINE)
def add_one(counts, v, w):
    """Count a triangle at its third vertex."""
    atomic_add(counts, w, 1)


@kernel()
def count_triangles(t, threads, upward, counter, last, marks, counts):
    """Count the triangles of unclaimed vertices, each of which is their lowest."""
    marked, targets = marks[t], upward[2]
    low, high = claim_rows(counter, last, STEP)
    while low < high:
        for u in range(low, high):
            begin, end = row(upward, u)
            for arc in range(begin, end):
                marked[targets[arc]] = True
            mine = 0
            for arc in range(begin, end):
                v = targets[arc]
                found = intersect(upward, v, marked, add_one, counts)
                if found:
                    atomic_add(counts, v, found)
                    mine += found
            if mine:
                atomic_add(counts, u, mine)
            for arc in range(begin, end):
                marked[targets[arc]] = False
        low, high = claim_rows(counter, last, STEP)
