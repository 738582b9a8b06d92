from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.graph.subgraph import subgraph
from louvain_um.results.communities import Communities

EDGES = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(1, 9)), min_size=1, max_size=50
)
LABELS = st.lists(st.integers(0, 4), min_size=12, max_size=12)


def graph_of(edges: list[tuple[int, int, int]], scale: float = 1.0) -> lu.Graph:
    u, v, w = np.array(edges).T
    return lu.Graph.from_edges(u, v, w * scale, n_vertices=12)


@settings(deadline=None)
@given(EDGES, LABELS, st.sampled_from([1.0, 0.25]))
def test_weights_inside_and_cut_are_those_of_networkx(edges, labels, scale):
    graph = graph_of(edges, scale)
    result = Communities.of(graph, labels)
    reference = nx.Graph()
    reference.add_nodes_from(range(12))
    for u, v, w in edges:
        old = reference.get_edge_data(u, v, {"weight": 0})["weight"]
        reference.add_edge(u, v, weight=old + w * scale)
    table = result.table(hubs=2)
    assert table.index.name == "community"
    for c, members in enumerate(result):
        part = reference.subgraph(members.tolist())
        row = table.loc[c]
        assert row["size"] == len(members)
        assert row["inside"] == pytest.approx(part.size(weight="weight"))
        assert row["cut"] == pytest.approx(
            nx.cut_size(reference, members.tolist(), weight="weight")
        )
        assert row["internal_degree"] == pytest.approx(2 * row["inside"] / len(members))
        degree = dict(reference.degree(weight="weight"))
        expected = sorted(members.tolist(), key=lambda v: (-degree[v], v))[:2]
        assert row["hubs"] == expected


@settings(deadline=None)
@given(EDGES, st.sets(st.integers(0, 11)))
def test_a_subgraph_is_that_of_networkx(edges, chosen):
    graph = graph_of(edges)
    vertices = np.array(sorted(chosen), np.int64)
    part = subgraph(graph, vertices)
    part.validate()
    whole = nx.Graph()
    whole.add_nodes_from(range(12))
    for u, v, w in edges:
        old = whole.get_edge_data(u, v, {"weight": 0})["weight"]
        whole.add_edge(u, v, weight=old + w)
    expected = whole.subgraph(chosen)
    assert part.n_edges == expected.number_of_edges()
    degree = dict(zip(part.names.tolist(), part.degrees.tolist(), strict=True))
    assert degree == dict(expected.degree(weight="weight"))


@pytest.mark.parametrize("vertices", [[1, 0], [0, 0], [-1, 1], [0, 6]])
def test_vertices_of_a_subgraph_ascend_within_the_graph(vertices):
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3])
    with pytest.raises(lu.GraphError, match="must ascend within 0 … 5"):
        subgraph(graph, np.array(vertices))


def test_a_community_is_a_graph_with_its_names():
    graph = lu.as_graph((["a", "b", "c", "x", "y", "z", "a"], ["b", "c", "a", "y", "z", "x", "x"]))
    result = lu.louvain(graph, device="cpu")
    assert result.subgraph(1).names.tolist() == result[1].tolist() == ["x", "y", "z"]
    assert result.subgraph(-1).n_edges == 3
    again = lu.louvain(result.subgraph(0), device="cpu")
    assert set(again.to_dict()) == {"a", "b", "c"}
    with pytest.raises(IndexError):
        result.subgraph(2)


def test_a_table_without_hubs_or_vertices():
    graph = lu.Graph.from_edges([0, 1], [1, 2])
    assert "hubs" not in Communities.of(graph, [0, 0, 1]).table(hubs=0)
    with pytest.raises(lu.OptionError, match="hubs"):
        Communities.of(graph, [0, 0, 1]).table(hubs=-1)
    nothing = lu.Graph.from_edges([], [])
    assert len(Communities.of(nothing, []).table()) == 0


def test_a_frame_holds_the_hierarchy():
    ring = lu.Graph.from_edges(range(24), [*range(1, 24), 0])
    result = lu.louvain(ring, device="cpu")
    frame = result.to_frame(hierarchy=True)
    assert list(frame) == ["vertex", "community", "hierarchy_0"]
    # Nested: each part of the finer partition lies in one community.
    assert (frame.groupby("hierarchy_0")["community"].nunique() == 1).all()
    assert frame["hierarchy_0"].nunique() > frame["community"].nunique()


def test_sums_of_decimals_have_no_digits_of_scaling():
    graph = lu.as_graph(([0, 1, 0, 2], [1, 2, 2, 3], [10.1, 0.1, 0.2, 0.1]))
    frame = Communities.of(graph, [0, 0, 0, 1]).table()
    assert frame["inside"].tolist() == [10.4, 0.0]
    assert frame["cut"].tolist() == [0.1, 0.1]
