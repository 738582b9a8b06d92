"""Quality of communities, and tables of them."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.core import parallel
from louvain_um.core.numbering import number_by_size
from louvain_um.graph.row_view import subgraph
from louvain_um.results.communities import Communities
from louvain_um.results.quality import modularity, parts_of, quality
from tests.graphs import graphs

EDGES = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(0, 9)), min_size=1, max_size=50
)
LABELS = st.lists(st.integers(0, 4), min_size=12, max_size=12)


def both(edges):
    reference = nx.Graph()
    reference.add_nodes_from(range(12))
    for u, v, w in edges:
        old = reference.get_edge_data(u, v, {"weight": 0})["weight"]
        reference.add_edge(u, v, weight=old + w)
    u, v, w = np.array(edges).T
    return reference, lu.Graph.from_edges(u, v, w, n_vertices=12)


def sets(labels):
    return [{v for v, c in enumerate(labels) if c == k} for k in sorted(set(labels))]


@given(EDGES, LABELS, st.sampled_from([0.25, 1.0, 3.0]))
def test_agrees_with_networkx(edges, labels, gamma):
    reference, graph = both(edges)
    parts = sets(labels)
    dense = [sorted(set(labels)).index(c) for c in labels]
    found = quality(graph, dense, gamma)
    if graph.total_weight == 0:
        assert found.modularity == found.coverage == 0.0
        return
    expected = nx.community.modularity(reference, parts, resolution=gamma)
    assert found.modularity == pytest.approx(expected, abs=1e-14)
    inner = sum(w for u, v, w in reference.edges(data="weight") if labels[u] == labels[v])
    total = sum(w for _, _, w in reference.edges(data="weight"))
    assert found.coverage == pytest.approx(inner / total)
    connected = nx.Graph(reference)  # an edge of weight 0 connects nothing
    connected.remove_edges_from([(u, v) for u, v, w in reference.edges(data="weight") if not w])
    for c, part in enumerate(parts):
        within = connected.subgraph(part)
        assert found.parts[c] == nx.number_connected_components(within)
        plain = nx.Graph(within)
        plain.remove_edges_from(nx.selfloop_edges(plain))
        assert found.density[c] == pytest.approx(nx.density(plain))
        volumes = [nx.volume(reference, s, "weight") for s in (part, set(reference) - part)]
        expected = nx.conductance(reference, part, weight="weight") if min(volumes) else 0.0
        assert found.conductance[c] == pytest.approx(expected)
    assert found.disconnected == sum(
        not nx.is_connected(connected.subgraph(part)) for part in parts
    )


def test_coverage_of_an_unweighted_graph_is_networkx_coverage():
    reference = nx.karate_club_graph()
    graph = lu.Graph.from_edges(*np.array(reference.edges()).T)
    labels = [int(reference.nodes[v]["club"] == "Officer") for v in reference]
    coverage, _ = nx.community.partition_quality(reference, sets(labels))
    assert quality(graph, labels).coverage == coverage


@given(EDGES, LABELS, st.permutations(range(5)))
def test_modularity_does_not_depend_on_the_labels_names(edges, labels, names):
    _, graph = both(edges)
    expected = modularity(graph, labels)
    assert modularity(graph, [10**12 * names[c] - 7 for c in labels]) == expected


def test_modularity_is_exact_for_heavy_weights():
    weights = np.array([2**49 - 1, 2**48 + 1, 3], np.int64)
    graph = lu.Graph.from_edges([0, 1, 2], [1, 2, 0], weights)
    total = 2 * int(weights.sum())
    inside = Fraction(2 * int(weights[0]), total)
    degrees = [int(weights[0] + weights[2] + weights[0] + weights[1]), int(weights[1] + 3)]
    expected = inside - sum(Fraction(d, total) ** 2 for d in degrees)
    assert modularity(graph, [0, 0, 1]) == pytest.approx(float(expected), rel=1e-15)


def test_numbers_of_numpy_are_those_of_python():
    graph = lu.as_graph(nx.karate_club_graph())
    for value in (np.float32(1.1), np.float16(0.7), np.int8(2)):
        found = [lu.modularity(graph, np.arange(34) % 3, at) for at in (value, float(value))]
        assert found[0] == found[1]
        assert type(found[0]) is float
        profiles = [lu.resolution_profile(graph, low=at, high=4) for at in (value, float(value))]
        assert profiles[0].low == profiles[1].low
    ranks = [lu.pagerank(graph, damping=at) for at in (np.float32(0.9), float(np.float32(0.9)))]
    assert np.array_equal(*ranks)


def test_long_paths_are_one_piece():
    n = 2000
    order = np.random.default_rng(1).permutation(n)
    graph = lu.Graph.from_edges(order[:-1], order[1:])
    assert quality(graph, np.zeros(n, int)).parts.tolist() == [1]
    split = quality(graph, order % 2)
    assert split.parts.sum() >= 2
    assert split.disconnected == 2
    assert "2 of 2 communities disconnected" in repr(split)


@pytest.mark.parametrize("labels", [[0], [0, 1, 2], [0.5, 0.5], ["a", None]])
def test_labels_that_do_not_fit(labels):
    with pytest.raises(lu.GraphError):
        modularity(lu.Graph.from_edges([0], [1]), labels)


EDGES_OF_TABLES = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(1, 9)), min_size=1, max_size=50
)


def graph_of(edges, scale=1.0):
    u, v, w = np.array(edges).T
    return lu.Graph.from_edges(u, v, w * scale, n_vertices=12)


@given(EDGES_OF_TABLES, LABELS, st.sampled_from([1.0, 0.25]))
def test_weights_inside_and_cut_are_those_of_networkx(edges, labels, scale):
    graph = graph_of(edges, scale)
    result = Communities.of(graph, labels)
    reference, _ = both([(u, v, w * scale) for u, v, w in edges])
    table = result.table(hubs=2)
    assert table.index.name == "community"
    for c, members in enumerate(result):
        part = reference.subgraph(members.tolist())
        row = table.loc[c]
        assert row["size"] == len(members)
        assert row["inside"] == pytest.approx(part.size(weight="weight"))
        assert row["cut"] == pytest.approx(
            nx.cut_size(reference, members.tolist(), weight="weight")
        )
        assert row["internal_degree"] == pytest.approx(2 * row["inside"] / len(members))
        degree = dict(reference.degree(weight="weight"))
        expected = sorted(members.tolist(), key=lambda v: (-degree[v], v))[:2]
        assert row["hubs"] == expected


@given(EDGES_OF_TABLES, st.sets(st.integers(0, 11)))
def test_a_subgraph_is_that_of_networkx(edges, chosen):
    graph = graph_of(edges)
    vertices = np.array(sorted(chosen), np.int64)
    part = subgraph(graph, vertices)
    part.validate()
    whole = nx.Graph()
    whole.add_nodes_from(range(12))
    for u, v, w in edges:
        old = whole.get_edge_data(u, v, {"weight": 0})["weight"]
        whole.add_edge(u, v, weight=old + w)
    expected = whole.subgraph(chosen)
    assert part.n_edges == expected.number_of_edges()
    degree = dict(zip(part.names.tolist(), part.degrees.tolist(), strict=True))
    assert degree == dict(expected.degree(weight="weight"))


@pytest.mark.parametrize("vertices", [[1, 0], [0, 0], [-1, 1], [0, 6]])
def test_vertices_of_a_subgraph_ascend_within_the_graph(vertices):
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3])
    with pytest.raises(lu.GraphError, match="must ascend within 0 … 5"):
        subgraph(graph, np.array(vertices))


def test_a_community_is_a_graph_with_its_names():
    graph = lu.as_graph((["a", "b", "c", "x", "y", "z", "a"], ["b", "c", "a", "y", "z", "x", "x"]))
    result = lu.louvain(graph, device="cpu")
    assert result.subgraph(1).names.tolist() == result[1].tolist() == ["x", "y", "z"]
    assert result.subgraph(-1).n_edges == 3
    again = lu.louvain(result.subgraph(0), device="cpu")
    assert set(again.to_dict()) == {"a", "b", "c"}
    with pytest.raises(IndexError):
        result.subgraph(2)


def test_a_table_without_hubs_or_vertices():
    graph = lu.Graph.from_edges([0, 1], [1, 2])
    assert "hubs" not in Communities.of(graph, [0, 0, 1]).table(hubs=0)
    with pytest.raises(lu.OptionError, match="hubs"):
        Communities.of(graph, [0, 0, 1]).table(hubs=-1)
    nothing = lu.Graph.from_edges([], [])
    assert len(Communities.of(nothing, []).table()) == 0


def test_a_frame_holds_the_hierarchy():
    ring = lu.Graph.from_edges(range(24), [*range(1, 24), 0])
    result = lu.louvain(ring, device="cpu")
    frame = result.to_frame(hierarchy=True)
    assert list(frame) == ["vertex", "community", "hierarchy_0"]
    # Nested: each part of the finer partition lies in one community.
    assert (frame.groupby("hierarchy_0")["community"].nunique() == 1).all()
    assert frame["hierarchy_0"].nunique() > frame["community"].nunique()


def test_sums_of_decimals_have_no_digits_of_scaling():
    graph = lu.as_graph(([0, 1, 0, 2], [1, 2, 2, 3], [10.1, 0.1, 0.2, 0.1]))
    frame = Communities.of(graph, [0, 0, 0, 1]).table()
    assert frame["inside"].tolist() == [10.4, 0.0]
    assert frame["cut"].tolist() == [0.1, 0.1]


@settings(max_examples=40)
@given(graph=graphs(), threshold=st.sampled_from([0.0, 0.1, 0.4, 1.0]))
def test_memberships_are_shares_of_weight(graph, threshold):
    found = lu.louvain(graph, device="cpu")
    shares = found.memberships(threshold=threshold).toarray()
    weights = graph.to_scipy().toarray().astype(float)
    for vertex, row in enumerate(weights):
        wanted = np.bincount(found.labels, row, found.n_communities)
        if not wanted.any():
            wanted[found.labels[vertex]] = 1
        wanted /= wanted.sum()
        if np.isclose(wanted, threshold, rtol=0, atol=1e-12).any():
            continue  # the order of a sum decides
        wanted[(wanted < threshold) & (wanted < wanted.max())] = 0
        assert shares[vertex] == pytest.approx(wanted / wanted.sum())


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_parts_of_communities_are_those_of_any_number_of_threads(threads, monkeypatch):
    n = 4000
    rng = np.random.default_rng(2)
    graph = lu.Graph.from_edges(rng.integers(0, n, 2 * n), rng.integers(0, n, 2 * n), n_vertices=n)
    labels = number_by_size(np.minimum(rng.geometric(0.2, n), 30).astype(np.uint32))
    reference = graph.to_networkx()
    right = [
        nx.number_connected_components(reference.subgraph(np.flatnonzero(labels == c).tolist()))
        for c in range(labels.max() + 1)
    ]
    monkeypatch.setattr(parallel, "PIECE", 1)
    monkeypatch.setattr(parallel, "default_threads", lambda: threads)
    assert parts_of(graph, labels, np.bincount(labels)).tolist() == right


def test_parts_of_communities_are_counted_where_the_graph_is(monkeypatch):
    graph, sums = lu.Graph.from_edges([0, 2], [1, 3]), np.array([[2, 2], [2, 2], [2, 2], [3, 1]])
    monkeypatch.setattr(lu.Graph, "counts_there", lambda self, labels, *, parts: sums)
    assert parts_of(graph, np.array([0, 0, 1, 1], np.uint32), np.array([2, 2])).tolist() == [3, 1]
