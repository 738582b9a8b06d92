"""Vertices by name, and edges in the forms that users have them in."""

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um import DynamicGraph
from louvain_um.errors import GraphError, MemoryBudgetError
from louvain_um.formats.labels import write_labels


def friends():
    g = DynamicGraph(weighted=True)
    g.apply(insert=(["cid", "ann"], ["bob", "bob"]))
    return g


def test_new_names_make_vertices_in_sorted_order():
    g = friends()
    assert g.names.tolist() == ["ann", "bob", "cid"]
    g.apply(insert=(["eve", "dan"], ["ann", "eve"]), delete=(["bob"], ["ann"]))
    assert g.names.tolist() == ["ann", "bob", "cid", "dan", "eve"]
    assert g.has_edges(["dan", "ann"], ["eve", "bob"]).tolist() == [True, False]
    assert g.snapshot().names.tolist() == g.names.tolist()
    g.check()


def test_a_removed_name_comes_back_as_another_vertex():
    g = friends()
    g.remove_vertices(["bob"])
    assert g.names.tolist() == ["ann", None, "cid"]
    g.apply(insert=(["bob"], ["cid"]))
    assert g.names.tolist() == ["ann", None, "cid", "bob"]
    assert list(g.add_vertices(["zoe"])) == [4]


def test_names_of_a_given_graph_are_kept_unless_declined():
    graph = lu.as_graph((["ann", "bob"], ["bob", "cid"]))
    g = DynamicGraph(graph)
    g.apply(insert=(["ann"], ["cid"]))
    result = lu.louvain(g, device="cpu")
    assert set(result.to_dict()) == {"ann", "bob", "cid"}
    g = DynamicGraph(graph, names=False)
    g.apply(insert=([0], [2]))
    assert (g.names, g.n_edges) == (None, 3)


def test_numbers_that_name_vertices_are_names():
    g = DynamicGraph(lu.as_graph(pd.DataFrame({"source": [10, 20], "target": [20, 40]})))
    assert g.has_edges([10, 10], [20, 40]).tolist() == [True, False]
    g.apply(insert=(np.array([10]), np.array([50])))
    assert g.names.tolist() == [10, 20, 40, 50]


def test_every_form_of_edges_is_taken():
    table = pd.DataFrame({"weight": [2, 3], "target": ["bob", "cid"], "source": ["ann", "bob"]})
    network = nx.Graph()
    network.add_edge("ann", "bob", weight=2)
    network.add_edge("bob", "cid", weight=3)
    forms = [
        (["ann", "bob"], ["bob", "cid"], [2, 3]),
        [("ann", "bob", 2), ("bob", "cid", 3)],
        table,
        network,
        network.edges,
        network.edges(data=True),
        network.edges(data="weight"),
        nx.MultiGraph(network).edges,
        nx.MultiGraph(network).edges(data="weight"),
    ]
    digests = set()
    for edges in forms:
        g = DynamicGraph(weighted=True)
        g.apply(insert=edges)
        digests.add(g.digest())
        g.apply(delete=[("ann", "bob")])
        assert g.n_edges == 1
    assert len(digests) == 1
    g = DynamicGraph(4)
    g.apply(insert=np.array([[0, 1], [1, 2]]))
    g.apply(insert=nx.path_graph(4).edges([2, 3]), delete=nx.MultiGraph([(0, 1), (0, 1)]).edges)
    assert (g.n_edges, g.has_edges([0], [1])[0]) == (2, False)


def test_a_refused_batch_adds_no_names():
    g = friends()
    before = g.digest(), g.names.tolist()
    for batch, error in (
        ({"insert": (["zoe"], ["ann"], [-1])}, GraphError),
        ({"insert": (["zoe"], ["ann"]), "decrease": (["ann"], ["bob"], [7])}, GraphError),
        ({"insert": (["zoe"], [None])}, GraphError),
        ({"insert": (["zoe"], [["a"]])}, GraphError),
        ({"delete": (["zoe"], ["ann"])}, GraphError),
    ):
        with pytest.raises(error) as raised:
            g.apply(**batch)
        assert "\n" not in str(raised.value)
        assert (g.digest(), g.names.tolist()) == before
    small = DynamicGraph(device_budget=400)
    small.apply(insert=(["a"], ["b"]))
    with pytest.raises(MemoryBudgetError):
        small.apply(insert=([str(k) for k in range(8)], ["a"] * 8))
    assert small.names.tolist() == ["a", "b"]
    small.check()
    assert DynamicGraph().apply(insert=([], [])).epoch == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: DynamicGraph(3).apply(insert=(["a"], ["b"])), "have no names"),
        (lambda: friends().add_vertices(2), "add_vertices"),
        (lambda: friends().add_vertices(["ann"]), "is there"),
        (lambda: friends().remove_vertices(["zoe"]), "no vertex is named 'zoe'"),
        (lambda: friends().apply(insert=nx.DiGraph([("a", "b")])), "to_undirected"),
        (lambda: friends().apply(insert=nx.DiGraph([("a", "b")]).edges), "to_undirected().edges"),
        (
            lambda: friends().apply(insert=nx.MultiGraph([("a", "b")]).edges(keys=True, data=True)),
            "pass the graph itself",
        ),
        (lambda: friends().apply(insert=pd.DataFrame({"a": ["x"]})), "two columns"),
        (lambda: friends().apply(insert=("ann", "bob")), "not 'ann'; pass [name, …]"),
        (lambda: friends().add_vertices(1.5), "not 1.5; pass [name, …]"),
        (lambda: friends().remove_vertices("ann"), "not 'ann'; pass [name, …]"),
        (lambda: friends().has_edges("ann", "bob"), "not 'ann'; pass [name, …]"),
        (lambda: friends().apply(insert=7), "insert=(u, v)"),
        (lambda: friends().apply(insert=[("a", "b"), ("c",)]), "insert=(u, v)"),
    ],
)
def test_bad_names_are_one_line(call, text):
    with pytest.raises(GraphError) as raised:
        call()
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("names", [["ann", "bob", "cid"], [10, 20, 40]])
def test_a_name_of_another_kind_is_no_new_vertex(names):
    g = DynamicGraph(lu.as_graph(pd.DataFrame({"source": names[:2], "target": names[1:]})))
    wrong = 7 if names[0] == "ann" else "7"
    for other in (wrong, 1.5):
        before = g.digest()
        with pytest.raises(GraphError, match=f"such as {names[0]!r}, but {other!r} is not"):
            g.apply(insert=([other], [names[0]]))
        assert (g.digest(), g.n_vertices) == (before, 3)


@pytest.mark.parametrize("names", [["ann", "bob"], [10, 20]])
def test_added_vertices_have_names_of_the_same_kind(names):
    g = DynamicGraph(lu.as_graph(pd.DataFrame({"source": names[:1], "target": names[1:]})))
    wrong = 7 if names[0] == "ann" else "7"
    for others in ([wrong], [1.5], [None]):
        with pytest.raises(GraphError, match=r"is not; convert it|name of a vertex is missing"):
            g.add_vertices(others)
        assert g.n_vertices == 2
    assert g.add_vertices(["zoe" if names[0] == "ann" else 30]) == range(2, 3)


def test_a_first_batch_has_names_of_one_kind():
    g = DynamicGraph()
    for batch in ((["7"], [7]), (["7", 7], ["8", 8]), (["ann"], [1.5])):
        with pytest.raises(GraphError, match=r"such as 7, but '7' is not|real number 1\.5"):
            g.apply(insert=batch)
    assert (g.names, g.n_vertices, g.epoch) == (None, 0, 0)
    g.add_vertices(2)  # it has no names yet
    g.apply(insert=([0], [1]))
    assert (g.names, g.n_edges) == (None, 1)


def test_a_graph_whose_names_are_all_gone_takes_names_of_any_kind():
    g = friends()
    g.remove_vertices(["ann", "bob", "cid"])
    g.apply(insert=([7], [8]))
    assert g.names.tolist() == [None, None, None, 7, 8]
    with pytest.raises(GraphError, match="such as 7, but 'ann' is not"):
        g.apply(insert=(["ann"], [7]))
    refused = friends()
    refused.remove_vertices(["ann", "bob", "cid"])
    with pytest.raises(GraphError, match="negative"):
        refused.apply(insert=([7], [8], [-1]))
    refused.apply(insert=(["ann"], ["bob"]))
    assert refused.names.tolist() == [None, None, None, "ann", "bob"]


def test_names_of_several_kinds_may_get_any():
    g = DynamicGraph(lu.as_graph(nx.Graph([("ann", 1), (1, (2, 3))])))
    g.apply(insert=([7, "bob"], ["ann", 1]))
    assert g.n_vertices == 5


def test_errors_about_edges_name_their_ends():
    g = DynamicGraph(lu.as_graph([("ann", "bob", 2), ("bob", "cid", 1)]))
    with pytest.raises(GraphError, match=r"first \('ann', 'cid'\); pass missing='count'"):
        g.apply(delete=(["cid"], ["ann"]), missing="raise")
    with pytest.raises(GraphError, match=r"edge \('ann', 'bob'\) has weight 2, and 5 are"):
        g.apply(decrease=(["ann"], ["bob"], [5]), insert=(["zoe"], ["ann"]))
    assert g.names.tolist() == ["ann", "bob", "cid"]
    with pytest.raises(GraphError, match=r"first \(0, 2\); pass"):
        DynamicGraph(3).apply(delete=([0], [2]), missing="raise")


def test_what_has_lost_its_name_is_not_exported(tmp_path):
    g = DynamicGraph(lu.as_graph(nx.les_miserables_graph()))
    tracker = lu.Tracker(g)
    found = tracker.update(g.remove_vertices(["Valjean", "Javert"]))
    left = {name for name in g.names if name is not None}
    assert len(left) == 75
    assert set(g.snapshot().to_networkx()) == left
    assert set(found.to_dict()) == set(found.to_frame().vertex) == left
    result = lu.louvain(g.snapshot(), device="cpu")
    assert set(result.to_networkx()) == left
    write_labels(tmp_path / "labels.csv", found)
    assert set(pd.read_csv(tmp_path / "labels.csv").vertex) == left
    wrapped = lu.Communities.of(g, found.to_dict())
    assert wrapped.modularity == pytest.approx(found.modularity)
    assert wrapped.compare(found).identical
    for changing in (found, lu.louvain(g, device="cpu")):
        with pytest.raises(GraphError, match=r"or Communities\.of\(graph, result\)"):
            changing.table()
    assert len(lu.Communities.of(g, found).table()) == len(found.sizes)


def test_real_weights_in_a_graph_of_whole_numbers_are_reported():
    g = DynamicGraph(3, weighted=True)
    with pytest.warns(lu.GraphWarning, match="rounded to whole numbers, as the scale") as reported:
        g.apply(insert=([0], [1], [1.5]))
    assert reported[0].filename == __file__
    g.apply(insert=([0], [2], [3.0]))
    fine = DynamicGraph(3, weighted=True, scale=2**20)
    fine.apply(insert=([0], [1], [1.5]))
    assert fine.snapshot().to_pandas().weight.tolist() == [1.5]


def test_arrays_of_names_are_shared_until_names_change():
    g = DynamicGraph(0)
    g.apply(insert=(["a", "c"], ["b", "a"]))
    first = g.names
    assert g.names is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = "z"
    g.apply(insert=(["longer"], ["a"]))
    second = g.names
    assert second.tolist() == ["a", "b", "c", "longer"]
    assert second.dtype == np.array(["longer"]).dtype
    with pytest.raises(GraphError):
        g.apply(insert=(["d", "a"], ["e", "b"]), delete=(["x"], ["a"]))
    assert g.names is second
    g.remove_vertices(["c"])
    assert g.names.tolist() == ["a", "b", None, "longer"]
    g.add_vertices(["c", "y" * 99])
    assert g.names.tolist() == ["a", "b", None, "longer", "c", "y" * 99]
    assert first.tolist() == ["a", "b", "c"]


def test_graphs_whose_names_are_held_can_be_pickled():
    g = friends()
    tracker, held = lu.Tracker(g), g.names
    for copied in (pickle.loads(pickle.dumps(g)), pickle.loads(pickle.dumps(tracker)).graph):
        assert copied.names.tolist() == held.tolist()
        copied.apply(insert=(["dan"], ["ann"]))
        assert copied.names.tolist() == ["ann", "bob", "cid", "dan"]
    assert g.names is held
