"""Graphs built by emulated kernels: those that the host builds, bit for bit."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array

from louvain_um import Graph, as_graph
from louvain_um.gpu.building.build import Builder, Ends
from louvain_um.gpu.building.edges import rows_by
from louvain_um.graph.build import rows_made_by
from tests.gpu_emulated.emulated_device import Emulated

RNG = np.random.default_rng(5)
WEIGHTS: dict[str, Any] = {
    "none": lambda m: None,
    "ones": lambda m: np.ones(m, np.int64),
    "bytes": lambda m: RNG.integers(0, 5, m).astype(np.uint8),
    "large": lambda m: RNG.integers(0, 2**45, m),
    "even": lambda m: RNG.integers(0, 2**30, m).astype(np.uint64) << np.uint64(25),
    "real": lambda m: RNG.random(m),
    "float32": lambda m: (RNG.random(m) * 8).astype(np.float32),
    "whole": lambda m: RNG.integers(0, 9, m).astype(np.float64),
    "mixed": lambda m: RNG.random(m) * 10.0 ** RNG.integers(-40, 9, m),
    "zeros": lambda m: np.zeros(m),
    "negative": lambda m: RNG.integers(-1, 5, m),
    "nan": lambda m: np.where(RNG.random(m) < 0.1, np.nan, 1.0),
}
IDS = (np.uint32, np.int32, np.int64, np.uint64, np.uint8)


def differences(made, right):
    """Return which parts of a graph on the emulated device differ from the host's."""
    if made is None:
        return ["nothing made"]
    weights = right.weights
    if weights is not None and weights.dtype == np.int64:
        weights = weights.view(np.uint64)
    loops = right.loops.view(np.uint64) if right.has_loops else None
    pairs = {
        "offsets": (made.offsets, right.offsets),
        "targets": (made.targets, right.targets),
        "weights": (made.weights, weights),
        "loops": (made.loops, loops),
    }
    found = []
    for name, (a, b) in pairs.items():
        alike = a is b if a is None or b is None else a.dtype == b.dtype and np.array_equal(a, b)
        found += [] if alike else [f"{name}: {a} for {b}"]
    about = ((made.scale, right.scale), (made.notes, right.notes))
    return found + [f"{a} for {b}" for a, b in about if a != b]


@pytest.mark.parametrize("kind", WEIGHTS)
def test_edges_make_the_graph_of_the_host(emulated, kind):
    for number in range(8):
        builder = Builder(Emulated(emulated, 2), (7, 1 << 20)[number % 2])
        n, m = int(RNG.integers(1, 40)), int(RNG.integers(0, 90))
        id_type = IDS[number % len(IDS)]
        u, v = (RNG.integers(0, n, m).astype(id_type) for _ in range(2))
        weights = WEIGHTS[kind](m)
        options = {
            "duplicates": (None, "once", "sum")[number % 3],
            "n_vertices": None if number % 4 < 2 else n + 3,
        }
        try:
            right = Graph.from_edges(u, v, weights, **options)
        except ValueError:
            assert builder.from_edges(u, v, weights, **options) is None
            continue
        made = builder.from_edges(u, v, weights, **options)
        assert differences(made, right) == [], (kind, options)


class Copies:
    sent = fetched = staticmethod(np.copy)


@pytest.mark.parametrize("kind", ["none", "ones", "bytes", "large", "whole"])
def test_rows_of_edges_in_host_memory_are_those_of_the_host(emulated, kind):
    builder = Builder(Emulated(emulated, 2), 1 << 6)

    def compress(u, v, weights, n, *, summing, threads):
        return rows_by(builder, Copies, Ends(u, v, weights), n, summing=summing)

    for number in range(6):
        n, m = int(RNG.integers(1, 40)), int(RNG.integers(0, 90))
        u, v = (RNG.integers(0, n, m) for _ in range(2))
        options = {"duplicates": (None, "once", "sum")[number % 3], "n_vertices": n + number % 2}
        weights = WEIGHTS[kind](m)
        right = Graph.from_edges(u, v, weights, **options)
        with rows_made_by(compress):
            made = Graph.from_edges(u, v, weights, **options)
        for name in ("offsets", "targets", "weights", "loops"):
            mine, other = getattr(made, name), getattr(right, name)
            assert (mine is None) == (other is None)
            assert mine is None or (mine.dtype == other.dtype and np.array_equal(mine, other))
        assert (made.scale, made.notes) == (right.scale, right.notes)


def test_what_is_no_graph_is_left_to_the_host(emulated):
    builder = Builder(Emulated(emulated, 2))
    for u, v in (
        ([0, -1], [1, 1]), ([0, 2**33], [1, 1]), ([0.5, 1.0], [1, 1]), ([0, 1], [1]),
        ([[0]], [[1]]), ([True], [False]),
    ):  # fmt: skip
        assert builder.from_edges(np.array(u), np.array(v)) is None
    assert builder.from_edges(np.array([0, 5]), np.array([1, 1]), n_vertices=3) is None


@pytest.mark.parametrize("kind", ["ones", "bytes", "large", "even", "real", "float32"])
def test_rows_of_a_matrix_make_the_graph_of_the_host(emulated, kind):
    builder = Builder(Emulated(emulated, 3))
    made_here = 0
    for number in range(8):
        n, m = int(RNG.integers(2, 30)), int(RNG.integers(1, 60))
        u, v = RNG.integers(0, n, m), RNG.integers(0, n, m)
        if number % 4:
            u, v = u[u != v], v[u != v]
        values = WEIGHTS[kind](len(u))
        matrix = coo_array(
            (np.maximum(values, 1e-30 if values.dtype.kind == "f" else 1), (u, v)), (n, n)
        )
        matrix = matrix.tocsr() if number % 5 == 0 else (matrix + matrix.T).tocsr()
        made = builder.from_rows(matrix.indptr, matrix.indices, matrix.data)
        if made is not None:
            made_here += 1
            assert differences(made, as_graph(matrix)) == []
    assert made_here >= 3


def test_edges_may_come_in_pieces(emulated):
    u, v = (RNG.integers(0, 30, 200).astype(np.uint32) for _ in range(2))
    pieces = [Ends(u[i : i + 64], v[i : i + 64]) for i in range(0, 200, 64)]
    made = Builder(Emulated(emulated, 2), 50).rows(
        lambda: pieces, 30, weighted=False, summing=False
    )
    right = Graph.from_edges(u, v, n_vertices=30)
    assert made.offsets.tolist() == right.offsets.tolist()
    assert made.targets.tolist() == right.targets.tolist()
