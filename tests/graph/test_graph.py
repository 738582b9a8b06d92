"""Graphs: rows of compressed storage, checks, and exports."""

import builtins
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import louvain_um as lu
from louvain_um.core import parallel
from louvain_um.errors import GraphError
from louvain_um.graph import rows
from louvain_um.graph.graph import Graph
from tests.graphs import graphs


def plainly(u, v, w, summing):
    """Return the weight of each edge, 0 included, and how many edges repeat another."""
    found = defaultdict(list)
    weights = np.ones(len(u), np.int64) if w is None else w
    for a, b, x in zip(u.tolist(), v.tolist(), weights.tolist(), strict=True):
        found[min(a, b), max(a, b)].append(x)
    merge = sum if summing else max
    return {edge: merge(x) for edge, x in found.items()}, len(u) - len(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("n", "edges", "hub"),
    [(1, 3, 0.0), (5, 40, 0.0), (300, 0, 0.0), (1 << 20, 500, 0.0), (400, 30000, 0.0),
     (90_000, 120_000, 0.5)],
)  # fmt: skip
def test_rows_as_the_plain_way_gives_them(n, edges, hub, threads, weighted):
    rng = np.random.default_rng(n + edges)
    u, v = (rng.integers(0, n, edges).astype(np.uint32) for _ in range(2))
    u[rng.random(edges) < hub] = n // 3
    w = rng.integers(0, 2**33 if edges == 40 else 9, edges) if weighted else None
    made = rows.compress(u, v, w, n, summing=weighted, threads=threads)
    expected, repeats = plainly(u, v, w, weighted)
    assert made.repeats == repeats
    assert made.weightless == sum(weight == 0 for weight in expected.values())
    expected = {edge: weight for edge, weight in expected.items() if weight > 0}
    row = np.repeat(np.arange(n), np.diff(made.offsets))
    order = np.lexsort((made.targets, row))
    assert np.array_equal(order, np.arange(len(row)))
    weights = np.ones(len(row), np.int64) if made.weights is None else made.weights
    got = {
        (a, b): x
        for a, b, x in zip(row.tolist(), made.targets.tolist(), weights.tolist(), strict=True)
    }
    assert got == {arc: x for (a, b), x in expected.items() if a != b for arc in ((a, b), (b, a))}
    loops = {a: x for (a, b), x in expected.items() if a == b and x}
    assert {int(a): int(made.loops[a]) for a in np.flatnonzero(made.loops)} == loops


def test_the_largest_weight_counts_where_they_do_not_add_up():
    graph = Graph.from_edges([0, 1, 2, 2], [1, 0, 2, 2], [3, 7, 5, 4], duplicates="once")
    assert graph.weights.tolist() == [7, 7]
    assert graph.loops.tolist() == [0, 0, 5]


def test_repeats_and_loops_are_reported():
    twice = Graph.from_edges([0, 1, 1, 2, 2], [1, 0, 2, 2, 2])
    assert twice.notes[0].startswith("2 of 5 edges repeat one listed before")
    assert "counts once" in twice.notes[0]
    assert twice.notes[1].startswith("1 edge is a loop")
    added = Graph.from_edges([0, 1], [1, 0], [1, 2])
    assert "add up" in added.notes[0]
    assert Graph.from_edges([0, 1], [1, 2]).notes == ()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_stream_keeps_the_order(threads):
    fetched = []

    def items():
        for i in range(20):
            fetched.append(i)
            yield i

    assert list(parallel.stream(lambda i: i * i, items(), threads)) == [i * i for i in range(20)]
    assert fetched == list(range(20))
    assert list(parallel.stream(abs, [], threads)) == []
    with pytest.raises(ZeroDivisionError):
        list(parallel.stream(lambda i: 1 // (i - 7), range(20), threads))


@pytest.mark.parametrize("number", [np.int64(9), np.uint8(9), np.array(9), 9])
def test_a_number_of_vertices_may_be_numpys(number):
    assert Graph.from_edges([0, 1], [1, 2], n_vertices=number).n_vertices == 9


@pytest.mark.parametrize("number", [-1, 2.5, True, "9", np.array([9])])
def test_what_is_no_number_of_vertices_is_refused(number):
    with pytest.raises(GraphError, match="n_vertices must be a whole number"):
        Graph.from_edges([0], [1], n_vertices=number)


def same(a, b):
    """Equal to the last bit of every weight."""

    def real(graph):
        ones = np.ones(graph.n_arcs) if graph.weights is None else graph.weights
        return [*(ones / graph.scale), *(graph.loops / graph.scale)]

    return (
        np.array_equal(a.offsets, b.offsets)
        and np.array_equal(a.targets, b.targets)
        and real(a) == real(b)
    )


@given(graphs())
def test_objects_turn_back_into_the_same_graph(graph):
    for back in (graph.to_networkx(), graph.to_igraph(), graph.to_scipy()):
        assert same(lu.as_graph(back), graph)


def test_a_frame_lists_each_edge_once_by_name():
    graph = lu.as_graph((["a", "b", "b", "b"], ["b", "c", "b", "a"], [0.1, 2, 0.5, 0.2]))
    frame = graph.to_pandas()
    assert frame.to_dict("list") == {
        "source": ["a", "b", "b"],
        "target": ["b", "b", "c"],
        "weight": pytest.approx([0.3, 0.5, 2.0]),
    }
    assert same(lu.as_graph(frame), graph)
    assert list(lu.Graph.from_edges([0], [1]).to_pandas()) == ["source", "target"]


def test_results_carry_their_communities():
    graph = lu.as_graph((["a", "b", "c", "x", "y", "z"], ["b", "c", "a", "y", "z", "x"]))
    result = lu.louvain(graph, device="cpu")
    found = result.to_networkx()
    assert nx.get_node_attributes(found, "community") == result.to_dict()
    other = result.to_igraph()
    assert dict(zip(other.vs["name"], other.vs["community"], strict=True)) == result.to_dict()
    assert other.modularity(other.vs["community"]) == pytest.approx(result.modularity)


def test_attributes_have_one_value_per_vertex():
    graph = lu.Graph.from_edges([0], [1])
    with pytest.raises(lu.GraphError, match="one value for each of the 2 vertices"):
        graph.to_networkx({"kind": np.zeros(3)})
    with pytest.raises(lu.GraphError, match="one value for each of the 2 vertices"):
        graph.to_igraph({"kind": np.zeros((2, 1))})


def test_equal_names_cannot_be_nodes():
    graph = lu.Graph.from_edges([0], [1], names=np.array(["a", "a"]))
    with pytest.raises(lu.GraphError, match="same name"):
        graph.to_networkx()


def test_a_missing_library_is_named(monkeypatch):
    import importlib

    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    graph = lu.Graph.from_edges([0], [1])
    for export in (graph.to_networkx, graph.to_igraph, graph.to_pandas):
        with pytest.raises(lu.LouvainUmError, match=r"pip install .*\[formats\]'"):
            export()
    assert builtins.len(graph.to_scipy().toarray()) == 2  # SciPy is always there


def test_one_edge_is_not_called_edges():
    assert repr(lu.Graph.from_edges([0], [1])) == "Graph(2 vertices, 1 edge, unweighted)"
    alone = lu.Graph.from_edges([], [], n_vertices=1)
    assert repr(alone) == "Graph(1 vertex, 0 edges, unweighted)"


@pytest.mark.parametrize(
    ("offsets", "targets", "weights", "text"),
    [
        ([0, 1, 2], [1, 5], None, "vertex 1 has the target 5, but there are 2 vertices"),
        ([0, 1, 2], [1, 2**32 - 1], None, "has the target 4294967295"),
        ([0, 5, 2], [1, 0], None, "offsets fall after vertex 0"),
        ([0, -1, 2], [1, 0], None, "offsets fall after vertex 0"),
        ([0, 2, 1, 2], [1, 2], None, "offsets fall after vertex 1"),
        ([0, 1, 2], [0, 0], None, "vertex 0 is a target of its own"),
        ([0, 2, 3, 4], [2, 1, 0, 0], None, "targets of vertex 0 do not ascend at 1"),
        ([0, 2, 4], [1, 1, 0, 0], None, "targets of vertex 0 do not ascend at 1"),
        ([0, 1, 1], [1], None, "vertices 0 and 1 disagree"),
        ([0, 1, 2, 3], [1, 2, 0], None, "vertices 0 and 1 disagree"),
        ([0, 1, 2], [1, 0], [3, 4], "the edge of vertices 0 and 1 has two weights"),
    ],
)
def test_faults(offsets, targets, weights, text):
    for dtype in (np.uint32, np.int64):
        rows = (
            np.array(offsets),
            np.array(targets, np.uint32),
            None if weights is None else np.array(weights, dtype),
            np.zeros(len(offsets) - 1, np.int64),
        )
        with pytest.raises(GraphError, match=text) as caught:
            Graph(*rows)
        assert str(caught.value).endswith("or use Graph.from_edges")
        unchecked = Graph(*rows, check=False)
        with pytest.raises(GraphError, match=text):
            unchecked.validate()


def test_negative_loops_are_refused():
    with pytest.raises(GraphError, match="loop of vertex 1 is negative"):
        Graph(np.zeros(3, np.int64), np.zeros(0, np.uint32), None, np.array([0, -1]))


@settings(max_examples=60)
@given(graph=graphs())
def test_what_is_built_is_valid(graph):
    graph.validate()
    lu.louvain(graph, device="cpu").induced_graph().validate()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [([1], "must be a dict"), ({"x": np.ones(2)}, "'x' must be"), ({"x": [1, 2, 3]}, "'x' must be"),
     ({"x": np.ones((3, 2))}, "'x' must be"), ({"x": 5}, "array of one value for each of the 3")],
)  # fmt: skip
def test_attributes_that_do_not_fit_the_vertices_are_refused(attributes, message):
    g = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(lu.LouvainUmError, match=message):
        Graph(g.offsets, g.targets, None, g.loops, attributes=attributes)
    assert Graph(g.offsets, g.targets, None, g.loops, attributes={"x": np.ones(3)}).attributes


def test_names_may_be_listed():
    for names in (["a", "b", "c"], ("a", "b", "c"), [("a", 1), ("b", 2), ("c", 3)]):
        found = lu.louvain(lu.Graph.from_edges([0, 1], [1, 2], names=names))
        assert sorted(found.to_dict()) == sorted(names)
    with pytest.raises(GraphError, match="one entry per vertex, 3 in all"):
        lu.Graph.from_edges([0, 1], [1, 2], names="abc")


@pytest.mark.parametrize("scale", [0.0, -1.0, 3.0, np.nan, np.inf, True, "2"])
def test_a_scale_is_a_power_of_two(scale):
    g = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(GraphError, match="scale must be a power of two"):
        Graph(g.offsets, g.targets, None, g.loops, scale)
