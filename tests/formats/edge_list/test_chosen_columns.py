"""Columns chosen by name or number, and columns recognized wherever they stand."""

import warnings
from collections.abc import Callable

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louvain_um.errors import GraphError, GraphFormatError, GraphWarning, OptionError, Uncertain
from louvain_um.formats import as_graph, read_graph
from louvain_um.graph.graph import Graph

ORDERS = "order_id,customer_a,customer_b,amount\n1,ann,bob,2.5\n2,bob,cid,1\n3,cid,ann,4\n"
NUMBERS = "77 1 5 2 9\n78 2 6 3 9\n79 3 7 1 9\n"


def listed(graph):
    ids = range(graph.n_vertices) if graph.names is None else graph.names.tolist()
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    edges = []
    for place, (a, b) in enumerate(zip(u.tolist(), graph.targets.tolist(), strict=True)):
        if a < b:
            w = () if graph.weights is None else (graph.weights[place] / graph.scale,)
            edges.append((ids[a], ids[b], *w))
    return edges


ROUND = [("ann", "bob", 2.5), ("ann", "cid", 4.0), ("bob", "cid", 1.0)]


def frame():
    names = ["ann", "bob", "cid"]
    return pd.DataFrame(
        {"order_id": [1, 2, 3], "customer_a": names, "customer_b": ["bob", "cid", "ann"],
         "amount": [2.5, 1.0, 4.0]}
    )  # fmt: skip


def csv(folder, **options):
    path = folder / "orders.csv"
    path.write_text(ORDERS)
    return read_graph(path, **options)


def parquet(folder, **options):
    frame().to_parquet(folder / "orders.parquet")
    return read_graph(folder / "orders.parquet", **options)


def pandas(folder, **options):
    return as_graph(frame(), **options)


def arrow(folder, **options):
    return as_graph(pa.Table.from_pandas(frame()), **options)


def polars(folder, **options):
    return as_graph(pytest.importorskip("polars").DataFrame(frame().to_dict("list")), **options)


each_reader = pytest.mark.parametrize("read", [csv, parquet, pandas, arrow, polars])
Reader = Callable[..., Graph]


@each_reader
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"source": "customer_a", "target": "customer_b", "weight": "amount"},
        {"source": "Customer_A", "target": "CUSTOMER_B"},
        {"source": 2, "target": 3, "weight": 4},
        {"source": "2", "target": "3"},
        {"target": "customer_a", "source": "customer_b"},
        {"source": "customer_b"},
        {"source": 2, "target": 3, "time": "order_id"},
    ],
)
def test_every_reader_takes_names_and_numbers(tmp_path, read, options):
    assert listed(read(tmp_path, **options)) == ROUND


@each_reader
def test_a_time_is_no_weight(tmp_path, read):
    graph = read(tmp_path, time="amount")
    assert not graph.weighted
    assert any("times" in note for note in graph.notes)


@each_reader
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"source": "buyer"}, "no column 'buyer' among order_id, customer_a"),
        ({"weight": 5}, "no column 5: lines have 4 columns, counted from 1"),
        ({"source": 0}, "no column 0"),
        ({"source": 1, "target": "order_id"}, "source and target are the same column"),
        ({"source": "amount"}, "pass target="),
    ],
)
def test_a_column_that_cannot_be_is_one_line(tmp_path, read, options, words):
    with pytest.raises(GraphError, match=words) as caught:
        read(tmp_path, **options)
    assert "\n" not in str(caught.value)
    assert "(--" in str(caught.value)


def test_options_that_contradict_each_other():
    with pytest.raises(OptionError, match="weighted=False"):
        as_graph(frame(), weight="amount", weighted=False)
    with pytest.raises(OptionError, match="number from 1"):
        as_graph(frame(), source=1.5)


@pytest.mark.parametrize("separator", [" ", "\t", ",", ";"])
@pytest.mark.parametrize("gap", ["", "  "])
def test_columns_of_numbers_in_any_place(tmp_path, separator, gap):
    path = tmp_path / "g.txt"
    path.write_text("# comment\n" + NUMBERS.replace(" ", separator + gap) + "\n% end\n")
    graph = read_graph(path, source=2, target=4, weight=3)
    assert listed(graph) == [(1, 2, 5.0), (1, 3, 7.0), (2, 3, 6.0)]
    assert listed(read_graph(path, source=4, target=2, weighted=False)) == [(1, 2), (1, 3), (2, 3)]
    assert listed(read_graph(path, source=2, target=4, weight=1))[0] == (1, 2, 77.0)


def test_many_blocks_give_the_same_graph(tmp_path):
    rng = np.random.default_rng(3)
    u, v, w = rng.integers(0, 5000, 200_000), rng.integers(0, 5000, 200_000), rng.random(200_000)
    frame = pd.DataFrame({"row": np.arange(len(u)), "w": w, "to": v, "from": u})
    frame.to_csv(tmp_path / "g.csv", index=False)
    one, other = read_graph(tmp_path / "g.csv"), as_graph((u, v, w))
    assert np.array_equal(one.targets, other.targets)
    assert np.array_equal(one.weights, other.weights)
    frame["to"] = [f"n{i:04}" for i in v]
    frame["from"] = [f"n{i:04}" for i in u]
    frame.to_csv(tmp_path / "n.csv", index=False)
    assert np.array_equal(read_graph(tmp_path / "n.csv").targets, other.targets)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("w,from,to\n1,2,3\n1,,3\n1,2,3\n", 3, "empty id"),
        ("w,from,to\n1,2,3\n1,2\n1,2,3\n", 3, "empty id"),
        ("w,from,to\n1,2,3\nx,2,3\n1,2,3\n", 3, "'x' is not numeric"),
        ("w,from,to\n1,2,3\n,2,3\n1,2,3\n", 3, "empty weight"),
        ("w,from,to\n1,2,3\n# note\n\n1,2,-3\n1,2,3\n", 5, "'-3' is negative"),
        ("w\tfrom\tto\n1\t2\t3\n1\t\t3\n1\t2\t3\n", 3, "empty id"),
    ],
)
def test_errors_name_the_line_of_the_file(tmp_path, text, line, words):
    path = tmp_path / "g.csv"
    path.write_text(text)
    with pytest.raises(GraphFormatError, match=words) as caught:
        read_graph(path)
    assert caught.value.line == line


def test_an_id_that_starts_like_a_comment_is_kept(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text('n,from,to\n1,#a,b\n2,b,"c, d"\n3,//c,#a\n')
    assert read_graph(path).names.tolist() == ["#a", "//c", "b", "c, d"]


@pytest.mark.parametrize(
    "head",
    ["from,to", "src,dst", "source,target", "user_id,friend_id", "FromNodeId,ToNodeId",
     "node1,node2", "protein_a,protein_b", "source_id,target_id", "Sender,Receiver",
     "userId1,userId2"],
)  # fmt: skip
@pytest.mark.parametrize("ids", ["1,2 2,3 3,9", "ann,bob bob,cid cid,dan"])
def test_common_names_are_recognized_wherever_they_stand(tmp_path, head, ids):
    path = tmp_path / "g.csv"
    path.write_text("\n".join([head, *ids.split()]) + "\n")
    first = read_graph(path)
    assert (first.n_vertices, first.n_edges) == (4, 3)
    path.write_text(
        "\n".join([f"x,weight,{head}", *(f"7,2,{line}" for line in ids.split())]) + "\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        later = read_graph(path)
    assert np.array_equal(later.targets, first.targets)
    assert later.weights.tolist() == [2] * 6
    assert later.names.tolist() == first.names.tolist()


@pytest.mark.parametrize("text", ["user1,user2\nuser2,user3\nuser3,user1\n", "gene1 gene2\n"])
def test_ids_that_look_like_a_header_stay_ids(tmp_path, text):
    path = tmp_path / "g.txt"
    path.write_text(text.replace("user", "gene"))
    assert "gene1" in read_graph(path).names.tolist()


def test_a_name_makes_the_first_line_a_header(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("kiosk,left one,right one\nk1,ann,bob\nk2,bob,cid\n")
    graph = read_graph(path, source="left one", target="right one")
    assert graph.names.tolist() == ["ann", "bob", "cid"]
    with pytest.raises(GraphFormatError, match="no header names the columns"):
        read_graph(path, source="here", header=False)
    path.write_text("# kiosk,one,two\n1,5,6\n1,6,7\n")
    with pytest.warns(GraphWarning, match="from the column 'kiosk', the only numeric one"):
        graph = read_graph(path, source="one", target="two")
    assert listed(graph) == [(5, 6, 1.0), (6, 7, 1.0)]


def test_an_uncertain_guess_warns_once_with_the_remedy(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("kiosk,shift,rating\n1,2,4\n2,3,5\n")
    with pytest.warns(GraphWarning) as caught:
        graph = read_graph(path)
    texts = [str(warning.message) for warning in caught]
    assert texts == [note for note in graph.notes if isinstance(note, Uncertain)]
    assert "column 1 ('kiosk') and column 2 ('shift')" in texts[0]
    assert "source=… and target=…" in texts[0]
    assert "weights are read from the column 'rating', the only numeric one" in texts[1]
    assert graph.weighted
    assert graph.notes[-1] == texts[1]
    assert all(warning.filename == __file__ for warning in caught)
    named = read_graph(path, source="kiosk", target="shift", weight="rating")
    assert listed(named) == [(1, 2, 4.0), (2, 3, 5.0)]
    as_graph(graph)  # a graph has warned when it was read


@pytest.mark.parametrize("kind", ["parquet", "pandas", "arrow", "polars"])
def test_numeric_columns_that_are_not_read_are_noted(tmp_path, kind):
    table = pd.DataFrame({"from": [1, 2], "to": [2, 3], "km": [4.0, 5.0], "name": ["x", "y"]})

    def read(frame, **options):
        if kind == "parquet":
            frame.to_parquet(tmp_path / "g.parquet")
            return read_graph(tmp_path / "g.parquet", **options)
        if kind == "polars":
            return as_graph(pytest.importorskip("polars").DataFrame(frame.to_dict("list")))
        return as_graph(pa.Table.from_pandas(frame) if kind == "arrow" else frame, **options)

    with pytest.warns(GraphWarning, match=r"read from the column 'km', the only numeric one"):
        assert read(table).weighted
    with pytest.warns(GraphWarning, match=r"'km', 'age' are not read; weight='km' reads one"):
        assert not read(table.assign(age=[7, 8])).weighted
    weighted = read(table.assign(weight=[1, 2]))
    assert weighted.weighted
    assert "numeric column 'km' is not read" in weighted.notes


def test_weights_of_networks_have_any_name(tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", km=2.5)
    graph.add_edge("b", "c", km=1.0)
    assert listed(as_graph(graph, weight="km")) == [("a", "b", 2.5), ("b", "c", 1.0)]
    with pytest.raises(GraphError, match=r"no attribute 'miles' \(they have: km\)"):
        as_graph(graph, weight="miles")
    for source in ("source", "target", "time"):
        with pytest.raises(GraphError, match="no columns to choose"):
            as_graph(graph, **{source: "a"})
    nx.write_graphml_xml(graph, tmp_path / "g.graphml")
    read = read_graph(tmp_path / "g.graphml", weight="km")
    assert listed(read) == [("a", "b", 2.5), ("b", "c", 1.0)]


def test_weights_of_igraph_have_any_name():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph(3, [(0, 1), (1, 2)])
    graph.es["km"] = [2.5, 1.0]
    assert listed(as_graph(graph, weight="km")) == [(0, 1, 2.5), (1, 2, 1.0)]
    with pytest.raises(GraphError, match="no attribute 'miles'"):
        as_graph(graph, weight="miles")


def test_arrays_of_archives_have_any_name(tmp_path):
    np.savez(tmp_path / "g.npz", src=[0, 1], dst=[1, 2], km=[2.5, 1.0])
    graph = read_graph(tmp_path / "g.npz", source="src", target="dst", weight="km")
    assert listed(graph) == [(0, 1, 2.5), (1, 2, 1.0)]
    with pytest.raises(GraphFormatError, match="no array 'to', only dst, km, src"):
        read_graph(tmp_path / "g.npz", source="src", target="to")


def test_formats_without_columns_say_so(tmp_path):
    path = tmp_path / "g.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
    with pytest.raises(GraphFormatError, match=r"no columns to choose; drop weight=… \(--weight\)"):
        read_graph(path, weight=3)
    with pytest.raises(GraphError, match="no columns to choose"):
        as_graph(np.zeros((2, 2)), source=1)


def test_a_name_used_twice_matters_only_where_it_is_read(tmp_path):
    table = pd.DataFrame([[1, 2, "x", "y"], [2, 3, "x", "y"]], columns=["from", "to", "a", "a"])
    assert listed(as_graph(table)) == [(1, 2), (2, 3)]
    with pytest.raises(GraphError, match="two columns are named 'a'; rename one"):
        as_graph(table, weight="a")
    doubled = pa.table([pa.array([1, 2]), pa.array([2, 3]), pa.array(["x", "x"])],
                       names=["from", "to", "a"])  # fmt: skip
    assert listed(as_graph(doubled.append_column("a", pa.array(["y", "y"])))) == [(1, 2), (2, 3)]
    doubled = doubled.rename_columns(["from", "to", "to"])
    pq.write_table(doubled, tmp_path / "doubled.parquet")
    for source in (doubled, tmp_path / "doubled.parquet"):
        with pytest.raises(GraphError, match="two columns are named 'to'; rename one"):
            as_graph(source)
    path = tmp_path / "doubled.csv"
    path.write_text("from,to,weight,weight\n1,2,3,4\n2,3,4,5\n")
    assert "numeric column 'weight' is not read" in read_graph(path).notes


def test_named_columns_of_a_label_file_are_edges(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("vertex,community\n5,1\n6,1\n")
    with pytest.raises(GraphFormatError, match="lists the community or label"):
        read_graph(path)
    options = {"source": "vertex", "target": "community"}
    assert read_graph(path, **options).n_edges == 2
    assert as_graph(pd.read_csv(path), **options).n_edges == 2


def test_of_ids_asked_to_be_numbers_no_earlier_ones_are_claimed(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("a b\nb c\n")
    with pytest.raises(GraphFormatError, match="ids='text', or, if the line is a header") as caught:
        read_graph(path, ids="number")
    assert "earlier" not in str(caught.value)
