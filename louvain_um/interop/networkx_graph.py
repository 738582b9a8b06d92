"""Graphs of networkx as arrays, and back: the conversion behind the networkx backend.

NumPy and networkx are imported where they are used: `import networkx` loads this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph

NAME = "louvain_um"
"""Name of the backend."""


class ConvertedGraph:
    """A networkx graph as arrays: nodes in their order, edges, and weights by attribute."""

    __networkx_backend__ = NAME

    def __init__(
        self,
        nodes: list[Any],
        source: Any,
        target: Any,
        weights: dict[str, Any],
        *,
        directed: bool = False,
    ) -> None:
        self.nodes = nodes
        self.source = source
        self.target = target
        self.weights = weights
        self.directed = directed
        self._graphs: dict[str | None, Graph] = {}

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
