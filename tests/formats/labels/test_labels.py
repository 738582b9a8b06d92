import csv
import gzip
import io
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.errors import GraphError, GraphFormatError, GraphWarning
from louvain_um.formats.file_types import check_table_path
from louvain_um.formats.labels import read_labels, write_labels
from louvain_um.formats.labels import table as module
from louvain_um.formats.labels.table import digits
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels, compare

SUFFIXES = [".csv", ".tsv", ".parquet", ".npz", ".json"]
AWKWARD = ["plain", "with space", "a,b", 'say "x"', "tab\there", "", "ü", "line\nbreak"]


def result(names):
    graph = lu.Graph.from_edges([0, 2, 4, 6], [1, 3, 5, 7], names=names)
    return Communities.of(graph, [0, 0, 0, 1, 1, 2, 2, 2])


@pytest.fixture(params=SUFFIXES)
def suffix(request):
    return str(request.param)


@pytest.mark.parametrize(
    "names",
    [
        None,
        np.array([10, 11, 3, 9, 8, 7, 6, -5]),
        np.arange(10, 18, dtype=">i8"),
        np.array(AWKWARD, object),
        np.array(AWKWARD),
    ],
    ids=["none", "integers", "swapped", "objects", "text"],
)
def test_every_format_returns_what_was_written(tmp_path, suffix, names):
    written = result(names)
    path = tmp_path / f"labels{suffix}"
    write_labels(path, written)
    again = read_labels(path)
    assert again.vertices.tolist() == (list(range(8)) if names is None else names.tolist())
    assert again.communities.tolist() == written.labels.tolist()
    assert written.compare(again).identical
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("text", ["sep=;\r\nvertex;community\r\na;1\r\n", '"sep=,"\na,1\n'])
def test_a_line_for_spreadsheets_is_no_label(tmp_path, text):
    path = tmp_path / "labels.csv"
    path.write_text(text, newline="")
    found = read_labels(path)
    assert (found.vertices.tolist(), found.communities.tolist()) == (["a"], [1])


def round_trip(folder, suffix, vertices):
    names = np.empty(len(vertices), object)
    names[:] = vertices
    path = folder / f"again{suffix}"
    write_labels(path, Labels(names, np.arange(len(names))), force=True)
    return read_labels(path)


@settings(max_examples=60)
@given(
    names=st.lists(
        st.one_of(
            st.text(max_size=6),
            st.text('#%/"\n\r\t ,;0179_-+\0', max_size=4),
            st.integers(-9, 2**70).map(str),
        ),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_names_of_any_text_come_back(tmp_path_factory, names):
    for suffix in SUFFIXES:
        folder = tmp_path_factory.getbasetemp()
        texts = list(map(str, names))
        no_nul = suffix in (".csv", ".tsv") and any("\0" in text for text in texts)
        if no_nul or (suffix == ".npz" and any(text.endswith("\0") for text in texts)):
            with pytest.raises(lu.LouvainUmError, match="NUL characters"):
                round_trip(folder, suffix, names)
            continue
        again = round_trip(folder, suffix, names)
        assert again.vertices.tolist() == names
        assert again.communities.tolist() == list(range(len(names)))


@pytest.mark.parametrize(
    "names",
    [
        ["#a", "%b", "//c", "vertex"],
        ["007", "7"],
        ["1", '"1"'],
        ["1", "2"],
        ["a\r", "a\n", "a\r\n", "a", ""],
        ["1_0", "+5", " 5", "٣"],
        ["x" * 300_000, "y"],
        [10**18, 10**18 + 1, 2**63 - 1],
        [0, 2**64 - 1],
        [-(2**63), 5],
        ["9" * 5000, "1"],
    ],
)
def test_types_of_names_come_back(tmp_path, suffix, names):
    assert round_trip(tmp_path, suffix, names).vertices.tolist() == names


def test_names_that_differ_in_type_only_are_refused(tmp_path, suffix):
    with pytest.raises(lu.LouvainUmError, match="differ in type only"):
        round_trip(tmp_path, suffix, [1, "1"])
    with pytest.raises(lu.LouvainUmError, match="Unicode"):
        round_trip(tmp_path, suffix, ["\ud800", "a"])
    assert list(tmp_path.iterdir()) == []
    # Names of several types are written as their text.
    assert round_trip(tmp_path, suffix, [(0, 1), "a", 5]).vertices.tolist() == ["(0, 1)", "a", "5"]


def test_hashtags_are_compared(tmp_path):
    """Also in files without quotes, as `to_frame().to_csv()` writes them."""
    for name, text in {"a": "#x,0\n#y,1\nz,0\n", "b": "#x,0\n#y,0\nz,1\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"vertex,community\n{text}")
    a, b = (read_labels(tmp_path / f"{name}.csv") for name in "ab")
    assert a.vertices.tolist() == ["#x", "#y", "z"]
    agreement = compare(a, b)
    assert (agreement.identical, agreement.vertices) == (False, 3)
    (tmp_path / "c.csv").write_text("vertex,community\n1,0\n#x,0\n# by hand\n")
    assert read_labels(tmp_path / "c.csv").vertices.tolist() == ["1", "#x"]


def test_quoted_and_plain_numbers_are_the_same_vertices(tmp_path):
    (tmp_path / "r.csv").write_text('"id","dept"\n"1","a"\n"2","b"\n')
    found = read_labels(tmp_path / "r.csv")
    assert compare(found, Labels(np.array([1, 2]), np.array([5, 6]))).identical
    (tmp_path / "z.txt").write_text("007 1\n7 2\n")
    assert read_labels(tmp_path / "z.txt").vertices.tolist() == ["007", "7"]


def test_others_can_read_them(tmp_path):
    written = result(np.array(AWKWARD, object))
    for suffix in (".csv", ".tsv", ".parquet"):
        write_labels(tmp_path / f"x{suffix}", written)
    options = {"keep_default_na": False}
    frames = [
        pd.read_csv(tmp_path / "x.csv", **options),
        pd.read_csv(tmp_path / "x.tsv", sep="\t", **options),
        pd.read_parquet(tmp_path / "x.parquet"),
    ]
    for frame in frames:
        assert frame["vertex"].tolist() == AWKWARD
        assert frame["community"].tolist() == written.labels.tolist()
    write_labels(tmp_path / "x.json", written)
    document = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert document["vertex"] == AWKWARD
    assert document["communities"] == 3


def test_chunks_join(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(module, "CHUNK", 3)
    for names in (None, np.array(AWKWARD, object)):
        path = tmp_path / f"x{suffix}"
        write_labels(path, result(names), force=True)
        assert read_labels(path).communities.tolist() == result(names).labels.tolist()


def test_no_vertices(tmp_path, suffix):
    empty = Communities.of(lu.Graph.from_edges([], []), [])
    path = tmp_path / f"x{suffix}"
    write_labels(path, empty)
    assert len(read_labels(path)) == 0


@given(
    st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1)),
        min_size=1,
        max_size=20,
    )
)
def test_digits(rows):
    left = np.array([r[0] for r in rows], np.int64)
    right = np.array([r[1] for r in rows], np.uint64)
    expected = "".join(f"{b};{a}\n" for a, b in rows)
    assert digits((right, left), (b";", b"\n")).decode() == expected


TRICKY = st.text("aZ_09\",\n\r\t #'-éΩ漢😀٣", max_size=5)


@settings(deadline=None)
@given(st.lists(TRICKY, max_size=12))
def test_texts_of_a_fixed_width_are_written_as_objects_are(texts):
    fixed = np.array(texts, np.str_)
    written = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".csv", ".tsv", ".json", ".parquet"):
            for column in (fixed, fixed.astype(object)):
                path = Path(folder, f"x{suffix}")
                table = {"vertex": column, "community": np.arange(len(fixed))}
                module.write_table(path, table, {}, force=True)
                written.append(path.read_bytes())
            assert written.pop() == written.pop()


def test_overwriting_takes_force(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_text("mine")
    with pytest.raises(lu.LouvainUmError, match="force"):
        write_labels(path, result(None))
    assert path.read_text() == "mine"
    write_labels(path, result(None), force=True)
    assert len(read_labels(path)) == 8


def test_bad_targets(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    expected = {
        "x.xlsx": "use one of .csv, .tsv",
        "x": "no suffix",
        "no/x.csv": "no folder",
        "folder.csv": "is a folder",
    }
    for name, text in expected.items():
        for call in (check_table_path, lambda p: write_labels(p, result(None))):
            with pytest.raises(lu.LouvainUmError, match=text) as caught:
                call(tmp_path / name)
            assert name in str(caught.value)
            assert "\n" not in str(caught.value)
    (tmp_path / "pipe.csv").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(lu.LouvainUmError, match="regular file"):
        write_labels(tmp_path / "pipe.csv", result(None), force=True)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_labels(tmp_path / "link.csv", result(None), force=True)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("vertex,community\n")


@pytest.mark.parametrize(
    ("text", "vertices", "communities"),
    [
        ("0 1\n1 1\n2 21\n", [0, 1, 2], [1, 1, 21]),
        ("1\t2\n2\t1\n", [1, 2], [2, 1]),
        ("# made by x\n\n  5   7\r\n% so\r\n6 7\r\n", [5, 6], [7, 7]),
        ('node;dept\nann;sales\nbob;""\n', ["ann", "bob"], ["sales", ""]),
        ("3\n3\n5\n", [0, 1, 2], [3, 3, 5]),
        ("\ufeffid,c\n-1,2\n", [-1], [2]),
        ("a 1\nb 2", ["a", "b"], [1, 2]),
        ('"x, y",1\nz,2\n', ["x, y", "z"], [1, 2]),
        ("99999999999999999999 1\n", ["99999999999999999999"], [1]),
    ],
)
def test_plain_text(tmp_path, text, vertices, communities):
    path = tmp_path / "truth.txt"
    path.write_bytes(text.encode())
    found = read_labels(path)
    assert found.vertices.tolist() == vertices
    assert found.communities.tolist() == communities
    (tmp_path / "truth.txt.gz").write_bytes(gzip.compress(text.encode()))
    assert read_labels(tmp_path / "truth.txt.gz").communities.tolist() == communities


def test_stdin(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 2\n")))
    assert read_labels("-").vertices.tolist() == [1]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "contains no labels"),
        (b"1 2\n3\n4 5\n", ":2: 1 fields instead of 2"),
        (b"1 2\n\n3 4 5\n", ":3: 3 fields"),
        (b"1 2 3\n", ":1: 3 fields"),
        (b"1 2\n3 4\n1 5\n", "vertex 1 is listed more than once"),
        (b"ok 1\n\xff\xfe 2\n", ":2: is not text"),
        (b"\0\0\0", "is not text"),
        (b'a,1\nb,"2\nc,3\n', ":2: a quoted field has no closing quote; add it"),
        (b"vertex,community\na,1\nb,\n", ":3: the community is empty; fill it in"),
        (b"a,x\n,y\n", ":2: the vertex is empty; fill it in"),
        (gzip.compress(b"1 2\n" * 99, mtime=0)[:-12], "truncated"),
    ],
)
def test_bad_text(tmp_path, content, text):
    path = tmp_path / "truth.txt"
    path.write_bytes(content)
    with pytest.raises(lu.GraphFormatError, match=text) as caught:
        read_labels(path)
    assert "truth.txt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path):
    np.savez(tmp_path / "other.npz", u=np.zeros(2))
    np.savez(tmp_path / "uneven.npz", vertex=np.zeros(1), community=np.zeros(2))
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    (tmp_path / "noise.parquet").write_bytes(b"noise")
    (tmp_path / "half.json").write_text('{"vertex": [1')
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "deep.json").write_text("[" * 200_000)
    np.savez(tmp_path / "square.npz", vertex=np.zeros((2, 2)), community=np.zeros((2, 2)))
    np.savez(tmp_path / "gaps.npz", vertex=np.array([1, np.nan]), community=np.zeros(2))
    pd.DataFrame({"vertex": ["a", None], "community": [0, 1]}).to_parquet(tmp_path / "gaps.parquet")
    for folder in ("empty", "half"):
        (tmp_path / folder).mkdir()
    (tmp_path / "half/part-00000.unfinished").touch()
    expected = {
        "other.npz": "need the arrays vertex and community",
        "uneven.npz": "1 vertices, but 2 communities",
        "other.parquet": "vertex and community",
        "noise.parquet": "vertex and community",
        "half.json": "not valid JSON",
        "list.json": "vertex and community",
        "deep.json": "not valid JSON",
        "square.npz": "one-dimensional",
        "gaps.npz": "are missing; drop those rows",
        "gaps.parquet": "are missing; drop those rows",
        "none.csv": "no such file",
        "none.npz": "no such file",
        "none.json": "no such file",
        "none.parquet": "no such file",
        "empty": "is a folder without .parquet files; name a label file",
        "half": "holds unfinished files",
    }
    for name, text in expected.items():
        with pytest.raises(lu.LouvainUmError, match=text) as caught:
            read_labels(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_bytes_are_text(tmp_path):
    names, communities = np.array([b"ann", "Zo\u00eb".encode()]), np.array([b"x", b"y"])
    np.savez(tmp_path / "l.npz", vertex=names, community=communities)
    table = {"vertex": names.tolist(), "community": communities.tolist()}
    pd.DataFrame(table).to_parquet(tmp_path / "l.parquet")
    for name in ("l.npz", "l.parquet"):
        labels = read_labels(tmp_path / name)
        assert labels.vertices.tolist() == ["ann", "Zo\u00eb"]
        assert labels.communities.tolist() == ["x", "y"]


def test_saved_results_and_mappings_are_labels_too(tmp_path):
    written = result(np.array(AWKWARD, object))
    written.save(tmp_path / "r.npz")
    assert written.compare(read_labels(tmp_path / "r.npz")).identical
    (tmp_path / "m.json").write_text('{"a": 1, "b": 2}')
    found = read_labels(tmp_path / "m.json")
    assert (found.vertices.tolist(), found.communities.tolist()) == (["a", "b"], [1, 2])


def test_labels_without_a_result_are_written_too(tmp_path, suffix):
    labels = Labels(np.array(["a", "b"], object), np.array(["x", "y"], object))
    write_labels(tmp_path / f"x{suffix}", labels)
    assert read_labels(tmp_path / f"x{suffix}").communities.tolist() == ["x", "y"]


def test_ground_truth_of_real_graphs(shared_data):
    departments = read_labels(shared_data / "email-Eu-core-department-labels.txt")
    assert len(departments) == 1005
    assert len(set(departments.communities.tolist())) == 42
    blocks = read_labels(shared_data / "simulated_blockmodel_graph_1000_nodes_truePartition.tsv")
    assert blocks.vertices.tolist() == list(range(1, 1001))


@pytest.mark.parametrize("separator", [",", "\t", " ", ";"])
@pytest.mark.parametrize(
    ("head", "rows"),
    [
        ("user planted", "1 a/2 b/3 a"),
        ("user planted", "1 0/2 0/3 1"),
        ("user planted", "ann red/bob red/cid blue"),
        ("person department", "ann 0/bob 0/cid 1"),
        ("User_ID Cluster", "ann red/bob red/cid blue"),
        ("who where", "1 a/2 b/3 a"),
        ("who where", "ann 0/bob 0/cid 1"),
    ],
)
def test_a_header_is_no_member(tmp_path, separator, head, rows):
    path = tmp_path / "l.txt"
    lines = [line.replace(" ", separator) for line in (head, *rows.split("/"))]
    path.write_text("\n".join(lines) + "\n")
    labels = read_labels(path)
    assert len(labels.vertices) == 3
    path.write_text("\n".join(lines[1:]) + "\n")
    assert labels.vertices.tolist() == read_labels(path).vertices.tolist()
    assert labels.communities.tolist() == read_labels(path).communities.tolist()


def test_a_header_over_one_column_is_no_member(tmp_path):
    path = tmp_path / "l.txt"
    for head in ("community,vertex", "Cluster,user_id"):
        path.write_text(f"# c\n{head}\n0,1\n1,2\n2,0\n")
        with pytest.raises(GraphFormatError, match=":2: names the community before the vertex"):
            read_labels(path)
    path.write_text("planted\n0\n0\n1\n")
    assert read_labels(path).communities.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "ann red\nbob red\ncid blue\n",
        "ann 7\n5 7\n6 8\n",
        "7 red\nann red\nbob blue\n",
        "user red\nann red\nbob blue\n",
        "user cluster\nuser2 cluster\nann x\n",
        "a\nb\nb\n",
    ],
)
def test_a_first_vertex_stays_a_vertex(tmp_path, text):
    path = tmp_path / "l.txt"
    path.write_text(text)
    assert len(read_labels(path).vertices) == 3


def test_an_uncertain_first_line_warns(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("actor,role\nann,hero\nbob,hero\ncid,fool\ndan,fool\n")
    with pytest.warns(GraphWarning, match="start it with #"):
        assert len(read_labels(path).vertices) == 5


CLU = """# v2.16.0
# node_id module flow
3 1 0.214286
1 1 0.142857
4 2 0.214286
"""
TREE = """# path flow name node_id
1:1:1 0.2 "ann" 3
1:2:1 0.1 "bob c" 1
2:1 0.2 "4" 4
*Links undirected
*Links root 0 0 2 1
1 2 0.07
"""


@pytest.mark.parametrize("suffix", ["clu", "tree", "ftree"])
def test_top_modules_are_read(tmp_path, suffix):
    path = tmp_path / f"g.{suffix}"
    path.write_text(CLU if suffix == "clu" else TREE)
    found = read_labels(path)
    expected = [3, 1, 4] if suffix == "clu" else ["ann", "bob c", "4"]
    assert found.vertices.tolist() == expected
    assert found.communities.tolist() == [1, 1, 2]


def test_numeric_names_are_ids(tmp_path):
    path = tmp_path / "g.tree"
    path.write_text('1:1 0.5 "7" 0\n2:1 0.5 "9" 1\n')
    assert read_labels(path).vertices.tolist() == [7, 9]


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [("g.clu", "# x\n1 2 3 4\n", ":2:"), ("g.tree", "1:1 0.5 ann 3\n", ":1:"),
     ("g.tree", "1 0.5 \"ann\" 3\n", ":1:"), ("g.clu", "# nothing\n", "contains no modules"),
     ("g.clu", "1 1 0.5\n1 2 0.5\n", "listed more than once")],
)  # fmt: skip
def test_other_lines_are_errors(tmp_path, name, text, where):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(GraphFormatError) as caught:
        read_labels(path)
    assert where in str(caught.value)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "npz"])
def test_further_columns_may_be_text(tmp_path, suffix):
    path = tmp_path / f"labels.{suffix}"
    write_labels([0, 0, 1], path, more={"side": ["a", "b", "c"]})
    assert read_labels(path).communities.tolist() == [0, 0, 1]
    with pytest.raises(GraphError, match="column side must have one value for each vertex"):
        write_labels([0, 0, 1], path, more={"side": ["a"]}, force=True)
    for title in ("", "vertex", "community", "a,b", 'a"b', "a\nb"):
        with pytest.raises(GraphError, match="no column can be named"):
            write_labels([0, 0, 1], path, more={title: ["a", "b", "c"]}, force=True)


FURTHER = {
    "seen": [True, False, True],
    "on": np.array(["2026-11-30", "NaT", "2026-12-01"], "datetime64[D]"),
    "at": pd.Series(pd.to_datetime(["2026-11-30 05:28", None, None])).dt.tz_localize("UTC"),
    "count": pd.array([2**62 + 1, None, 3], "Int64"),
    "sure": pd.array([True, None, False], "boolean"),
    "side": ["a,b", None, ""],
    "share": [0.5, None, 1],
    "none": [None] * 3,
    "unknown": pd.Series([np.nan] * 3),
}


def test_further_columns_have_booleans_times_and_gaps(tmp_path):
    csv, object_, parquet = (tmp_path / f"labels.{kind}" for kind in ("csv", "json", "parquet"))
    for path in (csv, object_, parquet):
        write_labels([0, 0, 1], path, more=FURTHER)
        assert read_labels(path).communities.tolist() == [0, 0, 1]
    assert csv.read_text().splitlines()[1:] == [
        f'0,0,true,"2026-11-30","2026-11-30T05:28:00+00:00",{2**62 + 1},true,"a,b",0.5,,',
        "1,0,false,,,,,,,,",
        '2,1,true,"2026-12-01",,3,false,"",1.0,,',
    ]
    expected = {
        "seen": [True, False, True],
        "on": ["2026-11-30", None, "2026-12-01"],
        "at": ["2026-11-30T05:28:00+00:00", None, None],
        "count": [2**62 + 1, None, 3],
        "sure": [True, None, False],
        "side": ["a,b", None, ""],
        "share": [0.5, None, 1.0],
        "none": [None] * 3,
        "unknown": [None] * 3,
    }
    written = json.loads(object_.read_text())
    assert {name: written[name] for name in expected} == expected
    assert written["seen"][0] is written["sure"][0] is True
    table = pd.read_parquet(parquet, dtype_backend="pyarrow")
    for name in ("seen", "count", "sure", "side"):
        assert [None if value is pd.NA else value for value in table[name]] == expected[name], name
    assert [str(value) for value in table["on"]] == ["2026-11-30", "<NA>", "2026-12-01"]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_further_columns_have_times_of_any_unit(tmp_path, suffix, unit):
    times = np.array(["2026-01-01", "NaT"], f"datetime64[{unit}]")
    write_labels([0, 1], tmp_path / f"labels{suffix}", more={"at": times})
    if suffix == ".parquet":
        read = pd.read_parquet(tmp_path / "labels.parquet")["at"]
        assert pd.to_datetime(read).to_numpy("datetime64[ns]")[0] == times[0]
        assert read.isna().tolist() == [False, True]


def test_further_columns_of_npz_have_booleans_and_times_but_no_gaps(tmp_path):
    path = tmp_path / "labels.npz"
    write_labels([0, 0, 1], path, more={name: FURTHER[name] for name in ("seen", "on")})
    with np.load(path) as arrays:
        assert (arrays["seen"].dtype, arrays["on"].dtype.kind) == (np.bool_, "M")
    for name in ("count", "sure", "side"):
        with pytest.raises(lu.LouvainUmError, match=r"missing, which \.npz cannot keep"):
            write_labels([0, 0, 1], path, more={name: FURTHER[name]}, force=True)


@pytest.mark.parametrize("values", [
    [1j, 2, 3], [b"a", b"b", b"c"], [{}, {}, {}], np.arange(3, dtype="timedelta64[ns]"),
    np.array([1, "a", None], object), np.array([True, 2, None], object), [2**64, 1, None],
    np.zeros(3, "datetime64[ps]"), ["\ud800", "a", "b"],
])  # fmt: skip
def test_further_columns_of_other_kinds_are_refused_in_a_line(tmp_path, suffix, values):
    with pytest.raises(GraphError, match="column side") as refused:
        write_labels([0, 0, 1], tmp_path / f"labels{suffix}", more={"side": values})
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_further_columns_with_gaps_are_safe_for_spreadsheets(tmp_path):
    path = tmp_path / "labels.csv"
    more = {"side": ["=1", None, "a"], "seen": FURTHER["seen"]}
    write_labels([0, 0, 1], path, more=more, safe_csv=True)
    assert path.read_text().splitlines()[1:] == ['0,0,"\'=1",true', "1,0,,false", "2,1,a,true"]


def test_threads_read_long_names(tmp_path):
    path, name = tmp_path / "found.csv", "x" * 200_000
    path.write_text(f"node,community\n{name},a\nb,a\n")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: read_labels(path), range(80)))
    finally:
        sys.setswitchinterval(before)
    assert all(each.vertices.tolist() == [name, "b"] for each in found)
    assert csv.field_size_limit() == 131_072
