"""The cache of CPU kernels: what is stale or damaged is compiled again."""

import hashlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from numba import njit, types
from numba.core.compiler_lock import global_compiler_lock

from louvain_um.core import compiled, parallel
from louvain_um.core.compiled import announced

USER = """
from louvain_um.core.compiled import kernel
from louvain_um.core.helper import add

@kernel()
def twice(x):
    return add(x, x)

if __name__ != "louvain_um.core.helper":
    print(twice(20), sum(twice.stats.cache_hits.values()))
"""
HELPER = """
from louvain_um.core.compiled import kernel
from louvain_um.core.constants import MORE

@kernel()
def add(x, y):
    return x + y + MORE
"""


USED = ("atomic_files.py", "compiled.py", "headroom.py", "interrupts.py", "private_files.py")


@pytest.fixture
def package(tmp_path):
    """A package of the same name with one kernel, which calls another that uses a constant."""
    core = tmp_path / "louvain_um/core"
    core.mkdir(parents=True)
    for folder in (core, core.parent):
        (folder / "__init__.py").write_text("")
    for name in (*USED, "../errors.py"):
        (core / name).write_text((Path(compiled.__file__).parent / name).read_text())
    (core / "user.py").write_text(USER)
    (core / "helper.py").write_text(HELPER)
    (core / "constants.py").write_text("MORE = 2\n")
    return core


def started(package):
    """Start a process that uses the kernel."""
    root = package.parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", "import louvain_um.core.user"], cwd=root,
        env={
            **os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / "kept"),
            "PYTHONDONTWRITEBYTECODE": "1",  # of modules: it trusts the time of a file
        },
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def compiling(package):
    """Start a process, and return when it has locked what it compiles."""
    process, kept = started(package), package.parents[1] / "kept"
    while not any(lock.read_text() for lock in kept.rglob("*.lock")):
        time.sleep(0.001)
    return process


def run(package, said=""):
    """Return what the kernel returns in a new process, and how often the cache served it."""
    process = started(package)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert said in err
    result, hits = out.split()
    return int(result), int(hits)


@pytest.mark.system
def test_a_kernel_is_compiled_once_until_what_it_uses_is_edited(package):
    assert run(package) == (42, 0)
    assert run(package) == (42, 1)
    edits = ("constants.py", "2", "3", 43), ("helper.py", "x + y", "x - y", 3)
    for file, old, new, result in edits:
        path = package / file
        stat = path.stat()
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as a checkout may leave it
        assert run(package) == (result, 0)


@pytest.mark.system
def test_a_truncated_entry_is_a_miss(package):
    run(package)
    for suffix, kept in ((".nbi", 0), (".nbc", -7)):
        files = [*(package.parents[1] / "kept").rglob(f"*{suffix}")]
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:kept])
        assert run(package) == (42, 0), (suffix, kept)
    assert run(package) == (42, 1)


@pytest.mark.system
def test_an_index_that_names_a_class_that_is_gone_is_a_miss(package):
    run(package)
    for index in (package.parents[1] / "kept").rglob("*.nbi"):
        data = pickle.dumps(ThreadPoolExecutor).replace(b"PoolExecutor", b"PoolPoolPool")
        index.write_bytes(hashlib.sha256(data).digest() + data)
    assert run(package) == (42, 0)


@pytest.mark.system
def test_one_of_several_processes_compiles(package):
    with ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(run, [package] * 4))
    assert found == [(42, 0), (42, 1), (42, 1), (42, 1)]
    assert not list((package.parents[1] / "kept").rglob("*.lock"))


@pytest.mark.system
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says who runs")
def test_a_process_that_was_stopped_or_killed_while_it_compiles_keeps_nobody_waiting(package):
    waits = package / "private_files.py"
    waits.write_text(waits.read_text().replace("IDLE_SECONDS: Final = 10", "IDLE_SECONDS = 1"))
    first = compiling(package)
    try:
        first.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        assert run(package, "another process began to compile") == (42, 0)
        assert time.monotonic() - begin < 30  # less than a process waits for one that runs
        assert run(package) == (42, 1)
    finally:
        first.kill()
        first.communicate()
    shutil.rmtree(package.parents[1] / "kept")
    second = compiling(package)
    second.kill()
    second.communicate()
    assert run(package) == (42, 0)
    assert run(package) == (42, 1)


@pytest.mark.system
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only POSIX says who can write a file")
def test_what_others_can_have_written_is_not_loaded(package):
    run(package)
    marker = package.parents[1] / "ran"
    (planted,) = (package.parents[1] / "kept").rglob("user.twice*.nbi")
    folder, data = planted.parent, pickle.dumps(Planted(marker))
    assert folder.stat().st_mode & 0o077 == 0
    for shared, mode in ((planted, 0o620), (folder, 0o770)):
        planted.write_bytes(hashlib.sha256(data).digest() + data)
        shared.chmod(mode)
        assert run(package) == (42, 0)
        assert not marker.exists()


class Planted:
    """Unpickling this makes a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.system
def test_several_processes_and_a_cache_that_vanishes(package):
    stop = threading.Event()

    def remove():
        while not stop.wait(0.05):
            shutil.rmtree(package.parents[1] / "kept", ignore_errors=True)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(run, [package] * 3))
    finally:
        stop.set()
        remover.join()
    assert {result for result, _ in found} == {42}
    assert run(package)[0] == 42
    assert run(package) == (42, 1)


PROGRAM = """
from louvain_um.core.numbering import number_by_size
from louvain_um.core.compiled import announced
heard = []
def listen(event):
    assert event.phase == "compile"
    heard.append(event.kind)
with announced(listen):
    number_by_size([7, 3, 3, 9])
print(len(heard), heard == ["start", "end"] * (len(heard) // 2))
"""


@pytest.mark.system
def test_only_what_is_not_cached_is_announced(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    counts = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment, capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        count, paired = done.stdout.split()
        counts.append(int(count))
        assert paired == "True"
    assert counts[0] > 0
    assert counts[1] == 0


def test_an_observer_hears_what_its_own_call_compiles():
    heard = []
    with announced(heard.append), ThreadPoolExecutor(1) as other:
        other.submit(njit(lambda x: x + 1), 1).result()
        assert not heard
        njit(lambda x: x + 2)(1)
        parallel.run(njit(lambda t, threads: None), 2)  # by any of its threads
    assert [event.kind for event in heard] == ["start", "end"] * 2


def test_no_thread_compiles_a_function_while_another_notes_what_it_compiled():
    locked = []
    function = njit(lambda x: x)
    compiled._held(function, lambda: locked.append(global_compiler_lock.is_locked()))(
        (types.int64,)
    )
    assert locked == [True]
