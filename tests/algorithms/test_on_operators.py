"""The benchmarks' algorithms on the operators give what the tuned ones give, in fewer lines."""

import importlib

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.generators import lfr, rmat
from tests.paths import BENCHMARKS

GRAPHS = {
    "plain": lambda: rmat(8, edge_factor=6, seed=3).graph,
    "weighted": lambda: lfr(300, weights="uniform", seed=3).graph,
    "loops": lambda: lu.Graph.from_edges([0, 1, 1, 3, 2], [1, 1, 2, 3, 0], n_vertices=6),
}


@pytest.fixture
def ours(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("on_operators")


@pytest.mark.deep
@pytest.mark.parametrize("name", GRAPHS)
def test_answers(ours, name):
    graph, how = GRAPHS[name](), {"device": "cpu"}
    assert np.array_equal(ours.bfs(graph, 0), lu.bfs(graph, 0, **how).distances)
    lengths = ours.sssp(graph, 0)
    expected = lu.sssp(graph, 0, **how).distances
    assert np.array_equal(np.where(lengths == ours.FAR, -1, lengths), expected)
    x = np.random.default_rng(0).integers(-9, 9, graph.n_vertices) * 0.5
    assert np.array_equal(ours.spmv(graph, x), lu.spmv(graph, x, **how))
    ranks, rounds = ours.pagerank(graph)
    np.testing.assert_allclose(ranks, lu.pagerank(graph, **how), atol=1e-7)
    assert rounds < 100
    assert np.array_equal(ours.triangles(graph), lu.triangles(graph, **how))


def test_useful_lines(ours):
    lines = {name: ours.useful_lines(name) for name in ours.PARTS}
    assert lines["triangles"] == 6
    assert all(lines[name] < published for name, published in ours.PUBLISHED.items())
