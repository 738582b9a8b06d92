"""Positions for drawing: of a graph's vertices, or of its communities, by networkx's springs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError, needed
from louvain_um.graph.export import all_edges
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import induced_graph, subgraph
from louvain_um.results.display import shown
from louvain_um.results.frame import hub_members
from louvain_um.results.partition import Result

MOST_VERTICES = 1500
"""Vertices up to which a graph is drawn: springs take some seconds, and circles still differ."""

MOST_EDGES = 12_000
"""Edges up to which a graph is drawn; more hide the vertices."""

MOST_COMMUNITIES = 60
"""Communities drawn, the largest; the others would be specks."""

MOST_LINKS = 600
"""Edges between communities drawn, the heaviest."""

COHESION = 2.0
"""Factor of the springs inside communities: it parts the communities without hiding the edges."""

COVERED = {"vertices": 0.05, "communities": 0.1}
"""Share of the paper that all circles cover together: vertices leave room for edges."""

SMALLEST = 0.008
"""Smallest radius of a circle, on paper of width 2."""

DENSE = 500
"""Vertices up to which networkx takes cheap steps; with more it takes few, by the energy."""

UNIFORM_WIDTH = 0.8
"""Width of lines of one weight, in points."""

MANY_LINES = 1000
"""Lines above which they are drawn thinner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Circles and lines of a drawn graph."""

    positions: NDArray[np.float64]
    radii: NDArray[np.float64]
    communities: NDArray[np.int64]
    names: list[str]
    ends: NDArray[np.int64]
    weights: NDArray[np.float64]
    left_out: str = ""

    @property
    def widths(self) -> NDArray[np.float64]:
        """Widths of lines, in points: by weight where that differs, less where lines are many."""
        if not len(self.weights) or self.weights.min() == self.weights.max():
            return np.full(len(self.weights), UNIFORM_WIDTH)
        scale = min(1.0, (MANY_LINES / len(self.weights)) ** 0.5)
        widths: NDArray[np.float64] = 0.4 + 2.6 * self.weights * scale
        return widths


def drawable(graph: Graph) -> bool:
    """Return whether a graph is small enough to draw its vertices."""
    return graph.n_vertices <= MOST_VERTICES and graph.n_edges <= MOST_EDGES


def draw_vertices(graph: Graph, result: Result, seed: int) -> Drawing:
    """Return a drawing with one circle per vertex, areas by degree."""
    if not drawable(graph):
        raise LouvainUmError(
            f"{graph.n_vertices:,} vertices and {graph.n_edges:,} edges are too many to draw (at "
            f"most {MOST_VERTICES:,} and {MOST_EDGES:,}); draw kind='communities', or one "
            "community's subgraph"
        )
    graph = _without_directions(graph)
    ends, weights = _lines(graph)
    inside = result.labels[ends[:, 0]] == result.labels[ends[:, 1]]
    springs = np.sqrt(weights) * np.where(inside, COHESION, 1.0)
    start = _around_communities(graph, result, seed)
    names = range(graph.n_vertices) if graph.names is None else graph.names.tolist()
    radii = _radii(graph.degrees, COVERED["vertices"])
    return Drawing(
        positions=_positions(radii, ends, springs, seed, start),
        radii=radii,
        communities=result.labels.astype(np.int64),
        names=[shown(name) for name in names],
        ends=ends,
        weights=weights,
    )


def draw_communities(graph: Graph, result: Result, seed: int) -> Drawing:
    """Return a drawing with one circle per community, areas by size."""
    whole = induced_graph(_without_directions(graph), result.labels)
    count = min(result.n_communities, MOST_COMMUNITIES)
    ends, weights = _lines(subgraph(whole, np.arange(count)))
    heaviest = np.sort(np.argsort(-weights, kind="stable")[:MOST_LINKS])
    ends, weights = ends[heaviest], weights[heaviest]
    rest = result.n_communities - count
    radii = _radii(result.sizes[:count], COVERED["communities"])
    return Drawing(
        positions=_positions(radii, ends, np.sqrt(weights), seed, None),
        radii=radii,
        communities=np.arange(count),
        names=hub_names(graph, result, count),
        ends=ends,
        weights=weights,
        left_out=f"{rest:,} smaller communities are not drawn" if rest else "",
    )


def hub_names(graph: Graph, result: Result, count: int) -> list[str]:
    """Return the name of the highest degree in each community, or else the community's number."""
    if result.names is None:
        return [str(number) for number in range(count)]
    hubs = hub_members(graph, result.labels, 1)[:count, 0]
    return [shown(name) for name in result.names[hubs].tolist()]


def _without_directions(graph: Graph) -> Graph:
    """Return a graph with undirected edges: lines are drawn without arrows."""
    if graph.kind != "directed":
        return graph
    return graph.renewed(kind="undirected", imbalance=None)


def _lines(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the edges that are not loops, and their weights relative to the largest."""
    u, v, w = all_edges(graph)
    proper = u != v
    ends = np.stack((u, v), axis=1)[proper].astype(np.int64)
    return ends, _relative(np.ones(len(ends)) if w is None else w[proper])


def _relative(values: NDArray[np.number]) -> NDArray[np.float64]:
    # Negative weights attract nothing.
    floats = np.maximum(np.asarray(values, np.float64), 0)
    return floats / floats.max() if len(floats) and floats.max() > 0 else np.ones(len(floats))


def _around_communities(graph: Graph, result: Result, seed: int) -> NDArray[np.float64]:
    """Return start positions: each vertex near its community, at a golden angle from the next."""
    whole = induced_graph(graph, result.labels)
    ends, weights = _lines(whole)
    centres = _springs(result.n_communities, ends, np.sqrt(weights), seed, None)
    place = np.arange(graph.n_vertices, dtype=np.float64)
    angle = place * np.pi * (3 - np.sqrt(5))
    radius = 0.15 * np.sqrt((place + 0.5) / max(graph.n_vertices, 1))
    around = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)
    found: NDArray[np.float64] = centres[result.labels] + around
    return found


def _radii(sizes: NDArray[np.int64], covered: float) -> NDArray[np.float64]:
    """Return radii for areas by size, on paper of 2 × 2; sums of negative weights have none."""
    sizes = np.maximum(sizes, 0)
    shares = sizes / max(1, int(sizes.sum()))
    radii: NDArray[np.float64] = np.maximum(np.sqrt(4 * covered * shares / np.pi), SMALLEST)
    return radii


def _positions(
    radii: NDArray[np.float64],
    ends: NDArray[np.int64],
    weights: NDArray[np.float64],
    seed: int,
    start: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return positions: the largest connected part by springs, the others in rows below."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(radii)
    if count == 0:
        return np.zeros((0, 2))
    joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    part = connected_components(joined, directed=False)[1]
    sizes = np.bincount(part)
    order = np.argsort(-sizes, kind="stable")
    positions = np.empty((count, 2))
    low, left, row = -1.1, -1.0, 0.0
    for number, which in enumerate(order.tolist()):
        inside = np.flatnonzero(part == which)
        place = np.full(count, -1)
        place[inside] = np.arange(len(inside))
        within = part[ends[:, 0]] == which if len(ends) else np.zeros(0, bool)
        first = None if start is None else start[inside]
        at = _springs(len(inside), place[ends[within]], weights[within], seed, first)
        if number == 0:
            positions[inside] = _separate(at, radii[inside])
            continue
        width = 3 * float(np.sqrt(((radii[inside] + SMALLEST) ** 2).sum())) + 0.04
        if left + width > 1.05 and left > -1:
            left, low, row = -1.0, low - row, 0.0
        centre = np.array([left + width / 2, low - width / 2])
        positions[inside] = _separate(at * width * 0.4, radii[inside]) + centre
        left, row = left + width, max(row, width)
    return positions


def _separate(positions: NDArray[np.float64], radii: NDArray[np.float64]) -> NDArray[np.float64]:
    """Separate overlapping circles."""
    at = positions.copy()
    for _ in range(60):
        gaps = at[:, None] - at
        distance = np.hypot(gaps[..., 0], gaps[..., 1])
        np.fill_diagonal(distance, np.inf)
        missing = 1.15 * (radii[:, None] + radii) - distance
        if missing.max(initial=0.0) <= 0:
            break
        push = np.clip(missing, 0, None) / np.maximum(distance, 1e-9) / 3
        at += (gaps * push[..., None]).sum(axis=1)
    return at


def _springs(
    count: int,
    ends: NDArray[np.int64],
    weights: NDArray[np.float64],
    seed: int,
    start: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return positions by the algorithm of Fruchterman and Reingold, within −1 … 1."""
    networkx = needed("networkx", "drawing needs networkx", "formats,charts")
    springs = networkx.Graph()
    springs.add_nodes_from(range(count))
    joined = zip(ends[:, 0].tolist(), ends[:, 1].tolist(), weights.tolist(), strict=True)
    springs.add_weighted_edges_from(joined)
    found = networkx.spring_layout(
        springs,
        pos=None if start is None else dict(enumerate(start)),
        iterations=120 if count <= DENSE else 40,
        seed=seed,
        k=None if count == 0 else 1.2 / np.sqrt(count),
    )
    positions = np.array([found[v] for v in range(count)]).reshape(count, 2)
    if count < 2:
        return np.zeros((count, 2))
    # Parts without edges to the rest drift away; ranks halfway keep them in sight.
    low, high = np.percentile(positions, [1, 99], axis=0)
    spread = np.where(high > low, high - low, 1)
    scaled = np.clip(2 * (positions - low) / spread - 1, -1.15, 1.15)
    return np.asarray(scaled / max(1.0, np.abs(scaled).max()))
