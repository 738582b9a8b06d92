"""Every algorithm equals its oracle, for any graph, any number of threads, any store of rows."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um import Graph
from louvain_um.generators import rmat, stencil
from tests.algorithms import oracles
from tests.graphs import graphs, scattered

MANY = settings(max_examples=300, database=None)
THREADS = st.sampled_from([1, 3])


@dataclass
class Gapped:
    """A store of separate rows, in any order."""

    graph: Graph

    def __getattr__(self, name):
        return getattr(self.graph, name)

    def snapshot(self):
        return self.graph

    def view(self):
        return scattered(self.graph)


def stored(graph, gapped):
    return Gapped(graph) if gapped else graph


@MANY
@given(graphs(), THREADS, st.booleans(), st.data())
def test_bfs(graph, threads, gapped, data):
    assume(graph.n_vertices)
    source = data.draw(st.integers(0, graph.n_vertices - 1))
    found = lu.bfs(stored(graph, gapped), source, device="cpu", threads=threads)
    distances = oracles.distances(graph, source, weighted=False)
    assert (found.distances.dtype, found.parents.dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(found.distances, distances)
    parents = oracles.parents(graph, source, distances, weighted=False)
    np.testing.assert_array_equal(found.parents, parents)


@MANY
@given(graphs(), THREADS, st.booleans(), st.data())
def test_sssp(graph, threads, gapped, data):
    assume(graph.n_vertices)
    source = data.draw(st.integers(0, graph.n_vertices - 1))
    found = lu.sssp(stored(graph, gapped), source, device="cpu", threads=threads)
    distances = oracles.distances(graph, source, weighted=True)
    assert found.distances.dtype == (np.int64 if graph.scale == 1 else np.float64)
    real = np.where(distances < 0, -1, distances / graph.scale)
    np.testing.assert_array_equal(found.distances, real)
    parents = oracles.parents(graph, source, distances, weighted=True)
    np.testing.assert_array_equal(found.parents, parents)


@MANY
@given(graphs(), THREADS, st.booleans())
def test_connected_components(graph, threads, gapped):
    found = lu.connected_components(stored(graph, gapped), device="cpu", threads=threads)
    assert found.dtype == np.uint32
    np.testing.assert_array_equal(found, oracles.components(graph))


@MANY
@given(graphs(), THREADS, st.booleans())
def test_minimum_spanning_forest(graph, threads, gapped):
    u, v, weights = lu.minimum_spanning_forest(stored(graph, gapped), device="cpu", threads=threads)
    integers = np.rint(weights * graph.scale).astype(np.int64)
    found = list(zip(u.tolist(), v.tolist(), integers.tolist(), strict=True))
    assert found == oracles.forest(graph)


@MANY
@given(graphs(), THREADS, st.booleans(), st.sampled_from([0.0, 0.5, 0.85]))
def test_pagerank(graph, threads, gapped, damping):
    given_graph = stored(graph, gapped)
    found = lu.pagerank(given_graph, damping, tolerance=1e-12, device="cpu", threads=threads)
    assert found.dtype == np.float64
    if graph.n_vertices:
        np.testing.assert_allclose(found, oracles.ranks(graph, damping), rtol=1e-9, atol=1e-11)
        assert found.sum() == pytest.approx(1, abs=1e-12)
    alone = lu.pagerank(graph, damping, tolerance=1e-12, device="cpu", threads=1)
    np.testing.assert_array_equal(found, alone)


@MANY
@given(graphs(), THREADS, st.booleans())
def test_triangles(graph, threads, gapped):
    found = lu.triangles(stored(graph, gapped), device="cpu", threads=threads)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, oracles.triangles(graph))


@MANY
@given(graphs(), THREADS, st.booleans(), st.integers(0, 2**32 - 1))
def test_spmv(graph, threads, gapped, seed):
    x = np.random.default_rng(seed).standard_normal(graph.n_vertices)
    found = lu.spmv(stored(graph, gapped), x, device="cpu", threads=threads)
    np.testing.assert_array_equal(found, oracles.product(graph, x))
    expected = oracles.matrix(graph) @ x / graph.scale
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * abs(expected).max(initial=0))


def path(n):
    u = np.random.default_rng(3).permutation(n)
    return Graph.from_edges(u[:-1], u[1:], np.arange(n - 1) % 7 + 1)


LARGE = {
    "rmat": lambda: rmat(13, edge_factor=16, seed=5).graph,
    "weighted": lambda: rmat(13, edge_factor=16, weights="uniform", seed=5).graph,
    "stencil": lambda: stencil((20, 20, 20)).graph,
    "sparse": lambda: rmat(13, edge_factor=1, seed=5).graph,
    "path": lambda: path(50_000),
    "star": lambda: Graph.from_edges(np.zeros(90_000, int), np.arange(90_000) + 1),
}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", LARGE)
def test_graphs_that_keep_all_threads_busy(name, threads):
    check_against_scipy(LARGE[name](), threads)


def check_against_scipy(graph, threads=None):
    n, entries = graph.n_vertices, oracles.matrix(graph)
    source = int(np.argmax(np.diff(graph.offsets)))
    name = source if graph.names is None else graph.names[source]
    options = {"device": "cpu", "threads": threads}

    distances, parents = lu.bfs(graph, name, **options)
    expected = csgraph.dijkstra(entries, indices=source, unweighted=True)
    np.testing.assert_array_equal(distances, np.where(np.isinf(expected), -1, expected))
    check_parents(graph, source, distances, parents, np.ones(graph.n_arcs, np.int64))

    distances, parents = lu.sssp(graph, name, **options)
    expected = csgraph.dijkstra(entries, indices=source)
    integers = np.rint(distances * np.where(distances < 0, 1, graph.scale)).astype(np.int64)
    np.testing.assert_array_equal(integers, np.where(np.isinf(expected), -1, expected))
    weights = np.ones(graph.n_arcs, np.int64) if graph.weights is None else graph.weights
    check_parents(graph, source, integers, parents, weights)

    labels = csgraph.connected_components(entries, directed=False)[1]
    first = np.full(labels.max() + 1, n)
    np.minimum.at(first, labels, np.arange(n))
    np.testing.assert_array_equal(lu.connected_components(graph, **options), first[labels])

    u, v, weights = lu.minimum_spanning_forest(graph, **options)
    assert len(u) == n - len(first)
    assert csgraph.minimum_spanning_tree(entries).sum() == np.rint(weights * graph.scale).sum()
    assert (np.diff(u.astype(np.int64) << 32 | v) > 0).all()

    np.testing.assert_array_equal(lu.triangles(graph, **options), closed(graph))

    x = np.random.default_rng(1).random(n)
    y = lu.spmv(graph, x, **options)
    np.testing.assert_allclose(y, entries @ x / graph.scale, rtol=1e-10)
    ranks = lu.pagerank(graph, **options)
    np.testing.assert_array_equal(ranks, lu.pagerank(graph, device="cpu", threads=1))
    out = np.maximum(np.asarray(entries.sum(axis=1)).ravel(), 1)
    isolated = np.asarray(entries.sum(axis=1)).ravel() == 0
    again = 0.15 / n + 0.85 * (entries @ (ranks / out) + ranks[isolated].sum() / n)
    np.testing.assert_allclose(ranks, again, atol=1e-8)


def closed(graph):
    """Return the triangles of each vertex, by products of the matrix of arcs to higher degrees."""
    order = np.argsort(np.diff(graph.offsets), kind="stable")
    entries = oracles.matrix(graph).astype(bool).astype(np.int64)
    up = sp.triu(entries[order][:, order], 1, format="csr")
    ends, middles = (up @ up).multiply(up), (up.T @ up).multiply(up)
    found = np.empty(graph.n_vertices, np.int64)
    found[order] = sum(np.asarray(part).ravel() for part in (
        ends.sum(axis=1), ends.sum(axis=0), middles.sum(axis=1)
    ))  # fmt: skip
    return found


def check_parents(graph, source, distances, parents, weights):
    rows = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    targets = graph.targets.astype(np.int64)
    on_path = (distances[rows] >= 0) & (distances[targets] + weights == distances[rows])
    expected = np.full(graph.n_vertices, graph.n_vertices)
    np.minimum.at(expected, rows[on_path], targets[on_path])
    expected[expected == graph.n_vertices] = -1
    expected[source] = source
    np.testing.assert_array_equal(parents, expected)


REAL = (
    "CollegeMsg.txt.gz", "astro-ph.graph", "celegans_metabolic.graph", "cond-mat-2005.npz",
    "delaunay_n15.graph", "dolphins.mtx", "email-Enron.txt.gz", "facebook_combined.txt",
    "football.gml", "karate.mtx", "polbooks.mtx", "rgg_n_2_15_s0.graph", "soc-Epinions1.txt.gz",
    "wiki-Vote.txt",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::louvain_um.GraphWarning")
@pytest.mark.parametrize(
    "name", [REAL[0], *(pytest.param(name, marks=pytest.mark.deep) for name in REAL[1:])]
)
def test_real_graphs(shared_data, name):
    graph = lu.read_graph(shared_data / name)
    check_against_scipy(graph)
