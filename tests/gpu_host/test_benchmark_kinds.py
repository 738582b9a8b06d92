"""Kinds of the benchmarks are graphs, whichever library makes them; their triangles are sampled."""

import importlib

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.generators import stencil
from louvain_um.gpu.memory import graph_stats
from louvain_um.gpu.memory.graph_stats import sampled_clustering, sampled_structure
from louvain_um.graph.graph import Graph
from louvain_um.placement.policy import policy
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
    for name in (*kinds.KINDS, *kinds.GENERATED, *kinds.SKEWED, *kinds.OTHERS):
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


def test_squares_and_walks_are_sampled_as_counted(monkeypatch):
    n = np.arange(30)
    whole = lu.Graph.from_edges(*np.triu_indices(30, 1))
    sides = lu.Graph.from_edges(np.repeat(n, 30), np.tile(n + 30, 30))
    ring = lu.Graph.from_edges(n, np.roll(n, -1))
    assert sampled_structure(ring.offsets, ring.targets) is None, "its run takes as long"
    monkeypatch.setattr(graph_stats, "SAMPLED_FROM", 0)
    exact = {whole: (1.0, 1 / 30), sides: (1.0, 1 / 30), ring: (0.0, (1 + 16 + 36 + 16 + 1) / 256)}
    for graph, expected in exact.items():
        found = sampled_structure(graph.offsets, graph.targets)
        assert found == sampled_structure(graph.offsets, graph.targets)
        assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.records
def test_pages_of_a_search_are_those_of_its_rows_in_the_order_of_blocking(kinds):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        patch.setattr(policy, "_KNOWN", dict(policy.known_policies()))  # the script adds some
        figures = importlib.import_module("paper_programs")
    assert figures.blocked(np.arange(7), 2, 2).tolist() == [0, 2, 1, 3, 4, 6, 5]
    assert figures.blocked(np.arange(7), 0, 2).tolist() == list(range(7))
    begins, ends = np.array([0, 3000, 5000]), np.array([10, 3000, 9000])
    assert figures.pages_of(begins, ends, 4).tolist() == [0, 4, 5, 6, 7, 8]
    graph = kinds.made(np, "road", 1 << 12)
    offsets, targets = figures.one_way(graph)
    assert 2 * len(targets) == graph.n_arcs
    sources = np.repeat(np.arange(graph.n_vertices), np.diff(offsets))
    pairs = {frozenset(pair) for pair in zip(sources.tolist(), targets.tolist(), strict=True)}
    assert len(pairs) == len(targets)
    found = figures.distances(graph.offsets, graph.targets, 0)
    assert found.tolist() == lu.bfs(graph, 0, device="cpu").distances.tolist()
    row = figures.traffic("road", graph)
    assert row["saved"] <= row["saved_one_way"] < 1
