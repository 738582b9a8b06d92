"""Kinds of the benchmarks are graphs, whichever library makes them; their triangles are sampled."""

import importlib

import numpy as np
import pytest

from louvain_um.generators import stencil
from louvain_um.gpu.memory.graph_stats import sampled_clustering
from louvain_um.graph.graph import Graph
from tests.paths import BENCHMARKS


@pytest.fixture(scope="module")
def kinds():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("kinds")


def test_there_are_twenty_and_half_of_them_may_be_fitted_to(kinds):
    names = {*kinds.KINDS, *kinds.GENERATED}
    assert len(names) == 20
    assert len(kinds.FITTED) == 10
    assert set(kinds.FITTED) < names
    assert set(kinds.WEIGHTED) < names


def test_each_kind_is_a_graph_of_about_the_size(kinds):
    for name in (*kinds.KINDS, *kinds.GENERATED):
        graph = kinds.made(np, name, 40_000)
        checked = Graph(graph.offsets, graph.targets, graph.weights, graph.loops, check=True)
        assert 15_000 < checked.n_arcs < 80_000, name
        assert checked.weighted == (name in kinds.WEIGHTED)
        if checked.weighted:
            assert checked.weights.min() >= 1
            assert checked.weights.max() <= 1000


def test_triangles_are_sampled_alike_each_time(kinds):
    found = {
        name: sampled_clustering(graph.offsets, graph.targets)
        for name in ("random", "cliques", "lattice", "small_world")
        for graph in [kinds.made(np, name, 100_000)]
    }
    assert found["lattice"] == 0
    assert found["random"] < 0.02
    assert 0.4 < found["small_world"] < 0.6
    assert found["cliques"] > 0.95
    grid = stencil((12, 12, 12)).graph
    again = [sampled_clustering(grid.offsets, grid.targets) for _ in range(2)]
    assert again[0] == again[1] > 0.3


def test_graphs_without_arcs_have_no_triangles():
    nothing = np.zeros(4, np.int64), np.zeros(0, np.uint32)
    assert sampled_clustering(*nothing) == 0.0
