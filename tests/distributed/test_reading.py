"""Graphs that ranks read by themselves are those that one process reads."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import louvain_um as lu
from louvain_um import Graph
from louvain_um.distributed.files.reading import rows_of_edges
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import GraphError, GraphFormatError, OptionError, Underflow
from louvain_um.options import Options
from tests.distributed.runs import assert_equal, graph_named
from tests.distributed.threads import run_threads
from tests.graphs import edge_lists


def joined(blocks):
    ends = np.cumsum([0, *(len(block.targets) for block in blocks)])
    offsets = [block.offsets[:-1] + end for block, end in zip(blocks, ends[:-1], strict=True)]
    weights = [block.weights for block in blocks if block.weights is not None]
    targets = [np.concatenate([np.sort(row) for row in rows(block)]) for block in blocks]
    assert all(np.array_equal(a, block.targets) for a, block in zip(targets, blocks, strict=True))
    return Graph(
        np.append(np.concatenate(offsets), ends[-1]).astype(np.int64),
        np.concatenate([block.targets for block in blocks]),
        np.concatenate(weights) if weights else None,
        np.concatenate([block.loops for block in blocks]),
        blocks[0].scale,
        blocks[0].names,
    )


def rows(block):
    empty = np.zeros(0, np.uint32)
    return [empty, *np.split(block.targets, block.offsets[1:-1])]


def assert_same(one, other):
    assert np.array_equal(one.offsets, other.offsets)
    assert np.array_equal(one.targets, other.targets)
    assert np.array_equal(one.loops, other.loops)
    assert (one.weights is None) == (other.weights is None)
    if one.weights is not None:
        assert np.array_equal(one.weights, other.weights)
    assert one.scale == other.scale


@settings(max_examples=80)
@given(
    edges=edge_lists(), ranks=st.integers(1, 4), duplicates=st.sampled_from([None, "once", "sum"])
)
def test_rows_are_those_of_from_edges(edges, ranks, duplicates):
    n, u, v, w = edges

    def task(local):
        part = np.array_split(np.arange(len(u)), ranks)[local.rank]
        weights = None if w is None else w[part]
        listed = [(np.asarray(u)[part], np.asarray(v)[part], weights)] if len(part) else []
        return rows_of_edges(local, listed, n_vertices=n, duplicates=duplicates)

    blocks = run_threads(task, ranks)
    if w is not None and len(u) == 0:
        return  # nothing says that these edges would have weights
    one = Graph.from_edges(u, v, w, n_vertices=n, duplicates=duplicates)
    assert_same(joined(blocks), one)
    underflows = tuple(note for note in one.notes if isinstance(note, Underflow))
    assert {block.notes for block in blocks} == {underflows}


@pytest.fixture
def edges():
    rng = np.random.default_rng(3)
    u = rng.integers(0, 500, 4000) * 7 + 3
    v = u // 70 * 70 + rng.integers(0, 10, 4000) * 7 + 3
    return pa.table({"source": u, "target": v, "weight": rng.integers(1, 9, 4000)})


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("ranks", [1, 3, 5])
def test_files_are_read_in_parts(tmp_path, edges, kind, ranks):
    folder = tmp_path / "edges"
    folder.mkdir()
    for part in range(4):
        piece = edges.slice(part * 1000, 1000)
        if kind == "parquet":
            pq.write_table(piece, folder / f"{part}.parquet", row_group_size=300)
        else:
            piece.to_pandas().to_csv(folder / f"{part}.csv", index=False)
    whole = tmp_path / f"all.{kind}"
    if kind == "parquet":
        pq.write_table(edges, whole)
    else:
        edges.to_pandas().to_csv(whole, index=False)
    one = lu.read_graph(whole)
    graph = lu.read_partitioned(folder / f"*.{kind}")
    assert len(graph.pieces) == (16 if kind == "parquet" else 4)

    def task(local):
        block = graph.rows(local)
        return block, detect_on_rank(
            local, block, Options(device="cpu", threads=1), collapse_arcs=0
        )

    found = run_threads(task, ranks)
    assert_same(joined([block for block, _ in found]), one)
    for _, result in found:
        assert_equal(result, lu.louvain(one, device="cpu"))
        assert np.array_equal(result.names, one.names)


def test_a_graph_that_was_written_keeps_its_isolated_vertices(tmp_path):
    one = Graph.from_edges([0, 3], [1, 1], n_vertices=9)
    lu.write_graph(tmp_path / "g.parquet", one)
    found = lu.read_partitioned(tmp_path / "g.parquet")
    assert_same(joined(run_threads(found.rows, 2)), one)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_what_spark_and_dask_leave_in_a_folder_holds_no_edges(tmp_path, scheme):
    if scheme:
        pytest.importorskip("fsspec")
    for name in ("_SUCCESS", "_metadata", ".part-0.csv.crc"):
        (tmp_path / name).touch()
    (tmp_path / "part-0.csv").write_text("0,1\n1,2\n")
    (tmp_path / "_temporary").mkdir()
    pieces = lu.read_partitioned(f"{scheme}{tmp_path}").pieces
    assert [Path(piece.path).name for piece in pieces] == ["part-0.csv"]


def test_a_partitioned_graph_needs_a_cluster(tmp_path, edges):
    pq.write_table(edges, tmp_path / "edges.parquet")
    with pytest.raises(OptionError, match="pass cluster='local:2'"):
        lu.louvain(lu.read_partitioned(tmp_path / "edges.parquet"))


def test_remote_folders_of_folders_are_distinguished_from_none():
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/deep/year=2026/edges.csv", b"0,1\n")
    with pytest.raises(GraphFormatError, match="only folders there, and no files"):
        lu.read_partitioned("memory://deep")
    assert len(lu.read_partitioned("memory://deep/*/*").pieces) == 1
    with pytest.raises(GraphFormatError, match="no such file"):
        lu.read_partitioned("memory://nowhere")


def test_a_remote_path_without_its_package_names_what_to_install(monkeypatch):
    core = pytest.importorskip("fsspec.core")

    def lacking(path):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(core, "url_to_fs", lacking)
    with pytest.raises(GraphFormatError, match=r"Install s3fs to access S3\); install it with pip"):
        lu.read_partitioned("s3://bucket/edges.csv")
    monkeypatch.undo()
    with pytest.raises(GraphFormatError, match=r"cannot be reached .*; check the address"):
        lu.read_partitioned("unheard-of://bucket/edges.csv")


@pytest.mark.parametrize(
    "wrong", [{"duplicates": "twice"}, {"n_vertices": "3"}, {"n_vertices": -1}, {"n_vertices": 1.5}]
)
def test_options_are_refused_before_ranks_read(tmp_path, wrong):
    (tmp_path / "edges.csv").write_text("0,1\n")
    with pytest.raises(OptionError, match=f"{next(iter(wrong))} must be"):
        lu.read_partitioned(tmp_path / "edges.csv", **wrong)


def test_errors_name_the_file(tmp_path):
    with pytest.raises(GraphFormatError, match="no such file"):
        lu.read_partitioned(tmp_path / "*.parquet")
    with pytest.raises(GraphFormatError, match="is a folder without files"):
        lu.read_partitioned(tmp_path)
    (tmp_path / "year=2026").mkdir()
    with pytest.raises(GraphFormatError, match="only folders there, and no files"):
        lu.read_partitioned(tmp_path)
    with pytest.raises(GraphError, match="cannot take NoneType as a path"):
        lu.read_partitioned(None)
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    with pytest.raises(GraphFormatError, match=r"broken.parquet: is not a valid Parquet file"):
        lu.read_partitioned(tmp_path / "broken.parquet")
    (tmp_path / "named.csv").write_text("ann,bob\nbob,cay\n")
    with pytest.raises(GraphFormatError, match=r"named.csv: .*write ids instead"):
        run_threads(lu.read_partitioned(tmp_path / "named.csv").rows, 2)
    (tmp_path / "typed.csv").write_text("source,target,type\n1,2,Directed\n")
    pq.write_table(csv.read_csv(tmp_path / "typed.csv"), tmp_path / "typed.parquet")
    for name in ("typed.csv", "typed.parquet"):
        with pytest.raises(GraphFormatError, match=rf"{name}.*the edge is directed"):
            run_threads(lu.read_partitioned(tmp_path / name).rows, 2)
    table = pa.table({"source": [1], "target": [2], "weight": [-1.5]})
    pq.write_table(table, tmp_path / "negative.parquet")
    with pytest.raises(GraphError, match="not negative"):
        run_threads(lu.read_partitioned(tmp_path / "negative.parquet").rows, 2)


def test_more_ranks_than_vertices():
    graph = graph_named("lfr")
    assert graph.n_vertices > 0

    def task(local):
        listed = [(np.array([5]), np.array([9]), None)] if local.rank == 2 else []
        return rows_of_edges(local, listed, n_vertices=None, duplicates=None)

    blocks = run_threads(task, 4)
    assert joined(blocks).n_vertices == 2
    assert blocks[0].names.tolist() == [5, 9]
