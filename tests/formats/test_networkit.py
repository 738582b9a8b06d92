"""Graphs of NetworKit."""

import pytest

import louvain_um as lu

networkit = pytest.importorskip("networkit")


@pytest.mark.parametrize("weighted", [False, True])
def test_graphs_of_networkit(weighted):
    other = networkit.Graph(5, weighted=weighted)
    for u, v, w in [(0, 1, 2.0), (1, 2, 3.0), (3, 4, 0.5), (2, 2, 4.0)]:
        other.addEdge(u, v, w)
    graph = lu.as_graph(other)
    columns = [0, 1, 3, 2], [1, 2, 4, 2], [2.0, 3.0, 0.5, 4.0]
    expected = lu.as_graph(columns if weighted else columns[:2])
    assert (graph.to_scipy() != expected.to_scipy()).nnz == 0
    assert graph.names is None
    found = networkit.community.PLM(other).run().getPartition()
    assert lu.Communities.of(graph, found).n_vertices == 5
    other.removeNode(1)
    graph = lu.as_graph(other)
    assert graph.names.tolist() == [0, 2, 3, 4]
    assert graph.n_edges == 2


def test_directed_graphs_of_networkit():
    other = networkit.Graph(3, directed=True)
    other.addEdge(0, 1)
    with pytest.raises(lu.GraphError, match="directed"):
        lu.as_graph(other)
    made = lu.as_graph(other, directed=True)
    assert (made.kind, made.n_edges) == ("directed", 1)
