"""Planted blocks and rings of cliques: graphs with exactly known communities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError, checks_kinds
from louvain_um.generators.base import (
    CommonOptions,
    Generated,
    Weights,
    check_memory,
    real_number,
    whole_number,
)

INSIDE_STREAM, OUTSIDE_STREAM = 16, 17


@checks_kinds
def planted(
    n: int,
    *,
    blocks: int = 16,
    degree_in: float = 24.0,
    degree_out: float = 8.0,
    permute: bool = True,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate blocks of equal size with given mean degrees inside and between them."""
    n = whole_number("n", n, 1)
    blocks = whole_number("blocks", blocks, 1, n)
    common = CommonOptions(permute=permute, weights=weights, seed=seed)
    size, larger = divmod(n, blocks)
    pairs_in = larger * (size + 1) * size // 2 + (blocks - larger) * size * (size - 1) // 2
    pairs = n * (n - 1) // 2
    edges_in = _edges("degree_in", degree_in, n, pairs_in)
    edges_out = _edges("degree_out", degree_out, n, pairs - pairs_in)
    check_memory(n, 2 * (edges_in + edges_out))

    from louvain_um.core import parallel
    from louvain_um.generators import edges as compiled
    from louvain_um.generators.hashing import permutation

    threads = parallel.default_threads()
    ids = common.vertex_ids(n)
    shape = (np.uint64(size), np.uint64(larger))
    u, v = np.empty(edges_in + edges_out, np.uint32), np.empty(edges_in + edges_out, np.uint32)
    inside = permutation(common.key(INSIDE_STREAM), pairs_in)
    parallel.run(compiled.draw_inside, threads, inside, *shape, ids, u[:edges_in], v[:edges_in])

    between = permutation(common.key(OUTSIDE_STREAM), pairs)
    share = (pairs - pairs_in) / max(pairs, 1)
    tried = min(pairs, int(edges_out / share * 1.01) + 1024) if edges_out else 0
    nothing = np.empty(0, np.uint32)
    while True:
        sums = np.zeros(-(-tried // compiled.CHUNK) + 1, np.int64)
        draw = (between, *shape, tried, sums, ids)
        parallel.run(compiled.draw_outside, threads, *draw, nothing, nothing)
        np.cumsum(sums, out=sums)
        if sums[-1] >= edges_out:
            break
        tried = min(pairs, 2 * tried)
    if edges_out:
        parallel.run(compiled.draw_outside, threads, *draw, u[edges_in:], v[edges_in:])

    starts = np.arange(blocks + 1) * size + np.minimum(np.arange(blocks + 1), larger)
    slots, labels = np.empty(n, np.uint32), np.empty(n, np.uint32)
    compiled.label_slots(starts, ids, slots, labels)
    return Generated(common.graph_of_edges(u, v, n), labels)


def _edges(name: str, degree: float, n: int, pairs: int) -> int:
    """Return the number of edges for a mean degree; raise an error if pairs do not suffice."""
    edges = round(n * real_number(name, degree, 0.0) / 2)
    if edges > pairs:
        raise OptionError(name, degree, f"must be at most {2 * pairs / n:g} for these blocks")
    return edges


@checks_kinds
def ring_of_cliques(
    cliques: int = 30,
    *,
    size: int = 5,
    permute: bool = False,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate a ring of cliques, each joined to the next by one edge."""
    cliques = whole_number("cliques", cliques, 1)
    size = whole_number("size", size, 1)
    common = CommonOptions(permute=permute, weights=weights, seed=seed)
    n = whole_number("cliques times size", cliques * size, 1)
    check_memory(n, n * (size - 1) + 2 * cliques)

    from louvain_um.generators.hashing import permute_all

    ids = common.vertex_ids(n)
    names: NDArray[np.uint32] = permute_all(ids, n)
    members = names.reshape(cliques, size)
    one, other = np.triu_indices(size, 1)
    last, first = members[:, -1], np.roll(members[:, 0], -1)
    u = np.concatenate((members[:, one].ravel(), last))
    v = np.concatenate((members[:, other].ravel(), first))
    labels = np.empty(n, np.uint32)
    labels[names] = np.repeat(np.arange(cliques, dtype=np.uint32), size)
    return Generated(common.graph_of_edges(u, v, n), labels)
