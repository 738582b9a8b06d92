"""Operators of users on a device: functors do what they do on the CPU."""

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.algorithms.operators import (
    Cuda,
    advance,
    atomic_add,
    filter,
    segmented_intersection,
)
from louvain_um.errors import GraphError, OptionError
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.graph import DeviceGraph
from tests.algorithms import test_user_operators as by_path
from tests.algorithms import user_functors
from tests.algorithms.test_user_operators import counted

pytestmark = pytest.mark.gpu

GRAPHS = {
    "plain": rmat(12, edge_factor=8, seed=3).graph,
    "weighted": lfr(3000, weights="uniform", seed=3).graph,
}


BY_HAND = Cuda("return atomicMin(d + v, d[u] + w) > d[u] + w;", "d")


def some(v, x):
    return (x[v] > 4 and v % 3 != 1) or x[v] // max(v, 1) == 2


def added(u, v, w, arc, x, y):
    atomic_add(y, v, w * x[u])


def forms(graph):
    """Return a graph on the host, on the device, and as changing ones there."""
    stores = ("rows", "bump:page=32", "pages", "vine:block=3", "bal")
    changing = (lu.DynamicGraph(graph, store=store, device="cuda") for store in stores)
    return [graph, DeviceGraph.from_host(graph), *changing]


@pytest.mark.parametrize("relax", [by_path.relax, BY_HAND])
@pytest.mark.parametrize("name", GRAPHS)
def test_shortest_paths_by_advancing(gpu, name, relax):
    import cupy

    graph = GRAPHS[name]
    expected = lu.sssp(graph, 0, device="cpu").distances
    for form in forms(graph):
        distances = cupy.full(graph.n_vertices, 2**60, np.int64)
        distances[0] = 0
        frontier = cupy.array([0])
        while len(frontier):
            frontier = advance(form, frontier, relax, distances)
        assert isinstance(frontier, cupy.ndarray)
        found = distances.get()
        assert np.array_equal(np.where(found == 2**60, -1, found), expected)


@pytest.mark.parametrize("returns", ["all", "unique", None])
@pytest.mark.parametrize("name", GRAPHS)
def test_functors_do_what_they_do_on_the_cpu(gpu, name, returns):
    import cupy

    graph, n = GRAPHS[name], GRAPHS[name].n_vertices
    for form in forms(graph)[:2]:
        for case in user_functors.CASES:
            for balanced in {case.balanced, False}:
                how = {"returns": returns, "balanced": balanced}
                expected = user_functors.arguments_of(case, n)
                found = user_functors.arguments_of(case, n, cupy)
                here = advance(graph, None, case.function, *expected, **how)
                kept = advance(form, None, case.function, *found, **how)
                if returns and case.function not in user_functors.ORDERED:
                    assert np.array_equal(kept.get(), here)
                for ours, theirs in zip(found, expected, strict=True):
                    assert cupy.asnumpy(ours).tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.parametrize("name", GRAPHS)
def test_sums_are_those_of_the_cpu(gpu, name):
    import cupy

    graph, n = GRAPHS[name], GRAPHS[name].n_vertices
    frontier = np.random.default_rng(1).integers(0, n, n // 2)
    for form in forms(graph):
        for function, letters in user_functors.TERMS:
            case = user_functors.Case(function, letters)
            here, there = (user_functors.arguments_of(case, n, xp) for xp in (np, cupy))
            for some in (frontier, None):
                expected = advance(graph, some, function, *here, returns="sums")
                found = advance(form, some, function, *there, returns="sums")
                assert found.get().tobytes() == expected.tobytes()


def test_values_that_arrays_cannot_hold(gpu):
    import cupy

    graph = lu.Graph.from_edges([0], [1], n_vertices=5000)
    here, there = (user_functors.beyond_arguments(5000, xp) for xp in (np, cupy))
    filter(graph, None, user_functors.beyond, *here)
    filter(graph, None, user_functors.beyond, *there)
    for ours, theirs in zip(there, here, strict=True):
        assert np.array_equal(ours.get(), theirs)


def test_filter_and_segmented_intersection(gpu):
    import cupy

    graph, rng = GRAPHS["plain"], np.random.default_rng(0)
    x = rng.integers(0, 9, graph.n_vertices)
    items = rng.integers(0, graph.n_vertices, 500)
    there = filter(graph, cupy.asarray(items), some, cupy.asarray(x))
    assert np.array_equal(there.get(), filter(graph, items, some, x))
    for pairs in (rng.integers(0, graph.n_vertices, (400, 2)), None):
        each = np.zeros(graph.n_vertices, np.int64)
        expected = segmented_intersection(graph, pairs, counted, each)
        for form in forms(graph):
            sums = cupy.zeros(graph.n_vertices, np.int64)
            given = None if pairs is None else cupy.asarray(pairs)
            found = segmented_intersection(form, given, counted, sums)
            assert np.array_equal(found.get(), expected)
            assert np.array_equal(sums.get(), each)


def test_sums_of_floats_differ_in_the_last_places_only(gpu):
    import cupy

    graph, n = GRAPHS["weighted"], GRAPHS["weighted"].n_vertices
    x, y = np.random.default_rng(0).random(n), np.zeros(n)
    there = cupy.zeros(n)
    advance(graph, None, added, x, y, returns=None)
    advance(graph, None, added, cupy.asarray(x), there, returns=None)
    np.testing.assert_allclose(there.get(), y, rtol=1e-12)


def test_bad_functors(gpu):
    import cupy

    graph, x = GRAPHS["plain"], cupy.arange(GRAPHS["plain"].n_vertices)
    for function, message in (
        (lambda v, x: 7 // (x[v] - x[v]), "keep divides by 0"),
        (lambda v, x: x[v + len(x)], "outside an array"),
        (lambda v, x: x[v] ** 2, "no operator pow on a device"),
        (Cuda("return foo;", "x"), "foo"),
    ):
        with pytest.raises(OptionError, match=message) as refused:
            filter(graph, None, function, x)
        assert "\n" not in str(refused.value)
    with pytest.raises(GraphError, match="is not a vertex"):
        filter(graph, [-1], some, x)
    with pytest.raises(GraphError, match=r"not of shape \(2, 2\)"):
        filter(graph, cupy.zeros((2, 2), np.uint32), some, x)
