import gzip
import io
import os
import re
import stat
import sys
import warnings
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather

from louvain_um.errors import GraphFormatError, GraphWarning, OptionError
from louvain_um.formats import read_graph
from louvain_um.formats.edge_list import edges
from louvain_um.formats.edge_list.number_vertices import number_vertices


def read(folder, text, name="g.txt", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_graph(path, **options)


def pairs(graph):
    names = range(graph.n_vertices) if graph.names is None else graph.names.tolist()
    rows = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    return {
        (names[a], names[b])
        for a, b in zip(rows.tolist(), graph.targets.tolist(), strict=True)
        if a < b
    }


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 2\n",
        "0\t1\n1\t2\n",
        "0,1\n1,2\n",
        "0, 1\n1, 2",
        "0;1\n1;2\n",
        "0|1\n1|2\n",
        "0:1\n1:2\n",
        "0 1\r\n1 2\r\n",
        "  0   1  \n\n\t1 2\n\n",
        "# note\n0 1\n% note\n// note\n1 2\n",
        "\ufeff0 1\n1 2\n",
        "sep=;\r\n0;1\r\n1;2\r\n",
        '\ufeff"sep=,"\nsource,target\n0,1\n1,2\n',
        "sep=\t\n0\t1\n1\t2\n",
        "source,target\n0,1\n1,2\n",
        '"from","to"\n"0","1"\n"1","2"\n',
        "3 2\n0 1\n1 2\n",
        "3 3 2\n0 1\n1 2\n",
        "0 1 1\n1 2 1\n",
        "1 0\n0 1\n2 1\n2 1\n",
    ],
)
def test_dialects(tmp_path, text):
    graph = read(tmp_path, text)
    assert pairs(graph) == {(0, 1), (1, 2)}
    assert graph.total_weight == 4
    packed = read(tmp_path, gzip.compress(text.encode()), "g.txt.gz")
    assert pairs(packed) == {(0, 1), (1, 2)}


def test_counts_in_the_first_line_can_be_an_edge(tmp_path):
    assert "header" in read(tmp_path, "3 2\n0 1\n1 2\n").notes[0]
    assert read(tmp_path, "3 2\n0 1\n1 2\n", header=False).n_edges == 3
    weighted = read(tmp_path, "3 2\n0 1 .5\n1 2 .25\n")
    assert (weighted.n_vertices, weighted.n_edges, weighted.weighted) == (3, 2, True)
    assert read(tmp_path, "0 1\n1 2\n", header=True).n_edges == 1


def test_vertices_are_the_ids_that_occur(tmp_path):
    graph = read(tmp_path, "7 1000000000000\n7 3\n")
    assert graph.names.tolist() == [3, 7, 10**12]
    assert pairs(graph) == {(3, 7), (7, 10**12)}


def test_isolated_vertices_can_be_announced(tmp_path):
    assert read(tmp_path, "# Nodes: 5 Edges: 1\n0 1\n").n_vertices == 5
    assert read(tmp_path, "# Nodes: 5 Edges: 1\n1 5\n").names.tolist() == [1, 2, 3, 4, 5]
    assert read(tmp_path, "# Nodes: 2 Edges: 1\n4 9\n").names.tolist() == [4, 9]
    assert read(tmp_path, "# Nodes: 3 Edges: 0\n").n_vertices == 3
    assert read(tmp_path, "# nothing\n").n_vertices == 0


def test_a_base_makes_every_id_a_vertex(tmp_path):
    assert read(tmp_path, "1 4\n").n_vertices == 2
    assert read(tmp_path, "1 4\n", one_based=True).names.tolist() == [1, 2, 3, 4]
    assert read(tmp_path, "1 4\n", one_based=False).n_vertices == 5
    with pytest.raises(GraphFormatError, match=r"g\.txt:2: id 0 .*one_based"):
        read(tmp_path, "1 4\n0 1\n", one_based=True)
    for text in ("1 4\n0 1\n", "% bip unweighted\n1 4\n0 1\n"):
        with pytest.raises(GraphFormatError, match="id 0 is below 1, the first id"):
            read(tmp_path, text, one_based=True, ids="text")


@pytest.mark.parametrize("base", [True, False])
def test_a_base_of_ids_that_are_names_is_refused(tmp_path, base):
    flag = "one_based=True (--one-based)" if base else "one_based=False (--zero-based)"
    match = re.escape(f"ids are names, not numbers from {int(base)}; drop {flag}")
    for text, options in (("ann bob\nbob cid\n", {}), ("1 4\n2 3\n", {"bipartite": True})):
        with pytest.raises(GraphFormatError, match=match):
            read(tmp_path, text, one_based=base, **options)


def test_weights(tmp_path):
    graph = read(tmp_path, "a,b,weight\n0,1,2\n1,2,3\n1,0,4\n")
    assert graph.weights.tolist() == [6, 6, 3, 3]
    assert graph.scale == 1.0
    real = read(tmp_path, "0 1 0.5 x\n1 2 2.5e-1 y\n")
    assert (real.weights / real.scale).tolist() == [0.5, 0.5, 0.25, 0.25]
    assert not read(tmp_path, "0 1 0.5\n", weighted=False).weighted
    assert read(tmp_path, "0 1 0\n").weights.tolist() == []
    assert read(tmp_path, "0 1 7\n1 0 7\n", duplicates="once").weights.tolist() == [7, 7]
    wide = read(tmp_path, "0 1 1e-12\n1 2 1e12\n")
    assert wide.weights.max() / wide.scale == pytest.approx(1e12)
    assert "not read" in read(tmp_path, "0 1 red\n1 2 blue\n").notes[0]


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1e300, allow_nan=False), min_size=1, max_size=8))
def test_every_double_is_parsed_to_the_last_bit(tmp_path_factory, weights):
    text = "".join(f"0 1 {w!r}\n0 1 {w:.12f}\n" for w in weights).encode()
    from louvain_um.formats.edge_list.scan import WEIGHT
    from louvain_um.formats.graph_file import GraphFile

    rule = edges.LineFormat(shape=WEIGHT)
    got = edges.read_numbers(GraphFile(io.BytesIO(text), "x"), rule).w
    expected = [x for w in weights for x in (w, float(f"{w:.12f}"))]
    assert got.tolist() == expected


def test_names(tmp_path):
    graph = read(tmp_path, "bob ann\ncid bob\n")
    assert graph.names.tolist() == ["ann", "bob", "cid"]
    assert pairs(graph) == {("ann", "bob"), ("bob", "cid")}
    quoted = read(tmp_path, 'source,target,weight\n"Smith, J.",Zoë,2\n"a ""b""",Zoë,3\n', "g.csv")
    assert quoted.names.tolist() == ["Smith, J.", "Zoë", 'a "b"']
    assert quoted.weights.max() == 3
    tabs = read(tmp_path, "New York\tLos Angeles\nLos Angeles\tRome\n")
    assert tabs.names.tolist() == ["Los Angeles", "New York", "Rome"]
    mixed = read(tmp_path, "1 x\n2 y\n3 4\n")
    assert mixed.names.tolist() == ["1", "2", "3", "4", "x", "y"]
    assert read(tmp_path, "1 x\n", ids="text").n_vertices == 2
    long = read(tmp_path, f"a {'b' * 100}\n")
    assert long.names.tolist() == ["a", "b" * 100]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from,to,weight\nx,y,1\n#tea,#milk,5\n", 3),
        ("from,to,weight\n# tea,x,5\nx,y,1\n", 2),
        ("x y\n# two words\n#tea milk\n", 3),
        ("#tea,#milk\n#milk,#x\nx,y\n", 2),
        ("#author john\n#date 2026-01-31\nx y\n", None),
        ("#from,to\nx,y\n", None),
        ("x,y\n# of tea, milk\n#tea\n", None),
    ],
)
def test_comments_that_may_be_edges_are_noted(tmp_path, text, line):
    with pytest.warns(GraphWarning, match=f"line {line} .* comment") if line else nullcontext():
        assert read(tmp_path, text).n_edges == 1
    with pytest.warns(GraphWarning, match="line 2 "):
        assert read(tmp_path, "#tea,#milk\n#milk,#x\n").n_edges == 0
    with pytest.warns(
        GraphWarning, match=r"'number\\tone\\tother' may name the columns; name the ends"
    ):
        assert read(tmp_path, "#number\tone\tother\n1\t2\t3\n").n_edges == 1


def test_names_do_not_depend_on_the_order_of_lines(tmp_path):
    lines = [f"v{i * 7 % 501} v{i * 13 % 499}\n" for i in range(2000)]
    one, two = read(tmp_path, "".join(lines)), read(tmp_path, "".join(reversed(lines)))
    assert one.names is not None
    assert two.names is not None
    assert np.array_equal(one.names, two.names)
    assert np.array_equal(one.targets, two.targets)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("0 1\n2\n", 2, "one field"),
        ("# c\n\n0 1\n-1 2\n", 4, "negative"),
        ("0 1 2\n1 2 nan\n", 2, "not a number"),
        ("0 1 2\n1 2 1e999\n", 2, "infinite"),
        ("0 1 2\n1 2 -3\n", 2, "negative"),
        ("0 1 2\n1 2\n", 2, "missing weight"),
        ("0 1 2\n" * 70 + "1 2 heavy\n", 71, "not numeric"),
        ("0 1 2\n1 2 3 4\n0 2 1\n", 2, "4 fields"),
        ("0 1 2\n1 2 0.123456789012345678901 4\n0 2 1\n", 2, "4 fields"),
        ("0 1\n" * 3 + "0 1 5\n", 4, "3 fields"),
        ("0,,1\n1,2,\n", 1, "empty"),
        ("0 1\n0 \x00\x01\x02\n", 2, "not text"),
        (b"0 1\n" * 99 + b"\xff\xfe\x80\n", 100, "not text"),
        ("a,b\nc,d\n,d\n", 3, "empty"),
        ("5 4\n0 1 1\n1 2 1\n", 1, "counts"),
    ],
)
def test_faulty_lines(tmp_path, text, line, words):
    with pytest.raises(GraphFormatError) as caught:
        read(tmp_path, text)
    assert caught.value.line == line
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'g.txt'}:{line}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("id", ["1.5", "2.0", "99999999999999999999", "007", "+49170", "two"])
def test_ids_that_are_no_whole_numbers_make_all_text(tmp_path, id):
    for before in (1, 100, 100_000):
        lines = "".join(f"{i % 99} {i % 99 + 1} 2\n" for i in range(before))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = read(tmp_path, f"{lines}1 {id} 5\n3 1 2\n")
            only = read(tmp_path, f"{lines}1 {id} 5\n3 1 2\n", ids="text")
        assert id in graph.names.tolist()
        assert graph.names.tolist() == only.names.tolist()
        assert np.array_equal(graph.targets, only.targets)
        assert np.array_equal(graph.weights, only.weights)
        assert any(f"{id!r} in line {before + 1}" in note for note in graph.notes)
        with pytest.raises(GraphFormatError, match="ids='text'") if id != "007" else nullcontext():
            read(tmp_path, f"{lines}1 {id} 5\n3 1 2\n", ids="number")


def test_line_numbers_count_over_blocks(tmp_path, monkeypatch):
    from louvain_um.formats.graph_file import GraphFile

    blocks = GraphFile.blocks
    monkeypatch.setattr(GraphFile, "blocks", lambda self, size=0: blocks(self, 1000))
    pieces = GraphFile.pieces
    monkeypatch.setattr(GraphFile, "pieces", lambda self: pieces(self, 1000))
    lines = "".join(f"{i} {i + 1} 0.123456789012345678\n" for i in range(900))
    assert read(tmp_path, lines).n_edges == 900
    for faulty in ("-5 1 2\n", "1 2 -1e-30\n"):
        with pytest.raises(GraphFormatError) as caught:
            read(tmp_path, lines + faulty + lines)
        assert caught.value.line == 901
    words = "".join(f"v{i} v{i + 1}\n" for i in range(900))
    assert read(tmp_path, words).n_vertices == 901


@pytest.mark.skipif(not hasattr(os, "pread"), reason="threads read their parts with pread")
def test_a_file_is_read_whole_if_the_system_returns_little_or_no_size(tmp_path, monkeypatch):
    from louvain_um.formats.graph_file import GraphFile

    text = "".join(f"{i} {i + 1}\n" for i in range(8000))
    pread, pieces = os.pread, GraphFile.pieces
    with monkeypatch.context() as patch:
        patch.setattr(GraphFile, "pieces", lambda self: pieces(self, 1000))
        patch.setattr(os, "pread", lambda file, size, place: pread(file, min(size, 5), place))
        assert read(tmp_path, text).n_edges == 8000
    monkeypatch.setattr(os, "fstat", lambda file: os.stat_result([stat.S_IFREG, *[0] * 9]))
    assert read(tmp_path, text).n_edges == 8000


def test_options_are_checked(tmp_path):
    for wrong in (
        {"format": "xls"}, {"separator": "::"}, {"separator": 5}, {"ids": "names"},
        {"weighted": "no"}, {"header": "no"}, {"one_based": 2}, {"symmetrize": "yes"},
    ):  # fmt: skip
        with pytest.raises(OptionError):
            read(tmp_path, "0 1\n", **wrong)
    with pytest.raises(GraphFormatError, match="third column"):
        read(tmp_path, "0 1\n", weighted=True)
    with pytest.raises(GraphFormatError, match="third column"):
        read(tmp_path, "0 1 red\n", weighted=True)
    assert read(tmp_path, "0-1\n1-2\n", separator="-").n_edges == 2


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 7\n", "run git lfs pull"),
        ("<!DOCTYPE html>\n<p>not found</p>\n", "is a page of HTML"),
        ('{"nodes": [], "arcs": []}\n', "is JSON"),
        ("[[0, 1], [1, 2]]\n", "is JSON"),
        ("digraph G {\na -> b\n", "is a DOT file of Graphviz"),
        ('strict graph "my net"\n{ a -- b\n', "is a DOT file of Graphviz"),
        ("0: 1 2\n1: 2 3\n", ":1: '0:' seems to begin a list of neighbours"),
        ("# dot\na -> b\nb -> c\n", ":2: '->' stands where the second id is expected"),
        ("Id,Label\n0,ann\n1,bob\n", ":1: lists the community or label of each vertex"),
    ],
)
def test_what_is_no_edge_list_is_reported_as_such(tmp_path, text, reported):
    with pytest.raises(GraphFormatError) as caught:
        read(tmp_path, text)
    assert reported in str(caught.value)


def test_advice_for_other_lists_is_right(tmp_path):
    assert pairs(read(tmp_path, "a -> b\nb -> c\n", source=1, target=3)) == {("a", "b"), ("b", "c")}
    assert read(tmp_path, "0: 1\n1: 2\n", source=1, target=2).n_edges == 2


def test_blanks_of_other_scripts_belong_to_names(tmp_path):
    graph = read(tmp_path, "山田\u3000太郎 b 2\nb c\u00a0d 5\n")
    assert pairs(graph) == {("b", "山田\u3000太郎"), ("b", "c\u00a0d")}
    assert graph.weighted


@pytest.mark.parametrize("separator", "\t;|,: ")
def test_a_truncated_line_is_reported_and_not_those_before(tmp_path, separator):
    whole = "".join(f"ann{i}{separator}ann{(i + 1) % 5}\n" for i in range(5))
    with pytest.raises(GraphFormatError) as caught:
        read(tmp_path, f"{whole}ann")
    assert caught.value.line == 6


@pytest.mark.parametrize("separator", ["\n", "\r", "\0", '"', "'", "0", "7"])
@pytest.mark.parametrize("text", ["1 2\n", "1\n2\n", "a b\n", "1 2 0.5", "1\n" * 40_000])
def test_separators_that_lines_contain_otherwise(tmp_path, text, separator):
    with pytest.raises(OptionError, match="line break, NUL, a quote or a digit") as caught:
        read(tmp_path, text, separator=separator)
    assert "\n" not in str(caught.value)


def test_standard_input(monkeypatch):
    def pipe(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    pipe(gzip.compress(b"0 1\n1 2\n"))
    assert read_graph("-").n_edges == 2
    pipe(b"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
    assert read_graph("-").n_edges == 1
    table = io.BytesIO()
    feather.write_feather(pa.table({"source": [0, 1], "target": [1, 2]}), table)
    pipe(table.getvalue())
    assert read_graph("-").n_edges == 2
    pipe(b"2 1\n2\n1\n")
    assert read_graph("-", format="metis").n_edges == 1
    pipe(b"0 1\n1\n")
    with pytest.raises(GraphFormatError, match=r"<stdin>:2"):
        read_graph("-")


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1),
    st.sampled_from([1, 10**6, 2**33]),
    st.integers(0, 5),
)
def test_numbering_keeps_ids_in_order(ends, stride, low):
    ids = np.array(ends, np.int64) * stride + low
    kind = np.uint32 if ids.max() < 2**32 - 1 else np.int64
    u, v, n, names = number_vertices(ids[:, 0].astype(kind), ids[:, 1].astype(kind))
    table = np.arange(n) if names is None else names
    assert np.array_equal(table, np.unique(ids))
    assert np.array_equal(np.column_stack((table[u], table[v])), ids)


@pytest.mark.parametrize("separator", [" ", ",", "\t"])
@pytest.mark.parametrize("n", [4, 100])
def test_a_matrix_is_distinguished_from_edges(tmp_path, n, separator):
    matrix = np.random.default_rng(1).integers(0, 2, (n, n))
    matrix |= matrix.T
    text = "".join(separator.join(map(str, row)) + "\n" for row in matrix.tolist())
    with pytest.raises(GraphFormatError, match=rf"{n} numbers a line .* a matrix, not edges; read"):
        read(tmp_path, text)
    assert read(tmp_path, text, source="1", target="2", weighted=False).n_vertices == 2


@pytest.mark.parametrize(
    "text",
    [
        "0 1 1\n1 0 1\n1 1 0\n",  # three columns can be weighted edges
        "0 1 5 7\n1 2 5 8\n2 3 6 9\n3 0 6 9\n",  # not symmetric
        "0 1 0 1\n1 0 1 0\n0 1 0 1\n1 0 1 0\n2 0 1 0\n",  # more lines than columns
    ],
)
def test_columns_of_numbers_are_no_matrix(tmp_path, text):
    assert read(tmp_path, text, weighted=False).n_vertices > 1
