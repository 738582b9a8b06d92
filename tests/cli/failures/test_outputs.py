"""Outputs are whole or absent, whatever the disk refuses and however many processes write."""

import errno
import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

import louvain_um as lu
from louvain_um.formats.labels import read_labels
from louvain_um.profiling import load
from tests.cli.failures.processes import start

resource = pytest.importorskip("resource")

STEPS = ("fsync", "link", "replace", "rename", "mkdir")
COMMANDS = {
    "labels.csv": ["detect", "GRAPH", "-o", "OUT"],
    "labels.parquet": ["detect", "GRAPH", "-o", "OUT"],
    "graph.npz": ["convert", "GRAPH", "OUT"],
    "run.npz": ["profile", "GRAPH", "-o", "OUT"],
    "run.parquet": ["profile", "GRAPH", "-o", "OUT"],
}


def whole(path):
    """Return whether a file reads as one of these commands writes it."""
    if path.stem == "labels":
        return list(read_labels(path).communities) == [0, 0, 0, 1, 1, 1]
    if path.stem == "graph":
        return lu.read_graph(path).n_vertices == 6
    return bool(load(path).phases)


def content(path):
    files = [path] if path.is_file() else list(path.iterdir()) if path.exists() else []
    return {file.name: file.read_bytes() for file in files}


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


class FailingStep:
    """Makes the k-th call of a function of `os` fail, counting from 0."""

    def __init__(self, monkeypatch, step, k, number):
        self.left, self.real, self.number = k, getattr(os, step), number
        monkeypatch.setattr(os, step, self)

    def __call__(self, *arguments, **options):
        self.left -= 1
        if self.left == -1:
            raise OSError(self.number, os.strerror(self.number))
        return self.real(*arguments, **options)

    @property
    def failed(self):
        return self.left < 0


@pytest.fixture(params=COMMANDS)
def command(request, two_triangles, tmp_path):
    out = tmp_path / "out" / request.param
    out.parent.mkdir()
    places = {"GRAPH": two_triangles, "OUT": out}
    return out, [places.get(word, word) for word in COMMANDS[request.param]]


def check(done, out, before):
    """Check that a command either reported one error or wrote everything."""
    assert done.code in (0, 1)
    if done.code:
        assert done.complaint()
        assert content(out) == before
    else:
        assert whole(out)
    assert {path.name for path in out.parent.iterdir()} <= {out.name}


@pytest.mark.parametrize("existing", [False, True])
def test_each_step_fails_once(run, command, existing):
    out, arguments = command
    assert run(*arguments, "-q").code == 0  # compiles everything needed
    if not existing:
        remove(out)
    failures = 0
    for step in STEPS:
        for k in range(10):
            before = content(out)
            with pytest.MonkeyPatch.context() as patch:
                fault = FailingStep(patch, step, k, (errno.ENOSPC, errno.EROFS)[k % 2])
                done = run(*arguments, *(["--force"] if existing else []))
            check(done, out, before)
            failures += done.code
            if not existing and done.code == 0:
                remove(out)
            if not fault.failed:
                break
    assert failures >= 2


@contextmanager
def files_of_at_most(size):
    """Let the system write no more bytes into a file."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("size", [0, 40, 300])
@pytest.mark.filterwarnings("ignore:.*ZipFile.__del__")  # which NumPy 2.0 leaves open
def test_the_disk_takes_no_more_bytes(run, command, size):
    out, arguments = command
    assert run(*arguments, "-q").code == 0
    before = content(out)
    with files_of_at_most(size):
        done = run(*arguments, "--force")
    assert done.code == int(any(len(data) > size for data in before.values()))
    check(done, out, before)


@pytest.mark.parametrize("size", [0, 40, 300])
def test_a_sweep_continues_once_the_disk_has_room(run, two_triangles, tmp_path, size):
    out = tmp_path / "sweep"
    arguments = ["sweep", two_triangles, "-o", out, "--policies", "base,adv1"]
    arguments += ["--oversubscription", "0", "-q"]
    with files_of_at_most(size):
        done = run(*arguments)
    assert done.code == 1
    assert done.complaint()
    assert list(out.glob(".*.part")) == []
    assert run(*arguments).code == 0
    assert len((out / "results.csv").read_text().splitlines()) == 3


def test_folders_that_cannot_be_written(run, command, monkeypatch):
    out, arguments = command
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # also for root
    done = run(*arguments)
    assert done.code == 1
    assert "cannot be written" in done.complaint()
    assert content(out) == {}


@pytest.mark.parametrize("more", [0, 200])
def test_a_stream_names_the_table_that_found_no_room(run, tmp_path, more):
    file, out = tmp_path / "timed.csv", tmp_path / "out"
    file.write_text("source,target,time\n" + "".join(f"a{n},b,{n}\n" for n in range(30)))
    arguments = ["stream", file, "-o", out, "--every", "2", "-q"]
    assert run(*arguments).code == 0
    with files_of_at_most((out / "stream.json").stat().st_size + more):
        done = run(*arguments, "--seed", "1", "--force")
    assert done.code == 1
    assert ".csv: file too large; check the disk, and run again to continue" in done.complaint()
    assert run(*arguments, "--seed", "1").code == 0


def test_a_sweep_names_the_file_that_found_no_room(run, two_triangles, tmp_path):
    out = tmp_path / "sweep"
    out.mkdir()
    arguments = ["sweep", two_triangles, "-o", out, "--policies", "base,adv1", "-q"]
    assert run(*arguments, "--oversubscription", "0").code == 0
    size = (out / "points.jsonl").stat().st_size
    largest = max(path.stat().st_size for path in out.glob("*.trace.npz"))
    with files_of_at_most(max(size, largest) + 10):
        done = run(*arguments, "--oversubscription", "0,10,20,30,40")
    assert done.code == 1
    assert "points.jsonl: " in done.complaint()
    assert "check the disk, and run again to continue" in done.complaint()
    assert run(*arguments, "--oversubscription", "0,10,20,30,40").code == 0


@pytest.mark.system
def test_a_cache_that_is_no_folder(two_triangles, tmp_path):
    (tmp_path / "taken").touch()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "taken" / "cache")}
    process = start("detect", two_triangles, env=environment, stdout=subprocess.DEVNULL)
    _, err = process.communicate(timeout=500)
    # Numba may find another place; if it finds none, one line says so.
    assert process.returncode == 0 or err.splitlines()[-1].endswith("a writable folder")
    assert "Traceback" not in err
