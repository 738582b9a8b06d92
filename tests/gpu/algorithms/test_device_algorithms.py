"""Algorithms on a device: their results, policies, and operators of users."""

import gc
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import louvain_um as lu
from louvain_um import Graph
from louvain_um.algorithms.operators import advance, filter, intersect
from louvain_um.errors import GraphError, MemoryBudgetError, OptionError
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.policy.policy import Policy
from tests.graphs import graphs

pytestmark = pytest.mark.gpu


def calls(source):
    return {
        "components": lambda graph, **how: [lu.connected_components(graph, **how)],
        "forest": lu.minimum_spanning_forest,
        "pagerank": lambda graph, **how: [lu.pagerank(graph, **how)],
        "triangles": lambda graph, **how: [lu.triangles(graph, **how)],
        "spmv": lambda graph, **how: [lu.spmv(graph, vector(graph.n_vertices), **how)],
        "bfs": lambda graph, **how: lu.bfs(graph, source, **how),
        "sssp": lambda graph, **how: lu.sssp(graph, source, **how),
    }


def vector(n):
    return np.random.default_rng(n).standard_normal(n)


def answers(graph, source, **options):
    searches = () if graph.n_vertices else ("bfs", "sssp")
    return {
        name: call(graph, **options) for name, call in calls(source).items() if name not in searches
    }


def check(graph, source=0):
    expected = answers(graph, source, device="cpu")
    for given_graph in (graph, DeviceGraph.from_host(graph)):
        found = answers(given_graph, source, device="cuda")
        for name, arrays in expected.items():
            for ours, theirs in zip(found[name], arrays, strict=True):
                assert ours.dtype == theirs.dtype, name
                assert ours.tobytes() == theirs.tobytes(), name


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(graphs())
def test_small_graphs(gpu, graph):
    check(graph)


LARGE = {
    "rmat": lambda: rmat(16, edge_factor=16, seed=5).graph,
    "weighted": lambda: rmat(16, edge_factor=16, weights="uniform", seed=5).graph,
    "stencil": lambda: stencil((50, 50, 50)).graph,
    "sparse": lambda: rmat(17, edge_factor=1, seed=5).graph,
    "lfr": lambda: lfr(50_000, weights="uniform", seed=5).graph,
    "path": lambda: Graph.from_edges(np.arange(3000), np.arange(3000) + 1, np.arange(3000) % 7 + 1),
    "star": lambda: Graph.from_edges(np.zeros(500_000, int), np.arange(500_000) + 1),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_graphs(gpu, name):
    graph = LARGE[name]()
    check(graph, int(np.argmax(np.diff(graph.offsets))))


def test_a_device_graph_is_copied_where_a_policy_says(gpu):
    graph = LARGE["weighted"]()
    there = DeviceGraph.from_host(graph)
    for memory in ("zero_copy", "base"):
        found = lu.pagerank(there, memory=memory)
        assert found.tobytes() == lu.pagerank(graph, device="cpu").tobytes()


def test_a_budget_below_what_must_be_on_the_device(gpu):
    graph = LARGE["sparse"]()
    with pytest.raises(MemoryBudgetError, match="needs that much of the device") as refused:
        lu.bfs(graph, 0, device="cuda", device_budget="1kB")
    assert refused.value.needed == 16_384
    assert not guard.ranges


def test_a_device_graph_has_numbers_for_names(gpu):
    graph = DeviceGraph.from_host(Graph.from_edges([0, 1], [1, 2]))
    assert lu.bfs(graph, 2).distances.tolist() == [2, 1, 0]
    with pytest.raises(GraphError, match="3 is no vertex"):
        lu.bfs(graph, 3)


def test_a_changing_graph(gpu):
    graph = lu.DynamicGraph(5)
    graph.apply(insert=([0, 1], [1, 2]))
    assert lu.bfs(graph, 0, device="cuda").distances.tolist() == [0, 1, 2, -1, -1]


POLICIES = ("auto", "device", "zero_copy", "base", "adv1", "adv2", "mixed")
BUDGETS = (None, "100%", "70%", "40%", "20%")


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("memory", POLICIES)
def test_results_do_not_depend_on_policy_and_budget(gpu, memory, budget):
    policy = MIXED if memory == "mixed" else memory
    turn = POLICIES.index(memory) + BUDGETS.index(budget)
    for kind in ("weighted",) if turn % 2 else ("rmat", "path"):
        graph, source, expected = on_cpu(kind)
        for name, call in calls(source).items():
            how = {"device": "cuda", "memory": policy, "device_budget": budget}
            try:
                found = call(graph, **how)
            except MemoryBudgetError:
                # The control block alone exceeds a fifth of a short path's arrays.
                assert memory != "auto" or kind == "path"
                assert budget not in (None, "100%")
                continue
            for ours, theirs in zip(found, expected[name], strict=True):
                assert ours.dtype == theirs.dtype, name
                assert ours.tobytes() == theirs.tobytes(), name
    gc.collect()
    assert not guard.ranges


@cache
def on_cpu(kind):
    """Return a graph, a source, and the CPU's answers."""
    graph = LARGE[kind]()
    source = int(np.argmax(np.diff(graph.offsets)))
    return graph, source, answers(graph, source, device="cpu")


MIXED = Policy(
    name="mixed",
    roles={"targets": "split(0.5)", "offsets": "read_mostly", "shares": "pinned"},
    groups={"graph": "prefetched", "result": "host_mapped"},
    others="managed",
)


GRAPHS = {
    "plain": rmat(12, edge_factor=8, seed=3).graph,
    "weighted": lfr(3000, weights="uniform", seed=3).graph,
}


def forms(graph):
    """Return a graph on the host, on the device, and as a changing one there."""
    return [
        graph,
        DeviceGraph.from_host(graph),
        lu.DynamicGraph(graph, store="rows", device="cuda"),
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_shortest_paths_by_advancing(gpu, name):
    import cupy

    graph = GRAPHS[name]
    expected = lu.sssp(graph, 0, device="cpu").distances
    for form in forms(graph):
        distances = cupy.full(graph.n_vertices, 2**60, np.int64)
        distances[0] = 0
        frontier = cupy.array([0])
        while len(frontier):
            frontier = advance(form, frontier, along="x + w", combine="min", into=distances)
        assert isinstance(frontier, cupy.ndarray)
        found = distances.get()
        assert np.array_equal(np.where(found == 2**60, -1, found), expected)


def test_filter_and_intersect(gpu):
    import cupy

    graph, rng = GRAPHS["plain"], np.random.default_rng(0)
    x = rng.integers(0, 9, graph.n_vertices)
    items = rng.integers(0, graph.n_vertices, 500)
    condition = "x > 4 and v % 3 != 1 or x // max(v, 1) == 2"
    there = filter(cupy.asarray(items), condition, x=cupy.asarray(x))
    assert np.array_equal(there.get(), filter(items, condition, x=x))
    pairs, each = rng.integers(0, graph.n_vertices, (400, 2)), np.zeros(graph.n_vertices, np.int64)
    expected = intersect(graph, pairs, each=each)
    for form in forms(graph):
        sums = cupy.zeros(graph.n_vertices, np.int64)
        found = intersect(form, cupy.asarray(pairs), each=sums)
        assert np.array_equal(found.get(), expected)
        assert np.array_equal(sums.get(), each)


def test_what_is_refused_changes_nothing(gpu):
    import cupy

    into = cupy.arange(GRAPHS["plain"].n_vertices)
    with pytest.raises(OptionError, match="divides by 0"):
        advance(GRAPHS["plain"], [0, 1], along="x // (u - u)", combine="add", into=into)
    assert np.array_equal(into.get(), np.arange(len(into)))
    with pytest.raises(GraphError, match="is no vertex"):
        advance(GRAPHS["plain"], [-1], along="x", combine="add", into=into)
    with pytest.raises(OptionError, match="divides by 0"):
        filter(cupy.arange(3), "1 // v")


def test_algorithms_read_a_changing_graph_where_it_lies(gpu):
    graph = lu.DynamicGraph(GRAPHS["weighted"], store="rows", device="cuda")
    graph.apply(insert=([0, 1, 2], [9, 8, 7]))
    still = graph.host_snapshot()
    for call in (lu.pagerank, lu.triangles, lu.connected_components):
        assert call(graph, device="cuda").tobytes() == call(still, device="cpu").tobytes()
