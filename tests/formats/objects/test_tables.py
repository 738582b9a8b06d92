"""Tables of pandas, Arrow and Polars become graphs: lists of edges, or adjacency matrices."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.errors import GraphError, GraphWarning
from louvain_um.formats import as_graph, read_graph, tables
from tests.graphs import same


def test_tables():
    frame = pd.DataFrame({"weight": [1.0, 2.0], "target": ["b", "c"], "source": ["a", "b"]})
    for table in (frame, pa.Table.from_pandas(frame), pa.RecordBatch.from_pandas(frame)):
        g = as_graph(table)
        assert g.names.tolist() == ["a", "b", "c"]
        assert g.weights.tolist() == [1, 1, 2, 2]
    with pytest.warns(GraphWarning, match="source=|the column 'z'"):
        numbers = as_graph(pd.DataFrame({"x": [5, 9], "y": [9, 70], "z": [1, 2]}))
    assert numbers.names.tolist() == [5, 9, 70]
    assert numbers.weighted
    for wrong in (
        pd.DataFrame({"x": [1]}),
        pd.DataFrame({"x": [1, -1], "y": [2, 3]}),
        pd.DataFrame({"x": [1.5], "y": [2]}),
        pd.DataFrame({"x": ["a", None], "y": ["b", "c"]}),
        pa.table({"x": [1, None], "y": [2, 3]}),
        pd.DataFrame({"x": [1], "y": [2], "weight": ["w"]}),
        pd.Series([1]),
    ):
        with pytest.raises(GraphError):
            as_graph(wrong)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (["b", "a", "ß", "b"], ["a", "ä", "𝄞", "b"]),
        (["a\0b", "a", "a\0c"], ["a", "a\0b", ""]),
        ([1, "1", "x"], ["x", 1, "1"]),
        ([1, 2, 1], [True, "y", 1.0]),
        ([b"a", "a"], ["a", b"a"]),
        ([b"b", b"a"], [b"a", b"c"]),
        (["\ud800", "a"], ["a", "\ud800"]),
        ([3, 1], [2**70, 3]),
        ([("t", 1), ("s", 2)], [("s", 2), ("t", 1)]),
    ],
)
def test_names_are_the_same_with_and_without_arrow(source, target, monkeypatch):
    u, v = (np.fromiter(ids, object, len(ids)) for ids in (source, target))
    found = []
    for least in (0, len(source) + 1):
        monkeypatch.setattr(tables, "ARROW_EDGES", least)
        found.append(as_graph((u, v)))
    one, other = found
    assert same(one, other)
    assert one.names.dtype == other.names.dtype
    assert list(map(type, one.names.tolist())) == list(map(type, other.names.tolist()))
    assert one.names.tolist() == other.names.tolist()
    assert one.notes == other.notes


@pytest.mark.parametrize("least", [0, 9])
def test_a_missing_name_is_reported_with_its_row(least, monkeypatch):
    monkeypatch.setattr(tables, "ARROW_EDGES", least)
    for missing in (None, float("nan")):
        with pytest.raises(GraphError, match="row 1 is missing"):
            as_graph((np.array(["a", "b"], object), np.array(["b", missing], object)))


def test_a_table_without_rows_has_no_vertices():
    assert as_graph(pd.DataFrame({"source": [], "target": []}, dtype=float)).n_vertices == 0


@pytest.mark.parametrize("graph", [nx.les_miserables_graph(), nx.karate_club_graph()])
def test_a_table_with_labelled_rows_and_columns_is_a_matrix(graph):
    frame = nx.to_pandas_adjacency(graph)
    expected = as_graph(graph)
    thin = frame.astype(pd.SparseDtype(float, 0))
    for given in (frame, thin):
        found = as_graph(given)
        assert same(found, expected)
        assert (found.names is None) == (expected.names is None)
        if found.names is not None and expected.names is not None:
            assert found.names.tolist() == expected.names.tolist()
        if found.names is not None:  # columns in another order, as merging tables leaves them
            assert same(as_graph(given[given.columns[::-1]]), expected)
    lopsided = frame.copy()
    lopsided.iloc[0, 1] += 1
    with pytest.raises(GraphError, match="the matrix is not symmetric"):
        as_graph(lopsided)
    frame.index = frame.columns = ["x"] * len(frame)
    with pytest.raises(GraphError, match="two rows have the same label"):
        as_graph(frame)


def test_two_edges_in_a_table_are_no_matrix():
    assert as_graph(pd.DataFrame([[0, 1], [1, 2]])).n_edges == 2


def test_real_ids_are_distinguished_from_missing_ones():
    edges = pd.DataFrame({"a": [1, 2, None, 4], "b": [2, 3, 4, None]})
    with pytest.raises(GraphError, match=r"row 2 is missing, of 1 in all; drop .* astype"):
        as_graph(edges)
    assert as_graph(edges.dropna()).names.tolist() == [1, 2, 3]
    with pytest.raises(GraphError, match=r"real numbers, such as 0.5; convert .* astype"):
        as_graph(edges.dropna() / 2)


SEEN = pd.DataFrame({"user": list("ppqqr"), "item": list("xyxxy")})


@pytest.mark.parametrize(
    "table",
    [
        pd.crosstab(SEEN.user, SEEN.item),
        pd.crosstab(SEEN.item, SEEN.user),
        SEEN.assign(c=1).pivot_table(index="user", columns="item", values="c").reset_index(),
    ],
    ids=["two", "three", "reset"],
)
def test_cross_tables_are_no_lists_of_edges(table):
    with pytest.raises(GraphError, match="cross table") as error:
        as_graph(table)
    with pytest.raises(GraphError, match="cross table"):
        DynamicGraph(0).apply(insert=table)
    made, _, ends = str(error.value).partition(" with ")
    longer = eval(made.partition("pass ")[2], {"table": table})
    graph = as_graph(longer.dropna(), **eval(f"dict({ends})"))
    assert set(graph.names.tolist()) == {*"pqr", *"xy"}
    assert graph.n_edges == 4


def test_a_cross_table_of_a_variable_with_itself_can_be_taken_as_advised():
    table = pd.crosstab(pd.Series(list("pqp"), name="k"), pd.Series(list("qrr"), name="k"))
    with pytest.raises(GraphError, match="cross table") as error:
        as_graph(table)
    made, _, ends = str(error.value).partition(" with ")
    longer = eval(made.partition("pass ")[2], {"table": table})
    assert as_graph(longer, **eval(f"dict({ends})")).n_edges == 3


def test_text_under_a_title_over_all_columns_is_a_list_of_edges():
    slots = pd.DataFrame({"tie": [1, 1, 2, 2], "slot": ["p", "q"] * 2, "who": list("abbc")})
    pairs = slots.pivot(index="tie", columns="slot", values="who")
    for table in (pairs, pairs.reset_index(drop=True), SEEN.rename_axis(columns="fields")):
        assert as_graph(table).n_edges == as_graph(table.rename_axis(columns=None)).n_edges > 0


@pytest.mark.parametrize(
    "titles", [("user", "count"), ("weight", "user"), ("Date", "price"), ("time", "value")]
)
def test_columns_of_weights_or_times_are_no_ends(titles, tmp_path):
    table = pd.DataFrame({titles[0]: [1, 2], titles[1]: [3, 4]})
    table.to_csv(tmp_path / "a.csv", index=False)
    for read, source in ((as_graph, table), (read_graph, tmp_path / "a.csv")):
        with pytest.raises(GraphError, match=r"source=… \(--source\)"):
            read(source)
        graph = read(source, source=titles[0], target=titles[1])
        assert (graph.n_vertices, graph.n_edges) == (4, 2)
        assert read(source, bipartite=True).n_edges == 2


def test_other_columns_come_before_those_of_weights_and_times():
    table = pd.DataFrame({"date": [7, 8], "here": [1, 2], "there": [2, 3], "count": [4, 5]})
    graph = as_graph(table)
    assert graph.names.tolist() == [1, 2, 3]
    assert graph.weights is not None
    letters = as_graph(pd.DataFrame({"s": [1, 2], "t": [2, 3]}))
    assert letters.n_vertices == 3


@pytest.mark.parametrize(
    ("table", "uncertain"),
    [
        ({"name": ["ann", "bob"], "age": [3, 4]}, True),
        ({"vertex": [0, 1], "degree": [3, 4]}, True),
        ({"node": [0, 1], "neighbour": [1, 2]}, False),
        ({"name": ["ann", "bob"], "club": ["x", "y"]}, False),
        ({"a": [0, 1], "b": [1, 2]}, False),
        ({0: ["ann", "bob"], 1: [3, 4]}, False),
    ],
    ids=["ages", "degrees", "ends", "clubs", "letters", "untitled"],
)
def test_a_number_of_each_vertex_is_reported(table, uncertain):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_graph(pd.DataFrame(table))
    assert any("is read as a vertex" in str(each.message) for each in caught) is uncertain


@pytest.mark.parametrize("kind", ["u4", "i8", "u8"])
@pytest.mark.parametrize("first", [0, 7, 2**31, 2**40])
@pytest.mark.parametrize("step", [1, 3, 2**20])
def test_columns_of_ids_stay_as_they_are(kind, first, step):
    ids = first + step * np.random.default_rng(1).integers(0, 50, (5000, 2))
    if ids.max() >= 2**32 and kind == "u4":
        return
    table = pd.DataFrame(ids.astype(kind), columns=["source", "target"])
    graph = as_graph(table)
    assert np.array_equal(table.to_numpy(), ids)
    names = np.arange(graph.n_vertices) if graph.names is None else graph.names
    assert np.array_equal(names, np.unique(ids))
    assert graph.n_arcs == len({(min(e), max(e)) for e in ids.tolist() if e[0] != e[1]}) * 2


def test_a_column_of_types_declares_directed_edges(tmp_path):
    frame = pd.DataFrame({"Source": [1, 2], "Target": [2, 3], "Type": ["Undirected", "Directed"]})
    frame.to_parquet(tmp_path / "edges.parquet")
    for read in (as_graph, lambda _, **kw: read_graph(tmp_path / "edges.parquet", **kw)):
        with pytest.raises(GraphError, match=r"row 1: the edge is directed \(column Type\)"):
            read(frame)
        assert read(frame, symmetrize=True).n_edges == 2
    lacking = pa.table({"source": [1, 2], "target": [2, 3], "type": ["Directed", None]})
    with pytest.warns(GraphWarning, match="which edges are directed is not read: column type"):
        assert as_graph(lacking).n_edges == 2
