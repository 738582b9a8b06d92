"""What a run is to find: an objective on a graph, and constraints on the communities.

An objective compares the weight inside communities with the products of the vertices' masses, so
that one rule serves all of them::

    score(c) = w(v, c) − rate · mass(v) · mass(c) + second_rate · second(v) · second(c)

Masses are degrees, or numbers of vertices (`cpm`). Directed, bipartite and signed modularity need a
second mass. For directed graphs, k_out·K_in + k_in·K_out = ½ (d·D − q·Q) with degrees d = k_in +
k_out and imbalances q = k_out − k_in; a bipartite graph is one whose arcs all lead from the first
mode to the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import community_sizes, number_by_size
from louvain_um.errors import GraphError, OptionError, check_choice, shown
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import two_colouring
from louvain_um.graph.limits import GraphKind
from louvain_um.options import OBJECTIVES, ObjectiveName, Options
from louvain_um.results.given_labels import labels_of

if TYPE_CHECKING:
    from louvain_um.graph.row_view import RowView

I64 = NDArray[np.int64]

SUITS: Final[Mapping[GraphKind, tuple[ObjectiveName, ...]]] = {
    "undirected": ("modularity", "cpm", "bipartite", "signed"),
    "directed": ("directed",),
    "bipartite": ("modularity", "cpm", "bipartite", "signed"),
    "signed": ("cpm", "signed"),
}
"""Objectives by kind of graph."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Exact integers from which the value of a partition follows."""

    inside: int
    squares: int
    communities: int
    second_squares: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An objective on one graph."""

    name: ObjectiveName
    resolution: float
    total: int
    norm: int
    second_norm: int = 0
    vertices: int = 0
    scale: float = 1.0
    signed: bool = False

    @property
    def rate(self) -> float:
        """Factor of the products of masses, in integer units of weight."""
        if self.name == "cpm":
            return self.resolution * self.scale
        return self.resolution / self.norm if self.norm else 0.0

    @property
    def second_rate(self) -> float:
        """Factor of the products of second masses; 0 without any."""
        return self.resolution / self.second_norm if self.second_norm else 0.0

    @property
    def unit(self) -> float:
        """What a difference of values is divided by before it is compared with a threshold."""
        return self.total / (2 * self.scale) if self.name == "cpm" and self.total else 1.0

    def value(self, sums: Sums) -> float:
        """Return the value of a partition: exact up to two roundings; 0 without edges."""
        if self.name == "cpm":
            pairs = (sums.squares - self.vertices) // 2
            return sums.inside / (2 * self.scale) - self.resolution * pairs
        if not self.total:
            return 0.0
        expected = 0.0
        if self.second_norm:
            above = sums.squares * self.second_norm - sums.second_squares * (self.norm or 1)
            expected = above / (self.total * (self.norm or 1) * self.second_norm)
        elif self.norm:
            expected = sums.squares / (self.total * self.norm)
        return sums.inside / self.total - self.resolution * expected


def objective_of(graph: Any, name: ObjectiveName, resolution: float) -> Objective:
    """Return an objective on a graph."""
    kind: GraphKind = getattr(graph, "kind", "undirected")
    check_choice("objective", name, OBJECTIVES)
    if name not in SUITS[kind]:
        raise OptionError("objective", name, remedy(kind, name), problem=f"the graph is {kind}")
    signed = kind == "signed"
    total = int(graph.absolute_degrees.sum()) if signed else graph.total_weight
    common = Objective(name=name, resolution=resolution, total=total, norm=0, signed=signed)
    if name == "cpm":
        return replace(common, vertices=graph.n_vertices, scale=graph.scale)
    norm, second = total, 0 if name == "modularity" else total
    if name == "signed":
        net = graph.total_weight
        norm, second = (total + net) // 2, (total - net) // 2
    return replace(common, norm=norm, second_norm=second)


def remedy(kind: GraphKind, name: ObjectiveName) -> str:
    """Return what to do about an objective that does not suit a kind of graph."""
    if name == "directed":
        return "read it with directed=True (--directed)"
    if kind == "directed" and name != "modularity":
        return "read it with symmetrize=True (--symmetrize)"
    return f"pass objective='{kind}'"


def masses_of(graph: Graph | RowView, name: ObjectiveName) -> tuple[I64, I64 | None]:
    """Return each vertex's mass and second mass, int64[n]; None for objectives without second."""
    if name == "cpm":
        return np.ones(graph.n_vertices, np.int64), None
    host: Any = graph
    signed = getattr(graph, "kind", "undirected") == "signed"
    if name == "modularity" or (name == "signed" and not signed):
        return host.degrees, None
    if name == "signed":
        absolute = host.absolute_degrees
        return (absolute + host.degrees) // 2, (absolute - host.degrees) // 2
    return host.degrees, two_colouring(host) if host.imbalance is None else host.imbalance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """What a run is to find."""

    objective: Objective
    start: NDArray[np.uint32] | None = None
    fixed: NDArray[np.uint8] | None = None
    max_size: int | None = None
    extended: bool = False


def takes_extended_rule(options: Options) -> bool:
    """Return whether a run takes the extended rule: all but modularity without constraints."""
    given = (options.initial, options.fixed, options.max_size)
    return options.objective != "modularity" or any(each is not None for each in given)


def problem_of(graph: Any, options: Options) -> Problem:
    """Return what a run is to find on a graph."""
    objective = objective_of(graph, options.objective, options.resolution)
    start = None if options.initial is None else start_of(graph, options.initial)
    fixed = None if options.fixed is None else fixed_of(graph, options.fixed)
    if start is not None and options.max_size is not None:
        largest = int(community_sizes(start).max(initial=0))
        if largest > options.max_size:
            raise OptionError(
                "max_size",
                options.max_size,
                f"pass at least {largest}",
                problem=f"the start partition has a community of {largest} vertices",
            )
    return Problem(
        objective=objective,
        start=start,
        fixed=fixed,
        max_size=options.max_size,
        extended=takes_extended_rule(options),
    )


def start_of(graph: Graph, initial: Any) -> NDArray[np.uint32]:
    """Return the community of each vertex, named by its smallest member."""
    labels = number_by_size(labels_of(graph, initial))
    first = np.zeros(int(labels.max(initial=0)) + 1, np.uint32)
    vertices = np.arange(len(labels), dtype=np.uint32)[::-1]
    first[labels[::-1]] = vertices  # the last assignment stands: the smallest
    return first[labels]


def fixed_of(graph: Graph, fixed: Any) -> NDArray[np.uint8]:
    """Return 1 for each fixed vertex, given as a mask or as vertices by id or name."""
    n = graph.n_vertices
    if type(fixed) is np.ndarray and fixed.dtype == np.bool_ and fixed.shape == (n,):
        return fixed.astype(np.uint8)
    calls = (getattr(fixed, name, None) for name in ("tolist", "to_pylist", "to_list"))
    given = next((call() for call in calls if call), fixed)  # not by NumPy: names may be tuples
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        remedy = "must be a list of vertices, or an array that says True or False of each"
        raise OptionError("fixed", fixed, remedy)
    given = list(given)
    if len(given) == n and all(isinstance(each, bool | np.bool_) for each in given):
        return np.array(given, np.uint8)
    names = range(n) if graph.names is None else graph.names.tolist()
    place = {name: at for at, name in enumerate(names)} if graph.names is not None else None
    flags = np.zeros(n, np.uint8)
    for vertex in given:
        try:
            at = vertex if place is None else place.get(vertex, -1)
        except TypeError:  # a list
            at = -1
        if not isinstance(at, int | np.integer) or isinstance(at, bool) or not 0 <= at < n:
            known = f"such as {names[0]!r}" if n else "of which there are none"
            raise GraphError(
                f"fixed vertex {shown(vertex)} is not in the graph; use its vertices, {known}"
            )
        flags[at] = 1
    return flags
