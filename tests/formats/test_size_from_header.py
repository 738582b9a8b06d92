import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import louvain_um as lu
from louvain_um.errors import GraphFormatError
from louvain_um.formats import arrow
from louvain_um.formats.size_from_header import reading_bytes, size_from_header

MEASURED = ("dolphins.mtx", "astro-ph.graph", "celegans_metabolic.graph", "cond-mat-2005.npz")


@pytest.mark.parametrize("name", MEASURED)
def test_heads_of_real_files_tell_what_reading_them_does(shared_data, name):
    size, graph = size_from_header(shared_data / name), lu.read_graph(shared_data / name)
    assert (size.vertices, size.arcs) == (graph.n_vertices, graph.n_arcs)
    assert size.weighted is graph.weighted


@pytest.mark.parametrize("ending", [".mtx", ".graph", ".npz", ".mtx.gz", ".graph.gz"])
@pytest.mark.parametrize("weights", [None, [1, 2, 3], [0.5, 1.5, 2.25]])
def test_heads_of_files_we_wrote_are_never_below_the_truth(tmp_path, ending, weights):
    graph = lu.as_graph(([0, 1, 2], [1, 2, 3], weights) if weights else ([0, 1, 2], [1, 2, 3]))
    path = tmp_path / f"a{ending}"
    if ending.startswith(".graph") and weights and isinstance(weights[0], float):
        pytest.skip("METIS holds whole weights")
    lu.write_graph(path, graph)
    size = size_from_header(path)
    assert size.vertices == graph.n_vertices
    assert size.arcs == graph.n_arcs
    assert size.weighted is graph.weighted


def test_nothing_behind_the_head_is_read(tmp_path):
    path = tmp_path / "cut.mtx.gz"
    text = b"%%MatrixMarket matrix coordinate pattern general\n5 5 8\n" + bytes(10_000_000)
    path.write_bytes(gzip.compress(text)[:2000])
    size = size_from_header(path)
    assert (size.vertices, size.arcs, size.weighted) == (5, 8, False)


def test_what_only_reading_shows_is_none(tmp_path):
    assert size_from_header("-") is None
    (tmp_path / "a.csv").write_text("0,1\n")
    assert size_from_header(tmp_path / "a.csv") is None
    np.savez(tmp_path / "edges.npz", u=[0], v=[1])
    assert size_from_header(tmp_path / "edges.npz") is None
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    assert size_from_header(tmp_path / "bad.npz") is None


def test_the_format_may_be_named(tmp_path):
    (tmp_path / "a.txt").write_text("3 2\n2\n1 3\n2\n")
    assert size_from_header(tmp_path / "a.txt") is None
    assert size_from_header(tmp_path / "a.txt", "metis").arcs == 4


@pytest.mark.parametrize("name", ["none.mtx", "folder.graph", "a.unknown"])
def test_files_that_are_not_there_are_named(tmp_path, name):
    (tmp_path / "folder.graph").mkdir()
    (tmp_path / "a.unknown").write_text("")
    with pytest.raises(GraphFormatError, match=name.partition(".")[0]):
        size_from_header(tmp_path / name)


PEAK = """
import sys, threading, warnings
from pathlib import Path
import louvain_um as lu
from louvain_um.cli import mmap_large_arrays
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
mmap_large_arrays()
warnings.simplefilter("ignore")
lu.read_graph(sys.argv[1])  # loads what reading needs
found, done = [resident()], threading.Event()
def follow():
    while not done.wait(0.002):
        found.append(resident())
thread = threading.Thread(target=follow)
thread.start()
lu.read_graph(sys.argv[2])
done.set()
thread.join()
print(max(found) - found[0])
"""


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="resident bytes are read from /proc")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_reading_takes_about_the_memory_that_is_reported(tmp_path, ending, weighted):
    """Within a third, either way."""
    rng = np.random.default_rng(3)
    for name, m in (("small", 70_000), ("large", 3_000_000)):
        columns = {"source": rng.integers(0, m // 20, m), "target": rng.integers(0, m // 20, m)}
        if weighted:
            columns["weight"] = rng.random(m)
        path = tmp_path / f"{name}.{ending}"
        if ending == "npz":
            lu.write_graph(path, lu.as_graph(tuple(columns.values())))
        elif ending == "csv":
            pyarrow.csv.write_csv(pa.table(columns), path)
        else:
            pyarrow.parquet.write_table(pa.table(columns), path)
    reported = reading_bytes(tmp_path / f"large.{ending}")
    command = [
        sys.executable,
        "-c",
        PEAK,
        *(tmp_path / f"{n}.{ending}" for n in ("small", "large")),
    ]
    taken = int(subprocess.run(command, capture_output=True, check=True).stdout)
    assert 0.75 * taken <= reported <= 1.34 * taken


def test_memory_of_reading_is_reported_for_known_files(tmp_path):
    assert reading_bytes("-") is None
    assert reading_bytes(tmp_path / "none.csv") is None
    (tmp_path / "names.csv").write_text("ann,bob\nbob,cid\n")
    assert reading_bytes(tmp_path / "names.csv") is None
    (tmp_path / "bad.parquet").write_text("no table")
    assert reading_bytes(tmp_path / "bad.parquet") is None
    pyarrow.parquet.write_table(pa.table({"a": ["x"], "b": ["y"]}), tmp_path / "names.parquet")
    assert reading_bytes(tmp_path / "names.parquet") is None


def test_ids_of_columns_that_claim_to_be_small_are_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "LEAST_ROWS", 1)
    monkeypatch.setattr(arrow, "_fits", lambda metadata, name: True)
    large = [1, 2**40, 2**32 + 1]
    pyarrow.parquet.write_table(
        pa.table({"source": large, "target": [2, 3, 4]}), tmp_path / "a.parquet"
    )
    graph = lu.read_graph(tmp_path / "a.parquet")
    assert graph.names.tolist() == [1, 2, 3, 4, 2**32 + 1, 2**40]
