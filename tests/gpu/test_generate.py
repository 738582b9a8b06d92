from typing import Any

import numpy as np
import pytest

from louvain_um import Graph, generators
from louvain_um.gpu.generate import generate
from louvain_um.gpu.memory.graph_stats import SAMPLED_FROM, graph_stats
from louvain_um.gpu.memory.loading import survey

pytestmark = pytest.mark.gpu

CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("rmat", 0, {}),
    ("rmat", 9, {"edge_factor": 0}),
    ("rmat", 10, {"seed": 1}),
    ("rmat", 14, {"seed": 2, "weights": "uniform"}),
    ("rmat", 12, {"a": 0.25, "b": 0.25, "c": 0.25, "permute": False}),
    ("stencil", (7,), {"periodic": True}),
    ("stencil", (1, 1, 1), {}),
    ("stencil", (9, 11), {"points": 4, "permute": True, "seed": 3}),
    ("stencil", (5, 3, 4), {"periodic": True, "weights": "uniform"}),
    ("stencil", (20, 17, 13), {"permute": True}),
    ("lfr", 1000, {"min_degree": 5, "max_degree": 50, "max_community": 100}),
    ("lfr", 20_000, {"seed": 4, "weights": "uniform"}),
    ("lfr", 3000, {"mixing": 0.0, "min_community": 10, "max_community": 30, "seed": 5}),
    ("lfr", 3000, {"mixing": 1.0, "seed": 6}),
    ("lfr", 2000, {"min_community": 2000, "max_community": 2000, "mixing": 0.1, "seed": 7}),
]


def same(a, b):
    arrays = zip((a.offsets, a.targets, a.loops), (b.offsets, b.targets, b.loops), strict=True)
    if a.weights is None or b.weights is None:
        weights = a.weights is b.weights
    else:
        weights = np.array_equal(a.weights, b.weights) and a.weights.dtype == b.weights.dtype
    return weights and all(np.array_equal(x, y) for x, y in arrays)


@pytest.mark.parametrize(("kind", "size", "options"), CASES)
def test_the_device_makes_the_same_graph(gpu, kind, size, options):
    there = getattr(generate, kind)(size, **options)
    here = generators.GENERATORS[kind](size, **options)
    assert same(there.graph.to_host(), here.graph)
    if here.labels is not None:
        assert np.array_equal(there.labels, here.labels)


def test_a_graph_on_the_device_is_sampled_as_on_the_host(gpu):
    there = generate.rmat(16, seed=3).graph
    assert there.n_arcs > SAMPLED_FROM
    assert survey(there) == graph_stats(there.to_host())


def test_rows_are_sorted_in_parts(gpu, monkeypatch):
    monkeypatch.setattr(generate, "ARCS", 500)
    monkeypatch.setattr(generate, "EDGES", 300)
    made = generate.rmat(9, seed=8).graph
    assert same(made.to_host(), generators.rmat(9, seed=8).graph)


def test_the_way_to_the_host_and_back_changes_nothing(gpu):
    from louvain_um.gpu.graph import DeviceGraph

    rng = np.random.default_rng(5)
    many = rng.integers(0, 500_000, (2, 3_000_000))  # copied through page-locked buffers
    cases = [([0, 1, 2], [1, 2, 2], [1, 2, 3], 5), ([0, 1, 2], [1, 2, 2], [1, 2**40, 3], 5)]
    for source, target, weights, n in [*cases, (*many, rng.integers(1, 9, 3_000_000), 500_000)]:
        graph = Graph.from_edges(source, target, weights, n_vertices=n, duplicates="sum")
        there = DeviceGraph.from_host(graph)
        assert there.total_weight == graph.total_weight
        assert same(there.to_host(), graph)
