"""Library calls where the system gives less: in a control group, and without shared memory."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import HostMemoryError
from tests.core.test_headroom import OBJECTS
from tests.paths import ROOT
from tests.public.test_growth_of_calls import CALLS, Case, random

pytestmark = pytest.mark.system


@pytest.fixture
def group():
    """A control group whose processes have 20 MiB."""
    root = Path("/sys/fs/cgroup")
    old = root / "memory"
    made = (old if old.is_dir() else root) / f"louvain-um-{os.getpid()}"
    limit = "memory.limit_in_bytes" if old.is_dir() else "memory.max"
    try:
        made.mkdir()
        (made / limit).write_text(str(20 << 20))
    except OSError as error:
        if made.is_dir():
            made.rmdir()
        pytest.skip(f"groups cannot be made here: {error}")
    yield made
    made.rmdir()


def outcome(call, group):
    """Return how a process of the group ends that makes a call: a code, or minus a signal."""
    child = os.fork()
    if not child:
        try:
            (group / "cgroup.procs").write_text(str(os.getpid()))
            call()
            os._exit(0)
        except HostMemoryError:
            os._exit(7)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_does_not_fit_in_a_control_group_is_refused(group, monkeypatch):
    monkeypatch.setenv("LOUVAIN_UM_THREADS", "1")
    for library in ("igraph", "networkx", "pandas", "scipy.sparse"):  # imports take memory, too
        importlib.import_module(library)
    n = 1_000_000
    u, v = np.arange(n - 1), np.arange(1, n)
    graph = lu.Graph.from_edges(u, v)
    found = lu.Communities.of(graph, np.arange(n) // 10)
    calls = {what: lambda call=call: call(found) for what, call in OBJECTS.items()} | {
        "louvain": lambda: lu.louvain(graph, device="cpu"),
        "leiden": lambda: lu.leiden(graph, device="cpu"),
        "from_edges": lambda: lu.Graph.from_edges(u, v),
    }
    assert {what: outcome(call, group) for what, call in calls.items()} == dict.fromkeys(calls, 7)
    assert outcome(lambda: lu.modularity(lu.Graph.from_edges([0], [1]), [0, 0]), group) == 0


def every_call(folder):
    """Make every public call on a small graph; print those that fail."""
    case = Case(200, random(200), Path(folder))
    for calls in CALLS.values():
        for name, call in calls.items():
            try:
                call(case)
            except Exception as error:
                print(name, repr(error))
    print(sum(map(len, CALLS.values())), "calls")


@pytest.mark.skipif(shutil.which("unshare") is None, reason="hides a file system")
def test_no_call_needs_shared_memory(tmp_path):
    hide = "mount -t tmpfs -o size=4k,mode=000 none /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", hide], capture_output=True).returncode:
        pytest.skip("only root can hide /dev/shm")
    program = f"from tests.public.test_limited_systems import every_call as e; e({str(tmp_path)!r})"
    words = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh", *words],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == f"{sum(map(len, CALLS.values()))} calls\n", done.stderr
