"""Comparison of partitions, whatever holds their labels."""

import math
import time

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.results import agreement, comparison
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels, compare
from louvain_um.results.quality import quality

metrics = pytest.importorskip("sklearn.metrics")

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


@given(PAIRS)
def test_measures_are_scikit_learns(pairs):
    a, b = np.array(pairs).T
    found = compare(a, b)
    assert found.nmi == pytest.approx(metrics.normalized_mutual_info_score(a, b))
    assert found.ari == pytest.approx(metrics.adjusted_rand_score(a, b))
    same = len(set(pairs)) == len(set(a)) == len(set(b))
    # AMI of identical partitions is 1 by definition. Where all vertices are alone, the mutual
    # information is also what chance gives: 0/0, which scikit-learn 1.6 rounds to 0 or 1.
    ami = 1.0 if same else metrics.adjusted_mutual_info_score(a, b)
    assert found.ami == pytest.approx(ami)
    assert found.identical == same


@given(PAIRS)
def test_labels_names_and_order_of_arguments_do_not_matter(pairs):
    a, b = np.array(pairs).T
    renamed = np.array([f"c{9 - c}" for c in a], object)
    one, other = compare(a, b), compare(b, renamed)
    assert other.nmi == pytest.approx(one.nmi)
    assert other.ari == pytest.approx(one.ari)
    assert other.identical == one.identical
    assert compare(a, renamed).identical


def test_vertices_are_matched_by_name():
    graph = lu.Graph.from_edges([0, 2], [1, 3], names=np.array(["a", "b", "c", "d"], object))
    result = Communities.of(graph, [0, 0, 1, 1])
    truth = Labels(np.array(["d", "b", "a", "z"], object), np.array(["y", "x", "x", "y"], object))
    found = result.compare(truth)
    assert found.identical
    assert found.vertices == 3
    assert found.communities == (2, 2)
    assert found.unmatched == (1, 1)
    assert compare(truth, result).unmatched == (1, 1)


def test_numbers_match_numbers_written_as_text():
    a = Labels(np.array([10, 2, 1]), np.array([0, 1, 1]))
    b = Labels(np.array(["1", "2", "10"], object), np.array([5, 5, 6]))
    assert compare(a, b).identical


def test_plain_arrays_are_in_vertex_order():
    graph = lu.Graph.from_edges([0, 2], [1, 3], names=np.array([7, 5, 3, 1]))
    assert Communities.of(graph, [0, 0, 1, 1]).compare([4, 4, 2, 2]).identical


def test_refusals():
    with pytest.raises(lu.GraphError, match="2 labels against 3"):
        compare([0, 1], [0, 1, 2])
    with pytest.raises(lu.GraphError, match="no vertex in common"):
        compare(Labels(np.array(["a"]), np.array([0])), Labels(np.array(["b"]), np.array([0])))
    with pytest.raises(lu.GraphError, match="one-dimensional"):
        compare([[0]], [0])


def test_nothing_to_compare():
    assert compare(np.zeros(0, int), np.zeros(0, int)).identical


def test_ami_of_all_sizes_is_computed_at_once():
    sizes = np.arange(1, 1000)
    a = np.repeat(sizes, sizes)
    b = np.random.default_rng(1).permutation(a)
    compare(a[:9], b[:9])  # compiles
    begin = time.process_time()
    assert abs(compare(a, b).ami) < 0.001
    assert time.process_time() - begin < 5


def test_ami_of_large_graphs_is_scikit_learns():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 60, 20_000)
    for b in (rng.integers(0, 9_000, 20_000), np.where(rng.random(20_000) < 0.1, 0, a)):
        assert compare(a, b).ami == pytest.approx(metrics.adjusted_mutual_info_score(a, b))


def test_ami_is_left_out_where_it_would_take_too_long(monkeypatch):
    monkeypatch.setattr(agreement, "AMI_TERMS", 10)
    found = compare([0, 0, 1, 1, 2], [0, 1, 1, 1, 1])
    assert math.isnan(found.ami)
    assert found.nmi > 0


LARGE = [2**63, 2**63 + 1, -1, 2**53 + 1]


def test_large_labels_and_ids_are_not_rounded():
    graph = lu.as_graph(nx.path_graph(4))
    unsigned = np.array([2**63, 2**63 + 1, 2**53, 2**53 + 1], np.uint64)
    for labels in (LARGE, [*unsigned.tolist()], unsigned, pd.Series(unsigned), [*unsigned[:3], -1],
                   np.array(LARGE, object), dict(enumerate(LARGE))):  # fmt: skip
        assert lu.modularity(graph, labels) == pytest.approx(lu.modularity(graph, range(4)))
        assert Communities.of(graph, labels).n_communities == 4
        assert lu.louvain(graph, initial=labels, device="cpu").modularity > 0
        assert compare(labels, range(4)).identical
    by_id = dict(zip(LARGE, range(4), strict=True))
    assert compare(by_id, by_id).identical
    assert compare([{*LARGE[:2]}, {*LARGE[2:]}], [{*LARGE[:2]}, {*LARGE[2:]}]).identical
    close = np.array([2**53, 2**53 + 1, 3], np.uint64), np.array([2**53 + 1, 2**53, -3])
    assert compare(*(Labels(ids, np.arange(3)) for ids in close)).vertices == 2


def test_identical_partitions_need_no_measures(monkeypatch):
    monkeypatch.delattr(comparison, "measures")
    found = compare(np.arange(10), np.arange(10)[::-1] * 7)
    assert (found.nmi, found.ari, found.ami, found.identical) == (1, 1, 1, True)


def test_ids_that_differ_by_one_are_reported_at_the_callers_line():
    ids, of = np.arange(4), np.array([0, 0, 1, 1])
    zero, one = (Labels(vertices=ids + base, communities=of) for base in (0, 1))
    for call in (lambda: compare(zero, one), lambda: compare(one, zero)):
        with pytest.warns(lu.GraphWarning, match="differed by one") as caught:
            call()
        assert caught[0].filename == __file__


NUMBERED = nx.karate_club_graph()
NAMED = nx.les_miserables_graph()
TUPLES = nx.relabel_nodes(nx.path_graph(6), {v: (v, "x") for v in range(6)})


@pytest.mark.parametrize("graph", [NUMBERED, NAMED, TUPLES], ids=["ids", "names", "tuples"])
def test_forms_agree_with_networkx(graph):
    parts = nx.community.greedy_modularity_communities(graph)
    expected = pytest.approx(nx.community.modularity(graph, parts), abs=1e-12)
    by_vertex = {vertex: c for c, part in enumerate(parts) for vertex in part}
    here = lu.as_graph(graph)
    names = range(here.n_vertices) if here.names is None else here.names.tolist()
    in_order = [by_vertex[vertex] for vertex in names]
    assert lu.modularity(here, in_order) == expected
    assert lu.modularity(here, np.array(in_order)) == expected
    if list(graph) == list(names):
        assert lu.modularity(graph, in_order) == expected
    else:
        for call in (lu.modularity, lu.Communities.of, lambda g, c: lu.louvain(g, initial=c)):
            with pytest.raises(lu.GraphError, match="order; pass a dict"):
                call(graph, in_order)
    for each in (
        parts,
        [set(part) for part in parts],
        [list(part) for part in parts],
        tuple(parts),
        dict(enumerate(parts)).values(),
        by_vertex,
        {vertex: f"c{c}" for vertex, c in by_vertex.items()},
    ):
        assert lu.modularity(graph, each) == expected
        assert lu.modularity(here, each) == expected
        result = lu.Communities.of(here, each)
        assert result.modularity == expected
        assert compare(result, by_vertex).identical
        assert result.compare(parts).identical
    assert lu.modularity(graph, result) == expected
    assert lu.modularity(graph, result.communities()) == expected
    assert quality(here, by_vertex).modularity == expected


def test_a_result_of_a_shuffled_graph_is_matched_by_name():
    shuffled = nx.Graph()
    shuffled.add_nodes_from(reversed(list(NAMED)))
    shuffled.add_edges_from(NAMED.edges(data=True))
    result = lu.louvain(shuffled, device="cpu")
    assert lu.modularity(NAMED, result) == pytest.approx(result.modularity)


def test_labels_in_order_are_those_of_the_vertices():
    assert compare({2: "b", 0: "a", 1: "a"}, [0, 0, 1]).identical
    assert compare([0, 0, 1], {2: "b", 0: "a", 1: "a"}).identical
    assert compare([{2}, {0, 1}], {0: 1, 1: 1, 2: 0}).identical


@pytest.mark.parametrize(
    ("each", "message"),
    [
        ({0: 0}, "vertex 1 has no community; list every vertex"),
        ({**dict.fromkeys(range(6), 0), 9: 1}, "9 is not a vertex of the graph"),
        ([{0, 1, 2}, {2, 3, 4, 5}], "vertex 2 is in two communities; list it once"),
        ([{0, 1, 2}, {3, 4, "five"}], "'five' is not a vertex of the graph"),
        ({vertex: [1] for vertex in range(6)}, "communities must be integers or strings"),
        ([0, 1], "labels of 6 vertices expected, got 2; pass one integer per vertex, a dict"),
        (7, "got int; pass one integer per vertex, a dict of vertex and community"),
        (np.zeros((2, 3)), "got ndarray; pass"),
    ],
)
def test_what_fits_no_form_is_refused_in_one_line(each, message):
    for ask in (lu.modularity, quality, lu.Communities.of):
        with pytest.raises(lu.GraphError) as caught:
            ask(lu.as_graph(nx.path_graph(6)), each)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


igraph = pytest.importorskip("igraph")

SHUFFLED = nx.Graph()
SHUFFLED.add_nodes_from(reversed(range(34)))
SHUFFLED.add_edges_from(nx.karate_club_graph().edges)


@pytest.fixture(params=[NAMED, SHUFFLED, nx.karate_club_graph()], ids=["text", "numbers", "none"])
def found(request):
    return lu.louvain(lu.as_graph(request.param, weighted=False), device="cpu")


def test_rows_in_any_order_mean_the_same_communities(found):
    frame = found.to_frame()
    mixed = frame.sample(frac=1, random_state=3)
    for each in (
        frame,
        mixed,
        mixed.rename(columns={"community": "partition"}),
        mixed[["community", "vertex"]].assign(size=1),
        mixed.set_index("vertex").community,
        mixed.set_index("vertex").community.astype("category"),
        frame.community,
        mixed.community
        if found.names is None or found.names.dtype.kind == "U"
        else frame.community,
    ):
        assert lu.modularity(found.graph, each) == pytest.approx(found.modularity)
        assert found.compare(each).identical
        assert compare(each, found).identical
        assert np.array_equal(lu.Communities.of(found.graph, each).labels, found.labels)
        assert lu.louvain(found.graph, initial=each, device="cpu").modularity >= found.modularity


def test_cells_of_a_graph_without_names_are_taken_in_order():
    graph = lu.as_graph(nx.karate_club_graph(), weighted=False)
    found = lu.leiden(graph, device="cpu")
    cells = pd.Series(found.labels.astype(str), index=[f"cell{k}" for k in range(34)])
    assert lu.modularity(graph, cells.astype("category")) == pytest.approx(found.modularity)
    assert found.compare(cells).identical


@pytest.mark.parametrize(
    ("each", "message"),
    [
        (pd.DataFrame({"node": [1], "community": [2]}), "needs the columns vertex and community"),
        (pd.DataFrame({"vertex": [0, 0], "community": [1, 2]}), "a vertex is listed twice"),
        (pd.Series([1, 2], index=["Valjean", "Valjean"]), "a vertex is in the index twice"),
        (pd.Series(range(77), index=[f"x{k}" for k in range(77)]), "'x0' is not a vertex"),
        (["a", None, "b"] + 74 * ["c"], "the label at index 1 is missing"),
    ],
)
def test_labels_of_other_vertices_are_refused(each, message):
    with pytest.raises(lu.GraphError, match=message):
        lu.modularity(lu.as_graph(NAMED), each)


def test_a_vertex_in_two_sets_is_no_label():
    found = lu.louvain(nx.path_graph(3), device="cpu")
    with pytest.raises(lu.GraphError, match="communities overlap"):
        lu.write_labels([{0, 1}, {1, 2}], "labels.csv")
    assert found.compare([{0, 1}, {1, 2}]).communities[1] == 2


def test_a_dendrogram_of_igraph_is_cut_where_it_says():
    graph = igraph.Graph.Famous("Zachary")
    tree = graph.community_fastgreedy()
    assert lu.modularity(graph, tree) == pytest.approx(tree.as_clustering().modularity)


KARATE = nx.karate_club_graph()


def as_igraph():
    return igraph.Graph.from_networkx(KARATE, vertex_attr_hashable="name")


def check(found, members, graph):
    """A result says the same as its members as sets."""
    assert compare(found, members).identical
    assert lu.modularity(graph, found) == pytest.approx(lu.modularity(graph, members))
    wrapped = Communities.of(graph, found)
    assert wrapped.n_communities == len(members)
    assert wrapped.compare(found).identical


def test_igraph():
    other = as_igraph()
    found = other.community_multilevel(weights="weight")
    names = np.array(other.vs["name"])
    members = [set(names[list(part)].tolist()) for part in found]
    graph = lu.as_graph(KARATE)
    check(found, members, graph)
    assert lu.modularity(graph, found) == pytest.approx(found.modularity)


def test_igraph_by_name():
    other = igraph.Graph.TupleList([("b", "a"), ("a", "c"), ("x", "y")])
    found = other.connected_components()
    graph = lu.as_graph((["a", "a", "x"], ["b", "c", "y"]))
    assert lu.louvain(graph, device="cpu").compare(found).identical


def test_leidenalg():
    leidenalg = pytest.importorskip("leidenalg")
    other = as_igraph()
    found = leidenalg.find_partition(other, leidenalg.ModularityVertexPartition, seed=1)
    names = np.array(other.vs["name"])
    check(found, [set(names[list(part)].tolist()) for part in found], lu.as_graph(KARATE))


def test_infomap():
    infomap = pytest.importorskip("infomap")
    found = infomap.Infomap("--two-level --silent --seed 1")
    for u, v in KARATE.edges:
        found.add_link(u, v)
    result = found.run()
    modules = {}
    for node, module in result.modules().items():
        modules.setdefault(module, set()).add(node)
    for each in (found, result):
        check(each, list(modules.values()), lu.as_graph(KARATE))


class NodeClustering:
    """The attributes of cdlib's class of this name, whose package needs many others."""

    def __init__(self, communities, *, overlap=False):
        self.communities, self.overlap = communities, overlap


def test_cdlib():
    halves = [list(range(17)), list(range(17, 34))]
    check(NodeClustering(halves), [set(part) for part in halves], lu.as_graph(KARATE))


@pytest.mark.parametrize(
    "found",
    [NodeClustering([[0, 1], [1, 2]], overlap=True),
     igraph.VertexCover(igraph.Graph.Full(3), [[0, 1], [1, 2]])],
)  # fmt: skip
def test_overlapping_communities_are_reported(found):
    with pytest.raises(lu.GraphError, match="communities overlap"):
        lu.modularity(lu.Graph.from_edges([0, 1], [1, 2]), found)
