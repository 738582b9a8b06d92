"""The algorithms on a device give what the CPU gives, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import louvain_um as lu
from louvain_um import Graph
from louvain_um.errors import GraphError, MemoryBudgetError
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime.device import Choice
from louvain_um.placement.memory.guard import guard
from tests.graphs import graphs

pytestmark = pytest.mark.gpu


def calls(source: int) -> dict[str, Callable[..., Any]]:
    """Return calls of all algorithms, which return sequences of arrays."""
    return {
        "components": lambda graph, **how: [lu.connected_components(graph, **how)],
        "forest": lu.minimum_spanning_forest,
        "pagerank": lambda graph, **how: [lu.pagerank(graph, **how)],
        "triangles": lambda graph, **how: [lu.triangles(graph, **how)],
        "spmv": lambda graph, **how: [lu.spmv(graph, vector(graph.n_vertices), **how)],
        "bfs": lambda graph, **how: lu.bfs(graph, source, **how),
        "sssp": lambda graph, **how: lu.sssp(graph, source, **how),
    }


def vector(n: int) -> Any:
    return np.random.default_rng(n).standard_normal(n)


def answers(graph: Any, source: int, **options: Any) -> dict[str, Any]:
    """Return the results of all algorithms as arrays."""
    searches = () if graph.n_vertices else ("bfs", "sssp")
    return {
        name: call(graph, **options) for name, call in calls(source).items() if name not in searches
    }


def check(graph: Graph, source: int = 0) -> None:
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
def test_small_graphs(gpu: Choice, graph: Graph) -> None:
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
def test_large_graphs(gpu: Choice, name: str) -> None:
    graph = LARGE[name]()
    check(graph, int(np.argmax(np.diff(graph.offsets))))


def test_a_device_graph_is_copied_where_a_policy_says(gpu: Choice) -> None:
    graph = LARGE["weighted"]()
    there = DeviceGraph.from_host(graph)
    for memory in ("zero_copy", "base"):
        found = lu.pagerank(there, memory=memory)
        assert found.tobytes() == lu.pagerank(graph, device="cpu").tobytes()


def test_a_budget_below_what_must_be_on_the_device(gpu: Choice) -> None:
    graph = LARGE["sparse"]()
    with pytest.raises(MemoryBudgetError, match="needs that much of the device") as refused:
        lu.bfs(graph, 0, device="cuda", device_budget="1kB")
    assert refused.value.needed == 16_384
    assert not guard.ranges


def test_a_device_graph_has_numbers_for_names(gpu: Choice) -> None:
    graph = DeviceGraph.from_host(Graph.from_edges([0, 1], [1, 2]))
    assert lu.bfs(graph, 2).distances.tolist() == [2, 1, 0]
    with pytest.raises(GraphError, match="3 is no vertex"):
        lu.bfs(graph, 3)


def test_a_changing_graph(gpu: Choice) -> None:
    graph = lu.DynamicGraph(5)
    graph.apply(insert=([0, 1], [1, 2]))
    assert lu.bfs(graph, 0, device="cuda").distances.tolist() == [0, 1, 2, -1, -1]
