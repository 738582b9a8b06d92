"""MatrixMarket and METIS: small files, and everything that can be wrong with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um.errors import GraphFormatError
from louvain_um.formats import read_graph
from louvain_um.formats.edge_list.edges import EdgeList
from louvain_um.formats.matrices import matrix_of_entries, one_half


def read(folder, text, name, **options):
    path = folder / name
    path.write_text(text)
    return read_graph(path, **options)


def mtx(folder, kind, body, **options):
    return read(folder, f"%%MatrixMarket matrix coordinate {kind}\n{body}", "g.mtx", **options)


def values(graph):
    assert graph.weights is not None
    result = (graph.weights / graph.scale).tolist()
    return result


def test_matrixmarket_kinds(tmp_path):
    g = mtx(tmp_path, "pattern symmetric", "% note\n\n4 4 3\n2 1\n3 2\n3 3\n")
    assert (g.n_vertices, g.n_edges, g.weighted, g.loops.tolist()) == (4, 3, False, [0, 0, 1, 0])
    g = mtx(tmp_path, "integer symmetric", "2 2 1\n2 1 7\n")
    assert values(g) == [7, 7]
    g = mtx(tmp_path, "real symmetric", "2 2 2\n2 1 2.5e-1\n2 2 1\n")
    assert values(g) == [0.25, 0.25]
    assert g.loops[1] / g.scale == 1
    assert not mtx(tmp_path, "real symmetric", "2 2 1\n2 1 .5\n", weighted=False).weighted
    assert mtx(tmp_path, "pattern symmetric", "0 0 0\n").n_vertices == 0


def test_general_matrices_are_symmetric_or_directed(tmp_path):
    g = mtx(tmp_path, "pattern general", "3 3 5\n1 2\n2 1\n2 3\n3 2\n1 1\n")
    assert (g.n_edges, g.total_weight, g.loops[0]) == (3, 6, 1)
    g = mtx(tmp_path, "real general", "2 2 2\n1 2 .5\n2 1 .5\n")
    assert values(g) == [0.5, 0.5]
    one_way = "3 3 3\n1 2\n2 1\n2 3\n"
    with pytest.raises(GraphFormatError, match=r"g\.mtx:1: .*symmetrize=True") as caught:
        mtx(tmp_path, "pattern general", one_way)
    assert "2 lists 3" in str(caught.value)
    assert mtx(tmp_path, "pattern general", one_way, symmetrize=True).n_edges == 2
    with pytest.raises(GraphFormatError, match=r"weights of 1 to 2 .* differ"):
        mtx(tmp_path, "real general", "2 2 2\n1 2 .5\n2 1 .25\n")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("%%MatrixMarket matrix coordinate complex symmetric\n2 2 0\n", 1, "complex"),
        ("%%MatrixMarket matrix\n", 1, "does not begin"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n", 2, "ends before"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n%\n2 2\n", 3, "size line"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n2 3 1\n2 1\n", 2, "square"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 1\n", 4, "truncated"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n3 1\n", 4, "at least 2"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n4 1\n", 3, "exceeds 3"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n0 1\n", 3, "below 1"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1 5\n", 3, "3 fields"),
        ("%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1\n", 3, "missing weight"),
        ("%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1 -1\n", 3, "negative"),
        ("%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1 nan\n", 3, "not a number"),
    ],
)
def test_faulty_matrixmarket(tmp_path, text, line, words):
    with pytest.raises(GraphFormatError) as caught:
        read(tmp_path, text, "g.mtx")
    assert caught.value.line == line
    assert words in str(caught.value)


def test_metis_kinds(tmp_path):
    g = read(tmp_path, "% note\n4 2\n2 3\n1\n% note\n1\n\n", "g.graph")
    assert (g.n_vertices, g.n_edges, g.weighted) == (4, 2, False)
    assert g.names.tolist() == [1, 2, 3, 4]
    g = read(tmp_path, "3 2 1\n2 5 3 6\n1 5\n1 6\n", "g.graph")
    assert values(g) == [5, 6, 5, 6]
    g = read(tmp_path, "3 2 111 2\n1 8 8 2 5 3 6\n1 8 8 1 5\n1 8 8 1 6\n", "g.graph")
    assert values(g) == [5, 6, 5, 6]
    g = read(tmp_path, "3 2 010\n8 2 3\n8 1\n8 1\n", "g.metis")
    assert g.n_edges == 2
    g = read(tmp_path, "2 1 1\n2 0.25\n1 2.5e-1", "g.graph")
    assert values(g) == [0.25, 0.25]
    g = read(tmp_path, "4 1\n2\n1\n", "g.graph")
    assert g.n_vertices == 4


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("3 2 7\n", 1, "format code"),
        ("3\n", 1, "METIS header"),
        ("3 2\n2 3\n1\n1\n2\n", 5, "more lists"),
        ("3 2\n2 3\n1\n", 3, "truncated"),
        ("3 3\n2 3\n1\n1\n", 1, "announces 3 edges"),
        ("3 2\n2 4\n1\n1\n", 2, "'4' is not a vertex 1 … 3"),
        ("3 2\n2 3.5\n1\n1\n", 2, "'3.5' is not a vertex"),
        ("3 2 1\n2 5 3\n1 5\n1 6\n", 2, "lacks its weight"),
        ("3 2 1\n2 -5 3 6\n1 5\n1 6\n", 2, "negative"),
        ("3 2\n2 3\n1 3\n\n", 2, "1 lists 3 as a neighbour, but 3 does not"),
        ("3 2 1\n2 5 3 6\n1 4\n1 6\n", 2, "weights of 1 to 2 and of 2 to 1 differ"),
        ("3 2 011\n\n8 1 5\n8 1 6\n", 2, "fewer"),
    ],
)
def test_faulty_metis(tmp_path, text, line, words):
    with pytest.raises(GraphFormatError) as caught:
        read(tmp_path, text, "g.graph")
    assert words in str(caught.value)
    assert caught.value.line == line


def test_metis_one_way_lists_can_be_symmetrized(tmp_path):
    g = read(tmp_path, "3 2\n2 3\n\n\n", "g.graph", symmetrize=True)
    assert g.n_edges == 2


@settings(max_examples=100)
@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from([1.0, 2.0]))),
    st.booleans(),
    st.booleans(),
)
def test_symmetry_agrees_with_a_dense_matrix(n, entries, weighted, mirror):
    entries = [(a % n, b % n, w) for a, b, w in entries]
    if mirror:
        entries += [(b, a, w) for a, b, w in entries if a != b]
    u = np.array([e[0] for e in entries], np.uint32)
    v = np.array([e[1] for e in entries], np.uint32)
    w = np.array([e[2] for e in entries])
    half = one_half(matrix_of_entries(u, v, w if weighted else None, n), weighted)

    def listed(*, flip):
        return sorted((b, a, w) if flip else (a, b, w) for a, b, w in seen)

    seen = [(a, b, w if weighted else 1.0) for a, b, w in entries]
    assert isinstance(half, EdgeList) == (listed(flip=False) == listed(flip=True))
    if isinstance(half, EdgeList):
        assert len(half.u) == sum(a <= b for a, b, _ in entries)
        assert (half.u <= half.v).all()
    else:
        a, b = half.row, half.column
        here = sorted(w for c, d, w in seen if (c, d) == (a, b))
        there = sorted(w for c, d, w in seen if (c, d) == (b, a))
        assert here != there
        assert not half.missing or len(here) != len(there)
