"""Calls of networkx that the backend serves give what networkx gives, or are left to it."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um.interop import networkx_backend as backend

OURS: dict[str, Any] = {"backend": "louvain_um"}


pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions:UserWarning")


@st.composite
def given_graphs(draw: st.DrawFn) -> nx.Graph:
    """Return graphs with nodes of any name, loops, isolated nodes and whole weights."""
    n = draw(st.integers(1, 25))
    graph = nx.Graph()
    graph.add_nodes_from(f"n{i}" if i % 3 else (i, "x") for i in range(n))
    nodes = list(graph)
    pairs = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes), st.integers(1, 5))
    graph.add_weighted_edges_from(draw(st.lists(pairs, max_size=60)))
    return graph


@settings(max_examples=100, deadline=None, database=None)
@given(given_graphs())
def test_answers_are_those_of_networkx(graph: nx.Graph) -> None:
    source = next(iter(graph))
    assert list(nx.connected_components(graph, **OURS)) == list(nx.connected_components(graph))
    expected = nx.number_connected_components(graph)
    assert nx.number_connected_components(graph, **OURS) == expected
    for search in (nx.single_source_shortest_path_length, nx.single_source_dijkstra_path_length):
        found = search(graph, source, **OURS)
        assert found == search(graph, source)
        assert list(found.values()) == sorted(found.values())
    assert nx.triangles(graph, **OURS) == nx.triangles(graph)
    ranks = nx.pagerank(graph, tol=1e-10, max_iter=1000, **OURS)
    assert ranks == pytest.approx(nx.pagerank(graph, tol=1e-10, max_iter=1000), abs=1e-8)
    tree = graph.edge_subgraph(nx.minimum_spanning_edges(graph, data=False, **OURS))
    assert tree.size("weight") == nx.minimum_spanning_tree(graph).size("weight")


def test_failures_are_those_of_networkx() -> None:
    graph = nx.path_graph(5)
    with pytest.raises(nx.NodeNotFound):
        nx.single_source_shortest_path_length(graph, "x", **OURS)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(graph, max_iter=1, tol=1e-12, **OURS)
    assert nx.pagerank(nx.Graph(), **OURS) == {}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("single_source_shortest_path_length", {"source": 0, "cutoff": 2}),
        ("single_source_dijkstra_path_length", {"source": 0, "weight": lambda u, v, d: 1}),
        ("triangles", {"nodes": [0]}),
        ("pagerank", {"personalization": {0: 1}}),
        ("pagerank", {"alpha": 1.5}),
        ("minimum_spanning_edges", {}),
    ],
)
def test_declined_calls_say_why(name: str, arguments: dict[str, Any]) -> None:
    reason = backend.can_run(name, (nx.path_graph(3),), arguments)
    assert isinstance(reason, str)
    assert reason


@pytest.mark.parametrize("length", [0, 0.5, -1])
def test_lengths_that_a_graph_cannot_keep(length: float) -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=length)
    graph.add_edge(1, 2, weight=1)
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra_path_length(graph, 0, **OURS)


def test_cheap_calls_wait_for_a_converted_graph() -> None:
    graph = nx.gnm_random_graph(500, 3000, seed=1)
    assert isinstance(backend.should_run("connected_components", (graph,), {}), str)
    assert backend.should_run("triangles", (graph,), {}) is True
    nx.triangles(graph, **OURS)
    assert backend.should_run("connected_components", (graph,), {}) is True
