"""Objectives: what the weight inside communities is compared with.

Each compares it with the products of the vertices' masses, so that one rule serves all of them::

    score(c) = w(v, c) − rate · mass(v) · mass(c) + second_rate · second(v) · second(c)

Masses are degrees, or numbers of vertices (`cpm`). Directed, bipartite and signed modularity need a
second mass. For directed graphs, k_out·K_in + k_in·K_out = ½ (d·D − q·Q) with degrees d = k_in +
k_out and imbalances q = k_out − k_in; a bipartite graph is one whose arcs all lead from the first
mode to the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError
from louvain_um.graph.kinds import two_colouring
from louvain_um.graph.limits import GraphKind
from louvain_um.options import ObjectiveName

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph
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
    if name not in SUITS[kind]:
        raise OptionError("objective", name, remedy(kind, name), problem=f"the graph is {kind}")
    signed = kind == "signed"
    total = int(graph.absolute_degrees.sum()) if signed else graph.total_weight
    if name == "cpm":
        return Objective(
            name=name,
            resolution=resolution,
            total=total,
            norm=0,
            vertices=graph.n_vertices,
            scale=graph.scale,
            signed=signed,
        )
    norm, second = total, 0 if name == "modularity" else total
    if name == "signed":
        net = graph.total_weight
        norm, second = (total + net) // 2, (total - net) // 2
    return Objective(
        name=name,
        resolution=resolution,
        total=total,
        norm=norm,
        second_norm=second,
        signed=signed,
    )


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
