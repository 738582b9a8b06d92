"""Results of other libraries are compared, evaluated and wrapped as they are."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import louvain_um as lu
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import compare

igraph = pytest.importorskip("igraph")

KARATE = nx.karate_club_graph()


def as_igraph() -> Any:
    return igraph.Graph.from_networkx(KARATE, vertex_attr_hashable="name")


def check(found: object, members: list[set[int]], graph: lu.Graph) -> None:
    """A result says the same as its members as sets."""
    assert compare(found, members).identical
    assert lu.modularity(graph, found) == pytest.approx(lu.modularity(graph, members))
    wrapped = Communities.of(graph, found)
    assert wrapped.n_communities == len(members)
    assert wrapped.compare(found).identical


def test_igraph() -> None:
    other = as_igraph()
    found = other.community_multilevel(weights="weight")
    names = np.array(other.vs["name"])
    members = [set(names[list(part)].tolist()) for part in found]
    graph = lu.as_graph(KARATE)
    check(found, members, graph)
    assert lu.modularity(graph, found) == pytest.approx(found.modularity)


def test_igraph_by_name() -> None:
    other = igraph.Graph.TupleList([("b", "a"), ("a", "c"), ("x", "y")])
    found = other.connected_components()
    graph = lu.as_graph((["a", "a", "x"], ["b", "c", "y"]))
    assert lu.louvain(graph, device="cpu").compare(found).identical


def test_leidenalg() -> None:
    leidenalg = pytest.importorskip("leidenalg")
    other = as_igraph()
    found = leidenalg.find_partition(other, leidenalg.ModularityVertexPartition, seed=1)
    names = np.array(other.vs["name"])
    check(found, [set(names[list(part)].tolist()) for part in found], lu.as_graph(KARATE))


def test_infomap() -> None:
    infomap = pytest.importorskip("infomap")
    found = infomap.Infomap("--two-level --silent --seed 1")
    for u, v in KARATE.edges:
        found.add_link(u, v)
    result = found.run()
    modules: dict[int, set[int]] = {}
    for node, module in result.modules().items():
        modules.setdefault(module, set()).add(node)
    for each in (found, result):
        check(each, list(modules.values()), lu.as_graph(KARATE))


class NodeClustering:
    """The attributes of cdlib's class of this name, whose package needs many others."""

    def __init__(self, communities: list[list[int]], *, overlap: bool = False) -> None:
        self.communities, self.overlap = communities, overlap


def test_cdlib() -> None:
    halves = [list(range(17)), list(range(17, 34))]
    check(NodeClustering(halves), [set(part) for part in halves], lu.as_graph(KARATE))


@pytest.mark.parametrize(
    "found",
    [NodeClustering([[0, 1], [1, 2]], overlap=True),
     igraph.VertexCover(igraph.Graph.Full(3), [[0, 1], [1, 2]])],
)  # fmt: skip
def test_overlapping_communities_are_told(found: object) -> None:
    with pytest.raises(lu.GraphError, match="communities overlap"):
        compare(found, [0, 0, 1])
    with pytest.raises(lu.GraphError, match="communities overlap"):
        lu.modularity(lu.Graph.from_edges([0, 1], [1, 2]), found)
