"""The algorithms' CUDA kernels, emulated on the CPU, give what the CPU gives, bit for bit."""

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from louvain_um.algorithms.products import UNIT
from louvain_um.cpu.algorithms import (
    bfs,
    components,
    pagerank,
    spanning_forest,
    spmv,
    sssp,
    triangles,
)
from louvain_um.generators import rmat, stencil
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import RowView
from tests.algorithms.test_algorithms import Gapped
from tests.graphs import graphs

pytestmark = pytest.mark.deep

SMALL = settings(
    max_examples=25,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def address(array):
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


@dataclass
class Emulated:
    library: ctypes.CDLL
    rows: RowView
    blocks: int
    pages: int = 0

    def __call__(self, name, *arguments):
        rows, function = self.rows, getattr(self.library, f"run_{name}")
        function.restype = ctypes.c_int64
        # The device keeps wide weights without a sign.
        return int(
            function(
                ctypes.c_int(self.blocks), ctypes.c_uint32(self.pages),
                ctypes.c_int(0 if rows.weights is None else rows.weights.itemsize),
                ctypes.c_int64(rows.n_vertices), ctypes.c_int64(rows.n_arcs),
                address(rows.begins), address(rows.ends), address(rows.targets),
                address(rows.weights), *arguments,
            )
        )  # fmt: skip


def check(device, source):
    check_by_kind(device, source)
    rows, n = device.rows, device.rows.n_vertices
    for width in (1, 3, 2**41):
        lengths, parents = np.zeros(n, np.int64), np.zeros(n, np.int64)
        numbers = ctypes.c_uint32(source), ctypes.c_uint64(width)
        device("sssp", *numbers, address(lengths), address(parents))
        same((lengths, parents), sssp.sssp(rows, source, 1))

    labels = np.zeros(n, np.uint32)
    device("components", address(labels))
    same((labels,), (components.components(rows, 1),))

    edges, weights = np.zeros(n, np.uint64), np.zeros(n, np.int64)
    count = device("spanning_forest", address(edges), address(weights))
    order = np.argsort(edges[:count])
    same((edges[order], weights[order]), spanning_forest.spanning_forest(rows, 1))

    counts = np.zeros(n, np.int64)
    device("triangles", address(counts))
    same((counts,), (triangles.triangles(rows, 1, lambda *_: None),))


def check_by_kind(device, source):
    """Compare those whose kernels know rows in host memory."""
    rows, n = device.rows, device.rows.n_vertices
    distances, parents = np.zeros(n, np.int32), np.zeros(n, np.int64)
    device("bfs", ctypes.c_uint32(source), address(distances), address(parents))
    same((distances, parents), bfs.bfs(rows, source, 1))

    loops = rows.loops if rows.loops.any() else None
    ranks, sums = np.zeros(n, np.int64), np.zeros(2, np.int64)
    start, teleport, iterations = UNIT // n, int(UNIT * (1.0 - 0.85) / n), 7
    device(
        "pagerank", address(loops), ctypes.c_double(0.85), ctypes.c_int64(start),
        ctypes.c_int64(teleport), ctypes.c_int(iterations), address(ranks), address(sums),
    )  # fmt: skip
    expected, moved = pagerank.pagerank(
        rows, 0.85, start, teleport, -1, iterations, 1, lambda *_: None
    )
    same((ranks,), (expected,))
    assert sums[1] == moved

    x, y = np.random.default_rng(n).standard_normal(n), np.zeros(n)
    unit = ctypes.c_double(0.25)
    device("spmv", address(loops), address(x), unit, address(y))
    same((y,), (spmv.spmv(rows, x, 4.0, 1),))


def same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.tobytes() == theirs.tobytes()


@SMALL
@given(graphs(), st.sampled_from([1, 3]), st.booleans(), st.data())
def test_small_graphs(emulated, graph, blocks, gapped, data):
    assume(graph.n_vertices)
    rows = Gapped(graph).view() if gapped else RowView.of(graph)
    source = data.draw(st.integers(0, graph.n_vertices - 1))
    check(Emulated(emulated["algorithms"], rows, blocks), source)
    if not gapped:
        check_by_kind(Emulated(emulated["algorithms"], rows, blocks, pages=1), source)


GRAPHS = {
    "rmat": lambda: rmat(9, edge_factor=8, seed=5).graph,
    "weighted": lambda: rmat(9, edge_factor=8, weights="uniform", seed=5).graph,
    "stencil": lambda: stencil((7, 8, 6)).graph,
    "sparse": lambda: rmat(10, edge_factor=1, seed=5).graph,
    "middle": lambda: Graph.from_edges(*np.triu_indices(28, 1)),
    "path": lambda: Graph.from_edges(np.arange(60), np.arange(60) + 1, np.arange(60) % 7 + 1),
    "star": lambda: Graph.from_edges(np.zeros(9000, int), np.arange(9000) + 1),
}


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_larger_graphs(emulated, name, blocks):
    graph = GRAPHS[name]()
    for source in (int(np.argmax(np.diff(graph.offsets))), graph.n_vertices - 1):
        check(Emulated(emulated["algorithms"], RowView.of(graph), blocks), source)
        for pages in (1, 3):
            check_by_kind(
                Emulated(emulated["algorithms"], RowView.of(graph), blocks, pages), source
            )
