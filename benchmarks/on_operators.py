"""Five algorithms on the operators, as Marrow-Graph has them, and their useful lines of code.

Graphs are `Graph` with arrays of NumPy, or `DeviceGraph` with arrays of CuPy: `xp` says which.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from louvain_um.algorithms.operators import (
    advance,
    atomic_add,
    atomic_min,
    filter,
    segmented_intersection,
)

FAR: Final = 2**62
"""A distance that no path has."""


def reach(u, v, w, arc, distances, level):  # type: ignore[no-untyped-def]
    if distances[v] < 0:
        distances[v] = level
        return True
    return False


def bfs(graph: Any, source: int, xp: Any = np) -> Any:
    """Return distances in arcs, −1 where not reached."""
    distances, frontier, level = xp.full(graph.n_vertices, -1), [source], 0
    distances[source] = 0
    while len(frontier):
        level += 1
        frontier = advance(graph, frontier, reach, distances, level)
    return distances


def relax(u, v, w, arc, distances):  # type: ignore[no-untyped-def]
    length = distances[u] + w
    return length < distances[v] and atomic_min(distances, v, length) > length


def sssp(graph: Any, source: int, xp: Any = np) -> Any:
    """Return distances by weights, `FAR` where not reached."""
    distances, frontier = xp.full(graph.n_vertices, FAR), [source]
    distances[source] = 0
    while len(frontier):
        frontier = advance(graph, frontier, relax, distances)
    return distances


def product(u, v, w, arc, x):  # type: ignore[no-untyped-def]
    return w * x[v]


def spmv(graph: Any, x: Any, xp: Any = np) -> Any:
    """Return the product of the adjacency matrix, in integer weights, and a vector."""
    return x * loops_of(graph, xp) + advance(graph, None, product, x, returns="sums")


def update(v, ranks, sums, shares, weights, damping, base):  # type: ignore[no-untyped-def]
    ranks[v] = base + damping * sums[v]
    if weights[v] > 0:
        shares[v] = ranks[v] / weights[v]


def pagerank(
    graph: Any, xp: Any = np, damping: float = 0.85, tolerance: float = 1e-8, most: int = 500
) -> Any:
    """Return ranks, and how many iterations they took."""
    n, loops = graph.n_vertices, loops_of(graph, xp)
    ranks, shares = xp.full(n, 1 / n), xp.zeros(n)
    weights = spmv(graph, xp.ones(n), xp)
    filter(graph, None, update, ranks, ranks, shares, weights, 1.0, 0.0)
    rounds, change, dangling = 0, tolerance + 1, xp.flatnonzero(weights == 0)
    while change > tolerance and rounds < most:
        before = ranks.copy()
        base = (1 - damping + damping * float(ranks[dangling].sum())) / n
        sums = shares * loops + advance(graph, None, product, shares, returns="sums")
        filter(graph, None, update, ranks, sums, shares, weights, damping, base)
        change = float(abs(ranks - before).sum())
        rounds += 1
    return ranks, rounds


def found(a, b, c, counts):  # type: ignore[no-untyped-def]
    atomic_add(counts, c, 1)


def triangles(graph: Any, xp: Any = np) -> Any:
    """Return the triangles of each vertex."""
    counts = xp.zeros(graph.n_vertices, np.int64)
    segmented_intersection(graph, None, found, counts)
    return counts


def loops_of(graph: Any, xp: Any) -> Any:
    """Return the weight of each vertex's loop, as floats."""
    return xp.zeros(graph.n_vertices) if graph.loops is None else xp.asarray(graph.loops * 1.0)


PARTS: Final[dict[str, tuple[Callable[..., Any], ...]]] = {
    "bfs": (bfs, reach),
    "pagerank": (pagerank, update, spmv, product, loops_of),
    "spmv": (spmv, product, loops_of),
    "sssp": (sssp, relax),
    "triangles": (triangles, found),
}
PUBLISHED: Final = {"bfs": 44, "pagerank": 79, "spmv": 18, "sssp": 55, "triangles": 40}
"""Useful lines of Marrow-Graph (das Neves, 2024, table 4.2)."""


def useful_lines(name: str) -> int:
    """Return the lines of an algorithm and of its functors, without docstrings and comments."""
    total = 0
    for part in PARTS[name]:
        tree = ast.parse(inspect.getsource(part)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        if ast.get_docstring(tree) is not None:
            del tree.body[0]
        spans = [range(each.lineno, (each.end_lineno or 0) + 1) for each in tree.body]
        head = range(tree.lineno, (tree.args.args[-1].end_lineno or 0) + 1)
        total += len({line for span in (head, *spans) for line in span})
    return total
