"""Labels in columns and tables of pandas go by the vertices that these name."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um.results.comparison import compare

igraph = pytest.importorskip("igraph")

NAMED = nx.les_miserables_graph()
SHUFFLED = nx.Graph()
SHUFFLED.add_nodes_from(reversed(range(34)))
SHUFFLED.add_edges_from(nx.karate_club_graph().edges)


@pytest.fixture(params=[NAMED, SHUFFLED, nx.karate_club_graph()], ids=["text", "numbers", "none"])
def found(request: pytest.FixtureRequest) -> lu.Communities:
    return lu.louvain(lu.as_graph(request.param, weighted=False), device="cpu")


def test_rows_in_any_order_mean_the_same_communities(found: lu.Communities) -> None:
    frame = found.to_frame()
    mixed = frame.sample(frac=1, random_state=3)
    for given in (
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
        assert lu.modularity(found.graph, given) == pytest.approx(found.modularity)
        assert found.compare(given).identical
        assert compare(given, found).identical
        assert np.array_equal(lu.Communities.of(found.graph, given).labels, found.labels)
        assert lu.louvain(found.graph, initial=given, device="cpu").modularity >= found.modularity


def test_cells_of_a_graph_without_names_are_taken_in_order() -> None:
    graph = lu.as_graph(nx.karate_club_graph(), weighted=False)
    found = lu.leiden(graph, device="cpu")
    cells = pd.Series(found.labels.astype(str), index=[f"cell{k}" for k in range(34)])
    assert lu.modularity(graph, cells.astype("category")) == pytest.approx(found.modularity)
    assert found.compare(cells).identical


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"node": [1], "community": [2]}), "needs the columns vertex and community"),
        (pd.DataFrame({"vertex": [0, 0], "community": [1, 2]}), "a vertex is listed twice"),
        (pd.Series([1, 2], index=["Valjean", "Valjean"]), "a vertex is in the index twice"),
        (pd.Series(range(77), index=[f"x{k}" for k in range(77)]), "'x0' is no vertex"),
        (["a", None, "b"] + 74 * ["c"], "the label at index 1 is missing"),
    ],
)
def test_labels_of_other_vertices_are_refused(given: Any, message: str) -> None:
    with pytest.raises(lu.GraphError, match=message):
        lu.modularity(NAMED, given)


def test_a_vertex_in_two_sets_is_no_partition() -> None:
    found = lu.louvain(nx.path_graph(3), device="cpu")
    with pytest.raises(lu.GraphError, match="communities overlap"):
        found.compare([{0, 1}, {1, 2}])


def test_a_dendrogram_of_igraph_is_cut_where_it_says() -> None:
    graph = igraph.Graph.Famous("Zachary")
    tree = graph.community_fastgreedy()
    assert lu.modularity(graph, tree) == pytest.approx(tree.as_clustering().modularity)
