"""Rows of a sparse matrix that become the graph's as they are: the same graph as by edges."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array

from louvain_um import Graph, GraphError, Louvain, as_graph
from louvain_um.formats import matrices

RNG = np.random.default_rng(0)
VALUES: dict[str, Any] = {
    "ones": lambda m: np.ones(m),
    "small": lambda m: RNG.integers(1, 9, m),
    "real": lambda m: RNG.random(m) + 0.01,
    "float32": lambda m: RNG.random(m).astype(np.float32),
    "large": lambda m: RNG.integers(1, 2**50, m),
    "even": lambda m: RNG.integers(1, 2**40, m) << 20,
    "uint64": lambda m: RNG.integers(1, 2**33, m).astype(np.uint64),
    "negative": lambda m: RNG.integers(-3, 9, m),
    "bool": lambda m: np.ones(m, np.bool_),
    "mixed": lambda m: RNG.random(m) * 10.0 ** RNG.integers(-30, 5, m),
}
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"weighted": True}, {"weighted": False}, {"duplicates": "sum"}, {"symmetrize": True},
    {"allow_rounding": True}, {"directed": True}, {"signed": True},
)  # fmt: skip


def matrix(kind):
    n, m = int(RNG.integers(1, 12)), int(RNG.integers(0, 20))
    ends = RNG.integers(0, n, m), RNG.integers(0, n, m)
    made = coo_array((VALUES[kind](m), ends), shape=(n, n)).tocsr()
    made = made if RNG.random() < 0.2 else (made + made.T).tocsr()
    if RNG.random() < 0.3:
        made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def outcome(given, options):
    try:
        g = as_graph(given.copy(), **options)
    except GraphError as error:
        return str(error)
    arrays = (g.offsets, g.targets, g.weights, g.loops)
    parts = [None if a is None else (str(a.dtype), a.tolist()) for a in arrays]
    return parts, g.scale, g.notes, g.kind


@pytest.mark.filterwarnings("ignore::louvain_um.GraphWarning")
@pytest.mark.parametrize("kind", VALUES)
def test_rows_give_the_same_graph_as_their_edges(kind, monkeypatch):
    cases = [(matrix(kind), options) for options in OPTIONS for _ in range(12)]
    fast = [outcome(*case) for case in cases]
    monkeypatch.setattr(matrices, "rows_as_they_are", lambda *_: None)
    slow = [outcome(*case) for case in cases]
    assert [i for i, (a, b) in enumerate(zip(fast, slow, strict=True)) if a != b] == []


def test_rows_of_the_right_type_are_not_copied():
    g = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    rows = g.to_scipy()
    rows.indices = rows.indices.astype(np.int32)
    read = as_graph(rows)
    assert np.shares_memory(read.targets, rows.indices)
    assert read.targets.tolist() == g.targets.tolist()


@pytest.mark.parametrize(
    ("name", "value"), [("indices", 4), ("indices", -1), ("indptr", 9), ("indptr", -1)]
)
def test_damaged_rows_are_refused(name, value):
    rows = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0]).to_scipy()
    real = rows.astype(np.float64)  # looked at for rounding before it is a graph
    for matrix, read in ((rows, as_graph), (real, Louvain(device="cpu").fit)):
        getattr(matrix, name)[2] = value
        with pytest.raises(GraphError, match="damaged"):
            read(matrix)
