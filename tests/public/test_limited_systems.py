"""Library calls where the system gives less: in a control group, and without shared memory."""

import gc
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.core import headroom
from louvain_um.errors import LouvainUmError
from tests.core.test_headroom import OBJECTS
from tests.paths import ROOT
from tests.public.test_growth_of_calls import CALLS, Case, random

pytestmark = pytest.mark.system


OLD = Path("/sys/fs/cgroup/memory")
"""Where a system with the first version of control groups has those of memory."""

LIMIT, MOST = (
    ("memory.limit_in_bytes", "memory.max_usage_in_bytes")
    if OLD.is_dir()
    else ("memory.max", "memory.peak")
)

LEAST_BYTES = 24 << 20
"""Of calls that need less, what Python takes for itself is too large a part."""

LONGEST_SECONDS = 120

UNFORESEEN = ("saved tracker", "best", "ensemble", "write_parts", "pairs")
"""Cases of several calls or runs, whose levels may all be small, of Arrow's threads, or of Python's
objects: in a group they can be killed."""


@contextmanager
def limited(count):
    """Yield a control group whose processes have so many bytes."""
    made = (OLD if OLD.is_dir() else OLD.parent) / f"louvain-um-{os.getpid()}"
    try:
        made.mkdir()
        (made / LIMIT).write_text(str(count))
    except OSError as error:
        if made.is_dir():
            made.rmdir()
        pytest.skip(f"groups cannot be made here: {error}")
    try:
        yield made
    finally:
        made.rmdir()


@pytest.fixture
def group():
    """A control group whose processes have 20 MiB."""
    with limited(20 << 20) as made:
        yield made


def join(group):
    """Let this process be of a group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def confine(count):
    """Let this process have so many bytes more of address space."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + count
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def outcome(call, limit):
    """Return how a process ends that is limited and makes a call: a code, or minus a signal."""
    child = os.fork()
    if not child:
        gc.freeze()  # a collection would write to all that the parent made, and so copy it
        signal.alarm(LONGEST_SECONDS)
        try:
            limit()
            call()
            os._exit(0)
        except MemoryError:
            os._exit(7)
        except LouvainUmError as error:
            os._exit(7 if "memory" in str(error) else 1)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def taken(call):
    """Return the bytes that a process takes at most for a call."""
    with limited(1 << 40) as group:
        assert outcome(call, partial(join, group)) == 0
        return int((group / MOST).read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", CALLS)
def test_a_call_that_needs_thrice_what_there_is_is_refused(title, monkeypatch, tmp_path):
    monkeypatch.setenv("LOUVAIN_UM_THREADS", "1")
    monkeypatch.setattr(headroom, "SMALL", 1 << 20)
    n = 50_000 if title == "graphs" else 150_000  # objects of networkx take long
    small, large = (Case(each, random(each), tmp_path) for each in (200, n))
    in_group, in_space = {}, {}
    for name, call in CALLS[title].items():
        call(small)  # compiles
        if name != "best":  # takes seconds, and reads what others made
            call(large)  # makes what it reads
        least = taken(partial(call, small))
        needed = taken(partial(call, large)) - least
        if needed >= LEAST_BYTES:
            count = max(least, needed // 3)
            if name not in UNFORESEEN:
                with limited(count) as group:
                    in_group[name] = outcome(partial(call, large), partial(join, group))
            in_space[name] = outcome(partial(call, large), partial(confine, count))
    assert in_group == dict.fromkeys(in_group, 7)
    assert {*in_space.values()} <= {0, 7}, in_space  # 0 where free parts of the heap are enough


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
    limit = partial(join, group)
    assert {what: outcome(call, limit) for what, call in calls.items()} == dict.fromkeys(calls, 7)
    assert outcome(lambda: lu.modularity(lu.Graph.from_edges([0], [1]), [0, 0]), limit) == 0


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
