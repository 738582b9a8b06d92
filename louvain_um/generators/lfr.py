"""Benchmark graphs with planted communities, after Lancichinetti, Fortunato, Radicchi (2008).

Degrees and community sizes follow power laws, and all vertices have the same share of
neighbours outside their communities. Stubs are paired by keyed permutations (a configuration
model). Loops and repeated pairs are paired again a few times, but never rewired; pairs that still
fail are dropped. This costs some edges in communities hardly larger than their members' degrees,
and allows a hundred million arcs to be generated in parallel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louvain_um.generators.base import Generated, Weights, check_memory, stream_key
from louvain_um.generators.lfr_parameters import lfr_parameters

OUTSIDE_STREAM = 32

RETRIES = 8
"""Times that the stubs of failed pairs are paired again.

On 2^18 vertices with default options and mixing 0.3, 1, 2, 3, 5, 9 and 17 attempts give a mixing
of 0.339, 0.328, 0.324, 0.321, 0.320 and 0.319.
"""


def lfr(
    n: int,
    *,
    min_degree: int = 12,
    max_degree: int = 4000,
    degree_exponent: float = 2.3,
    min_community: int = 20,
    max_community: int = 5000,
    community_exponent: float = 1.5,
    mixing: float = 0.3,
    permute: bool = True,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate a graph with power-law degrees and power-law planted communities.

    Parameters
    ----------
    n : int
        Number of vertices.
    min_degree : int
        Least degree drawn, at most n − 1; dropping repeated edges lowers a few.
    max_degree : int
        Largest degree drawn; above n − 1 means n − 1.
    degree_exponent : float
        Degrees have probability ∝ degree^−exponent.
    min_community : int
        Least size of a community, at most n.
    max_community : int
        Largest size drawn for a community; above n means n. The last one takes the remaining
        vertices; fewer than the least size join the others, which may then exceed the largest.
    community_exponent : float
        Sizes have probability ∝ size^−exponent.
    mixing : float
        Share of each vertex's edges that leave its community, 0 … 1. It is larger for
        degrees that no community can hold.
    permute : bool
        Whether ids are permuted; otherwise communities are consecutive.
    weights : {"none", "uniform"}
        No weights, or integers 1 … 16 with equal probability.
    seed : int
        0 … 2³² − 1.

    Returns
    -------
    Generated
        The graph, and as `labels` the planted communities.

    Raises
    ------
    OptionError
        A value is out of range.

    Examples
    --------
    >>> from louvain_um.generators import lfr
    >>> made = lfr(1000, min_degree=5, max_degree=50, max_community=100)
    >>> made.graph.n_vertices, made.labels.dtype.name
    (1000, 'uint32')
    """
    parameters = lfr_parameters(
        n,
        min_degree=min_degree,
        max_degree=max_degree,
        degree_exponent=degree_exponent,
        min_community=min_community,
        max_community=max_community,
        community_exponent=community_exponent,
        mixing=mixing,
        permute=permute,
        weights=weights,
        seed=seed,
    )
    check_memory(parameters.n, 2 * parameters.edges)

    from louvain_um.core import parallel
    from louvain_um.generators import edges as compiled

    u, v = np.empty(parameters.edges, np.uint32), np.empty(parameters.edges, np.uint32)
    parallel.run(
        compiled.pair_inside,
        parallel.default_threads(),
        np.zeros(1, np.int64),
        parameters.key,
        1 + RETRIES,
        parameters.starts,
        parameters.inner,
        parameters.first_edge,
        parameters.max_members,
        parameters.max_stubs,
        parameters.ids,
        u,
        v,
    )
    inside = parameters.edges_inside
    _pair_outside(parameters.outer, parameters.slots, parameters.ids, seed, u[inside:], v[inside:])
    return Generated(parameters.common.graph_of_edges(u, v, parameters.n), parameters.labels)


def _pair_outside(
    outer: NDArray[np.int64],
    slots: NDArray[np.uint32],
    ids: NDArray[np.uint64],
    seed: int,
    u: NDArray[np.uint32],
    v: NDArray[np.uint32],
) -> None:
    """Pair the stubs that leave their communities; pairs inside one are paired again."""
    from louvain_um.core import parallel
    from louvain_um.generators import edges as compiled
    from louvain_um.generators.hashing import permutation

    stubs = np.empty(int(outer[-1]), np.uint32)
    compiled.expand_stubs(outer, stubs)
    where = np.empty(0, np.int64)
    for attempt in range(1 + RETRIES):
        p = permutation(stream_key(seed, OUTSIDE_STREAM + attempt), len(stubs))
        threads = parallel.default_threads() if len(stubs) > 1 << 14 else 1
        parallel.run(compiled.pair_outside, threads, p, stubs, where, slots, ids, u, v)
        failed = np.flatnonzero((u == v) if attempt == 0 else (u[where] == v[where]))
        if len(failed) == 0:
            return
        rest = np.empty(2 * len(failed), np.uint32)
        compiled.leftover(p, stubs, failed, rest)
        stubs = rest
        where = failed if attempt == 0 else where[failed]
