"""The operators that users call: what they compute, and what they refuse."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import njit

import louvain_um as lu
from louvain_um import Graph
from louvain_um.algorithms.operators import (
    Cuda,
    advance,
    atomic_add,
    atomic_min,
    filter,
    segmented_intersection,
)
from louvain_um.core.threads import given_threads
from louvain_um.errors import GraphError, OptionError
from louvain_um.generators import rmat
from tests.algorithms import oracles, user_functors
from tests.algorithms.test_algorithms import stored
from tests.graphs import graphs

FEW = settings(max_examples=25, database=None)
FAR = 2**60
TRIPLE = Graph.from_edges([0, 1], [1, 2])


def relax(u, v, w, arc, d):
    return atomic_min(d, v, d[u] + w) > d[u] + w


def spread(u, v, w, arc, labels):
    return atomic_min(labels, v, labels[u]) > labels[u]


def weigh(u, v, w, arc, degrees):
    degrees[u] += w


def counted(a, b, c, each):
    atomic_add(each, c, 1)


@pytest.mark.deep
@settings(max_examples=60, database=None)
@given(graphs(), st.booleans(), st.integers(0, 99), st.data())
def test_functors_do_what_python_does(graph, gapped, seed, data):
    assume(graph.n_vertices and (graph.weights is None or graph.weights.max(initial=0) < 2**30))
    case, n = data.draw(st.sampled_from(user_functors.CASES)), graph.n_vertices
    given_graph = stored(graph, gapped and case.function is not user_functors.gathered)
    frontier = None
    if seed % 3:
        frontier = np.random.default_rng(seed).integers(0, n, seed % n + 1)
        if not case.balanced:
            frontier = np.unique(frontier)
    expected = user_functors.arguments_of(case, n)
    targets = user_functors.advanced(graph, frontier, case.function, expected)
    for returns in ("all", "unique", None):
        found = user_functors.arguments_of(case, n)
        kept = advance(
            given_graph, frontier, case.function, *found, returns=returns,
            balanced=case.balanced and bool(seed % 2),
        )  # fmt: skip
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        if returns == "all" and case.function not in user_functors.ORDERED:
            assert kept.tolist() == targets
        if returns == "unique" and case.function not in user_functors.ORDERED:
            assert kept.tolist() == sorted(set(targets))
        assert (kept is None) == (returns is None)


@pytest.mark.deep
@pytest.mark.parametrize("case", user_functors.CASES, ids=lambda case: case.function.__name__)
def test_threads_change_nothing(case):
    graph, answers = rmat(11, edge_factor=20, weights="uniform", seed=2).graph, []
    for threads in (1, 4):
        arguments = user_functors.arguments_of(case, graph.n_vertices)
        with given_threads(threads):
            kept = advance(graph, None, case.function, *arguments, balanced=case.balanced)
        kept = None if case.function in user_functors.ORDERED else kept.tobytes()
        answers.append([kept, *(np.asarray(each).tobytes() for each in arguments)])
    assert answers[0] == answers[1]


@pytest.mark.parametrize(("function", "arguments"), user_functors.TERMS)
def test_sums_are_those_of_python(function, arguments):
    graph = rmat(7, edge_factor=9, weights="uniform", seed=2).graph
    given = user_functors.arguments_of(user_functors.Case(function, arguments), graph.n_vertices)
    for frontier in (None, [5, 0, 5, 1], []):
        found = advance(graph, frontier, function, *given, returns="sums")
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, user_functors.summed(graph, frontier, function, given))
    with given_threads(4):
        many = advance(graph, None, function, *given, returns="sums")
    assert many.tobytes() == advance(graph, None, function, *given, returns="sums").tobytes()


def test_extremes_compare_the_values_given():
    x, small, large, low, high = user_functors.beyond_arguments(200)
    graph = lu.Graph.from_edges([0], [1], n_vertices=200)
    before = [array.tolist() for array in (small, large, low, high)]
    filter(graph, None, user_functors.beyond, x, small, large, low, high)
    for old, array, beats in zip(
        before, (small, large, low, high), ("__gt__", "__gt__", "__lt__", "__lt__"), strict=True
    ):
        best = max if beats == "__gt__" else min
        held = x.astype(array.dtype).tolist()  # wraps around
        assert array.tolist() == [
            best(a, h) if getattr(value, beats)(a) else a
            for a, value, h in zip(old, x.tolist(), held, strict=True)
        ]


@FEW
@given(graphs(), st.booleans())
def test_shortest_paths_by_advancing(graph, balanced):
    assume(graph.n_vertices)
    distances = np.full(graph.n_vertices, FAR)
    distances[0] = 0
    frontier = [0]
    while len(frontier):
        frontier = advance(graph, frontier, relax, distances, balanced=balanced)
    expected = oracles.distances(graph, 0, weighted=True)
    np.testing.assert_array_equal(np.where(distances == FAR, -1, distances), expected)


@FEW
@given(graphs())
def test_components_and_degrees_by_advancing(graph):
    n = graph.n_vertices
    labels, frontier = np.arange(n), np.arange(n)
    while len(frontier):
        frontier = advance(graph, frontier, spread, labels)
    np.testing.assert_array_equal(labels, lu.connected_components(graph, device="cpu"))
    degrees = np.zeros(n, np.int64)
    advance(graph, None, weigh, degrees, returns=None, balanced=False)
    np.testing.assert_array_equal(degrees + 2 * graph.loops, graph.degrees)


@FEW
@given(graphs(), st.booleans())
def test_triangles_by_intersecting(graph, gapped):
    each = np.zeros(graph.n_vertices, np.int64)
    counts = segmented_intersection(stored(graph, gapped), None, counted, each)
    np.testing.assert_array_equal(each, oracles.triangles(graph))
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    pairs = np.stack([u, graph.targets], axis=1)[u < graph.targets]
    np.testing.assert_array_equal(counts, segmented_intersection(graph, pairs))
    neighbours = {v: set(row) for v, row in oracles.as_networkx(graph).adjacency()}
    for (a, b), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        assert count == len((neighbours[a] & neighbours[b]) - {a, b})


@pytest.mark.deep
@pytest.mark.parametrize("store", ["rows", "csr", "bump", "pages", "vine", "bal", "ouro-va-p"])
def test_every_store_serves_operators(store):
    rng = np.random.default_rng(7)
    u, v, w = rng.integers(0, 50, 300), rng.integers(0, 50, 300), rng.integers(1, 9, 300)
    graph = lu.DynamicGraph(60, store=store, weighted=True)
    graph.apply(insert=(u, v, w))
    graph.apply(delete=(u[:80], v[:80]))
    still = graph.host_snapshot()
    for case in user_functors.CASES:
        if case.function in (*user_functors.ORDERED, user_functors.gathered):
            continue  # arcs lie in other places there
        arguments = [user_functors.arguments_of(case, still.n_vertices) for _ in range(2)]
        kept = [
            advance(each, None, case.function, *given, balanced=case.balanced).tolist()
            for each, given in zip((graph, still), arguments, strict=True)
        ]
        assert kept[0] == kept[1]
        for ours, theirs in zip(*arguments, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_filtering():
    x, kept = np.array([5, 0, 7]), np.zeros(3)
    assert filter(TRIPLE, [2, 1, 2, 0], lambda v, x: x[v] == 7, x).tolist() == [2, 2]
    assert filter(TRIPLE, None, lambda v, x: x[v], x).tolist() == [0, 2]
    assert filter(TRIPLE, [], lambda v: True).tolist() == []

    def halved(v, x, kept, share):
        kept[v] = x[v] * share

    assert filter(TRIPLE, None, halved, x, kept, 0.5).tolist() == [0, 1, 2]
    assert kept.tolist() == [2.5, 0.0, 3.5]


def test_values_from_around_a_functor_count_as_they_are():
    def above(limit):
        return lambda v, x: x[v] > limit

    x = np.array([1, 2, 3])
    assert [filter(TRIPLE, None, above(k), x).tolist() for k in (0, 1, 2.5)] == [
        [0, 1, 2], [1, 2], [2],
    ]  # fmt: skip
    helper = njit(lambda a: a * 2)
    assert filter(TRIPLE, None, lambda v, x: helper(x[v]) > 3, x).tolist() == [1, 2]


def raises(u, v, w, arc):
    raise ValueError("of two\nlines")


def some(u, v, w, arc):
    if u > v:
        return 1


def with_as(u, v, w, arc):
    with open("x") as file:
        return file


def generates(u, v, w, arc):
    yield u


AROUND = np.arange(3)

BAD = {
    "divides": (lambda u, v, w, arc: 1 // (u - u), [], "ZeroDivisionError"),
    "reads outside": (lambda u, v, w, arc, x: x[u + 77], "x", "IndexError"),
    "writes outside": (weigh, "e", "IndexError"),
    "adds outside": (lambda u, v, w, arc, x: atomic_add(x, 3, 1), "x", "IndexError"),
    "adds outside below": (lambda u, v, w, arc, x: atomic_add(x, -4, 1), "x", "IndexError"),
    "adds to truths": (lambda u, v, w, arc, x: atomic_add(x, 0, 1), "b", "no numbers"),
    "adds floats": (lambda u, v, w, arc, x: atomic_add(x, 0, 1.5), "x", "holds integers"),
    "fixed": (weigh, "r", "readonly array"),
    "adds to fixed": (lambda u, v, w, arc, x: atomic_add(x, 0, 1), "r", "read-only"),
    "raises": (raises, [], "ValueError: of two lines"),
    "returns a tuple": (lambda u, v, w, arc: (u, v), [], "it returns UniTuple"),
    "returns text": (lambda u, v, w, arc: "a", [], "it returns"),
    "returns nothing at times": (some, [], "it returns OptionalType"),
    "allocates": (lambda u, v, w, arc: np.zeros(3)[0], [], "zeros"),
    "unknown name": (lambda u, v, w, arc: unknown, [], "'unknown' is not defined"),  # noqa: F821
    "unknown call": (lambda u, v, w, arc: some(u, v, w, arc), [], "global name 'some'"),
    "with": (with_as, [], "'with"),
    "generates": (generates, [], "generator"),
    "array from around": (lambda u, v, w, arc: AROUND[u], [], "pass AROUND as an argument"),
    "too few": (lambda u, v, w: 1, [], "takes 3 parameters, not u, v, w, arc;"),
    "too many": (relax, "xx", "takes 5 parameters, not u, v, w, arc and 2 more"),
    "any number": (lambda *all: 1, [], "takes other parameters"),
    "no function": ("x + w", [], "must be a Python function or Cuda"),
    "builtin": (min, [], "must be a Python function or Cuda"),
    "for a device": (Cuda("return u < v;"), [], "the arrays are NumPy's"),
    "unsigned": (relax, "u", "argument 1 is an array of uint16"),
    "two dimensions": (relax, "2", "shape \\(3, 1\\)"),
    "masked": (relax, "m", "argument 1 is MaskedArray"),
    "list": (relax, "l", "argument 1 is list"),
    "long": (relax, "9", "pass numbers of 64 bits"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_functors_end_in_one_line(name):
    function, letters, message = BAD[name]
    fixed = np.zeros(3)
    fixed.setflags(write=False)
    made = {
        "x": np.zeros(3, np.int64), "e": np.zeros(0), "b": np.zeros(3, bool), "r": fixed,
        "u": np.zeros(3, np.uint16), "2": np.zeros((3, 1)), "l": [0, 0, 0], "9": 2**63,
        "m": np.ma.masked_array([1, 2, 3], [0, 1, 0]),
    }  # fmt: skip
    with pytest.raises(OptionError, match=message) as refused:
        advance(TRIPLE, None, function, *(made[letter] for letter in letters))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 260


def test_bad_calls():
    x = np.zeros(3, np.int64)
    for frontier, message in (
        ([3], "3 is not a vertex"), ([-1], "-1 is not a vertex"),
        ([0.5], "whole numbers, not float64"),
        (np.array([2**63], np.uint64), "is not a vertex"), ([2**32 + 1], "is not a vertex"),
        (np.ma.masked_array([0, 1], [1, 0]), "masked entries"),
        ([[0, 1], [1, 2]], r"not of shape \(2, 2\)"), (0, r"not of shape \(\)"),
    ):  # fmt: skip
        with pytest.raises(GraphError, match=message):
            advance(TRIPLE, frontier, relax, x)
        with pytest.raises(GraphError, match=message):
            filter(TRIPLE, frontier, lambda v: True)
    with pytest.raises(OptionError, match="returns must be"):
        advance(TRIPLE, None, relax, x, returns="some")
    with pytest.raises(OptionError, match="it returns nothing; return a number to add up"):
        advance(TRIPLE, None, weigh, x, returns="sums")
    with pytest.raises(OptionError, match="balanced must be"):
        advance(TRIPLE, None, relax, x, balanced="no")
    for pairs in ([0, 1], [(0, 3)], [(0.5, 1)], [(0, 1), (1,)]):
        with pytest.raises(GraphError):
            segmented_intersection(TRIPLE, pairs)
    with pytest.raises(OptionError, match="names must be names"):
        Cuda("return true;", "a b")


def test_a_graph_of_another_library():
    graph = nx.karate_club_graph()
    counts = segmented_intersection(graph, [(0, 33)])
    assert counts.tolist() == [len(list(nx.common_neighbors(graph, 0, 33)))]
