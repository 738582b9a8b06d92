import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from louvain_um import Graph, api
from louvain_um.core import parallel
from louvain_um.core import threads as started
from louvain_um.core.threads import given_threads
from louvain_um.generators import rmat
from louvain_um.gpu.memory.graph_stats import degree_stats, fit16

STAGES, ITEMS = 50, 1000


@njit(nogil=True)
def relay(t, threads, values, progress):
    """Each stage writes what it reads of the stage before, in another order."""
    for stage in range(STAGES):
        begin = parallel.claim(progress, stage, 7)
        while begin < ITEMS:
            end = min(begin + 7, ITEMS)
            for i in range(begin, end):
                before = values[stage, (i * 389 + 1) % ITEMS]
                values[stage + 1, i] = before + 1
            parallel.finish(progress, stage, end - begin)
            begin = parallel.claim(progress, stage, 7)
        parallel.wait(progress, stage, ITEMS)


def relayed(threads):
    values, progress = np.zeros((STAGES + 1, ITEMS), np.int64), np.zeros(2 * STAGES, np.int64)
    parallel.run(relay, threads, values, progress)
    return values[-1]


def test_a_stage_begins_when_the_one_before_is_done():
    for threads in (1, 2, 5):
        assert (relayed(threads) == STAGES).all()


def test_any_thread_can_do_the_work_alone():
    # Callers share a pool: some of their threads come late, others when all is done.
    with ThreadPoolExecutor(8) as callers:
        for found in callers.map(relayed, [4] * 40, timeout=60):
            assert (found == STAGES).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a process with threads
def test_a_forked_process_starts_threads_of_its_own():
    assert (relayed(3) == STAGES).all()
    child = os.fork()
    if not child:
        failed = True
        try:
            signal.alarm(60)
            failed = not (relayed(3) == STAGES).all()
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0


def test_several_callers_get_the_labels_of_one():
    rng = np.random.default_rng(1)
    graph = Graph.from_edges(rng.integers(0, 5000, 60_000), rng.integers(0, 5000, 60_000))
    alone = api.louvain(graph, device="cpu", threads=1).labels
    with ThreadPoolExecutor(4) as callers:
        found = callers.map(
            lambda threads: api.louvain(graph, device="cpu", threads=threads).labels,
            [3, 3, 2, 4] * 3,
            timeout=60,
        )
        for labels in found:
            assert np.array_equal(labels, alone)


INTERRUPTED = """
import signal, sys, time
from louvain_um.core import parallel

def interrupt(frame, event, arg):
    inside = frame.f_code.co_name == "__enter__" and "threading" in frame.f_code.co_filename
    if inside and event == "return":
        signal.raise_signal(signal.SIGINT)  # the lock is taken, the block is not entered
    return interrupt

CALLS = {
    "run": lambda: parallel.run(lambda thread, threads: time.sleep(0.1), 2),
    "stream": lambda: list(parallel.stream(time.sleep, [0, 0.1, 0.1], 2)),
    "aside": lambda: parallel.aside(time.sleep, 0.1).result(),
}
call = CALLS[sys.argv[1]]
call()  # starts threads
sys.settrace(interrupt)
try:
    call()
except KeyboardInterrupt:
    sys.settrace(None)
    call()
    print("done")
"""


@pytest.mark.parametrize("call", ["run", "stream", "aside"])
def test_an_interrupt_leaves_threads_that_work(call):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, call], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_an_interrupt_of_a_wait_leaves_no_lock_taken():
    def interrupt(frame, event, arg):
        code = frame.f_code
        if (code.co_name, code.co_filename) == ("__exit__", threading.__file__):
            signal.raise_signal(signal.SIGINT)

    before = sys.gettrace()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(int)
        task = parallel.Task(future)
        sys.settrace(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                task.result()
        finally:
            sys.settrace(before)
        assert pool.submit(future._condition.acquire, False).result(60)


def test_a_thread_that_cannot_start_is_lack_of_memory(monkeypatch):
    start, started, calls = threading.Thread.start, [], []

    def refuse(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(MemoryError, match="12 threads; set LOUVAIN_UM_THREADS lower"):
        parallel.run(lambda t, threads: calls.append(t), 13)
    for thread in started:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert calls == []  # nothing runs on behind the error
    monkeypatch.undo()
    parallel.run(lambda t, threads: calls.append(t), 13)
    assert sorted(calls) == list(range(13))


SCARCE = """
import resource, sys
from pathlib import Path
import numpy as np
import louvain_um as lu

random = np.random.default_rng(1)
graph = lu.Graph.from_edges(*random.integers(0, 50_000, (2, 200_000)))
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = taken + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    lu.leiden(graph, device="cpu", threads=1)
    lu.leiden(graph, device="cpu", threads=8)
except MemoryError:
    print("MemoryError")
else:
    print("done")
"""


@pytest.mark.system
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize(("spare", "outcome"), [(8, "MemoryError"), (4000, "done")])
def test_scarce_memory_is_an_error_and_nothing_worse(spare, outcome):
    done = subprocess.run(
        [sys.executable, "-c", SCARCE, str(spare)],
        env=os.environ | {"LOUVAIN_UM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, outcome), done.stderr


@pytest.mark.parametrize("overlap", [0, 1])
@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 95])
def test_pieces_are_the_whole_of_an_array(monkeypatch, length, overlap):
    monkeypatch.setattr(parallel, "PIECE", 10)
    monkeypatch.setattr(parallel, "default_threads", lambda: 3)
    array = np.arange(length)
    found = sorted(parallel.over_pieces(np.ndarray.tolist, array, overlap))
    assert [i for piece in found for i in piece[: len(piece) - overlap]] == [
        *range(length - overlap)
    ]
    assert all(piece[10:] == [piece[0] + 10][:overlap] for piece in found[:-1])


def test_what_threads_return_is_freed_at_once():
    made = list[weakref.ref]()

    def make(size):
        array = np.ones(size)
        made.append(weakref.ref(array))
        return array

    gc.disable()
    try:
        for _ in parallel.stream(make, range(1, 9), 2):
            pass
        del _
        ends = time.monotonic() + 10  # a thread may hold the last a moment longer
        while any(each() is not None for each in made) and time.monotonic() < ends:
            time.sleep(0.01)
        assert [each() for each in made] == [None] * 8
    finally:
        gc.enable()


def test_what_is_added_up_by_several_threads_is_the_same(monkeypatch):
    rng = np.random.default_rng(3)
    n = 3000
    source, target = rng.integers(0, n, (2, 20_000))
    source[:50] = target[:50]
    for weights in (None, rng.integers(1, 2**33, 20_000)):
        graphs = list[Graph]()
        for piece in (1 << 18, 100):
            monkeypatch.setattr(parallel, "PIECE", piece)
            monkeypatch.setattr(parallel, "default_threads", lambda: 3)
            graphs.append(Graph.from_edges(source, target, weights, n_vertices=n, duplicates="sum"))
            assert graphs[-1].has_loops
            assert graphs[-1].total_weight == graphs[-1].degrees.sum()
            arcs = np.diff(graphs[-1].offsets)
            stats = degree_stats(graphs[-1].offsets)
            assert stats[:3] == (arcs.max(), (arcs**2).sum(), (arcs == 0).sum())
            assert fit16(graphs[-1].weights) == (weights is None)
        assert np.array_equal(graphs[0].degrees, graphs[1].degrees)


def test_threads_that_are_given_hold_for_a_whole_run(monkeypatch):
    monkeypatch.setenv("LOUVAIN_UM_THREADS", "3")
    with given_threads(2):
        with given_threads(None):
            assert parallel.default_threads() == 2
        with given_threads(1):
            assert parallel.default_threads() == 1
        assert parallel.default_threads() == 2
    assert parallel.default_threads() == 3
    used = set[int]()
    run = parallel.run

    def noted(kernel, threads, *args):
        used.add(threads)
        run(kernel, threads, *args)

    monkeypatch.setattr(parallel, "PIECE", 1 << 12)
    monkeypatch.setattr(parallel, "run", noted)
    graphs = [rmat(12).graph for _ in range(2)]  # a graph keeps its degrees
    used.clear()
    one = api.louvain(graphs[0], device="cpu", threads=1)
    assert used == {1}
    assert np.array_equal(api.louvain(graphs[1], device="cpu").labels, one.labels)
    assert used == {1, 3}


def test_a_thread_that_does_not_begin_is_an_error(monkeypatch):
    monkeypatch.setattr(started, "START_SECONDS", 0.05)
    monkeypatch.setattr(threading.Thread, "_bootstrap", lambda self: None)
    with pytest.raises(MemoryError, match="a thread got no memory to begin; "):
        started.start_thread(lambda: None, "test")


def test_a_thread_that_begins_too_late_does_nothing(monkeypatch):
    monkeypatch.setattr(started, "START_SECONDS", 0.05)
    bootstrap, late = threading.Thread._bootstrap, threading.Event()
    ended, done = threading.Event(), list[int]()

    def begin_late(self):
        late.wait(10)
        bootstrap(self)
        ended.set()

    monkeypatch.setattr(threading.Thread, "_bootstrap", begin_late)
    with pytest.raises(MemoryError):
        started.start_thread(lambda: done.append(1), "test")
    late.set()
    assert ended.wait(10)
    assert done == []


def test_host_pages_need_no_compiler():
    code = "import sys, louvain_um.placement.migration.pages; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
