"""Tables and lists of every kind that exporters write: what each is read as, or refused with."""

# ruff: noqa: E501

import json
import re
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from louvain_um.errors import GraphError, GraphFormatError, Taken
from louvain_um.formats import as_graph, read_graph

igraph = pytest.importorskip("igraph")
pl = pytest.importorskip("polars")

READ: dict[str, tuple[str, str]] = {
    # Weights of any spelling, and lone numeric columns.
    "weight.csv": ("Source,Target,WEIGHT\n1,2,5\n2,3,6\n", "1-2:5 2-3:6"),
    "edge weight.csv": ("from,to,Edge-Weight\n1,2,5\n2,3,6\n", "1-2:5 2-3:6"),
    "corr.csv": ("source,target,corr\na,b,0.5\nb,c,0.25\n", "a-b:0.5 b-c:0.25"),
    "calls.csv": ("caller,callee,calls,since\na,b,3,2001\nb,c,4,2002\n", "a-b:3 b-c:4"),
    "bytes.csv": ("src_ip,dst_ip,bytes\n10.0.0.1,10.0.0.2,5\n", "10.0.0.1-10.0.0.2:5"),
    "names.csv": ("name1,name2,score\nann,bob,2\n", "ann-bob:2"),
    "weights.csv": ('from,to,what,weight,size\n1,2,5" a,7,3"\n2,3,"x, y","8",4\n', "1-2:7 2-3:8"),
    # Ids that a number would not give back.
    "zeros.txt": ("1 2\n2 3\n007 1\n", "007-1:1 1-2:1 2-3:1"),
    "zip.csv": ("zip1,zip2\n08540,10001\n10001,08541\n", "08540-10001:1 08541-10001:1"),
    "real.csv": ("a,b\n1.0,2.0\n2.0,3.0\n", "1.0-2.0:1 2.0-3.0:1"),
    "phone.csv": ("caller,callee\n+4917,+4918\n", "+4917-+4918:1"),
    # Markers, relations and numbers of records.
    "marked.csv": ("edge,1,2\nedge,2,3\nedge,3,1\n", "1-2:1 1-3:1 2-3:1"),
    "marked.txt": ("a 1 2 5\na 2 3 6\na 3 1 7\n", "1-2:5 1-3:7 2-3:6"),
    "triples.txt": ("ann knows bob 2\nbob knows cid 1\ncid likes ann 3\n", "ann-bob:2 ann-cid:3 bob-cid:1"),
    "numbers.tsv": ("1\tknows\t2\n2\tknows\t3\n3\tlikes\t1\n", "1-2:1 1-3:1 2-3:1"),
    "relation.csv": ("from_id,type,to_id,w\n1,K,2,5\n2,K,3,6\n", "1-2:5 2-3:6"),
    "records.csv": ("order_id,sender,receiver,amount\n1,a,b,5\n2,b,c,6\n3,c,a,7\n", "a-b:5 a-c:7 b-c:6"),
    "neo4j.csv": ("r:ID,:START_ID,since:int,:END_ID,:TYPE,weight:double\n10,1,2010,2,K,2.5\n", "1-2:2.5"),
    "numbered.csv": ("order_no,customer,product\n1,ann,tea\n2,bob,tea\n3,ann,milk\n", "ann-milk:1 ann-tea:1 bob-tea:1"),
    "index.csv": (",source,target,weight\n0,a,b,1\n1,b,c,2\n", "a-b:1 b-c:2"),
    "index.tsv": ("\tsource\ttarget\tweight\n0\ta\tb\t1\n1\tb\tc\t2\n", "a-b:1 b-c:2"),
    "r.txt": ('"from" "to" "w"\n"1" 5 6 1\n"2" 6 7 2.5\n', "5-6:1 6-7:2.5"),
    "comment.tsv": ("# id\tfrom\tto\tscore\n103\t5\t6\t2\n117\t6\t7\t3\n", "5-6:2 6-7:3"),
    "empty.tsv": ("note\tfrom\tto\tw\n\t1\t2\t5\nx\t2\t3\t6\n", "1-2:5 2-3:6"),
    "indented.txt": ("\t1\t2\n\t2\t3\n", "1-2:1 2-3:1"),
    # Two kinds of vertices.
    "users.csv": ("user_id,item_id\n1,1\n1,2\n", "user_id:1-item_id:1:1 user_id:1-item_id:2:1"),
    "groups.csv": (":START_ID(A),:END_ID(B)\n1,1\n", "start_id(A):1-end_id(B):1:1"),
    # Other formats.
    "matrix.csv": (",1,2\n1,0.0,3.0\n2,3.0,0.0\n", "1-2:3"),
    "list.lgl": ("# a\nb 2\nc\n# b\nc 1\n", "a-b:2 a-c:1 b-c:1"),
    "lists.txt": ("#me.py\n# GMT Sun Nov 29\n#\n0 1 2\n1 2\n2 3\n3\n", "0-1:1 0-2:1 1-2:1 2-3:1"),
    "lists.adjlist": ("0 1 2\n1 2\n2 3\n3\n", "0-1:1 0-2:1 1-2:1 2-3:1"),
    "dict.edgelist": ("0;1;{'weight': 2}\n1;2;{'weight': 3}\n", "0-1:2 1-2:3"),
    "dicts.edgelist": ("ann b,bob,{'corr': 0.5}\nbob,cid,{'corr': 0.25}\n", "ann b-bob:0.5 bob-cid:0.25"),
    "none.edgelist": ("0 1 {}\n1 2 {}\n", "0-1:1 1-2:1"),
    "embedded.dl": ("dl n=3 format=edgelist1\nlabels embedded:\ndata:\na b 2\nb c 3\n", "a-b:2 b-c:3"),
    "full.dl": ("DL N = 2 FORMAT = FULLMATRIX\nLABELS:\na,b\nDATA:\n0 4\n4 0\n", "a-b:4"),
    "list.net": ('*Vertices 3\n1 "a b"\n2 b\n3 c\n*Edgeslist\n1 2 3\n', "a b-b:1 a b-c:1"),
    "matrix.net": ("*Vertices 2\n*Matrix\n0 1\n1 0\n", "1-2:1"),
    "konect.txt": ("% sym positive\n1 2 3 1082008561\n2 3 1 1082008562\n", "1-2:3 2-3:1"),
    "nodes.col": ("c x\np edge 3 2\nn 1 5\ne 1 2\ne 2 3\n", "1-2:1 2-3:1"),
    "arcs.gr": ("p sp 2 2\na 1 2 5\na 2 1 5\n", "1-2:5"),
    "link.json": ('{"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"value": 3, "source": "a", "target": "b"}]}', "a-b:3"),
    "d3.json": ('{"nodes": [{"name": "a"}, {"name": "b"}], "links": [{"source": 0, "target": 1}]}', "a-b:1"),
    "records.json": ('[{"source": "a", "target": "b", "weight": 2}]', "a-b:2"),
    "records.jsonl": ('{"from": "a", "to": "b", "cnt": 2}\n{"from": "b", "to": "c", "cnt": 1}\n', "a-b:2 b-c:1"),
    "multi.gml": ('# two\ngraph [ node [ id 1 label "A" ] node [ id 2 label "B" ] edge [ source 1 target 2 key 0 ]\n# more\nedge [ source 1 target 2 key 1 ] ] # end', "A-B:2"),
    "keys.csv": ("source,target,key\na,b,0\na,b,1\n", "a-b:1"),
    "dates.jsonl": ('{"from": "2024-01-31", "to": "2024-02-29"}\n{"from": "2024-02-29", "to": "x"}\n', "2024-01-31-2024-02-29:1 2024-02-29-x:1"),
    "value.gml": ('graph [ node [ id 1 label "A" ] node [ id 2 ] edge [ source 1 target 2 VALUE 3.5 ] ]', "2-A:3.5"),
}  # fmt: skip
"""File → its text, and the edges that are read of it with their weights."""

REFUSED: dict[str, tuple[str, str]] = {
    "order.csv": ("order_no,customer,amount\nA1,ann,5\nA2,bob,6\nA3,ann,7\n", "source=…"),
    "words.txt": ("ann red bob\ncid blue dee\n", "source='1', target='2'"),
    "marker.txt": ("x 1 2\nx 2 3\nx 3 1\n", "source='2', target='3'"),
    "members.txt": ("1 2 3 4\n5 6\n7 8 9\n", "members of a community"),
    "incidence.tsv": ("gene\ts1\ts2\nx\t1\t0\ny\t1\t1\nz\t0\t1\n", "format='incidence'"),
    "counts.csv": ("person,clubA,clubB\nann,3,0\nbob,0,2\ncid,1,1\n", "format='incidence'"),
    "members.tsv": ("a\tb\tc\nd\te\nf\tg\th\ti\n", "members of a community"),
    "records.txt": ("v 1 A\nv 2 B\nv 3 A\ne 1 2 x\ne 2 3 y\n", "grep '^e'"),
    "one way.csv": (",x,y,z\nx,0,1,0\ny,0,0,1\nz,1,0,0\n", "'x' lists 'y' as a neighbour, but 'y'"),
    "trace.csv": ("time,address,write\n0,0x10,0\n1,0x20,1\n", "louvain-um simulate"),
    "missing.csv": ("from,to,prob\na,b,0.5\nb,c,\n", "weighted=False"),
    "directed.gr": ("p sp 3 2\na 1 2 5\na 2 3 7\n", "symmetrize=True"),
    "arcs.net": ("*Vertices 3\n*Arcs\n1 2 1\n2 1 1\n", "symmetrize=True"),
    "negative.csv": (",a,b\na,1,-0.5\nb,-0.5,1\n", "signed=True"),
    "unit.csv": (
        "from,to,weight,way\n1,2,5 km,A\n2,3,7 km,B\n",
        ":2: weight '5 km' is not numeric",
    ),
    "thousands.csv": (
        "from,to,weight,way\n1,2,9,A\n2,3,1 234,B\n",
        ":3: weight '1 234' is not numeric",
    ),
    "groups.csv": ("from;to;paid\na;b;1.234,50\nb;c;2.000,00\n", "'1.234,50' is not numeric"),
    "ratings.dat": ("1::1193::5::978300760\n1::661::3::978302109\n", ":1: has two colons"),
    "title.csv": (
        "My network,2024\nSource,Target\na,b\nb,c\n",
        ":2: names columns below other lines",
    ),
    "dollars.csv": ("from,to,paid\na,b,$5\nb,c,$7.25\n", "'$5' is not numeric"),
    "none.txt": ("a b None\nb c 2\n", ":1: weight 'None' is not numeric"),
    "tuples.txt": ("(0, 0) (0, 1)\n(0, 1) (1, 1)\n", "delete the brackets"),
    "tuples.adjlist": ("(0, 0) (0, 1)\n(0, 1)\n", "delete the brackets"),
    "note.csv": ('from,to,note\n1,2,"late,\n3,4"\n', ":2: has a quote that is not closed"),
    "late note.csv": (70 * "1,2,x\n" + '2,3,"a\n4,5,b"\n', ":71: has a quote that is not closed"),
    "late words.csv": (
        70 * "a,b,x\n" + 'b,c,x,"a\nd,e,b"\n',
        ":71: has a quote that is not closed",
    ),
    "chosen.csv": (
        "no,from,to,x\n" + 70 * "1,2,3,4\n" + '1,2,3,"a\n6,7,8,b"\n',
        ":72: has a quote",
    ),
    "some.json": (
        '[{"from": "a", "to": "b"}, {"from": "b", "to": "c", "weight": 3}]',
        "column weight lacks 1 of its 2 values",
    ),
    "empty.tsv": ("from\tto\tweight\tx\n1\t2\t5\t6\n\t2\t3\t7\n", ":3: empty id"),
    "edges.hgr": ("2 3\n1 2\n1 2 3\n", "hypergraph"),
    "list.json": ("[[0, 1], [1, 2]]", "JSON"),
}
"""File → its text, and what the error advises."""


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_graph(path, **options)


def listed(graph):
    edges = graph.to_pandas()
    weights = edges["weight"] if graph.weighted else [1] * len(edges)
    rows = zip(edges["source"], edges["target"], weights, strict=True)
    return sorted(f"{a}-{b}:{w:g}" for a, b, w in rows)


def test_what_is_certain_is_read(tmp_path):
    wrong = []
    for name, (text, wanted) in READ.items():
        found = listed(read(written(tmp_path, name, text)))
        if found != sorted(re.split(r"(?<=\d) ", wanted)):
            wrong.append((name, found, wanted))
    assert wrong == []


def test_what_is_ambiguous_is_refused_with_a_remedy(tmp_path):
    for name, (text, advice) in REFUSED.items():
        with pytest.raises(GraphFormatError) as caught:
            read(written(tmp_path, name, text))
        assert advice in str(caught.value), name


def test_tables_with_damaged_cells_are_refused_in_one_line(tmp_path):
    path = written(tmp_path, "g.csv", "name,a,b\nann,inf,1\nbob,1,1e300\n")
    with pytest.raises(GraphFormatError, match="infinite"):
        read(path, format="incidence")
    path = written(tmp_path, "g.csv", "name,a,b\nann,2e300,1e300\nbob,1e300,4e300\n")
    wanted = ["a-ann:2e+300", "a-bob:1e+300", "ann-b:1e+300", "b-bob:4e+300"]
    assert listed(read(path, format="incidence")) == wanted
    path = written(tmp_path, "g.dl", "dl n=0 format=fullmatrix\nlabels embedded\ndata:\n")
    assert read(path).n_vertices == 0
    edges = [
        {"source": "a", "target": "b", "weight": 7},
        {"source": "b", "target": "c", "weight": 2},
    ]
    for weight in ('""', '{"a": 1}', "[1]", "1" + "0" * 30):
        path = written(tmp_path, "g.json", json.dumps(edges).replace("7", weight, 1))
        with pytest.raises(GraphFormatError, match="is not"):
            read(path)


def test_a_weight_of_unknown_name_is_in_the_last_note(tmp_path):
    path = written(tmp_path, "g.csv", "source,target,corr\na,b,0.5\nb,a,0.5\n")
    with pytest.warns(UserWarning, match="the only numeric one"):
        graph = read_graph(path)
    assert isinstance(graph.notes[-1], Taken)
    assert "'corr'" in graph.notes[-1]
    path.write_text("source,target\na,b\n")
    with pytest.raises(GraphFormatError, match="no third column"):
        read_graph(path, weighted=True)
    with pytest.raises(GraphFormatError, match="signed=True"):
        read_graph(path, signed=True)


@pytest.mark.parametrize("name", ["Weight", "WEIGHT", "value", "km"])
def test_weights_of_objects_have_any_name(name):
    network = nx.Graph()
    network.add_edge("b", "a", **{name: 2.5})
    network.add_edge("b", "c", **{name: 1.5})
    other = igraph.Graph([(0, 1), (1, 2)], edge_attrs={name: [2.5, 1.5]})
    for obj in (network, other):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert as_graph(obj).to_pandas()["weight"].tolist() == [2.5, 1.5]
    with pytest.raises(GraphError, match="no edge attribute of weights"):
        as_graph(nx.path_graph(3), weighted=True)


def test_matrices_with_labels_are_read_from_frames():
    frame = pd.DataFrame([[1, 0.5], [0.5, 1]], index=["b", "a"], columns=["b", "a"])
    graph = as_graph(frame)
    assert any("loops='drop'" in note for note in graph.notes)
    assert graph.names.tolist() == ["a", "b"]
    assert listed(as_graph(frame, loops="drop")) == ["a-b:0.5"]
    with warnings.catch_warnings(action="ignore"):  # numbered columns are no labels
        assert listed(as_graph(pd.DataFrame([[1, 2, 3], [2, 3, 4]]))) == ["1-2:3", "2-3:4"]


def test_a_matrix_without_labels_is_no_table_of_edges():
    frame = pd.DataFrame(nx.to_numpy_array(nx.karate_club_graph()))
    with pytest.raises(GraphError, match=r"seem to be a matrix, not edges; pass frame\.to_numpy"):
        as_graph(frame)
    assert as_graph(frame, source=1, target=2).n_edges > 0
    assert as_graph(pd.DataFrame(np.arange(16).reshape(4, 4)), source=1, target=2).n_edges == 4


def forms(frame, folder):
    """Yield a frame with an index as other libraries hold it, and as files."""
    plain = frame.rename_axis("row").reset_index()
    yield from (frame, plain, pa.Table.from_pandas(frame), pl.from_pandas(plain))
    frame.to_parquet(folder / "index.parquet")
    plain.to_parquet(folder / "plain.parquet")
    plain.to_feather(folder / "plain.feather")
    yield from (folder / name for name in ("index.parquet", "plain.parquet", "plain.feather"))


def test_tables_with_labels_are_matrices_or_refused_in_every_form(tmp_path):
    near = pd.DataFrame([[0, 2.5, 0], [2.5, 0, 1], [0, 1, 0]], [*"cab"], [*"cab"])
    for form in forms(near, tmp_path):
        assert listed(as_graph(form)) == ["a-b:1", "a-c:2.5"]
    near.loc["c", "b"] = 7
    for form in forms(near, tmp_path):
        with pytest.raises(GraphError, match="'c' lists 'b' as a neighbour, but 'b' does not"):
            as_graph(form)
    for cells in ([[1, 0], [0, 1], [1, 1]], [[5, 0], [0, 1], [2, 2]]):
        clubs = pd.DataFrame(cells, ["ann", "bob", "cid"], ["clubA", "clubB"])
        for form in forms(clubs, tmp_path):
            with pytest.raises(GraphError, match=r"incidence table.*source=…"):
                as_graph(form)


def test_edges_without_the_attribute_of_the_others_are_noted(tmp_path):
    network = nx.Graph([("a", "b", {"corr": 0.5}), ("b", "c", {})])
    other = igraph.Graph([(0, 1), (1, 2)], edge_attrs={"corr": [0.5, None]})
    nx.write_gml(network, tmp_path / "g.gml")
    for source in (network, other, tmp_path / "g.gml"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = as_graph(source)
        assert graph.to_pandas()["weight"].tolist() == [0.5, 1]
        assert any("corr is missing for 1 of 2 edges" in note for note in graph.notes)


ONES = np.ones((3, 3)) - np.eye(3)


@pytest.mark.parametrize(
    "source",
    [([0, 1], [1, 2]), [("a", "b"), ("b", "c")], ONES != 0, nx.path_graph(3), igraph.Graph([(0, 1)]),
     pd.DataFrame({"source": [0, 1], "target": [1, 2]}), pl.DataFrame({"u": ["a"], "v": ["b"]})],
    ids=["arrays", "tuples", "truth", "networkx", "igraph", "pandas", "polars"],
)  # fmt: skip
def test_weights_that_are_asked_for_must_be_there(source):
    for option in ("weighted", "signed"):
        with pytest.raises(GraphError, match=f"has no .*weights.*{option}=True"):
            as_graph(source, **{option: True})
    with pytest.raises(GraphError, match="only weights of 1"):
        as_graph((ONES[0].astype(int), ONES[1].astype(int) + 2, np.ones(3)), signed=True)
