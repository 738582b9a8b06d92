"""Minimum spanning forest on the CPU: Borůvka's rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import atomic_add, atomic_min
from louvain_um.cpu.algorithms.operators import STRETCH, arrays, claim_rows, filter
from louvain_um.cpu.algorithms.sssp import weight_of
from louvain_um.cpu.walk import INLINE, after, piece_of

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
    low, high = claim_rows(counter, len(live), STRETCH)
    while low < high:
        for i in range(low, high):
            v = live[i]
            own = component[v]
            piece = piece_of(rows, v)
            best, best_weight = NONE, NONE
            while piece.arc < piece.stop and (len(weights) or best == NONE):
                for arc in range(piece.arc, piece.stop):
                    if weight_of(weights, arc) < best_weight and component[targets[arc]] != own:
                        best, best_weight = arc, weight_of(weights, arc)
                        if len(weights) == 0:
                            break
                piece = after(rows, piece)
            choice[v] = best
            if best_weight < weight[own]:
                atomic_min(weight, own, best_weight)
        low, high = claim_rows(counter, len(live), STRETCH)


@kernel()
def first_of_equals(t, threads, rows, live, component, choice, weight, pair, counter):
    """Find each component's smallest pair of ends among its lightest arcs."""
    low, high = claim_rows(counter, len(live), STRETCH)
    while low < high:
        for i in range(low, high):
            v = live[i]
            arc, own = choice[v], component[v]
            if arc == NONE or weight_of(rows[3], arc) != weight[own]:
                continue
            a, b = np.uint64(v), np.uint64(rows[2][arc])
            ends = min(a, b) << HALF | max(a, b)
            if ends < pair[own]:
                atomic_min(pair, own, ends)
        low, high = claim_rows(counter, len(live), STRETCH)


@kernel()
def hook_components(
    t, threads, roots, component, weight, pair, hook, edges, weights, count, counter
):
    """Join each component to the one its edge leads to; of two that chose one edge, the larger."""
    low, high = claim_rows(counter, len(roots), STRETCH)
    while low < high:
        for i in range(low, high):
            own = roots[i]
            ends = pair[own]
            if ends == NONE:
                continue
            a, b = component[ends >> HALF], component[np.uint64(np.uint32(ends))]
            other = b if a == own else a
            if pair[other] == ends and own < other:
                continue
            hook[own] = other
            at = atomic_add(count, 0, 1)
            edges[at], weights[at] = ends, np.int64(weight[own])
        low, high = claim_rows(counter, len(roots), STRETCH)


@kernel(**INLINE)
def has_choice(choice, v):
    """Tell whether an arc of a vertex left its component: others never will."""
    return choice[v] != NONE


@kernel(**INLINE)
def is_root(hook, v):
    """Tell whether a component was hooked to no other."""
    return hook[v] == v


@kernel()
def keep(t, threads, live, roots, hook, choice, next_live, next_roots, tails, counter):
    """Keep the vertices and the components that the next round has to look at."""
    items = len(live) + len(roots)
    low, high = claim_rows(counter, items, STRETCH)
    while low < high:
        filter(live, low, min(high, len(live)), has_choice, choice, next_live, tails[:1])
        first = max(low - len(live), 0)
        filter(roots, first, max(high - len(live), 0), is_root, hook, next_roots, tails[1:])
        low, high = claim_rows(counter, items, STRETCH)


@kernel()
def follow(t, threads, roots, hook, component, weight, pair, counter):
    """Bring every vertex into its new component; clear what the old ones chose."""
    for i in range(len(roots) * t // threads, len(roots) * (t + 1) // threads):
        weight[roots[i]] = NONE
        pair[roots[i]] = NONE
    low, high = claim_rows(counter, len(component), STRETCH)
    while low < high:
        for v in range(low, high):
            root = component[v]
            while hook[root] != root:
                # Halving: other threads may do the same, or read either value.
                hook[root] = hook[hook[root]]
                root = hook[root]
            component[v] = root
        low, high = claim_rows(counter, len(component), STRETCH)
