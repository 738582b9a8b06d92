"""Directed and signed graphs from files and objects."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import louvain_um as lu
from louvain_um.distributed.partition import blocks_of

ARCS = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 1), (3, 3), (3, 0), (0, 1)]


def directed_forms(folder):
    """Return the same arcs in every form that keeps directions; the last is a repetition."""
    text = folder / "arcs.txt"
    text.write_text("".join(f"{a} {b}\n" for a, b in ARCS))
    matrix = np.zeros((4, 4), int)
    for a, b in ARCS:
        matrix[a, b] = 1
    market = folder / "arcs.mtx"
    entries = "".join(f"{a + 1} {b + 1}\n" for a, b in ARCS[:-1])
    market.write_text(f"%%MatrixMarket matrix coordinate pattern general\n4 4 7\n{entries}")
    u, v = np.array(ARCS).T
    graph = nx.DiGraph(ARCS)
    nx.write_gml(graph, folder / "arcs.gml")
    return {
        "text": text,
        "market": market,
        "gml": folder / "arcs.gml",
        "networkx": graph,
        "arrays": (u, v),
        "table": pd.DataFrame({"source": u, "target": v}),
        "dense": matrix,
        "sparse": csr_array(matrix),
    }


def test_every_form_keeps_directions(tmp_path):
    for name, form in directed_forms(tmp_path).items():
        graph = lu.as_graph(form, directed=True)
        assert graph.kind == "directed", name
        assert graph.imbalance.tolist() == [-1, 0, 0, 1], name
        assert graph.degrees.tolist() == [3, 4, 2, 5], name
        assert graph.total_weight == 2 * 7


def test_directed_objects_need_the_objective_or_the_option():
    cycle = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
    assert lu.leiden(cycle, objective="directed", device="cpu").objective == "directed"
    with pytest.raises(lu.GraphError, match="objective='directed'"):
        lu.leiden(cycle, device="cpu")
    with pytest.raises(lu.GraphError, match="undirected; drop"):
        lu.as_graph(nx.path_graph(3), directed=True)
    with pytest.raises(lu.OptionError, match="contradicts signed"):
        lu.as_graph(cycle, directed=True, signed=True)


def test_weights_of_parallel_arcs_add_up():
    arcs = nx.MultiDiGraph()
    arcs.add_weighted_edges_from([(0, 1, 2.5), (0, 1, 1.0), (1, 0, 0.5)])
    graph = lu.as_graph(arcs, directed=True)
    assert graph.imbalance is not None
    assert (graph.imbalance / graph.scale).tolist() == [3.0, -3.0]
    assert graph.total_weight / graph.scale == 8.0


@pytest.mark.parametrize("text", ["0 1 -2\n1 2 3\n", "a b -2\nb c 3\n", "a,b,-2.0\nb,c,3.0\n"])
def test_negative_weights_in_text(tmp_path, text):
    path = tmp_path / "signed.txt"
    path.write_text(text)
    with pytest.raises(lu.GraphFormatError, match=r"negative.*signed=True"):
        lu.read_graph(path, weighted=True)
    graph = lu.read_graph(path, weighted=True, signed=True)
    assert graph.weights is not None
    assert (graph.weights / graph.scale).tolist() == [-2, -2, 3, 3]
    assert (graph.absolute_degrees / graph.scale).tolist() == [2, 5, 3]


def test_signed_objects_and_edges_that_cancel():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, -1.5), (1, 2, 2.0)])
    assert lu.louvain(graph, objective="signed", device="cpu").labels.tolist() == [1, 0, 0]
    with pytest.raises(lu.GraphError, match="negative"):
        lu.louvain(graph, device="cpu")
    cancelled = lu.Graph.from_edges([0, 1, 1], [1, 0, 2], [2, -2, 1], kind="signed")
    assert cancelled.n_edges == 1
    assert any("weight 0" in note for note in cancelled.notes)
    strongest = lu.Graph.from_edges(
        [0, 1, 0], [1, 0, 1], [2, -3, 1], kind="signed", duplicates="once"
    )
    assert strongest.weights.tolist() == [-3, -3]


def test_directed_graphs_are_not_written_as_undirected_ones(tmp_path):
    graph = lu.as_graph(nx.DiGraph([(0, 1), (1, 2)]), directed=True)
    for export in (graph.to_networkx, graph.to_igraph, graph.to_scipy, graph.to_pandas):
        with pytest.raises(lu.GraphError, match="sums of both directions only"):
            export()
    with pytest.raises(lu.GraphError, match="sums of both directions only"):
        lu.write_graph(graph, tmp_path / "lost.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["signed.csv", "signed.mtx", "signed.npz", "signed.graphml"])
def test_signed_graphs_survive_a_round_trip(tmp_path, name):
    graph = lu.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 2], [-0.1, 2.5, 0.3, -4], kind="signed")
    lu.write_graph(graph, tmp_path / name)
    again = lu.read_graph(tmp_path / name, signed=True)
    assert again.weights is not None
    assert graph.weights is not None
    assert (again.weights / again.scale).tolist() == (graph.weights / graph.scale).tolist()
    assert (again.loops / again.scale).tolist() == [0, 0, -4]


def test_graphs_of_communities_keep_the_value():
    random = nx.gnp_random_graph(40, 0.1, directed=True, seed=1)
    graph = lu.as_graph(random, directed=True)
    found = lu.louvain(graph, objective="directed", device="cpu")
    small = found.induced_graph()
    alone = range(small.n_vertices)
    value = lu.modularity(small, alone, objective="directed")
    assert value == pytest.approx(found.value)
    with pytest.raises(lu.GraphError, match="sums of both directions only"):
        found.subgraph(0)
    signed = lu.Graph.from_edges([0, 1, 2], [1, 2, 0], [-1, 2, 3], kind="signed")
    part = lu.louvain(signed, objective="signed", device="cpu").subgraph(0)
    assert part.kind == "signed"


@pytest.mark.parametrize("kind", ["directed", "signed"])
def test_kinds_are_not_lost_without_a_word(kind):
    graph = lu.Graph.from_edges([0, 1, 2], [1, 2, 0], [1, 2, 3], kind=kind)
    with pytest.raises(lu.GraphError, match=f"this one is {kind}"):
        lu.connected_components(graph, device="cpu")
    with pytest.raises(lu.GraphError, match=f"this one is {kind}"):
        lu.DynamicGraph(graph)
    with pytest.raises(lu.GraphError, match=f"this one is {kind}"):
        blocks_of(graph, 2)
