"""The operators that users call: what they compute, and what they refuse."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um import Graph
from louvain_um.algorithms.expressions import Expression
from louvain_um.algorithms.operators import advance, filter, intersect
from louvain_um.errors import GraphError, OptionError
from tests.algorithms import oracles
from tests.graphs import graphs

FEW = settings(max_examples=60, deadline=None, database=None)
FAR = 2**60


@FEW
@given(graphs())
def test_shortest_paths_by_advancing(graph):
    assume(graph.n_vertices)
    distances = np.full(graph.n_vertices, FAR)
    distances[0] = 0
    frontier = np.array([0], np.uint32)
    while len(frontier):
        frontier = advance(graph, frontier, along="x + w", combine="min", into=distances)
    expected = oracles.distances(graph, 0, weighted=True)
    np.testing.assert_array_equal(np.where(distances == FAR, -1, distances), expected)


@FEW
@given(graphs())
def test_components_and_degrees_by_advancing(graph):
    n = graph.n_vertices
    labels, frontier = np.arange(n), np.arange(n)
    while len(frontier):
        frontier = advance(graph, frontier, along="x", combine="min", into=labels)
    np.testing.assert_array_equal(labels, lu.connected_components(graph, device="cpu"))
    degrees = np.zeros(n, np.int64)
    changed = advance(graph, np.arange(n), along="w", combine="add", into=degrees)
    np.testing.assert_array_equal(degrees + 2 * graph.loops, graph.degrees)
    assert changed.tolist() == np.flatnonzero(degrees).tolist()


@FEW
@given(graphs())
def test_triangles_by_intersecting(graph):
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    upper = u < graph.targets
    pairs, each = np.stack([u, graph.targets], axis=1)[upper], np.zeros(graph.n_vertices, np.int64)
    counts = intersect(graph, pairs, each=each)
    np.testing.assert_array_equal(each, oracles.triangles(graph))
    neighbours = {v: set(row) for v, row in oracles.as_networkx(graph).adjacency()}
    for (a, b), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        assert count == len((neighbours[a] & neighbours[b]) - {a, b})


def test_filtering():
    x = np.array([5, 0, 7, 7])
    assert filter([3, 2, 1, 2], "x == 7", x=x).tolist() == [2, 3]
    assert filter([0, 1], "1", x=x).tolist() == [0, 1]
    assert filter([], "x", x=x).tolist() == []
    assert filter([0, 1, 2], "v % 2 == 0").tolist() == [0, 2]


@settings(max_examples=200, deadline=None, database=None)
@given(st.integers(-50, 50), st.integers(-50, 50))
def test_expressions_are_those_of_python(x, y):
    for text in (
        "x + 2 * y - 3", "x // 7 + y % 5", "x & y | 3 ^ x", "min(x, y, 4) - max(x, -y)",
        "-x if x < y <= 40 else ~y", "x > 3 and y > 3 or not x", "(x == y) + (x != 4)",
    ):  # fmt: skip
        names = ("x", "y")
        found = Expression(text, names, "along").value(x=np.array([x]), y=np.array([y]))
        expected = eval(text, {"x": x, "y": y, "min": min, "max": max})
        if "and" in text:
            expected = bool(expected)
        assert found.tolist() == [expected], text


@pytest.mark.parametrize(
    "text",
    ["", "x +", "z", "x ** 2", "x / 2", "x.real", "x[0]", "f(x, 1)", "min(x)", "1.5", "'a'",
     "lambda: 1", "__import__('os')", "x << 70", "99999999999999999999", "x" * 600, "[x]", 3,
     "~" * 499 + "x", "x+" * 249 + "x", "not " * 120 + "x"],
)  # fmt: skip
def test_what_is_no_expression(text):
    with pytest.raises(OptionError):
        filter([0], text, x=np.array([1]))


def test_what_does_not_fit():
    graph = Graph.from_edges([0, 1], [1, 2])
    into = np.zeros(3, np.int64)
    for frontier, options in (
        ([3], {"into": into}),
        ([-1], {"into": into}),
        ([0], {"into": np.zeros(2, np.int64)}),
        ([0], {"into": np.zeros(3)}),
        ([0], {"into": np.zeros(3, np.int32)}),
        ([0], {"into": into, "x": np.zeros((3, 1), int)}),
    ):
        with pytest.raises(GraphError):
            advance(graph, frontier, along="x", combine="min", **options)
    with pytest.raises(OptionError, match="combine"):
        advance(graph, [0], along="x", combine="mean", into=into)
    with pytest.raises(OptionError, match="divides by 0"):
        advance(graph, [0], along="1 // x", combine="add", into=into)
    assert into.tolist() == [0, 0, 0]
    for pairs in ([0, 1], [(0, 3)], [(0.5, 1)]):
        with pytest.raises(GraphError):
            intersect(graph, pairs)
    with pytest.raises(GraphError):
        intersect(graph, [(0, 1)], each=np.zeros(2, np.int64))


def test_a_graph_of_another_library():
    graph = nx.karate_club_graph()
    assert intersect(graph, [(0, 33)]).tolist() == [len(list(nx.common_neighbors(graph, 0, 33)))]


def test_calls_that_would_change_or_skip_something_silently():
    g = Graph.from_edges([0, 1], [1, 2])
    fixed = np.zeros(3, np.int64)
    fixed.setflags(write=False)
    for into in (fixed, [0, 0, 0]):
        with pytest.raises(GraphError, match="that can be changed"):
            advance(g, [0], along="x + 1", combine="add", into=into)
    assert not fixed.any()
    with pytest.raises(GraphError, match="vertices must be whole numbers, not float64"):
        advance(g, [0.5], along="x + 1", combine="add", into=np.zeros(3, np.int64))
    with pytest.raises(OptionError, match="v is the vertex"):
        filter([0], "v > 0", v=[1, 2, 3])
    assert advance(g, [], along="x + 1", combine="add", into=np.zeros(3, np.int64)).size == 0


def test_arrays_that_are_a_view_of_what_is_changed_keep_their_values():
    rng, n = np.random.default_rng(0), 3000
    g = Graph.from_edges(rng.integers(0, n, 600_000), rng.integers(0, n, 600_000), n_vertices=n)
    assert g.n_arcs > 1 << 20  # more than are evaluated at a time
    into = np.arange(n)
    apart, before = into.copy(), into.copy()
    advance(g, before, along="x + y", combine="add", into=into, x=into[::-1], y=into[:])
    advance(g, before, along="x + y", combine="add", into=apart, x=before[::-1], y=before)
    assert np.array_equal(into, apart)


def test_more_calls_that_would_change_or_skip_something_silently():
    g, three = Graph.from_edges([0, 1], [1, 2]), np.zeros(3, np.int64)
    fixed, masked = np.zeros(3, np.int64), np.ma.masked_array(three, [0, 1, 0])
    fixed.setflags(write=False)
    for each in (fixed, [0, 0, 0], masked):
        with pytest.raises(GraphError, match="each must be an array that can be changed"):
            intersect(g, [(0, 2)], each=each)
    with pytest.raises(GraphError, match="into must be an array that can be changed"):
        advance(g, [0], along="x", combine="add", into=masked)
    for frontier in ([2**32 + 1], np.array([2**63], np.uint64), [-1]):
        with pytest.raises(GraphError, match=f"{frontier[0]} is no vertex"):
            filter(frontier, "v > 0")
    with pytest.raises(GraphError, match="masked entries"):
        filter(np.ma.masked_array([0, 1], [1, 0]), "v >= 0")
    with pytest.raises(GraphError, match="masked entries"):
        filter([0, 1], "x == 0", x=masked)
    with pytest.raises(GraphError, match="entries of one length"):
        intersect(g, [(0, 1), (1,)])
