"""Algorithms of networkx, served by those of `louvain_um.algorithms`, and graphs converted.

Lengths and weights that decide between paths or trees must be whole numbers above 0: a graph rounds
real ones, and leaves out edges of weight 0. Other calls are left to networkx.

NumPy and networkx are imported where they are used: `import networkx` loads this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph

NAME = "louvain_um"
"""Name of the backend."""


@dataclass(eq=False, repr=False)
class ConvertedGraph:
    """A networkx graph as arrays: nodes in their order, edges, and weights by attribute."""

    nodes: list[Any]
    source: Any
    target: Any
    weights: dict[str, Any]
    directed: bool = field(kw_only=True)
    _graphs: dict[str | None, Graph] = field(default_factory=dict, init=False)

    __networkx_backend__ = NAME

    def is_directed(self) -> bool:
        """Return whether edges have directions."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Return False; multigraphs are not converted."""
        return False

    def number_of_edges(self) -> int:
        """Return the number of edges."""
        return len(self.source)

    def __len__(self) -> int:
        return len(self.nodes)

    def graph(self, weight: str | None) -> Graph:
        """Return the graph weighted by an attribute, or unweighted."""
        if weight not in self._graphs:
            from louvain_um.errors import GraphError
            from louvain_um.graph.graph import Graph

            if weight is not None and weight not in self.weights:
                raise NotImplementedError(f"the graph was converted without attribute {weight!r}")
            values = None if weight is None else self.weights[weight]
            try:
                self._graphs[weight] = Graph.from_edges(
                    self.source,
                    self.target,
                    values,
                    n_vertices=len(self.nodes),
                    duplicates="sum",
                    kind="directed" if self.directed else "undirected",
                )
            except GraphError as error:  # negative, infinite or NaN
                raise NotImplementedError(f"attribute {weight!r}: {error}") from error
        return self._graphs[weight]


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: dict[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    **_: Any,
) -> ConvertedGraph:
    """Convert a networkx graph."""
    import numpy as np

    if isinstance(graph, ConvertedGraph):
        return graph
    reason = unsuitable(graph)
    if reason or preserve_edge_attrs:
        raise NotImplementedError(reason or "only the weights that are used can be converted")
    nodes = list(graph)
    index = {node: i for i, node in enumerate(nodes)}
    ends = np.fromiter(
        (index[node] for edge in graph.edges() for node in edge),
        np.uint32,
        2 * graph.number_of_edges(),
    )
    weights = {}
    for name, default in (edge_attrs or {}).items():
        values = [value for _, _, value in graph.edges(data=name, default=default)]
        try:
            weights[name] = np.array(values) if values else np.zeros(0, np.int64)
        except (ValueError, OverflowError, TypeError):
            weights[name] = np.array([None])
        if weights[name].dtype.kind not in "biuf":
            raise NotImplementedError(f"attribute {name!r} has values that are no plain numbers")
    directed = graph.is_directed()
    converted = ConvertedGraph(nodes, ends[::2], ends[1::2], weights, directed=directed)
    for name in weights:
        converted.graph(name)  # so that unsuitable weights show here
    return converted


def convert_to_nx(result: Any, **_: Any) -> Any:
    """Convert back: graphs to networkx, everything else as it is."""
    if not isinstance(result, ConvertedGraph):
        return result
    import networkx as nx

    graph = nx.DiGraph() if result.directed else nx.Graph()
    graph.add_nodes_from(result.nodes)
    columns = [values.tolist() for values in result.weights.values()]
    ends = zip(result.source.tolist(), result.target.tolist(), strict=True)
    for edge, (u, v) in enumerate(ends):
        data = {name: column[edge] for name, column in zip(result.weights, columns, strict=True)}
        graph.add_edge(result.nodes[u], result.nodes[v], **data)
    return graph


def unsuitable(graph: Any) -> str:
    """Return why a graph cannot be converted, or ""."""
    if graph.is_multigraph():
        return "multigraphs are not supported; pass nx.Graph(G) with summed weights"
    return ""


def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:  # noqa: N803
    """Yield the components as sets of nodes, in the order of their first nodes."""
    from louvain_um.algorithms.structure import connected_components

    members: dict[int, set[Any]] = {}
    labels = connected_components(G.graph(None)).tolist()
    for node, label in zip(G.nodes, labels, strict=True):
        members.setdefault(label, set()).add(node)
    yield from members.values()


def number_connected_components(G: ConvertedGraph) -> int:  # noqa: N803
    """Return the number of components."""
    import numpy as np

    from louvain_um.algorithms.structure import connected_components

    labels = connected_components(G.graph(None))
    return int(np.count_nonzero(labels == np.arange(len(labels))))


def single_source_shortest_path_length(
    G: ConvertedGraph,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
) -> dict[Any, int]:
    """Return the distance of each node that can be reached, nearest first."""
    from louvain_um.algorithms.traversal import bfs

    return _nearest_first(G, bfs(G.graph(None), _place(G, source)).distances)


def single_source_dijkstra_path_length(
    G: ConvertedGraph,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
    weight: str | None = "weight",
) -> dict[Any, int]:
    """Return the length of a shortest path to each node that can be reached, nearest first."""
    from louvain_um.algorithms.traversal import sssp

    return _nearest_first(G, sssp(_whole(G, weight), _place(G, source)).distances)


def minimum_spanning_edges(
    G: ConvertedGraph,  # noqa: N803
    algorithm: str = "kruskal",
    weight: str | None = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a spanning forest of least weight, without their data."""
    from louvain_um.algorithms.structure import minimum_spanning_forest

    u, v, _ = minimum_spanning_forest(_whole(G, weight))
    yield from zip((G.nodes[i] for i in u.tolist()), (G.nodes[i] for i in v.tolist()), strict=True)


def triangles(G: ConvertedGraph, nodes: Any = None) -> dict[Any, int]:  # noqa: N803
    """Return the number of triangles of each node."""
    from louvain_um.algorithms.structure import triangles

    return dict(zip(G.nodes, triangles(G.graph(None)).tolist(), strict=True))


def pagerank(
    G: ConvertedGraph,  # noqa: N803
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: dict[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: dict[Any, Any] | None = None,
) -> dict[Any, float]:
    """Return the rank of each node."""
    from networkx import PowerIterationFailedConvergence

    from louvain_um.algorithms.products import NotConvergedError, pagerank

    limits: dict[str, Any] = {"tolerance": tol * len(G), "max_iterations": max_iter}
    try:
        ranks = pagerank(G.graph(weight), alpha, **limits)
    except NotConvergedError as error:
        raise PowerIterationFailedConvergence(max_iter) from error
    return dict(zip(G.nodes, ranks.tolist(), strict=True))


def declined(name: str, call: dict[str, Any]) -> str:
    """Return why a call of one of these functions cannot be served, or ""."""
    if not isinstance(call.get("weight", "weight"), str | None):
        return "lengths must be an attribute of edges, not a function"
    if call.get("cutoff") is not None:
        return "cutoff is not supported"
    if call.get("nodes") is not None:
        return "counting the triangles of some nodes is left to networkx"
    if name == "minimum_spanning_edges" and call.get("data", True) is not False:
        return "edges have no data here; pass data as False"
    if any(call.get(key) is not None for key in ("personalization", "nstart", "dangling")):
        return "personalization, nstart and dangling are not supported"
    if name == "pagerank" and not (
        0 <= call.get("alpha", 0.85) <= 1 and call.get("max_iter", 1) > 0 <= call.get("tol", 0)
    ):
        return "alpha must lie in 0 … 1, max_iter above 0, and tol not below"
    return ""


def _place(converted: ConvertedGraph, source: Any) -> int:
    """Return the number of a node."""
    from networkx import NodeNotFound

    try:
        return converted.nodes.index(source)
    except ValueError:
        raise NodeNotFound(f"Source {source} is not in G") from None


def _whole(converted: ConvertedGraph, weight: str | None) -> Graph:
    """Return the graph, if its weights are whole numbers above 0."""
    graph = converted.graph(weight)
    if weight is not None:
        values = converted.weights[weight]
        if values.dtype.kind not in "iub" or (len(values) and values.min() <= 0):
            raise NotImplementedError(f"attribute {weight!r} must hold whole numbers above 0")
    return graph


def _nearest_first(converted: ConvertedGraph, distances: Any) -> dict[Any, int]:
    import numpy as np

    order = np.argsort(distances, kind="stable")[np.count_nonzero(distances < 0) :]
    lengths = distances[order].tolist()
    return {converted.nodes[i]: d for i, d in zip(order.tolist(), lengths, strict=True)}
