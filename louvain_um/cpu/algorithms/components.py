"""Connected components on the CPU: union by arcs, most of which are skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import compare_and_swap
from louvain_um.cpu.algorithms.operators import STRETCH, arrays, claim_rows
from louvain_um.cpu.walk import INLINE, after, piece_of

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
    low, high = claim_rows(counter, n, STRETCH)
    while low < high:
        for v in range(low, high):
            piece = piece_of(rows, v)
            for arc in range(piece.arc, min(piece.arc + np.uint64(FIRST_ARCS), piece.stop)):
                join(parents, np.uint32(v), rows[2][arc])
        low, high = claim_rows(counter, n, STRETCH)


@kernel()
def join_rest(t, threads, rows, counter, parents, largest):
    """Join every vertex to its other neighbours; those in the largest component need not be."""
    n = len(parents)
    low, high = claim_rows(counter, n, STRETCH)
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
        low, high = claim_rows(counter, n, STRETCH)


@kernel()
def flatten(t, threads, counter, parents):
    """Point every vertex to its root."""
    n = len(parents)
    low, high = claim_rows(counter, n, STRETCH)
    while low < high:
        for v in range(low, high):
            root = parents[v]
            while parents[root] != root:
                root = parents[root]
            parents[v] = root
        low, high = claim_rows(counter, n, STRETCH)
