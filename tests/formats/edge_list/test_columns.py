"""Headers, columns and weights of edge lists as people write them: never a silent wrong graph."""

import warnings

import numpy as np
import pandas as pd
import pytest

from louvain_um.errors import GraphError, GraphFormatError, Uncertain
from louvain_um.formats import as_graph, read_graph

GEPHI = "Source,Target,Type,Id,Label,Weight\n"


def read(folder, text, **options):
    path = folder / "g.csv"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = read_graph(path, **options)
    assert [str(w.message) for w in caught] == [n for n in graph.notes if isinstance(n, Uncertain)]
    return graph


def refused(folder, text, line, words, **options):
    with pytest.raises(GraphFormatError) as caught:
        read(folder, text, **options)
    assert caught.value.line == line
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def names(graph):
    return graph.names.tolist()


def weights(graph):
    assert graph.weights is not None
    return sorted((graph.weights / graph.scale).tolist())[::2]


@pytest.mark.parametrize(
    "head", ["person,friend", "source,target", "From,To", "actor,costar", "name of one,of another"]
)
def test_words_over_names_are_a_header_and_a_note(tmp_path, head):
    text = f"{head}\nann,bob\nbob,cid\ncid,ann\n"
    graph = read(tmp_path, text)
    assert names(graph) == ["ann", "bob", "cid"]
    assert "header=False reads it as an edge" in graph.notes[0]
    kept = read(tmp_path, text, header=False)
    assert kept.n_vertices == 5
    assert kept.notes == ()


def test_an_uncertain_first_line_is_an_edge_and_a_note(tmp_path):
    uncertain = read(tmp_path, "actor,costar\nann,bob\nbob,cid\ncid,dan\n")
    assert uncertain.n_vertices == 6
    assert "'actor,costar'" in uncertain.notes[0]
    assert "header=True" in uncertain.notes[0]
    pairs = "".join(f"v{i},v{i + 1}\n" for i in range(20_000))
    long = read(tmp_path, f"actor,costar\n{pairs}{pairs}")
    assert long.n_vertices == 20_003
    assert "header=True" in long.notes[0]
    assert read(tmp_path, "ann,bob\nbob,cid\ncid,dan\n").notes == ()
    assert read(tmp_path, "ann,bob\nbob,cid\ncid,dan\nann,eve\n").notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "source;target;weight\n1;2;0,5\n2;3;1,5\n",
        "1;2;0,5\n2;3;1,5\n",
        "1 2 0,5\n2 3 1,5\n",
        "1\t2\t0,5\n2\t3\t1,5\n",
        "ann bob 0,5\nbob cid 1,5\n",
        "ann;bob;0,5\nbob;cid;1,5\n",
        'ann,bob,"0,5"\nbob,cid,"1,5"\n',
        "from;to;km\n1;2;0,5\n2;3;1,5\n",
        "weight;from;to\n0,5;1;2\n1,5;2;3\n",
    ],
)
def test_decimal_commas_are_read(tmp_path, text):
    graph = read(tmp_path, text, weighted=True)
    assert weights(graph) == [0.5, 1.5]
    assert any("1,5 is read as 1.5" in note for note in graph.notes)
    if "km" not in text:
        assert weights(read(tmp_path, text)) == [0.5, 1.5]
    assert read(tmp_path, text, weighted=False).n_edges == 2


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("1;2;0,5\n2;3;1.5\n", 2, "'1.5' has a point, but others have decimal commas"),
        ("ann;bob;0,5\nbob;cid;1.5\n", 2, "'1.5' has a point, but others have decimal commas"),
        ("1;2;0,5\n2;3;1.234,5\n3;4;1\n", 2, "'1.234,5' has a point"),
        ("1;2;7\n2;3;1,234\n", 2, "'1,234' can mean 1.234 or 1234"),
        ("1;2;0,5\n2;3;1,2,3\n3;4;1\n", 2, "is not numeric"),
        ("1;2;0,5\n2;3;\n3;4;1\n", 2, "empty weight"),
        ("1;2;0,5\n;3;1\n", 2, "empty id"),
    ],
)
def test_uncertain_commas_are_errors(tmp_path, text, line, words):
    refused(tmp_path, text, line, words)


def test_decimal_commas_between_commas(tmp_path):
    refused(tmp_path, "source,target,weight\n1,2,0,5\n2,3,1,5\n", 1, "decimals with a point")
    assert "decimals with a point" in read(tmp_path, "1,2,0,5\n2,3,1,5\n").notes[0]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("source,target,weight\n1,2,0.5\n2,3,\n3,4,1\n", 3, "empty weight"),
        ("1,2,0.5\n2,3,\n3,4,1\n", 2, "empty weight"),
        ("a,b,0.5\nb,c,\nc,d,1\n", 2, "empty weight"),
        ("source,target,weight\n1,2,0.5\n2,3,n/a\n", 3, "'n/a' is not numeric"),
        ("source,target,weight\n1,2,high\n2,3,low\n", 2, "'high' is not numeric"),
        ("0 1 abc\n1 2 3.0\n", 1, "'abc' is not numeric"),
        ("0 1 3.0\n1 2 abc\n", 2, "'abc' is not numeric"),
        (GEPHI + "1,2,Undirected,0,,\n", 2, "empty weight"),
        (GEPHI + "1,2,Undirected\n" * 2, 2, "empty weight"),
        ("source,target,weight\n" + "1,2\n" * 2, 2, "missing weight"),
    ],
)
def test_one_faulty_weight_drops_no_column(tmp_path, text, line, words):
    refused(tmp_path, text, line, words)
    assert not read(tmp_path, text, weighted=False).weighted


def test_the_only_numeric_column_is_the_weight_and_noted(tmp_path):
    since = read(tmp_path, "from,to,since\n1,2,1999\n2,3,2001\n")
    assert not since.weighted
    assert "('since') contains times and is not read; weighted=True" in since.notes[1]
    colour = read(tmp_path, "from,to,colour\n1,2,3\n2,3,4\n")
    assert weights(colour) == [3, 4]
    assert "the column 'colour', the only numeric one; weighted=False" in colour.notes[-1]
    several = read(tmp_path, "from,to,colour,size\n1,2,3,9\n2,3,4,9\n")
    assert not several.weighted
    assert "numeric columns 'colour', 'size' are not read; weight='colour'" in several.notes[-1]
    assert weights(read(tmp_path, "from,to,colour\n1,2,3\n2,3,4\n", weighted=True)) == [3, 4]
    assert weights(read(tmp_path, "from,to,Strength\n1,2,3\n2,3,4\n")) == [3, 4]
    years = read(tmp_path, "1,2,1999\n2,3,2001\n")
    assert not years.weighted
    assert "years" in years.notes[0]
    assert weights(read(tmp_path, "1,2,1999\n2,3,2001\n", weighted=True)) == [1999, 2001]
    assert weights(read(tmp_path, "1,2,3\n2,3,2001\n")) == [3, 2001]


@pytest.mark.parametrize("label", ["", '"x, y"', "z"])
@pytest.mark.parametrize("end", ["1,2 2,3", "ann,bob bob,cid"])
def test_weights_are_found_by_name(tmp_path, label, end):
    one, two = end.split()
    text = f"{GEPHI}{one},Undirected,0,{label},2.5\n{two},Undirected,1,{label},1\n"
    graph = read(tmp_path, text)
    assert weights(graph) == [1.0, 2.5]
    assert "column 6 ('weight')" in graph.notes[1]
    assert not read(tmp_path, text, weighted=False).weighted
    tabs = text.replace('"x, y"', "x, y").replace(",", "\t").replace("x\t y", "x, y")
    assert weights(read(tmp_path, tabs)) == [1.0, 2.5]


@pytest.mark.parametrize("before", [1, 10_000])
@pytest.mark.parametrize("kind", ["Directed", '"directed"'])
def test_a_column_of_types_declares_directed_edges(tmp_path, before, kind):
    text = GEPHI + before * "1,2,Undirected,0,,2\n" + f"2,3,{kind},1,Directed,1\n"
    refused(tmp_path, text, before + 2, "symmetrize=True (--symmetrize)")
    assert weights(read(tmp_path, text, symmetrize=True)) == [1, 2 * before]
    named = text.replace("1,2,", "ann,bob,")
    refused(tmp_path, named, before + 2, "symmetrize=True (--symmetrize)")


def test_ends_that_stand_elsewhere(tmp_path):
    graph = read(tmp_path, "id,source,target\n0,5,6\n1,6,7\n")
    assert names(graph) == [5, 6, 7]
    assert "edges are read from column 2 ('source') and column 3 ('target')" in graph.notes
    assert read(tmp_path, "target,source\n5,6\n").n_edges == 1


@pytest.mark.parametrize("text", ["vertex,community\n0,0\n1,0\n", "node\tcommunity\nann\t0\n"])
def test_labels_are_no_graph(tmp_path, text):
    refused(tmp_path, text, 1, "pass the graph itself")
    assert read(tmp_path, text, header=True).n_edges >= 1
    frame = pd.DataFrame({"vertex": [0, 1], "community": [0, 0]})
    with pytest.raises(GraphError, match="pass the graph"):
        as_graph(frame)
    frame.to_parquet(tmp_path / "g.parquet")
    with pytest.raises(GraphFormatError, match="pass the graph"):
        read_graph(tmp_path / "g.parquet")


def test_empty_fields_between_tabs_shift_nothing(tmp_path):
    graph = read(tmp_path, "source\ttarget\tnote\tweight\n1\t2\t\t5\n1\t3\tx\t6\n")
    assert weights(graph) == [5, 6]
    refused(tmp_path, "1\t2\tx\n1\t\t2\n" * 3, 2, "empty")


def test_repeated_edges_and_loops_are_counted(tmp_path):
    graph = read(tmp_path, "1 2\n2 1\n2 2\n3 1\n1 2\n")
    assert graph.n_edges == 3
    assert graph.notes[0].startswith("2 of 5 edges repeat one listed before")
    assert graph.notes[1].startswith("1 edge is a loop")
    assert np.count_nonzero(graph.loops) == 1


def test_fewer_names_than_columns(tmp_path):
    text = "ends,time,weight\na,b,2026-01-31,1\nb,c,2026-02-01,2\n"
    graph = read(tmp_path, text, header=True, weighted=False)
    assert graph.n_edges == 2
    assert any("'ends'" in note for note in graph.notes)


def test_a_header_that_occurs_again_is_no_edge(tmp_path):
    text = "src,dst\nann,bob\nbob,cid\nsrc,dst\ncid,dan\n"
    with pytest.raises(GraphFormatError, match="'src,dst' occurs again below; delete"):
        read(tmp_path, text)
    assert read(tmp_path, text, header=True).n_edges == 4
    assert read(tmp_path, text.replace("src,dst\ncid", "dst,src\ncid")).n_edges == 4
