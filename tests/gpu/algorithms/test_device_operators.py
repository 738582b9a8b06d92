"""The operators of users on a device give what they give on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.algorithms.operators import advance, filter, intersect
from louvain_um.errors import GraphError, OptionError
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime.device import Choice

pytestmark = pytest.mark.gpu

GRAPHS = {
    "plain": rmat(12, edge_factor=8, seed=3).graph,
    "weighted": lfr(3000, weights="uniform", seed=3).graph,
}


def forms(graph: lu.Graph) -> list[Any]:
    """Return a graph on the host, on the device, and as a changing one there."""
    return [
        graph,
        DeviceGraph.from_host(graph),
        lu.DynamicGraph(graph, store="rows", device="cuda"),
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_shortest_paths_by_advancing(gpu: Choice, name: str) -> None:
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


def test_filter_and_intersect(gpu: Choice) -> None:
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


def test_what_is_refused_changes_nothing(gpu: Choice) -> None:
    import cupy

    into = cupy.arange(GRAPHS["plain"].n_vertices)
    with pytest.raises(OptionError, match="divides by 0"):
        advance(GRAPHS["plain"], [0, 1], along="x // (u - u)", combine="add", into=into)
    assert np.array_equal(into.get(), np.arange(len(into)))
    with pytest.raises(GraphError, match="is no vertex"):
        advance(GRAPHS["plain"], [-1], along="x", combine="add", into=into)
    with pytest.raises(OptionError, match="divides by 0"):
        filter(cupy.arange(3), "1 // v")


def test_algorithms_read_a_changing_graph_where_it_lies(gpu: Choice) -> None:
    graph = lu.DynamicGraph(GRAPHS["weighted"], store="rows", device="cuda")
    graph.apply(insert=([0, 1, 2], [9, 8, 7]))
    still = graph.host_snapshot()
    for call in (lu.pagerank, lu.triangles, lu.connected_components):
        assert call(graph, device="cuda").tobytes() == call(still, device="cpu").tobytes()
