"""Labels in several files, local and remote, are those of the result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import louvain_um as lu
from louvain_um.distributed.carriers.threads import run_threads
from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.files.edge_pieces import files_of
from louvain_um.distributed.files.writing import write_labels_partitioned
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.options import Options
from louvain_um.results.communities import Communities
from tests.distributed.runs import assert_equal

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def result() -> Communities:
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    return lu.louvain(graph, device="cpu")


@pytest.mark.parametrize("scheme", ["", "file://", "memory://"])
def test_parts_are_the_labels(tmp_path: Path, result: Communities, scheme: str) -> None:
    folder = f"{scheme}{tmp_path}/out"
    files = write_labels_partitioned(result, folder, parts=4)
    assert len(files) == 4
    tables = [pq.read_table(fsspec.open(file, "rb").open()) for file in files]
    vertices = np.concatenate([table["vertex"].to_numpy() for table in tables])
    labels = np.concatenate([table["community"].to_numpy() for table in tables])
    assert vertices.tolist() == list(range(6))
    assert labels.tolist() == result.labels.tolist()
    system, path = fsspec.core.url_to_fs(folder)
    assert not [name for name in system.ls(path, detail=False) if name.endswith(".part")]


def test_nothing_is_overwritten_unasked(tmp_path: Path, result: Communities) -> None:
    write_labels_partitioned(result, tmp_path / "out")
    with pytest.raises(LouvainUmError, match="pass force"):
        write_labels_partitioned(result, tmp_path / "out")
    assert len(write_labels_partitioned(result, tmp_path / "out", force=True)) == 1
    write_labels_partitioned(result, tmp_path / "out", parts=3, force=True)
    write_labels_partitioned(result, tmp_path / "out", parts=2, force=True)
    assert pq.read_table(tmp_path / "out")["vertex"].to_pylist() == list(range(6))
    with pytest.raises(OptionError, match="parts"):
        write_labels_partitioned(result, tmp_path / "other", parts=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(LouvainUmError, match="check the folder"):
        write_labels_partitioned(result, tmp_path / "file" / "out")


@pytest.mark.parametrize("scheme", ["file://", "memory://"])
def test_ranks_read_remote_files(tmp_path: Path, scheme: str) -> None:
    folder = f"{scheme}{tmp_path}/edges"
    system, path = fsspec.core.url_to_fs(folder)
    system.makedirs(path, exist_ok=True)
    random = np.random.default_rng(5)
    u, v = random.integers(0, 40, (2, 200))
    for part in range(3):
        with system.open(f"{path}/{part}.csv", "w") as file:
            lines = zip(u[part::3].tolist(), v[part::3].tolist(), strict=True)
            file.write("".join(f"{a},{b}\n" for a, b in lines))
    source = lu.read_partitioned(f"{folder}/*.csv")
    options = Options(device="cpu", threads=1)

    def task(own: Communicator) -> Communities:
        return detect_on_rank(own, source.rows(own), options)

    one = lu.louvain(lu.as_graph((u, v)), device="cpu")
    found = run_threads(task, 2)[0]
    assert_equal(found, one)
    assert files_of(folder) == files_of(f"{folder}/*.csv")
