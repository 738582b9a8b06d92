"""Benchmark graphs with planted communities, after Lancichinetti, Fortunato, Radicchi (2008).

Degrees and community sizes follow power laws, and all vertices have the same share of
neighbours outside their communities. Stubs are paired by keyed permutations (a configuration
model). Loops and repeated pairs are paired again a few times, but never rewired; pairs that still
fail are dropped. This costs some edges in communities hardly larger than their members' degrees,
and allows a hundred million arcs to be generated in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError, checks_kinds
from louvain_um.generators.base import (
    CommonOptions,
    Generated,
    Weights,
    check_memory,
    power_law,
    real_number,
    stream_key,
    whole_number,
)

OUTSIDE_STREAM = 32

RETRIES = 8
"""Times that the stubs of failed pairs are paired again.

On 2^18 vertices with default options and mixing 0.3, 1, 2, 3, 5, 9 and 17 attempts give a mixing
of 0.339, 0.328, 0.324, 0.321, 0.320 and 0.319.
"""


@checks_kinds
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
    parameters = lfr_parameters(**locals())
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


DEGREE_STREAM, SIZE_STREAM, SLOT_STREAM, SPLIT_STREAM, INSIDE_STREAM = 16, 17, 18, 19, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LfrParameters:
    """What determines all edges, for the kernels on the CPU and on the device."""

    n: int
    key: np.uint64
    starts: NDArray[np.int64]
    inner: NDArray[np.int64]
    outer: NDArray[np.int64]
    first_edge: NDArray[np.int64]
    slots: NDArray[np.uint32]
    labels: NDArray[np.uint32]
    ids: NDArray[np.uint64]
    common: CommonOptions

    @property
    def edges_inside(self) -> int:
        """Number of pairs of stubs inside communities."""
        return int(self.first_edge[-1])

    @property
    def edges(self) -> int:
        """Number of pairs of stubs, including those that will fail."""
        return self.edges_inside + int(self.outer[-1]) // 2

    @property
    def max_members(self) -> int:
        """Size of the largest community."""
        return int(np.diff(self.starts).max())

    @property
    def max_stubs(self) -> int:
        """Largest number of stubs inside a community."""
        return int(np.diff(self.inner[self.starts]).max())


def lfr_parameters(
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
) -> LfrParameters:
    """Check the arguments of `lfr` and do the work that grows with the number of vertices only."""
    n = whole_number("n", n, 2)
    common = CommonOptions(permute=permute, weights=weights, seed=seed)
    min_degree = _least("min_degree", min_degree, n - 1, n)
    max_degree = min(whole_number("max_degree", max_degree, min_degree), n - 1)
    min_community = _least("min_community", min_community, n, n)
    max_community = min(whole_number("max_community", max_community, min_community), n)
    real_number("degree_exponent", degree_exponent, 0.0, 20.0)
    real_number("community_exponent", community_exponent, 0.0, 20.0)
    kept = round((1.0 - real_number("mixing", mixing, 0.0, 1.0)) * 2**32)

    sizes = community_sizes(n, min_community, max_community, community_exponent, seed)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    order = np.argsort(-sizes, kind="stable")
    counts = degree_counts(n, min_degree, max_degree, degree_exponent, seed)
    check_memory(n, 0)

    from louvain_um.generators import edges as compiled

    q = np.uint64(kept)
    degrees = np.empty(n, np.uint32)
    slot_key = common.key(SLOT_STREAM)
    compiled.fill_slots(slot_key, counts, min_degree, q, starts, order, degrees)
    inner, outer = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    compiled.split_degrees(common.key(SPLIT_STREAM), q, starts, degrees, inner, outer)
    del degrees

    ids = common.vertex_ids(n)
    slots, labels = np.empty(n, np.uint32), np.empty(n, np.uint32)
    compiled.label_slots(starts, ids, slots, labels)

    inside = np.diff(inner[starts])
    return LfrParameters(
        n=n,
        key=common.key(INSIDE_STREAM),
        starts=starts,
        inner=inner,
        outer=outer,
        first_edge=np.concatenate(([0], np.cumsum(inside // 2))),
        slots=slots,
        labels=labels,
        ids=ids,
        common=common,
    )


def _least(name: str, value: int, most: int, n: int) -> int:
    """Return the least degree or size; the error says which ones a graph of n vertices can have."""
    value = whole_number(name, value, 1)
    if value > most:
        raise OptionError(name, value, f"must be at most {most} for {n} vertices")
    return value


def community_sizes(n: int, low: int, high: int, exponent: float, seed: int) -> NDArray[np.int64]:
    """Draw sizes until they sum to n, int64[k]; deterministic for a seed."""
    table = power_law(low, high, exponent)
    sizes = low + _draws(table, stream_key(seed, SIZE_STREAM), n // low + 1)
    last = int(np.searchsorted(np.cumsum(sizes), n))
    sizes = sizes[: last + 1]
    sizes[last] -= int(sizes.sum()) - n
    if sizes[last] < low and last > 0:
        # The last community is too small: its members are spread over the others.
        rest, sizes = int(sizes[last]), sizes[:last]
        order = np.argsort(sizes, kind="stable")
        sizes += rest // last
        sizes[order[: rest % last]] += 1
    return sizes


def degree_counts(n: int, low: int, high: int, exponent: float, seed: int) -> NDArray[np.int64]:
    """Draw n degrees; return the number of vertices with each degree low … high."""
    table = power_law(low, high, exponent)
    counts = np.zeros(len(table), np.int64)
    key = stream_key(seed, DEGREE_STREAM)
    for first in range(0, n, 1 << 20):
        drawn = _draws(table, key, min(1 << 20, n - first), first)
        counts += np.bincount(drawn, minlength=len(table))
    return counts


def _draws(
    table: NDArray[np.uint64], key: np.uint64, count: int, first: int = 0
) -> NDArray[np.int64]:
    """Return entries `first` … of a stream as positions in a table of thresholds."""
    from louvain_um.generators.hashing import draws

    found: NDArray[np.int64] = np.searchsorted(table, draws(key, first, count), side="right")
    np.minimum(found, len(table) - 1, out=found)
    return found
