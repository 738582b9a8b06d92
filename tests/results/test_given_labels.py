"""Communities in the forms in which other libraries and users have them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import louvain_um as lu
from louvain_um.results.comparison import compare
from louvain_um.results.quality import quality

NUMBERED = nx.karate_club_graph()
NAMED = nx.les_miserables_graph()
TUPLES = nx.relabel_nodes(nx.path_graph(6), {v: (v, "x") for v in range(6)})


@pytest.mark.parametrize("graph", [NUMBERED, NAMED, TUPLES], ids=["ids", "names", "tuples"])
def test_forms_agree_with_networkx(graph: nx.Graph) -> None:
    parts = nx.community.greedy_modularity_communities(graph)
    expected = pytest.approx(nx.community.modularity(graph, parts), abs=1e-12)
    by_vertex = {vertex: c for c, part in enumerate(parts) for vertex in part}
    in_order = [by_vertex[vertex] for vertex in graph]
    own = lu.as_graph(graph)
    for given in (
        parts,
        [set(part) for part in parts],
        [list(part) for part in parts],
        tuple(parts),
        dict(enumerate(parts)).values(),
        by_vertex,
        {vertex: f"c{c}" for vertex, c in by_vertex.items()},
        in_order,
        np.array(in_order),
    ):
        assert lu.modularity(graph, given) == expected
        assert lu.modularity(own, given) == expected
        result = lu.Communities.of(own, given)
        assert result.modularity == expected
        assert compare(result, by_vertex).identical
        assert result.compare(parts).identical
    assert lu.modularity(graph, result) == expected
    assert lu.modularity(graph, result.communities()) == expected
    assert quality(own, by_vertex).modularity == expected


def test_a_result_of_a_shuffled_graph_is_matched_by_name() -> None:
    shuffled = nx.Graph()
    shuffled.add_nodes_from(reversed(list(NAMED)))
    shuffled.add_edges_from(NAMED.edges(data=True))
    result = lu.louvain(shuffled, device="cpu")
    assert lu.modularity(NAMED, result) == pytest.approx(result.modularity)


def test_labels_in_order_are_those_of_the_vertices() -> None:
    assert compare({2: "b", 0: "a", 1: "a"}, [0, 0, 1]).identical
    assert compare([0, 0, 1], {2: "b", 0: "a", 1: "a"}).identical
    assert compare([{2}, {0, 1}], {0: 1, 1: 1, 2: 0}).identical


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({0: 0}, "vertex 1 has no community; list every vertex"),
        ({**dict.fromkeys(range(6), 0), 9: 1}, "9 is no vertex of the graph"),
        ([{0, 1, 2}, {2, 3, 4, 5}], "vertex 2 is in two communities; list it once"),
        ([{0, 1, 2}, {3, 4, "five"}], "'five' is no vertex of the graph"),
        ({vertex: [1] for vertex in range(6)}, "communities must be integers or strings"),
        ([0, 1], "labels of 6 vertices expected, got 2; pass one integer per vertex, a dict"),
        (7, "got int; pass one integer per vertex, a dict of vertex and community"),
        (np.zeros((2, 3)), "got ndarray; pass"),
    ],
)
def test_what_fits_no_form_is_refused_in_one_line(given: Any, message: str) -> None:
    for ask in (lu.modularity, quality, lu.Communities.of):
        with pytest.raises(lu.GraphError) as caught:
            ask(lu.as_graph(nx.path_graph(6)), given)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
