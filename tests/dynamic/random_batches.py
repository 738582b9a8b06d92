"""Graphs and random batches for tests of communities that follow."""

import numpy as np

import louvain_um as lu


def random_batch(rng, n, size, weighted):
    """Return arguments of `apply`: insertions and deletions, denser inside four groups."""
    u, v = rng.integers(0, n, (2, size))
    near = rng.random(size) < 0.7
    v = np.where(near, (v // 4 * 4 + u % 4) % n, v)
    keep = rng.random(size) < 0.6
    insert = (u[keep], v[keep])
    if weighted:
        insert += (rng.integers(1, 9, keep.sum()),)
    return {"insert": insert, "delete": (u[~keep], v[~keep])}


def merging(seed):
    """Yield arguments of `apply`: 8 groups of 15 vertices, then few edges a batch between two."""
    rng = np.random.default_rng(seed)
    u, near = rng.integers(0, 120, 700), rng.random(700) < 0.95
    v = np.where(near, rng.integers(0, 15, 700) * 8 + u % 8, rng.integers(0, 120, 700))
    yield {"insert": (u, v)}
    for group in (0, 2):
        for _ in range(12):
            u, v = rng.integers(0, 15, (2, 5)) * 8
            yield {"insert": (u + group, v + group + 1)}


def grown(n, edges, weighted, seed):
    graph = lu.DynamicGraph(n, weighted=weighted)
    batch = random_batch(np.random.default_rng(seed), n, edges, weighted)
    graph.apply(insert=batch["insert"])
    return graph


def batches_with_removals(graph, seed):
    """Yield names and arguments of methods: random batches, and two vertices to remove after each.

    With seed 86 one of these is in a community that it has no edge to.
    """
    rng = np.random.default_rng(seed)
    for _ in range(3):
        alive = graph.alive
        batch = random_batch(rng, 60, 30, True)
        for what, columns in batch.items():
            batch[what] = tuple(c[alive[columns[0]] & alive[columns[1]]] for c in columns)
        yield "apply", batch
        alive = np.flatnonzero(graph.alive)
        yield "remove_vertices", {"ids": alive[rng.integers(0, len(alive), 2)]}
