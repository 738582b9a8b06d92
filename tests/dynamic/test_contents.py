"""What a changing graph reports of itself."""

import networkx as nx
import numpy as np
import pytest

import louvain_um as lu
from louvain_um import DynamicGraph
from louvain_um.dynamic.stores import STORES
from louvain_um.errors import GraphError


@pytest.mark.parametrize("store", sorted(STORES))
def test_neighbours_are_those_of_networkx_after_every_batch(store):
    rng = np.random.default_rng(1)
    g = DynamicGraph(30, weighted=True, store=store)
    for _ in range(3):
        u, v = rng.integers(0, 30, (2, 60))
        g.apply(insert=(u, v, rng.integers(1, 9, 60)), delete=(u[:9], v[:9]))
        expected = g.to_networkx()
        assert expected.number_of_edges() == g.n_edges
        for vertex in range(30):
            found, weights = g.neighbours(vertex)
            edges = {w: data["weight"] for w, data in expected[vertex].items()}
            assert dict(zip(found.tolist(), weights.tolist(), strict=True)) == edges
            assert found.tolist() == sorted(edges)


def test_neighbours_go_by_name_in_a_graph_with_names():
    g = DynamicGraph()
    g.apply(insert=(["ann", "bob", "bob"], ["bob", "cid", "bob"]))
    found, weights = g.neighbours("bob")
    assert (found.tolist(), weights.tolist()) == (["ann", "bob", "cid"], [1, 1, 1])
    g.add_vertices(["dan"])
    assert [len(each) for each in g.neighbours("dan")] == [0, 0]
    for wrong in ("eve", 0):
        with pytest.raises(GraphError, match="no vertex is named"):
            g.neighbours(wrong)


@pytest.mark.parametrize("wrong", ["ann", [0, 1], None, True, 1.5, 7, -1, 2**70])
def test_what_is_no_vertex_is_reported_in_one_line(wrong):
    g = DynamicGraph(3)
    with pytest.raises(GraphError) as error:
        g.neighbours(wrong)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("vertex", [2**70, -(2**70), 7, -1])
def test_a_vertex_that_is_not_there_is_reported_however_large(vertex):
    g = DynamicGraph(3)
    reported = f"vertex {vertex}, but there are 3" if vertex > 0 else f"negative vertex {vertex};"
    with pytest.raises(GraphError, match=reported):
        g.apply(insert=([0, vertex], [1, 2]))
    with pytest.raises(GraphError, match=reported):
        g.neighbours(vertex)


def test_networkx_gets_real_weights_names_and_no_removed_vertices():
    g = DynamicGraph(lu.Graph.from_edges([0, 1, 2], [1, 2, 3], [0.5, 2.0, 1.0]))
    g.remove_vertices([0])
    found = g.to_networkx({"colour": np.array(["x", "a", "b", "c"])})
    assert nx.utils.graphs_equal(found, found.subgraph([1, 2, 3]))
    assert (found.edges[1, 2]["weight"], found.nodes[3]["colour"]) == (2.0, "c")
    with pytest.raises(GraphError, match="removed"):
        g.neighbours(0)
    named = DynamicGraph(lu.as_graph((["ann", "bob"], ["bob", "cid"])))
    named.remove_vertices(["ann"])
    assert sorted(named.to_networkx()) == ["bob", "cid"]
