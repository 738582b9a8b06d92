"""Other libraries' objects."""

import gzip
import subprocess
import sys
from decimal import Decimal

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from louvain_um import DynamicGraph, louvain, modularity
from louvain_um.errors import GraphError
from louvain_um.formats import as_graph, read_graph
from louvain_um.graph.graph import Graph
from louvain_um.results.comparison import compare
from tests.graphs import same

PATH = Graph.from_edges([0, 1, 2], [1, 2, 2], [0.5, 2.0, 1.0], n_vertices=4)
"""A path, a loop and an isolated vertex."""

ENTRIES = [(0, 1, 0.5), (1, 2, 2.0), (2, 2, 1.0)]


def matrix():
    m = sparse.lil_array((4, 4))
    for a, b, w in ENTRIES:
        m[a, b] = m[b, a] = w
    return m


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("spmatrix", [False, True])
def test_sparse(kind, spmatrix):
    m = matrix().asformat(kind)
    if spmatrix:
        m = getattr(sparse, f"{kind}_matrix")(m)
    assert same(as_graph(m), PATH)


def test_matrices():
    dense = matrix().toarray()
    assert same(as_graph(dense), PATH)
    assert not as_graph(dense > 0).weighted
    assert not as_graph((dense > 0).astype(float)).weighted
    assert as_graph(np.zeros((0, 0))).n_vertices == 0
    upper = sparse.triu(matrix())
    with pytest.raises(GraphError, match="symmetrize=True"):
        as_graph(upper)
    assert same(as_graph(upper, symmetrize=True), PATH)
    zero = sparse.coo_array((np.zeros(2), ([0, 1], [1, 0])), shape=(2, 2))
    assert (as_graph(zero).n_vertices, as_graph(zero).n_edges) == (2, 0)
    for wrong in (
        sparse.csr_array((2, 3)),
        np.zeros((3, 2)),
        np.array([["a"]]),
        dense * 1j,
        -dense,
        dense * np.nan,
        np.where(dense > 0, np.inf, 0.0),
    ):
        with pytest.raises(GraphError):
            as_graph(wrong)


def test_networkx():
    g = nx.Graph()
    g.add_nodes_from(range(4))
    g.add_weighted_edges_from(ENTRIES)
    assert same(as_graph(g), PATH)
    assert as_graph(g).names is None
    named = as_graph(nx.relabel_nodes(g, {0: "a", 1: "b", 2: "c", 3: "d"}))
    assert named.names.tolist() == ["a", "b", "c", "d"]
    mixed = nx.Graph([((1, 2), "x"), ("x", 3)])
    assert as_graph(mixed).names.tolist() == [(1, 2), "x", 3]
    multi = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert as_graph(multi).weights.tolist() == [2, 2, 1, 1]
    assert not as_graph(multi, duplicates="once").weighted
    with pytest.raises(GraphError, match="symmetrize=True"):
        as_graph(nx.DiGraph([(0, 1)]))
    assert as_graph(nx.DiGraph([(0, 1)]), symmetrize=True).n_edges == 1
    half = nx.Graph([(0, 1), (1, 2)])
    half[0][1]["weight"] = 3
    with pytest.warns(UserWarning, match="weight is missing for 1 of 2 edges"):
        assert as_graph(half).weights.tolist() == [3, 3, 1, 1]
    half[0][1]["weight"] = "heavy"
    with pytest.raises(GraphError, match="'heavy'"):
        as_graph(half)
    half[0][1]["weight"] = float("nan")
    with pytest.raises(GraphError, match="not a number"):
        as_graph(half)
    assert as_graph(nx.Graph()).n_vertices == 0


def test_repeated_entries_of_narrow_integers_are_summed_without_overflow():
    entries = np.full(4, 100, np.int8), ([0, 0, 1, 1], [1, 1, 0, 0])
    g = as_graph(sparse.coo_array(entries, shape=(2, 2)))
    assert g.weights.tolist() == [200, 200]


def test_arrays_of_types_that_scipy_lacks():
    for kind in (np.float16, ">i4", ">f8"):
        assert as_graph(np.array([[0, 3], [3, 0]], kind)).weights.tolist() == [3, 3]
        ends = np.array([0, 1], kind), np.array([1, 2], kind)
        for edges in (ends, pd.DataFrame({"source": ends[0], "target": ends[1]})):
            assert as_graph(edges).targets.tolist() == [1, 0, 2, 1]
    with pytest.raises(GraphError, match="must be square"):
        as_graph(sparse.coo_array([1, 2, 3]))


def test_igraph():
    igraph = pytest.importorskip("igraph")
    g = igraph.Graph(4, [(a, b) for a, b, _ in ENTRIES])
    g.es["weight"] = [w for _, _, w in ENTRIES]
    assert same(as_graph(g), PATH)
    g.vs["name"] = list("wxyz")
    assert as_graph(g).names.tolist() == list("wxyz")
    with pytest.raises(GraphError, match="symmetrize=True"):
        as_graph(igraph.Graph(2, [(0, 1)], directed=True))
    assert as_graph(igraph.Graph()).n_vertices == 0


def test_arrays_and_others(tmp_path):
    u, v, w = (np.array(part) for part in zip(*ENTRIES, strict=True))
    assert as_graph((u, v)).n_vertices == 3
    assert as_graph((u, v, w)).weighted
    assert as_graph(([0, 5], [1, 2])).n_vertices == 6
    assert as_graph((["x", "y"], ["y", "z"])).names.tolist() == ["x", "y", "z"]
    assert as_graph(PATH) is PATH
    path = tmp_path / "g.txt"
    path.write_text("0 1\n")
    assert as_graph(path).n_edges == as_graph(str(path)).n_edges == 1
    for wrong in (7, None, (1, 2), ([0], [1, 2]), ([0], [-1]), ([0.5], [1]), (["a"], [None])):
        with pytest.raises(GraphError):
            as_graph(wrong)


def test_nothing_is_imported_that_the_caller_has_not():
    code = (
        "import sys, numpy as np\n"
        "from louvain_um.formats import as_graph\n"
        "as_graph((np.array([0]), np.array([1])))\n"
        "heavy = {'pandas', 'networkx', 'igraph', 'pyarrow', 'cupy', 'sklearn', 'scipy.sparse'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_gml_and_graphml(tmp_path):
    g = nx.Graph()
    g.add_edge("a b", "c", weight=2)
    nx.write_gml(g, tmp_path / "g.gml.gz")
    nx.write_graphml_xml(g, tmp_path / "g.graphml")
    for name in ("g.gml.gz", "g.graphml"):
        read = read_graph(tmp_path / name)
        assert read.names.tolist() == ["a b", "c"]
        assert read.weights.tolist() == [2, 2]
    nx.write_gml(nx.DiGraph([(0, 1)]), tmp_path / "d.gml")
    with pytest.raises(GraphError, match=r"d\.gml: .*symmetrize=True"):
        read_graph(tmp_path / "d.gml")
    assert read_graph(tmp_path / "d.gml", symmetrize=True).n_edges == 1
    nx.write_gml(nx.Graph([("a", "b", {"value": 3, "kind": "x"})]), tmp_path / "v.gml")
    valued = read_graph(tmp_path / "v.gml")
    assert valued.weights.tolist() == [3, 3]
    assert "weights are read from the edge attribute 'value'" in valued.notes
    assert not read_graph(tmp_path / "v.gml", weighted=False).weighted


def test_archives(tmp_path):
    sparse.save_npz(tmp_path / "m.npz", matrix().tocsr())
    assert same(read_graph(tmp_path / "m.npz"), PATH)
    (tmp_path / "m.npz.gz").write_bytes(gzip.compress((tmp_path / "m.npz").read_bytes()))
    assert same(read_graph(tmp_path / "m.npz.gz"), PATH)
    np.savez(tmp_path / "e.npz", n=4, u=[0, 1, 2], v=[1, 2, 2], w=[0.5, 2.0, 1.0])
    assert same(read_graph(tmp_path / "e.npz"), PATH)
    np.savez(tmp_path / "x.npz", a=[1])
    with pytest.raises(GraphError, match=r"x\.npz: contains the arrays a"):
        read_graph(tmp_path / "x.npz")
    (tmp_path / "p.npz").write_bytes(b"no archive at all")
    with pytest.raises(GraphError, match=r"p\.npz: is not an \.npz archive"):
        read_graph(tmp_path / "p.npz")
    np.savez(tmp_path / "o.npz", u=np.array([{}], object), v=[1], allow_pickle=True)
    with pytest.raises(GraphError, match=r"o\.npz"):
        read_graph(tmp_path / "o.npz")
    np.savez(tmp_path / "n.npz", u=5, v=[1], n=7)
    with pytest.raises(GraphError, match=r"n\.npz: array u must be one-dimensional"):
        read_graph(tmp_path / "n.npz")
    for names in (["a"], "a"):
        np.savez(tmp_path / "s.npz", u=[0, 1], v=[1, 0], names=names)
        with pytest.raises(GraphError, match=r"s\.npz: names must have one entry per vertex"):
            read_graph(tmp_path / "s.npz", bipartite=True)
    np.savez(tmp_path / "b.npz", u=[-1], v=[1])
    with pytest.raises(GraphError, match=r"b\.npz: .*negative"):
        read_graph(tmp_path / "b.npz")
    sparse.save_npz(tmp_path / "d.npz", sparse.triu(matrix()))
    with pytest.raises(GraphError, match=r"d\.npz: .*symmetrize"):
        read_graph(tmp_path / "d.npz")


def test_a_list_of_edge_tuples_is_edges():
    graph = as_graph([(0, 1), (2, 3)])
    assert (graph.n_vertices, graph.n_edges, graph.weighted) == (4, 2, False)
    assert as_graph([(0, 1, 5), (1, 2, 7), (2, 3, 9)]).total_weight == 42
    with pytest.raises(GraphError, match="edge 1 is"):
        as_graph([(0, 1), (1, 2, 3)])


def test_what_could_be_a_matrix_or_edges_is_refused():
    for rows in (
        [[0, 2, 0], [2, 0, 1], [0, 1, 3]],
        [[0, 1], [1, 2], [2, 0]],
        [["a", "b"], ["c", "d"]],
    ):
        with pytest.raises(GraphError, match=r"a list of tuples.*numpy\.array"):
            as_graph(rows)
    assert as_graph(([0, 1, 2], [1, 2, 3], [1, 1, 5])).n_edges == 3
    assert as_graph([np.array([0, 1]), np.array([1, 2])]).n_edges == 2


def test_weights_below_the_normal_doubles_round_to_nothing():
    graph = as_graph(([0, 1], [1, 2], [5e-324, 5e-324]))
    assert graph.total_weight == 0
    assert "2 of 2 positive weights" in graph.notes[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint32, np.float32])
@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_narrow_types_are_widened_before_they_are_summed(tmp_path, dtype, kind):
    largest = 2**24 if dtype is np.float32 else int(np.iinfo(dtype).max)
    rows, columns = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])
    values = np.array([largest, 1, largest, 1], dtype)
    matrix = sparse.coo_array((values, (rows, columns)), shape=(2, 2))
    if kind in ("csr", "csc"):
        made = {"csr": sparse.csr_array, "csc": sparse.csc_array}[kind]
        matrix = made((values, columns, np.array([0, 2, 4])), shape=(2, 2))
    elif kind == "bsr":
        blocks = np.array([[[0, value], [value, 0]] for value in (largest, 1)], dtype)
        matrix = sparse.bsr_array((blocks, np.zeros(2, int), np.array([0, 2])), shape=(2, 2))
    sparse.save_npz(tmp_path / "m.npz", matrix)
    for graph in (as_graph(matrix), read_graph(tmp_path / "m.npz")):
        assert graph.weights is not None
        assert (graph.weights / graph.scale).tolist() == [largest + 1] * 2


@pytest.mark.parametrize(
    ("values", "duplicates", "weight"),
    [
        ([1, 1, 1, 1], None, 2), ([1, 1, 1, 1], "once", None), ([1.0, 3.0, 2.0, 2.0], None, 4),
        ([1.0, 3.0, 2.0, 2.0], "sum", 4), ([1, 3, 1, 3], "once", 3), ([True] * 4, None, None),
    ],
)  # fmt: skip
def test_repeated_entries_give_the_same_graph_in_every_format(values, duplicates, weight):
    coordinates = [0, 0, 1, 1], [1, 1, 0, 0]
    rows = np.array(values), np.array([1, 1, 0, 0]), np.array([0, 2, 4])
    matrices = [sparse.coo_array((values, coordinates))]
    matrices += [kind(rows, shape=(2, 2)) for kind in (sparse.csr_array, sparse.csc_array)]
    for matrix in matrices:
        graph = as_graph(matrix, duplicates=duplicates)
        assert (None if graph.weights is None else graph.weights[0] / graph.scale) == weight
        assert matrix.nnz == 4


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
def test_sums_beyond_64_bits_are_refused(dtype):
    entries = np.full(4, 2**62, dtype), ([0, 0, 1, 1], [1, 1, 0, 0])
    with pytest.raises(GraphError, match="allow_rounding=True"):
        as_graph(sparse.coo_array(entries, shape=(2, 2)))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, None], "the weight in row 1 is missing; fill it, or drop the row"),
        ([2, pd.NA], "the weight in row 1 is missing"),
        (["2", "x"], r"the weight in row 0 is text \('2'\); convert the column"),
        ([{1}, {2}], "weights must be numbers, not set; convert the column"),
    ],
)
def test_weights_that_are_none_are_reported_by_row(weights, message):
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    edges["weight"] = pd.Series(weights, dtype=object)
    with pytest.raises(GraphError, match=message):
        as_graph(edges)


def test_decimals_are_weights():
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    edges["weight"] = [Decimal("0.5"), Decimal(2)]
    assert as_graph(edges).to_pandas().weight.tolist() == [0.5, 2.0]


def test_missing_weights_lead_to_a_remedy():
    for weights in ([1.0, np.nan], [1.0, np.inf]):
        with pytest.raises(GraphError, match=r"at index 1 .*; .* leave the edge out"):
            as_graph(([0, 1], [1, 2], weights))


def test_two_vertices_with_one_name_are_refused():
    import igraph

    graph = igraph.Graph([(0, 1), (1, 2)], vertex_attrs={"name": ["a", "b", "a"]})
    with pytest.raises(GraphError, match=r"vertices 0 and 2 both have the name 'a'"):
        as_graph(graph)
    del graph.vs["name"]
    assert as_graph(graph).n_edges == 2


def test_other_forms_of_edges_lead_to_those_that_are_read():
    edges = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    for array in (edges, edges.T, edges.astype(float)):
        assert as_graph(array).n_edges == 4
    weighted = np.vstack([edges, [0.5, 1, 1, 2]])
    assert as_graph(weighted).total_weight == as_graph(weighted.T).total_weight
    with pytest.raises(GraphError, match=r"pass edges as \(source, target\)"):
        as_graph(edges.T[:3])


def test_lazy_frames_are_tables_everywhere():
    polars = pytest.importorskip("polars")
    edges = polars.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0]})
    labels = polars.DataFrame({"vertex": [2, 1, 0], "community": [1, 0, 0]}).lazy()
    graph = DynamicGraph(3)
    graph.apply(insert=edges.lazy())
    assert graph.digest() == DynamicGraph(as_graph(edges)).digest()
    assert modularity(graph, labels) == modularity(graph, [0, 0, 1])
    assert compare(labels, [0, 0, 1]).identical
    assert louvain(as_graph(edges)).describe(labels.rename({"vertex": "id"})).findings == ()


def test_masked_entries_are_refused():
    ends, hidden = np.array([0, 1]), [False, True]
    for edges in (
        (np.ma.array(ends, mask=hidden), ends + 1),
        (ends, ends + 1, np.ma.array([1.0, 2.0], mask=hidden)),
    ):
        for read in (as_graph, lambda given: Graph.from_edges(*given)):
            with pytest.raises(GraphError, match="has masked entries"):
                read(edges)
