"""Edges between two kinds of vertices whose ids are independent."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um.errors import GraphError
from louvain_um.formats import as_graph, read_graph, write_graph

RATINGS = "user,item,weight\n5,5,2\n5,7,1\n6,5,3\n"
EDGES = {("user:5", "item:5", 2.0), ("user:5", "item:7", 1.0), ("user:6", "item:5", 3.0)}


def edges(graph):
    assert graph.weights is not None
    names = graph.names.tolist()
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets)).tolist()
    rows = zip(u, graph.targets.tolist(), (graph.weights / graph.scale).tolist(), strict=True)
    return {(names[a], names[b], w) for a, b, w in rows if a < b}


def table():
    return pd.DataFrame({"user": [5, 5, 6], "item": [5, 7, 5], "weight": [2, 1, 3]})


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "swapped", "later"])
def test_equal_ids_in_both_columns_are_two_vertices(tmp_path, kind):
    path = tmp_path / "g.csv"
    path.write_text(RATINGS)
    if kind == "csv":
        graph = read_graph(path, bipartite=True)
    elif kind == "pandas":
        graph = as_graph(table(), bipartite=True)
    elif kind == "parquet":
        table().to_parquet(tmp_path / "g.parquet")
        graph = read_graph(tmp_path / "g.parquet", bipartite=True)
    elif kind == "later":
        path.write_text("weight,user,item\n2,5,5\n1,5,7\n3,6,5\n")
        graph = read_graph(path, source="user", target="item", bipartite=True)
    else:
        path.write_text("item,user,weight\n5,5,2\n7,5,1\n5,6,3\n")
        graph = read_graph(path, bipartite=True)
    assert graph.n_vertices == 4
    assert {frozenset(edge) for edge in edges(graph)} == {frozenset(edge) for edge in EDGES}
    assert not graph.loops.any()


def test_names_of_both_columns_are_separate_too(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text('person,film\nann,ann\nann,"x, y"\nbob,ann\n')
    graph = read_graph(path, bipartite=True)
    expected = ["person:ann", "person:bob", "film:ann", "film:x, y"]
    assert graph.names.tolist() == expected


def test_without_a_header_vertices_are_named_by_role(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("1 1\n1 2\n")
    expected = ["source:1", "target:1", "target:2"]
    assert read_graph(path, bipartite=True).names.tolist() == expected
    rotated = read_graph(path, source=2, target=1, bipartite=True)
    assert rotated.names.tolist() == ["target:1", "source:1", "source:2"]
    arrays = as_graph(([1, 1], [1, 2]), bipartite=True)
    assert arrays.names.tolist() == expected
    words = as_graph((["a", "a"], ["a", "b"]), bipartite=True)
    assert words.names.tolist() == ["source:a", "target:a", "target:b"]


def test_large_ids_and_the_written_graph(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text(f"{10**17} {10**17}\n{10**17} 3\n")
    graph = read_graph(path, bipartite=True)
    assert graph.n_vertices == 3
    write_graph(tmp_path / "copy.csv", graph)
    copy = read_graph(tmp_path / "copy.csv")
    assert set(copy.names.tolist()) == set(graph.names.tolist())
    assert lu.louvain(graph, device="cpu").n_vertices == 3


@pytest.mark.parametrize("head", ["user,item", "UserID,MovieID", "gene,disease", "author_id,paper"])
def test_columns_of_different_kinds_are_reported(tmp_path, head):
    path = tmp_path / "g.csv"
    path.write_text(f"{head}\n5,5\n5,7\n")
    first = head.split(",")[0]
    for graph in (read_graph(path), as_graph(pd.read_csv(path))):
        assert graph.n_vertices == 3
        assert graph.names[0] == f"{first}:5"
        assert any("bipartite=False reads them as one" in note for note in graph.notes)
    assert read_graph(path, bipartite=False).n_vertices == 2
    path.write_text(f"{head}\n5,1\n5,2\n")
    assert any("bipartite=True" in note for note in read_graph(path).notes)
    assert not any("bipartite" in note for note in read_graph(path, bipartite=True).notes)


@pytest.mark.parametrize("head", ["user,friend", "person1,person2", "author,coauthor", "from,to"])
def test_columns_of_one_kind_are_not(tmp_path, head):
    path = tmp_path / "g.csv"
    path.write_text(f"{head}\n5,5\n5,7\n")
    assert not any("bipartite" in note for note in read_graph(path).notes)


def test_disjoint_ids_are_noted_without_a_header(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{i % 9} {100 + i % 7}\n" for i in range(40)))
    assert any("bipartite=True" in note for note in read_graph(path).notes)
    path.write_text("".join(f"{i % 9} w{i % 7}\n" for i in range(40)))
    assert any("bipartite=True" in note for note in read_graph(path).notes)
    path.write_text("".join(f"{i % 9} {i % 7}\n" for i in range(40)))
    assert not any("bipartite" in note for note in read_graph(path).notes)


def test_what_has_no_columns_is_not_bipartite():
    for wrong in (nx.path_graph(3), np.zeros((2, 2))):
        with pytest.raises(GraphError, match=r"drop bipartite=True \(--bipartite\)"):
            as_graph(wrong, bipartite=True)
