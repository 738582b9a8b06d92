"""Quality of a partition: exact integer sums, rounded once at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.numbering import (
    community_masses,
    community_sizes,
    community_weights,
    dense_uint32,
    sum_of_squares,
)
from louvain_um.core.objective import Sums, masses_of, objective_of
from louvain_um.errors import GraphError, OptionError, is_number
from louvain_um.graph.export import matrices, vertex_ranges
from louvain_um.graph.graph import Graph
from louvain_um.options import ObjectiveName
from louvain_um.results.display import require_pandas
from louvain_um.results.given_labels import Given, labels_of, refuse_other_order

SHARE_BYTES: Final = 60
"""What a share takes until those below the threshold are left out."""

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Quality:
    """Quality of a partition of a graph, overall and by community.

    Parameters
    ----------
    modularity : float
        The objective's value.
    resolution : float
    objective : str
    coverage : float
        Share of the edges' weight that lies inside communities; 0 without edges.
    sizes : int64[k]
        Vertices.
    inside : float64[k]
        Weight of the edges inside, loops included.
    cut : float64[k]
        Weight of the edges that leave.
    conductance : float64[k]
        Weight of the edges leaving over the smaller of the volumes inside and outside;
        0 where either volume is 0.
    density : float64[k]
        Share of the possible pairs that are joined by an edge; 0 for a single vertex.
    parts : int64[k]
        Connected components; 1 for a connected community.
    """

    modularity: float
    resolution: float
    objective: ObjectiveName = "modularity"
    coverage: float
    sizes: NDArray[np.int64]
    inside: NDArray[np.float64]
    cut: NDArray[np.float64]
    conductance: NDArray[np.float64]
    density: NDArray[np.float64]
    parts: NDArray[np.int64]

    @property
    def disconnected(self) -> int:
        """Number of communities that are not connected."""
        return int(np.count_nonzero(self.parts > 1))

    @property
    def internal_degree(self) -> NDArray[np.float64]:
        """Mean weight of a member's edges inside its community, float64[k]; a loop counts twice."""
        return 2 * self.inside / np.maximum(self.sizes, 1)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per community.

        Returns
        -------
        pandas.DataFrame
            Columns ``size``, ``inside``, ``cut``, ``conductance``, ``density``,
            ``internal_degree`` and ``parts``; the index is the community. Sums of real weights
            have 12 digits, those that the weights' integers keep.

        Raises
        ------
        LouvainUmError
            pandas is not installed.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
        >>> frame = lu.louvain(g, device="cpu").quality().to_frame()
        >>> frame.loc[0, ["size", "inside", "cut"]].tolist()
        [3.0, 3.0, 1.0]
        """
        columns = {
            "size": self.sizes,
            "inside": _twelve_digits(self.inside),
            "cut": _twelve_digits(self.cut),
            "conductance": self.conductance,
            "density": self.density,
            "internal_degree": _twelve_digits(self.internal_degree),
            "parts": self.parts,
        }
        index = require_pandas().RangeIndex(len(self.sizes), name="community")
        return require_pandas().DataFrame(columns, index=index)

    def __repr__(self) -> str:
        mean = float(self.conductance.mean()) if len(self.conductance) else 0.0
        return (
            f"Quality({self.objective} {self.modularity:.4f} at resolution {self.resolution:g}, "
            f"coverage {self.coverage:.4f}, mean conductance {mean:.4f}, "
            f"{self.disconnected} of {len(self.parts)} communities disconnected)"
        )


def _twelve_digits(values: NDArray[Any]) -> NDArray[Any]:
    """Return sums of real weights without the digits that are due to scaling."""
    if values.dtype.kind != "f":
        return values
    return np.array([float(f"{value:.12g}") for value in values.tolist()], values.dtype)


def modularity(
    graph: Any, labels: Given, resolution: float = 1.0, *, objective: ObjectiveName = "modularity"
) -> float:
    """Return Newman's modularity of a partition, with a resolution (Reichardt and Bornholdt).

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
        One on a device, which adds its communities up there, is not copied.
    labels : array of int of length n, Communities, dict, or list of sets
        Community of each vertex in the order of the vertices; or by vertex; or the vertices of
        each community, as networkx lists them. Vertices go by their names in the source.
    resolution : float
        γ in Σ_c [ 2·in_c / 2m − γ (degree_c / 2m)² ].
    objective : {"modularity", "cpm", "directed", "bipartite", "signed"}
        Another objective, evaluated instead; see `louvain_um.options.Options`. "cpm" is
        Σ_c [ in_c − γ n_c (n_c − 1) / 2 ], in the units of the weights.

    Returns
    -------
    float
        The exact value rounded once or twice, the same on every machine; 0 without edges.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> round(lu.modularity(g, [0, 0, 0, 1, 1, 1]), 4)
    0.3571
    >>> round(lu.modularity(g, [{0, 1, 2}, {3, 4, 5}]), 4)
    0.3571
    """
    resolution = _finite(resolution)
    if not isinstance(graph, Graph):
        from louvain_um.formats.reading import graph_of

        refuse_other_order(graph, labels)
        graph = graph_of(graph, objective)
    dense = dense_labels(graph, labels)
    return value_of(graph, dense, *community_weights(graph, dense), resolution, objective)


def _finite(resolution: object) -> float:
    """Return a resolution as a number of Python's; raise an OptionError unless it is finite."""
    if not (is_number(resolution) and isfinite(resolution)):
        raise OptionError("resolution", resolution, "must be a number")
    return float(resolution)


def quality(
    graph: Graph, labels: Given, resolution: float = 1.0, *, objective: ObjectiveName = "modularity"
) -> Quality:
    """Report modularity, coverage, and each community's conductance, density and components."""
    resolution = _finite(resolution)
    dense = dense_labels(graph, labels)
    sizes = community_sizes(dense)
    inside, volumes, joined, parts = _counts(graph, dense, sizes)
    value = value_of(graph, dense, inside, volumes, resolution, objective)
    if graph.kind == "signed":
        weights: Any = None if graph.weights is None else np.abs(graph.weights)
        graph = replace(
            graph, weights=weights, loops=np.abs(graph.loops), kind="undirected", check=False
        )
        inside, volumes = community_weights(graph, dense)
    total = graph.total_weight
    smaller = np.minimum(volumes, total - volumes)
    pairs = sizes * (sizes - 1)
    return Quality(
        modularity=value,
        resolution=resolution,
        objective=objective,
        coverage=int(inside.sum()) / total if total else 0.0,
        sizes=sizes,
        inside=inside / (2 * graph.scale),
        cut=(volumes - inside) / graph.scale,
        conductance=(volumes - inside) / np.maximum(smaller, 1),
        density=joined / np.maximum(pairs, 1),
        parts=parts,
    )


def _counts(
    graph: Graph, labels: NDArray[np.uint32], sizes: NDArray[np.int64]
) -> Sequence[NDArray[np.int64]]:
    """Return, for each community, arcs' weight inside, total degree, arcs inside and components."""
    there = graph.counts_there(labels, parts=True)
    if there is not None:
        return tuple(there)
    joined = np.zeros(len(sizes), np.int64)
    _count_inside(graph.offsets, graph.targets, labels, joined)
    return *community_weights(graph, labels), joined, parts_of(graph, labels, sizes)


def parts_of(
    graph: Graph, labels: NDArray[np.uint32], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of connected components of each community."""
    there = graph.counts_there(labels, parts=True)
    if there is not None:
        found: NDArray[np.int64] = there[-1]
        return found
    parts = sizes.copy()
    parent, members = np.arange(len(labels), dtype=np.uint32), np.zeros(len(labels), np.uint32)
    largest = np.zeros(len(parts), np.uint32)
    threads = parallel.default_threads() if len(labels) > parallel.PIECE else 1
    shares = np.arange(1, threads) * len(labels) // threads
    bounds = np.concatenate([[0], np.searchsorted(np.cumsum(sizes), shares), [len(sizes)]])
    parallel.run(
        _join, threads, bounds, graph.offsets, graph.targets, labels, parent, members, largest,
        parts,
    )  # fmt: skip
    return parts


def memberships(
    graph: Graph, labels: NDArray[np.uint32], n_communities: int, threshold: float
) -> Any:
    """Return each vertex's share of weight to each community; `Communities.memberships`."""
    from scipy.sparse import csr_array, vstack

    if not 0 <= threshold <= 1:
        raise OptionError("threshold", threshold, "must lie in 0 … 1")
    if graph.kind not in ("undirected", "bipartite"):
        raise GraphError("shares of signed or directed edges have no meaning here")
    n = graph.n_vertices
    check_host_memory(
        SHARE_BYTES * (n + graph.n_arcs), f"shares of {n:,} vertices", "use labels instead"
    )
    indicator = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, n_communities))
    parts = [rows.astype(np.float64) @ indicator for rows in matrices(graph, vertex_ranges(graph))]
    shares = csr_array(vstack(parts, format="csr") if parts else (n, n_communities))
    alone = np.flatnonzero(np.diff(shares.indptr) == 0)
    lonely = csr_array((np.ones(len(alone)), (alone, labels[alone])), shape=shares.shape)
    shares = csr_array(shares + lonely)
    for least in (threshold, 0.0):
        rows = np.repeat(np.arange(n), np.diff(shares.indptr))
        totals = np.bincount(rows, shares.data, n)
        shares.data /= totals[rows]
        largest = np.maximum.reduceat(shares.data, shares.indptr[:-1]) if n else shares.data
        shares.data[(shares.data < least) & (shares.data < largest[rows])] = 0
        shares.eliminate_zeros()
    return shares


def value_of(
    graph: Graph,
    labels: NDArray[np.uint32],
    inside: NDArray[np.int64],
    volumes: NDArray[np.int64],
    resolution: float,
    objective: ObjectiveName,
) -> float:
    """Return the value of an objective, from communities' weights inside and total degrees."""
    chosen = objective_of(graph, objective, resolution)
    first, second, squares = volumes, None, 0
    if objective != "modularity":
        masses, second = masses_of(graph, objective)
        first = community_masses(labels, masses, len(volumes))
    if second is not None:
        squares = sum_of_squares(community_masses(labels, second, len(volumes)))
    return chosen.value(Sums(int(inside.sum()), sum_of_squares(first), len(volumes), squares))


def dense_labels(graph: Graph, labels: Given) -> NDArray[np.uint32]:
    """Return labels as small integers, or raise if they do not fit the graph."""
    return dense_uint32(labels_of(graph, labels))


@kernel()
def _count_inside(offsets, targets, labels, joined):
    """Count arcs inside communities."""
    for v in range(len(labels)):
        for j in range(offsets[v], offsets[v + 1]):
            joined[labels[v]] += labels[targets[j]] == labels[v]


FIRST_ARCS = 4
"""Arcs of each vertex that join nearly all of a connected community."""


@kernel()
def _join(t, threads, bounds, offsets, targets, labels, parent, members, largest, parts):
    """Decrement `parts` whenever two components join, by a few arcs of each vertex at first."""
    # Most vertices are then in the largest component of their community. Only the others' rows are
    # read whole, since each arc has its opposite. A thread has a range of communities, whose
    # vertices no other joins.
    n, low, high = len(labels), bounds[t], bounds[t + 1]
    for v in range(n):
        if low <= labels[v] < high:
            end = min(offsets[v] + FIRST_ARCS, offsets[v + 1])
            _join_along(offsets[v], end, v, targets, labels, parent, parts)
    for v in range(n):
        if low <= labels[v] < high:
            members[_root(parent, v)] += 1
    for v in range(n):
        if low <= labels[v] < high:
            most = largest[labels[v]]
            if labels[most] != labels[v] or members[v] > members[most]:
                largest[labels[v]] = v
    for v in range(n):
        if low <= labels[v] < high and parts[labels[v]] > 1:
            root, most = _root(parent, v), _root(parent, largest[labels[v]])
            if root != most:
                _join_along(offsets[v], offsets[v + 1], v, targets, labels, parent, parts)


@kernel()
def _join_along(begin, end, v, targets, labels, parent, parts):
    """Join a vertex's component with those of some neighbours in its community."""
    for j in range(begin, end):
        if labels[targets[j]] == labels[v]:
            a, b = _root(parent, v), _root(parent, targets[j])
            if a != b:
                parent[max(a, b)] = min(a, b)
                parts[labels[v]] -= 1


@kernel()
def _root(parent, v):
    """Return the smallest vertex of a component; halving keeps the paths short."""
    v = np.int64(v)
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = np.int64(parent[v])
    return v
