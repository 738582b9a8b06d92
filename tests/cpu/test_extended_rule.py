"""Objectives have the values of their definitions; what does not fit a graph is refused."""

import time

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um import Graph
from louvain_um.core.objective import fixed_of
from louvain_um.graph.kinds import two_colouring

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=1)
LABELS = st.lists(st.integers(0, 3), min_size=10, max_size=10)


def arrays(edges):
    u, v, w = np.array(edges).T
    return u, v, w


def together(labels):
    return np.equal.outer(labels, labels)


@given(EDGES, LABELS, st.sampled_from([0.5, 1.0, 2.0]))
def test_directed_modularity_is_networkx_modularity(edges, labels, gamma):
    u, v, w = arrays(edges)
    reference = nx.DiGraph()
    reference.add_nodes_from(range(10))
    for a, b, weight in edges:
        before = reference.get_edge_data(a, b, {"weight": 0})["weight"]
        reference.add_edge(a, b, weight=before + weight)
    graph = Graph.from_edges(u, v, w, n_vertices=10, kind="directed")
    sets = [{v for v in range(10) if labels[v] == c} for c in set(labels)]
    expected = nx.community.modularity(reference, sets, resolution=gamma)
    found = lu.modularity(graph, labels, gamma, objective="directed")
    assert found == pytest.approx(expected, abs=1e-12)


@given(EDGES, LABELS)
def test_barbers_modularity(edges, labels):
    u, v, w = arrays(edges)
    matrix = np.zeros((10, 10))
    np.add.at(matrix, (u, v), w)
    both = labels + labels[::-1]
    inside = together(both)[:10, 10:]
    expected = matrix - np.outer(matrix.sum(1), matrix.sum(0)) / matrix.sum()
    graph = Graph.from_edges(u, v + 10, w, n_vertices=20, kind="bipartite")
    found = lu.modularity(graph, both, objective="bipartite")
    assert found == pytest.approx((expected * inside).sum() / matrix.sum(), abs=1e-12)


@given(EDGES, LABELS, st.integers(0, 99))
def test_signed_modularity(edges, labels, seed):
    u, v, w = arrays(edges)
    w = w * np.random.default_rng(seed).choice([1, -1], len(w))
    graph = Graph.from_edges(u, v, w, n_vertices=10, kind="signed")
    matrix = np.zeros((10, 10))
    np.add.at(matrix, (u, v), w)
    matrix = matrix + matrix.T  # a loop counts twice
    weight = np.abs(matrix).sum()
    found = lu.modularity(graph, labels, objective="signed")
    if not weight:
        assert found == 0.0
        return
    expected = matrix.copy()
    for sign in (1, -1):
        layer = np.maximum(sign * matrix, 0)
        expected -= sign * np.outer(layer.sum(1), layer.sum(1)) / max(layer.sum(), 1)
    assert found == pytest.approx((expected * together(labels)).sum() / weight, abs=1e-12)


@given(EDGES, LABELS)
def test_constant_potts_model(edges, labels):
    u, v, w = arrays(edges)
    graph = Graph.from_edges(u, v, w / 4, n_vertices=10)
    inside = sum(weight / 4 for a, b, weight in edges if labels[a] == labels[b])
    pairs = (together(labels).sum() - 10) / 2
    found = lu.modularity(graph, labels, 0.3, objective="cpm")
    assert found == pytest.approx(inside - 0.3 * pairs, abs=1e-9)


def test_cliques_of_a_ring_stay_separate_below_modularitys_resolution_limit():
    graph = lu.as_graph(nx.ring_of_cliques(60, 5))
    cliques = np.arange(300) // 5
    assert len(lu.leiden(graph, device="cpu")) < 60
    found = lu.leiden(graph, device="cpu", objective="cpm", resolution=0.5)
    assert np.array_equal(found.labels, cliques)


def test_southern_women():
    women = nx.davis_southern_women_graph()
    number = {name: place for place, name in enumerate(women)}
    ends = [sorted((number[a], number[b])) for a, b in women.edges()]
    first, second = np.array(ends).T  # the women are listed first
    graph = Graph.from_edges(first, second, kind="bipartite")
    best = max(
        lu.leiden(graph, device="cpu", objective="bipartite", seed=seed).value or 0.0
        for seed in range(10)
    )
    assert best > 0.345  # the best known is 0.3455
    plain = Graph.from_edges(first, second)
    same = lu.leiden(plain, device="cpu", objective="bipartite", seed=3)
    assert same.value == lu.leiden(graph, device="cpu", objective="bipartite", seed=3).value
    changing = lu.leiden(lu.DynamicGraph(plain), device="cpu", objective="bipartite", seed=3)
    assert np.array_equal(changing.labels, same.labels)


def test_two_hostile_groups_separate_though_joined_by_many_edges():
    pairs = [(a, b) for a in range(12) for b in range(a)]
    u, v = np.array(pairs).T
    signs = np.where((u < 6) == (v < 6), 1, -1)
    graph = Graph.from_edges(u, v, signs, kind="signed")
    for method in (lu.louvain, lu.leiden):
        assert method(graph, device="cpu", objective="signed").labels.tolist() == [0] * 6 + [1] * 6


@pytest.mark.parametrize(
    ("kind", "objective", "said"),
    [
        ("directed", "modularity", "pass objective='directed'"),
        ("directed", "cpm", "symmetrize=True"),
        ("undirected", "directed", "directed=True"),
        ("signed", "modularity", "pass objective='signed'"),
        ("undirected", "louder", "must be one of modularity, cpm"),
    ],
)
def test_objectives_for_other_kinds_of_graph(kind, objective, said):
    graph = Graph.from_edges([0, 1], [1, 2], [1, 2], kind=kind)
    with pytest.raises(lu.OptionError, match=said):
        lu.louvain(graph, device="cpu", objective=objective)


def test_graphs_that_are_not_bipartite():
    triangle = Graph.from_edges([0, 1, 2], [1, 2, 0])
    with pytest.raises(lu.GraphError, match="cycle of odd length through vertex"):
        lu.leiden(triangle, objective="bipartite")
    named = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 1], names=["ann", "bob", "cid", "dan"])
    with pytest.raises(lu.GraphError, match=r"through vertex (bob|cid|dan);"):
        lu.louvain(named, objective="bipartite")
    with pytest.raises(lu.GraphError, match="vertex 1 is at both ends"):
        Graph.from_edges([0, 1], [1, 2], kind="bipartite")


def test_modes_of_many_components_take_linear_time():
    first = 2 * np.arange(300_000)
    pairs = Graph.from_edges(first, first + 1, n_vertices=700_000)
    start = time.process_time()
    imbalance = two_colouring(pairs)
    assert time.process_time() - start < 30
    assert imbalance[:4].tolist() == [1, -1, 1, -1]
    assert not imbalance[600_000:].any()


def test_constraints_that_do_not_fit():
    graph = lu.as_graph((["ann", "bob"], ["bob", "cid"]))
    with pytest.raises(lu.OptionError, match="community of 3 vertices; pass at least 3"):
        lu.louvain(graph, initial=[0, 0, 0], max_size=2)
    with pytest.raises(lu.GraphError, match="'dan' is not in the graph"):
        lu.louvain(graph, fixed=["dan"])
    with pytest.raises(lu.OptionError, match="max_size must be at least 1"):
        lu.louvain(graph, max_size=0)
    kept = lu.louvain(graph, initial={"ann": 0, "bob": 1, "cid": 1}, fixed=["ann", "bob"])
    assert kept.labels[0] != kept.labels[1]


def test_fixed_vertices_of_any_kind_are_found_by_name():
    names = [(0, 1), (2, 3), frozenset([4]), "5", 5, 6.5]
    graph = lu.as_graph(nx.path_graph(names))
    expected = np.array([1, 1, 0, 0, 1, 0])
    chosen = [name for name, is_fixed in zip(names, expected, strict=True) if is_fixed]
    for fixed in (chosen, set(chosen), tuple(chosen), pd.Index(chosen, tupleize_cols=False)):
        assert np.array_equal(fixed_of(graph, fixed), expected)
    numbered = lu.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    for fixed in (pa.array([0, 1, 4]), pa.chunked_array([[0], [1, 4]]), pl.Series([0, 1, 4])):
        assert np.array_equal(fixed_of(numbered, fixed), expected)
    mask = expected == 1
    for fixed in (mask, pa.array(mask), pl.Series(mask), pd.array(mask)):
        assert np.array_equal(fixed_of(numbered, fixed), expected)
    for wrong in ([[0, 1]], [(0, 1), None], pd.array([True, None], dtype="boolean")):
        with pytest.raises(lu.GraphError, match="is not in the graph"):
            lu.louvain(graph, fixed=wrong)


def test_a_start_in_one_community_is_split_by_leiden():
    graph = lu.as_graph(nx.karate_club_graph())
    found = lu.leiden(graph, device="cpu", initial=np.zeros(34, int))
    assert found.modularity > 0.43
