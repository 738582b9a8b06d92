"""An edge of weight 0 connects nothing: no graph has one, however it is made."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

import louvain_um as lu
from louvain_um import Graph
from louvain_um.errors import GraphError

SOURCE, TARGET, WEIGHTS = [0, 1, 2, 2, 0], [1, 2, 3, 2, 3], [2, 0, 3, 0, 0]
NOTE = "weight 0 connects nothing"


def same(one, other):
    assert one.weights is not None
    assert other.weights is not None
    return all(
        np.array_equal(a, b)
        for a, b in (
            (one.offsets, other.offsets),
            (one.targets, other.targets),
            (one.weights, other.weights),
            (one.loops, other.loops),
        )
    )


def positive():
    return Graph.from_edges([0, 2], [1, 3], [2, 3])


def from_networkx():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_nodes_from(range(4))
    graph.add_weighted_edges_from(zip(SOURCE, TARGET, WEIGHTS, strict=True))
    return lu.as_graph(graph)


def from_igraph():
    ig = pytest.importorskip("igraph")
    graph = ig.Graph(n=4, edges=list(zip(SOURCE, TARGET, strict=True)))
    graph.es["weight"] = WEIGHTS
    return lu.as_graph(graph)


def from_stored_zeros():
    u, v = SOURCE + TARGET, TARGET + SOURCE
    return lu.as_graph(csr_array((WEIGHTS * 2, (u, v)), shape=(4, 4)))


def from_frame():
    pandas = pytest.importorskip("pandas")
    return lu.as_graph(pandas.DataFrame({"source": SOURCE, "target": TARGET, "weight": WEIGHTS}))


def from_arrays():
    return Graph(
        np.array([0, 2, 4, 6, 8]),
        np.array([1, 3, 0, 2, 1, 3, 0, 2], np.uint32),
        np.array([2, 0, 2, 0, 0, 3, 0, 3], np.uint32),
        np.zeros(4, np.int64),
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: Graph.from_edges(SOURCE, TARGET, WEIGHTS),
        lambda: Graph.from_edges(SOURCE, TARGET, WEIGHTS, duplicates="once"),
        lambda: Graph.from_edges(SOURCE, TARGET, [2.0, 1e-300, 3.0, 1e-300, -0.0]),
        lambda: lu.as_graph((SOURCE, TARGET, WEIGHTS)),
        from_networkx,
        from_igraph,
        from_stored_zeros,
        from_frame,
        from_arrays,
    ],
)
def test_edges_of_weight_0_are_left_out_and_reported(make):
    graph = make()
    assert same(graph, positive())
    assert (graph.n_vertices, graph.n_edges, graph.n_arcs) == (4, 2, 4)
    assert sum(NOTE in note for note in graph.notes) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.txt", "0 1 2\n1 2 0\n2 3 3\n2 2 0\n0 3 0\n"),
        ("list.csv", "source,target,weight\na,b,2\nb,c,0.0\nc,d,3\nc,c,0\na,d,0e5\n"),
        ("both.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n"
         "4 4 5\n2 1 2\n3 2 0\n4 3 3\n3 3 0\n4 1 0\n"),
        ("one_sided.mtx", "%%MatrixMarket matrix coordinate integer general\n"
         "4 4 6\n2 1 2\n1 2 2\n3 2 0\n4 3 3\n3 4 3\n4 1 0\n"),
        ("lists.graph", "4 4 001\n2 2 4 0\n1 2 3 0\n2 0 4 3\n1 0 3 3\n"),
    ],
)  # fmt: skip
def test_every_reader_leaves_them_out(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    graph = lu.read_graph(path)
    assert same(graph, positive())
    assert sum(NOTE in note for note in graph.notes) == 1


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.mtx", "a.graph", "a.npz", "a.parquet"])
def test_what_is_written_is_read_again(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    graph = Graph.from_edges([*SOURCE, 3], [*TARGET, 4], [*WEIGHTS, 0], n_vertices=6)
    lu.write_graph(graph, tmp_path / name)
    again = lu.read_graph(tmp_path / name)
    assert same(again, graph)
    assert again.n_vertices == 6
    assert not any(NOTE in note for note in again.notes)


def test_notes_count_edges():
    def notes(weights):
        graph = Graph.from_edges([0, 1, 1, 3], [1, 0, 2, 3], weights)
        return " ".join(note for note in graph.notes if NOTE in note)

    assert "1 edge has" in notes([0, 0, 1, 1])
    assert "1 edge has" in notes([0, 4, 0, 1])
    assert "2 edges have" in notes([0, 2, 0, 0])
    assert notes([0, 2, 1, 1]) == ""


@pytest.mark.parametrize("dtype", [np.int8, np.float64, np.bool_])
def test_stored_zeros_are_like_zeros_that_are_not_stored(dtype):
    dense = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype)
    entries = np.array([1, 1, 1, 1, 0], dtype), ([0, 1, 0, 2, 1], [1, 0, 2, 0, 2])
    matrix = csr_array(entries, shape=(3, 3))
    stored = matrix.data.copy()
    graph = lu.as_graph(matrix)
    plain = lu.as_graph(dense)
    assert not graph.weighted
    assert np.array_equal(graph.targets, plain.targets)
    assert np.array_equal(matrix.data, stored)  # the caller's matrix is as it was
    assert any("1 entry of the matrix is 0" in note for note in graph.notes)


def test_negative_weights_of_rows_are_refused():
    with pytest.raises(GraphError, match=r"arc 0 is negative \(-1\)"):
        Graph(
            np.array([0, 1, 2]), np.array([1, 0], np.uint32), np.array([-1, -1]), np.zeros(2, int)
        )


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), resolution=st.sampled_from([0.3, 1.0]))
def test_communities_hang_together_by_positive_weights(seed, resolution):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 40))
    u, v = random.integers(0, n, (2, int(random.integers(0, 4 * n))))
    w = random.integers(0, 4, len(u))
    graph = Graph.from_edges(u, v, w, n_vertices=n)
    kept = w > 0
    without = Graph.from_edges(u[kept], v[kept], w[kept], n_vertices=n)
    assert same(graph, without)
    for method in (lu.louvain, lu.leiden):
        found = method(graph, resolution=resolution, device="cpu")
        plain = method(without, resolution=resolution, device="cpu")
        assert np.array_equal(found.labels, plain.labels)
        assert found.modularity == plain.modularity
    inside = kept & (found.labels[u] == found.labels[v])
    edges = coo_array((np.ones(inside.sum()), (u[inside], v[inside])), shape=(n, n))
    assert connected_components(edges, directed=False)[0] == found.n_communities


def test_modularity_is_that_of_networkx_which_keeps_them():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_weighted_edges_from(zip(SOURCE, TARGET, WEIGHTS, strict=True))
    expected = nx.community.modularity(graph, [{0, 1}, {2, 3}])
    assert lu.modularity(lu.as_graph(graph), [0, 0, 1, 1]) == pytest.approx(expected, abs=1e-15)
