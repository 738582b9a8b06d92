"""Several processes with one output or one cache, caches that cannot be used, several threads."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.formats.labels import read_labels
from louvain_um.generators import lfr
from tests.cli.failures.processes import start

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def graph() -> lu.Graph:
    return lfr(800, seed=4).graph


@pytest.fixture
def file(graph: lu.Graph, tmp_path: Path) -> Path:
    lu.write_graph(tmp_path / "g.csv", graph)
    return tmp_path / "g.csv"


def test_several_processes_and_one_output(file, tmp_path):
    out = tmp_path / "out" / "labels.csv"
    out.parent.mkdir()
    seeds = range(4)
    started = [
        start("detect", file, "--seed", seed, "-o", out, stdout=subprocess.DEVNULL)
        for seed in seeds
    ]
    errors = [process.communicate(timeout=300)[1] for process in started]
    codes = [process.returncode for process in started]
    assert sorted(codes) == [0, 1, 1, 1]
    winner = codes.index(0)
    expected = lu.louvain(lu.read_graph(file), seed=winner, device="cpu").labels
    assert read_labels(out).communities.tolist() == expected.tolist()
    assert [path.name for path in out.parent.iterdir()] == ["labels.csv"]
    for code, error in zip(codes, errors, strict=True):
        assert code == 0 or "exists already" in error.splitlines()[-1]


def test_several_processes_and_one_output_that_may_be_replaced(file, tmp_path):
    out = tmp_path / "out" / "labels.npz"
    out.parent.mkdir()
    started = [
        start("detect", file, "--seed", seed, "--force", "-o", out, stdout=subprocess.DEVNULL)
        for seed in range(3)
    ]
    for process in started:
        process.communicate(timeout=300)
    assert [process.returncode for process in started] == [0, 0, 0]
    labels = read_labels(out).communities.tolist()
    graph = lu.read_graph(file)
    assert labels in [
        lu.louvain(graph, seed=seed, device="cpu").labels.tolist() for seed in range(3)
    ]
    assert [path.name for path in out.parent.iterdir()] == ["labels.npz"]


def test_a_cache_that_is_no_folder(file, tmp_path):
    (tmp_path / "taken").touch()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "taken" / "cache")}
    process = start("detect", file, env=environment, stdout=subprocess.DEVNULL)
    _, err = process.communicate(timeout=500)
    # Numba may find another place; if it finds none, one line says so.
    assert process.returncode == 0 or err.splitlines()[-1].endswith("a writable folder")
    assert "Traceback" not in err


def test_several_threads_detect(graph):
    def labels(seed: int) -> list[int]:
        function = lu.louvain if seed % 2 else lu.leiden
        return function(graph, seed=seed, device="cpu", threads=1 + seed % 3).labels.tolist()

    expected = [labels(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            assert list(pool.map(labels, range(6))) == expected
    assert np.unique([len(found) for found in expected]).tolist() == [graph.n_vertices]
