"""Timed edge lists: read from files, cut into windows, replayed."""

import gzip
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.dynamic.streams import EdgeStream
from louvain_um.dynamic.timed_edges import TimedEdges
from louvain_um.dynamic.windows import EdgeBlock, Windows
from louvain_um.errors import GraphError, GraphFormatError, GraphWarning, OptionError

LINES = "1 2 10\n3 4 20\n1 2 20\n2 5 35\n"


def same(one, other):
    for name in ("u", "v", "times"):
        assert np.array_equal(getattr(one.edges, name), getattr(other.edges, name)), name
    assert one.edges.n_vertices == other.edges.n_vertices


def test_every_form_of_a_file_is_read_alike(tmp_path):
    plain = tmp_path / "edges.txt"
    plain.write_text("# a comment\n" + LINES)
    stream = lu.read_stream(plain)
    assert stream.edges.names.tolist() == [1, 2, 3, 4, 5]
    assert stream.edges.times.tolist() == [10, 20, 20, 35]
    with gzip.open(tmp_path / "edges.txt.gz", "wt") as file:
        file.write(LINES)
    same(lu.read_stream(tmp_path / "edges.txt.gz"), stream)
    table = pd.read_csv(plain, sep=" ", comment="#", names=["source", "target", "time"])
    (tmp_path / "sheet.csv").write_text("sep=;\n" + LINES.replace(" ", ";"))
    same(lu.read_stream(tmp_path / "sheet.csv"), stream)
    table[["time", "target", "source"]].to_csv(tmp_path / "edges.csv", index=False)
    same(lu.read_stream(tmp_path / "edges.csv"), stream)
    table.to_parquet(tmp_path / "edges.parquet")
    same(lu.read_stream(tmp_path / "edges.parquet"), stream)
    table.rename(columns={"time": "clock"}).to_csv(tmp_path / "clock.csv", index=False)
    same(lu.read_stream(tmp_path / "clock.csv", time="clock"), stream)


def test_dates_names_and_weights(tmp_path):
    path = tmp_path / "calls.csv"
    path.write_text(
        "caller,callee,date,weight\nann,bob,2026-01-01 00:00:01,0.5\nbob,cid,2026-02-01,2\n"
    )
    edges = lu.read_stream(path).edges
    assert edges.names.tolist() == ["ann", "bob", "cid"]
    assert edges.times.tolist() == [1767225601, 1769904000]
    assert edges.weights.tolist() == [0.5, 2.0]
    graph = EdgeStream(edges).graph()
    for step in EdgeStream(edges).steps(every=1, window=1):
        step.apply(graph)
    assert graph.weights_of([0, 1], [1, 2]).tolist() == [0, 2 << 20]


BAD = {
    "backwards": (
        "1 2 20\n3 4 10\n",
        ":2: time 10 comes after 20: 1 time runs backwards; pass sort=True",
    ),
    "truncated": ("1 2 10\n3 4", ":2: the time is missing; the file may be truncated"),
    "no time": ("1 2\n3 4\n", "needs u, v and time"),
    "a number among dates": (
        "1 2 2026-01-31\n3 4 1769904000\n",
        ":2: time '1769904000' is a number, but the column",
    ),
    "no such time": ("1 2 10\n3 4 soon\n", ":2: time 'soon' is neither a number nor a date"),
    "weight": ("1 2 10 -1\n", ":1: weight -1 is negative"),
    "word": ("1 2 10 x\n", ":1: weight 'x' is not numeric"),
    "id": ("1 2 10\n-1 2 11\n", ":2: id '-1' is negative"),
    "empty": ("# nothing\n", "has no edges"),
    "unnamed": ("source,target,clock\n1,2,3\n", "time=…"),
    "more fields": ("1 2 10\n1 2 11 5 6\n", ":2: has 5 fields instead of 3"),
    "after a comment": ("1 2 10\n# note\n\n1 2 soon\n", ":4: time 'soon' is neither"),
    "fields after a comment": ("1 2 10\n# note\n1 2 11 5 6\n", ":3: has 5 fields instead of 3"),
    "quote over lines": (
        'a,b,1\n# note\nb,"c,2\nc,a,3\nd,e",4\n',
        ":3: has a quote that is not closed",
    ),
    "return": ("1 2 10\n1 3 11\r2 3 12\n", ":2: has 6 fields instead of 3"),
    "time of 64 bits": ("1 2 18446744073709551615\n", ":1: time 18446744073709551615 is 2^62"),
    "real weight": ("1 2 1 0.5\n1 3 2 1e308\n", ":2: weight 1e+308 is 2^52 or more"),
    "no number": ("1 2 1 5\n1 3 2 nan\n", ":2: weight 'nan' is not a number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_one_line(case, tmp_path):
    text, expected = BAD[case]
    path = tmp_path / "edges.txt"
    path.write_text(text, newline="")
    with pytest.raises(GraphFormatError) as error:
        lu.read_stream(path)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_the_line_of_a_bad_id_is_that_of_the_file(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("1 2 30\n3 4 20\n-5 4 10\n")
    with pytest.raises(GraphFormatError, match=":3: id '-5' is negative"):
        lu.read_stream(path, sort=True)


def test_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1, 2])] * 4, ["u", "u", "time", "note"])
    pq.write_table(table, tmp_path / "a.parquet")
    for edges in (table, table.to_pandas(), tmp_path / "a.parquet"):
        with pytest.raises(lu.GraphError, match="has several columns named u; rename them"):
            lu.read_stream(edges, source=1, target=2)
    words = [pa.array(["x", "y"])] * 2
    spare = pa.Table.from_arrays([pa.array([1, 2])] * 3 + words, ["u", "v", "time", "note", "note"])
    assert len(lu.read_stream(spare.to_pandas())) == 2


def read(path, text):
    path.write_text(text, newline="")
    return lu.read_stream(path).edges


def test_comments_and_blank_lines_may_stand_anywhere(tmp_path):
    text = '% a\nu,v,time\n// b\nann,bob,1\n  # c\n\nbob,cid,2\r\n \r\n#d,e,3\n"#d",ann,3'
    with pytest.warns(GraphWarning, match="line 9 .* is left out as a comment; if it is an edge"):
        edges = read(tmp_path / "edges.csv", text)
    assert edges.names[edges.u].tolist() == ["ann", "bob", "#d"]
    assert edges.times.tolist() == [1, 2, 3]


def test_quotes_of_the_first_line_keep_separators(tmp_path):
    for name, text in (
        ("a.csv", '"Smith; J, jr",bob,1\nbob,cid,2\n'),
        ("a.txt", '"Smith; J, jr" bob 1\nbob cid 2\n'),
        ("a.tsv", 'Smith; J, jr\tbob\t1\nbob\t5" disk\t2\n'),
    ):
        edges = read(tmp_path / name, text)
        assert edges.names[edges.u].tolist() == ["Smith; J, jr", "bob"]


def test_a_comment_may_name_the_columns(tmp_path):
    edges = read(tmp_path / "a.tsv", "# id\tfrom\tto\ttime\n7\t1\t2\t10\n8\t2\t3\t11\n")
    assert edges.names[edges.u].tolist() == [1, 2]
    assert edges.times.tolist() == [10, 11]


def test_a_first_line_with_a_date_is_no_header(tmp_path):
    edges = read(tmp_path / "a.csv", "ann,bob,2026-01-01\nbob,cid,2026-01-02\n")
    assert edges.times.tolist() == [1767225600, 1767312000]


def test_ids_are_the_same_vertex_in_both_columns(tmp_path):
    with pytest.warns(GraphWarning, match="'a' in line 2 is not a whole number"):
        edges = read(tmp_path / "a.csv", "u,v,time\n1,a,1\n2,1,2\n")
    assert edges.names.tolist() == ["1", "2", "a"]
    edges = read(tmp_path / "b.txt", "18446744073709551615 2 1\n2 9007199254740993 2\n")
    assert edges.names.tolist() == ["18446744073709551615", "2", "9007199254740993"]
    table = pa.table({"u": [1, 2], "v": ["2", "1"], "time": [1, 2]})
    pq.write_table(table, tmp_path / "c.parquet")
    assert lu.read_stream(tmp_path / "c.parquet").edges.names.tolist() == ["1", "2"]


def test_blanks_around_separators_belong_to_no_name(tmp_path):
    edges = read(tmp_path / "a.csv", "ann , bob  , 1 \nbob,ann ,2\n 7 , ann , 3\n")
    assert edges.names.tolist() == ["7", "ann", "bob"]
    assert read(tmp_path / "b.csv", "1 , 2 , 5\n2 ,1, 6\n").names.tolist() == [1, 2]


def test_times_of_any_year_and_parts_of_seconds(tmp_path):
    text = "u,v,time\n1,2,2026-01-01T02:00:00+02:00\n1,3,2026-01-01T00:00:00.25Z\n"
    assert read(tmp_path / "a.csv", text).times.tolist() == [1767225600.0, 1767225600.25]
    times = pa.array([np.datetime64("1600-01-01", "s"), np.datetime64("9999-12-31", "s")])
    pq.write_table(pa.table({"u": [1, 2], "v": [2, 1], "time": times}), tmp_path / "b.parquet")
    assert lu.read_stream(tmp_path / "b.parquet").edges.times.tolist() == [
        -11676096000,
        253402214400,
    ]


@pytest.mark.parametrize("weight", [1e12, 0.5, 1e-12])
def test_real_weights_of_any_size_fit(tmp_path, weight):
    stream = EdgeStream(read(tmp_path / "a.txt", f"1 2 1 {weight}\n2 3 2 {2 * weight}\n"))
    graph = stream.graph()
    for step in stream.steps(every=1):
        step.apply(graph)
    found = graph.weights_of([0, 1], [1, 2]) / graph.scale
    assert found == pytest.approx([weight, 2 * weight], rel=1e-3)


def test_real_weights_too_different_for_one_graph_are_refused(tmp_path):
    stream = EdgeStream(read(tmp_path / "a.txt", "1 2 1 1e-9\n2 3 2 1e13\n"))
    with pytest.raises(GraphError, match=r"from 1e-09 to 1e\+13 .*; leave out edges of 0.0039 and"):
        stream.graph()


@pytest.mark.parametrize("name", ["g.mtx", "g.txt", "g.graph", "g.gml.gz", "g.npz"])
def test_files_of_graphs_have_no_times(tmp_path, name):
    banner = "%%MatrixMarket matrix coordinate real symmetric\n% made by hand\n"
    text = banner * (name in ("g.mtx", "g.txt")) + "3 3 2\n2 1 5\n3 1 7\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    with pytest.raises(GraphFormatError, match=r"holds a graph without times; pass timed edges"):
        lu.read_stream(path)


def test_a_truncated_gzip_file_and_sorting(tmp_path):
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress((LINES * 500).encode())[:-9])
    with pytest.raises(GraphFormatError, match="ends early"):
        lu.read_stream(path)
    path = tmp_path / "edges.txt"
    path.write_text("1 2 20\n3 4 10\n5 6 20\n")
    assert lu.read_stream(path, sort=True).edges.u.tolist() == [2, 0, 4]


@pytest.mark.filterwarnings("ignore:window .* is shorter than every")
@settings(max_examples=100)
@given(
    gaps=st.lists(st.integers(0, 50), max_size=40),
    every=st.sampled_from([1, 7, "20s", "1m"]),
    window=st.sampled_from([None, 3, 20, "10s", "2m"]),
)
def test_a_window_holds_its_edges_and_nothing_else(gaps, every, window):
    rng = np.random.default_rng(len(gaps))
    times = np.cumsum(np.array(gaps, np.int64))
    u, v = (rng.integers(0, 5, len(gaps)).astype(np.uint32) for _ in range(2))
    stream = EdgeStream(TimedEdges(u=u, v=v, times=times, weights=None, n_vertices=5, names=None))
    graph, seen = stream.graph(), 0
    for step in stream.steps(every=every, window=window):
        change = step.apply(graph)
        assert change.missing == 0
        seen = seen + every if isinstance(every, int) else int(np.sum(times < step.time))
        seen = min(seen, len(times))
        if window is None:
            inside = range(seen)
        elif isinstance(window, int):
            inside = range(max(0, seen - window), seen)
        else:
            length = {"10s": 10, "2m": 120}[window]
            inside = [k for k in range(seen) if times[k] >= step.time - length]
        held = Counter((min(a, b), max(a, b)) for a, b in ((u[k], v[k]) for k in inside))
        assert graph.n_edges == len(held)
        for (a, b), weight in held.items():
            assert graph.weights_of([a], [b]).tolist() == [weight]
    assert seen == len(times)


@pytest.mark.parametrize(
    ("every", "window", "warned"), [("1d", "1h", True), (10, 9, True), ("1d", "1d", False),
    (10, 10, False), (10, "1s", False), ("1d", 1, False), ("1d", None, False)],
)  # fmt: skip
def test_a_window_shorter_than_a_step_is_reported(every, window, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Windows(every, window)
    assert [w.category for w in caught] == [GraphWarning] * warned
    assert not warned or "never in the graph" in str(caught[0].message)


@pytest.mark.parametrize("value", ["x", 2, np.arange(2)])
def test_sort_is_true_or_false(tmp_path, value):
    (tmp_path / "edges.txt").write_text("0 1 5\n1 2 6\n")
    with pytest.raises(OptionError, match="sort must be True or False, not"):
        lu.read_stream(tmp_path / "edges.txt", sort=value)


@pytest.mark.parametrize("value", ["soon", 0, "0d", -1, 1.5, "3 fortnights", ""])
def test_a_span_is_edges_or_time(value):
    stream = EdgeStream(
        TimedEdges(
            u=np.zeros(1, np.uint32), v=np.zeros(1, np.uint32), times=np.zeros(1), weights=None,
            n_vertices=1, names=None,
        )
    )  # fmt: skip
    with pytest.raises(OptionError, match="every must be a number of edges"):
        list(stream.steps(every=value))


@pytest.mark.parametrize("times", [[0, 10**9], [-1.7e308, 1.7e308], [0.0, 1e308]])
def test_too_many_steps_are_refused(times):
    times = np.array(times)
    ids = np.zeros(2, np.uint32)
    stream = EdgeStream(
        TimedEdges(u=ids, v=ids, times=times, weights=None, n_vertices=1, names=None)
    )
    with pytest.raises(OptionError, match="longer: it gives more than 10,000,000 steps"):
        next(stream.steps(every="1s"))


@pytest.mark.parametrize(
    ("time", "advice"),
    [
        (1704067200000, "milliseconds, not seconds; pass every 3600000s"),
        (1704067200000000, "microseconds, not seconds; pass every 3600000000s"),
        (1704067200 * 10**9, "nanoseconds, not seconds; pass every 3600000000000s"),
        (20240131, "dates, not seconds; pass date_format='%Y%m%d'"),
    ],
)
def test_times_that_are_no_seconds_take_no_hours(time, advice):
    ids, times = np.zeros(2, np.uint32), np.array([time, time])
    edges = EdgeBlock(u=ids, v=ids, times=times)
    for window in (None, "7200s", 7):
        with pytest.raises(OptionError, match=f"times such as {time} seem to be {advice}"):
            next(Windows("1h", window).feed(edges))
    with pytest.raises(OptionError, match="window" if "every" in advice else advice):
        next(Windows(1, "1h").feed(edges))
    assert [len(step) for step in Windows(1, "3600s").feed(edges)] == [1, 1]


def test_a_real_stream(shared_data):
    stream = lu.read_stream(shared_data / "CollegeMsg.txt.gz")
    graph = stream.graph()
    for step in stream.steps(every="1w", window="30d"):
        step.apply(graph)
    graph.check()
    edges = stream.edges
    stays = edges.times >= step.time - 30 * 86_400
    expected = lu.Graph.from_edges(
        edges.u[stays], edges.v[stays], np.ones(stays.sum(), np.int64),
        n_vertices=edges.n_vertices,
    )  # fmt: skip
    assert np.array_equal(graph.snapshot().offsets, expected.offsets)
    assert np.array_equal(graph.snapshot().weights, expected.weights)
    with pytest.raises(GraphFormatError, match="run backwards"):
        lu.read_stream(shared_data / "sx-mathoverflow.txt.gz")
    assert len(lu.read_stream(shared_data / "sx-mathoverflow.txt.gz", sort=True)) == 506_550


@pytest.mark.parametrize("library", ["pandas", "swapped", "arrow", "arrow-batch", "polars", "lazy"])
def test_a_table_is_a_stream_as_its_file_is(library, tmp_path):
    table = pd.DataFrame(
        {
            "caller": ["ann", "bob", "cid", "ann"],
            "callee": ["bob", "cid", "ann", "dan"],
            "date": pd.date_range("2026-01-01", periods=4, freq="6h"),
            "weight": [1.5, 2.0, 1.0, 0.25],
        }
    )
    table.to_csv(tmp_path / "calls.csv", index=False)
    expected = lu.read_stream(tmp_path / "calls.csv")
    given = table
    if library == "arrow":
        given = pa.Table.from_pandas(table)
    elif library == "arrow-batch":
        given = pa.RecordBatch.from_pandas(table)
    elif library == "swapped":
        given = table.astype({"weight": ">f8"})
    elif library in ("polars", "lazy"):
        given = pytest.importorskip("polars").from_pandas(table)
        given = given.lazy() if library == "lazy" else given
    found = lu.read_stream(given)
    for name in ("u", "v", "times", "weights", "names"):
        assert np.array_equal(getattr(found.edges, name), getattr(expected.edges, name))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [1], "b": [2]}), "the table: has no column named time"),
        (
            pd.DataFrame({"a": [1, 2], "b": [2, None], "time": [1, 2]}),
            "the table: column b lacks 1 of its 2 values; fill them in",
        ),
        (
            pd.DataFrame({"a": [1, 2], "b": [2, 3], "time": [2, 1]}),
            "the table: time 1 comes after 2",
        ),
        (
            pd.DataFrame({"a": [1, "x"], "b": [2, 3], "time": [1, 2]}),
            "the table: column a cannot be read .*; convert its values to one type",
        ),
        (
            pd.DataFrame({"a": ["x", 1], "b": [2, 3], "time": [1, 2]}),
            "the table: column a cannot be read .*; convert its values to one type",
        ),
        (
            pd.DataFrame({"a": [1], "b": [2], "time": pd.to_timedelta([1], "D")}),
            r"the table: times are timedelta64\[.*; write numbers of seconds, or dates",
        ),
        (
            pd.DataFrame({"a": [1], "b": [2], "time": [True]}),
            "the table: times are bool; write numbers of seconds, or dates",
        ),
        ([(1, 2, 3)], "cannot read timed edges from list; pass a path, or a table"),
    ],
)
def test_bad_tables_are_one_line(table, message):
    with pytest.raises(lu.GraphError, match=message):
        lu.read_stream(table)


@pytest.mark.parametrize("third", [[1, 1, 1], [3, 1, 2]], ids=["constant", "falling"])
def test_a_weight_before_the_time_is_refused_until_columns_are_named(third, tmp_path):
    path = tmp_path / "konect.txt"
    path.write_text("".join(f"{k} {k + 1} {w} {100 + k}\n" for k, w in enumerate(third)))
    with pytest.raises(GraphFormatError, match="weight='3', time='4'") as error:
        lu.read_stream(path)
    assert "\n" not in str(error.value)
    stream = lu.read_stream(path, weight="3", time="4")
    assert stream.edges.times.tolist() == [100, 101, 102]
    assert stream.edges.weights.tolist() == third
    assert lu.read_stream(path, time=3, weight=4, sort=True).edges.times.tolist() == sorted(third)


def test_a_first_line_without_numbers_is_an_edge_if_asked(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("ann,bob,20260131T1000\nbob,cid,20260131T1100\n")
    with pytest.raises(GraphFormatError, match=r"header=False \(--no-header\)"):
        lu.read_stream(path)
    assert len(lu.read_stream(path, header=False)) == 2


@pytest.mark.parametrize("first", [0.65659304851277, 0.1, 1e9 / 3, -7.3])
def test_a_window_as_long_as_a_step_holds_the_edges_of_the_step(first):
    ids, times = np.arange(6, dtype=np.uint32), first + np.array([0, 9.5, 60, 61, 120, 599])
    windows = Windows("1m", "1m")
    steps = [*windows.feed(EdgeBlock(u=ids, v=ids, times=times)), *windows.close()]
    inserted = np.concatenate([step.insert[0] for step in steps if step.insert is not None])
    assert inserted.tolist() == ids.tolist()


def test_a_window_of_several_steps_begins_where_a_step_did(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{i} {i + 1} {0.1 * i}\n" for i in range(12)))
    stream = lu.read_stream(path)
    for steps in (1, 3, 7):
        held = []
        for step in stream.steps(every="0.1s", window=f"{steps / 10}s"):
            held += [] if step.insert is None else step.insert[0].tolist()
            gone = [] if step.decrease is None else step.decrease[0].tolist()
            assert gone == held[: len(gone)]
            held = held[len(gone) :]
            assert held == sorted(held)
        inserted = [
            u
            for step in stream.steps(every="0.1s", window=f"{steps / 10}s")
            if step.insert is not None
            for u in step.insert[0].tolist()
        ]
        assert inserted == list(range(12))


READ = {
    "konect.txt": ("% sym weighted\n1 2 5 10\n2 3 6 20\n", {}, ["1", "2", "3"], [5, 6]),
    "marked.csv": ("id,from,to,time\n1,007,8,1\n2,8,9,2\n3,9,8,3\n", {}, ["007", "8", "9"], None),
    "ids.csv": ("from,to,time\n1.0,2,1\n2,3,2\n", {}, ["1.0", "2", "3"], None),
    "named.csv": ("from,to,when,Weight\na,b,1,2\n", {}, ["a", "b"], [2]),
    "alone.txt": ("1 2 1 7\n2 3 2 7\n", {"weighted": False}, ["1", "2", "3"], None),
}


@pytest.mark.parametrize("name", READ)
def test_ids_and_weights_follow_the_rules_of_reading(tmp_path, name):
    text, options, names, weights = READ[name]
    path = tmp_path / name
    path.write_text(text)
    edges = lu.read_stream(path, **options).edges
    found = range(edges.n_vertices) if edges.names is None else edges.names.tolist()
    assert [str(each) for each in found] == names
    assert (None if edges.weights is None else edges.weights.tolist()) == weights


def test_a_lone_numeric_column_is_the_weight_in_files_and_tables(tmp_path):
    calls = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "time": [1, 2], "cost": [0.5, 2]})
    calls.to_csv(tmp_path / "a.csv", index=False)
    calls.to_parquet(tmp_path / "a.parquet")
    for source in (calls, tmp_path / "a.csv", tmp_path / "a.parquet"):
        with pytest.warns(GraphWarning, match="from the column 'cost', the only numeric one"):
            assert lu.read_stream(source).edges.weights.tolist() == [0.5, 2]


WRITTEN = {
    "5": (5, None),
    "2.5": (2.5, None),
    "2026-01-31": ("2026-01-31", None),
    "2026-01-31 12:30": ("2026-01-31 12:30", None),
    "2026-01-31T12:30:05Z": ("2026-01-31T12:30:05Z", None),
    "2026-01-31T12:30:05+02:00": ("2026-01-31T12:30:05+02:00", None),
    "31.01.2026": ("31.01.2026", "%d.%m.%Y"),
    "20260131": ("20260131", "%Y%m%d"),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_times_are_written_as_they_were(tmp_path, text):
    shown, date_format = WRITTEN[text]
    (tmp_path / "a.csv").write_text(f"a,b,{text}\nb,c,{text}\n")
    stream = lu.read_stream(tmp_path / "a.csv", date_format=date_format)
    assert stream.edges.time_format.text(stream.edges.times[0].item()) == shown
    (tmp_path / "a.csv").write_text(f"a,b,{text}\nb,c,soon\n")
    with pytest.raises(GraphFormatError, match=":2: time 'soon' is n"):
        lu.read_stream(tmp_path / "a.csv", date_format=date_format)


@pytest.mark.parametrize("value", ["nonsense", 5, "%Q"])
def test_a_format_of_dates_has_directives(tmp_path, value):
    with pytest.raises(OptionError, match="date_format must be a format of dates"):
        lu.read_stream(tmp_path / "a.csv", date_format=value)
