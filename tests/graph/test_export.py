from __future__ import annotations

import builtins

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import louvain_um as lu
from tests.graphs import graphs


def same(a: lu.Graph, b: lu.Graph) -> bool:
    """Equal to the last bit of every weight."""

    def real(graph: lu.Graph) -> list[float]:
        ones = np.ones(graph.n_arcs) if graph.weights is None else graph.weights
        return [*(ones / graph.scale), *(graph.loops / graph.scale)]

    return (
        np.array_equal(a.offsets, b.offsets)
        and np.array_equal(a.targets, b.targets)
        and real(a) == real(b)
    )


@settings(deadline=None)
@given(graphs())
def test_objects_turn_back_into_the_same_graph(graph: lu.Graph) -> None:
    for back in (graph.to_networkx(), graph.to_igraph(), graph.to_scipy()):
        assert same(lu.as_graph(back), graph)


def test_a_frame_lists_each_edge_once_by_name() -> None:
    graph = lu.as_graph((["a", "b", "b", "b"], ["b", "c", "b", "a"], [0.1, 2, 0.5, 0.2]))
    frame = graph.to_pandas()
    assert frame.to_dict("list") == {
        "source": ["a", "b", "b"],
        "target": ["b", "b", "c"],
        "weight": pytest.approx([0.3, 0.5, 2.0]),
    }
    assert same(lu.as_graph(frame), graph)
    assert list(lu.Graph.from_edges([0], [1]).to_pandas()) == ["source", "target"]


def test_results_carry_their_communities() -> None:
    graph = lu.as_graph((["a", "b", "c", "x", "y", "z"], ["b", "c", "a", "y", "z", "x"]))
    result = lu.louvain(graph, device="cpu")
    found = result.to_networkx()
    assert nx.get_node_attributes(found, "community") == result.to_dict()
    other = result.to_igraph()
    assert dict(zip(other.vs["name"], other.vs["community"], strict=True)) == result.to_dict()
    assert other.modularity(other.vs["community"]) == pytest.approx(result.modularity)


def test_attributes_have_one_value_per_vertex() -> None:
    graph = lu.Graph.from_edges([0], [1])
    with pytest.raises(lu.GraphError, match="one value for each of the 2 vertices"):
        graph.to_networkx({"kind": np.zeros(3)})
    with pytest.raises(lu.GraphError, match="one value for each of the 2 vertices"):
        graph.to_igraph({"kind": np.zeros((2, 1))})


def test_equal_names_cannot_be_nodes() -> None:
    graph = lu.Graph.from_edges([0], [1], names=np.array(["a", "a"]))
    with pytest.raises(lu.GraphError, match="same name"):
        graph.to_networkx()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def refuse(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    graph = lu.Graph.from_edges([0], [1])
    for export in (graph.to_networkx, graph.to_igraph, graph.to_pandas):
        with pytest.raises(lu.LouvainUmError, match=r"pip install 'louvain-um\[formats\]'"):
            export()
    assert builtins.len(graph.to_scipy().toarray()) == 2  # SciPy is always there


def test_one_edge_is_not_called_edges() -> None:
    assert repr(lu.Graph.from_edges([0], [1])) == "Graph(2 vertices, 1 edge, unweighted)"
    alone = lu.Graph.from_edges([], [], n_vertices=1)
    assert repr(alone) == "Graph(1 vertex, 0 edges, unweighted)"
