"""Ranks on Dask workers: processes of their own, real connections, real deaths."""

import gc
import json
import logging
import re
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import louvain_um as lu
from louvain_um.cli import app
from louvain_um.errors import DeviceUnavailableError, LouvainUmError, WorkerLostError
from louvain_um.events import Event, ignore
from louvain_um.formats.labels import read_labels
from louvain_um.options import Options
from louvain_um.results.communities import Communities
from tests.distributed.conformance import conforms
from tests.distributed.runs import METHODS, assert_equal, graph_named, one_process

pytestmark = pytest.mark.system

distributed = pytest.importorskip("distributed", reason="Dask is not installed")


@pytest.fixture(scope="module")
def client():
    """Three workers, which every test leaves as they were."""
    from louvain_um.distributed.carriers.dask_session import local_client

    with local_client(3) as client:
        yield client


@pytest.fixture
def start():
    from contextlib import ExitStack

    from louvain_um.distributed.carriers.dask_session import local_client

    with ExitStack() as stack:
        yield lambda workers: stack.enter_context(local_client(workers))


def run(client, method="louvain", checkpoint=None, observer=ignore, **values):
    from louvain_um.distributed.carriers.dask_session import detect_with_client

    values = {"patience": 60.0, **values}
    options = Options(method=method, device="cpu")
    return detect_with_client(
        client, graph_named("lfr"), options, observer, collapse_arcs=1 << 10,
        checkpoint=checkpoint, **values,
    )  # fmt: skip


def before_exchange(client, worker, step, act):
    """Make one worker act before a collective of its next session."""

    def inject():
        from louvain_um.distributed.carriers.dask_rank import DaskCommunicator

        exchange = DaskCommunicator.exchange

        def acting(self, arrays):
            if self.step == step:
                DaskCommunicator.exchange = exchange
                act()
            return exchange(self, arrays)

        DaskCommunicator.exchange = acting

    client.run(inject, workers=[worker])


@contextmanager
def patched(client, name, value):
    """Give one worker another value of a name in a module, for a time."""
    worker = [workers_of(client)[1]]

    def patch():
        mock.patch(name, value).start()

    client.run(patch, workers=worker)
    yield
    client.run(mock.patch.stopall, workers=worker)


def kill_function():
    """Return a function that kills its process; nested, so that workers need not import it."""

    def kill():
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    return kill


def workers_of(client):
    return sorted(client.nthreads())


def test_labels_are_those_of_one_process(client):
    events = list[Event]()
    for method in METHODS:
        assert_equal(run(client, method, observer=events.append), one_process("lfr", method))
        found = getattr(lu, method)(graph_named("lfr"), cluster=client)
        assert_equal(found, one_process("lfr", method))
        assert found.provenance["ranks"] == 3
    assert {event.phase for event in events} >= {"move", "refine", "aggregate"}


def test_workers_exchange_what_a_communicator_promises(client):
    from louvain_um.distributed.carriers.dask_rank import (
        DaskCommunicator,
        Doors,
        RankSession,
        version_digest,
    )

    def task(session, rank):
        return conforms(DaskCommunicator(session, rank))

    client.register_plugin(Doors())
    where = workers_of(client)
    session = RankSession(
        name="conforms", addresses=tuple(where), patience=60, version=version_digest()
    )
    running = [
        client.submit(task, session, rank, workers=[at], pure=False)
        for rank, at in enumerate(where)
    ]
    assert len(set(client.gather(running))) == 1


def test_workers_read_files_and_tables(tmp_path, client):
    rng = np.random.default_rng(3)
    u = rng.integers(0, 500, 4000) * 7 + 3
    v = u // 70 * 70 + rng.integers(0, 10, 4000) * 7 + 3
    edges = pa.table({"source": u, "target": v, "weight": rng.integers(1, 9, 4000)})
    pq.write_table(edges, tmp_path / "edges.parquet", row_group_size=500)
    one = lu.louvain(lu.read_graph(tmp_path / "edges.parquet"), device="cpu")
    small = edges.set_column(2, "weight", pa.array([1.5, 1e-300] * 2000))
    (tmp_path / "small").mkdir()
    pq.write_table(small, tmp_path / "small/edges.parquet", row_group_size=500)
    with pytest.warns(lu.GraphWarning, match="2000 of 4000 positive weights"):
        lu.louvain(lu.read_partitioned(tmp_path / "small"), cluster=client)
    found = lu.louvain(lu.read_partitioned(tmp_path / "edges.parquet"), cluster=client)
    assert_equal(found, one)
    assert found.names.tolist() == one.names.tolist()
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(edges.to_pandas(), npartitions=3)
    assert_equal(lu.louvain(lu.read_partitioned(frame), cluster=client), one)


def test_a_killed_worker_ends_in_one_line(start, tmp_path):
    client = start(2)
    victim = workers_of(client)[1]
    before_exchange(client, victim, 4, kill_function())
    since = time.monotonic()
    with pytest.raises(WorkerLostError) as caught:
        lu.leiden(graph_named("stencil"), cluster=client, checkpoint=tmp_path)
    assert time.monotonic() - since < 60
    text = str(caught.value)
    assert "\n" not in text
    assert re.fullmatch(
        rf"worker {victim} \(rank 1 of 2\) was lost in level \d; "
        rf"resume with checkpoint='{tmp_path}'",
        text,
    )


@pytest.mark.parametrize("steps", [(90, 30), (1,)])
def test_killed_workers_are_done_without(start, tmp_path, steps):
    client = start(len(steps) + 1)
    for step, worker in zip(steps, workers_of(client), strict=False):
        before_exchange(client, worker, step, kill_function())
    found = run(client, "leiden", tmp_path, resume=True)
    assert_equal(found, one_process("lfr", "leiden"))
    assert found.provenance["ranks"] < len(steps) + 1
    if max(steps) > 81:
        assert found.provenance["replayed"] > 0


def test_an_exception_in_one_rank_stops_all(client):
    def fail():
        raise ValueError("broken on purpose")

    before_exchange(client, workers_of(client)[1], 20, fail)
    with pytest.raises(LouvainUmError, match="a rank failed: ValueError: broken on purpose"):
        run(client)
    assert_equal(run(client), one_process("lfr", "louvain"))  # the workers are free again


def test_a_stalled_worker_ends_in_one_line(start):
    client = start(2)

    def stall():
        import time

        time.sleep(8)

    before_exchange(client, workers_of(client)[0], 30, stall)
    with pytest.raises(WorkerLostError, match=r"rank 0 of 2\) did not answer for 2 s in level 0"):
        run(client, patience=2.0)


def test_a_full_disk_under_a_checkpoint_ends_in_one_line(client, tmp_path):
    def full(path):
        import errno

        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        patched(client, "louvain_um.core.atomic_files.flush", full),
        pytest.raises(LouvainUmError, match=r"disk is full.*free some space"),
    ):
        run(client, checkpoint=tmp_path)


def test_a_worker_of_another_version_is_refused(client):
    with (
        patched(client, "louvain_um.distributed.carriers.dask_rank.version_digest", lambda: "x"),
        pytest.raises(LouvainUmError, match=r"rank 1 of 3\) runs another version.*install"),
    ):
        run(client)


def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch):
    from louvain_um.distributed.carriers import dask_session

    monkeypatch.setattr(dask_session, "CONNECT_SECONDS", 1)
    with pytest.raises(LouvainUmError, match="start one with 'dask scheduler'"):
        lu.louvain(graph_named("lfr"), cluster="tcp://127.0.0.1:9")


@pytest.mark.parametrize("address", ["tls://127.0.0.1:9", "none://127.0.0.1:9"])
def test_an_address_that_dask_cannot_use_is_an_error(address):
    gc.collect()  # clients of other tests
    before = threading.active_count()
    with pytest.raises(LouvainUmError, match=r"^\w+://127.0.0.1:9: Dask cannot connect .*check"):
        lu.louvain(graph_named("lfr"), cluster=address)
    assert threading.active_count() == before  # the client has closed


def test_a_rank_without_a_gpu_is_reported(client):
    with pytest.raises(DeviceUnavailableError, match=r"rank 0 of 3 \(on .*\) has no GPU: .*use"):
        lu.louvain(graph_named("lfr"), cluster=client, device="cuda")


def test_a_refused_run_is_a_line_in_the_logs_of_workers():
    reported = list[str]()

    class Kept(logging.Handler):
        def emit(self, record):
            reported.append(record.getMessage())

    log, handler = logging.getLogger("distributed.worker"), Kept()
    workers = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with workers, distributed.Client(workers) as client:
        log.addHandler(handler)
        try:
            with pytest.raises(DeviceUnavailableError, match="has no GPU"):
                lu.louvain(graph_named("lfr"), cluster=client, device="cuda")
            with pytest.raises(ZeroDivisionError):
                client.submit(divmod, 1, 0).result()
        finally:
            log.removeHandler(handler)
    refused, divided = (
        [text for text in reported if name in text] for name in ("has no GPU", "divmod")
    )
    assert [text.count("\n") for text in refused] == [0]
    assert divided[0].startswith("Compute Failed")  # of others, all is logged


def test_the_command_line_leaves_a_pattern_to_the_ranks(tmp_path):
    graph = graph_named("lfr")
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    once = u < graph.targets
    for part in range(3):
        table = pa.table(
            {"u": u[once][part::3], "v": graph.targets[once][part::3].astype(np.int64)}
        )
        pq.write_table(table, tmp_path / f"{part}.parquet")
    output = tmp_path / "labels.npz"
    arguments = ["detect", f"{tmp_path}/*.parquet", "--cluster", "local:2", "-o", str(output)]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    one = lu.louvain(graph, device="cpu")
    assert found["modularity"] == one.modularity
    assert found["graph"]["arcs"] == graph.n_arcs
    assert read_labels(output).communities.tolist() == one.labels.tolist()


def test_ranks_write_labels_that_no_client_holds(tmp_path, client):
    graph = graph_named("lfr")
    found = lu.detect_partitioned(graph, tmp_path / "out", cluster=client, method="leiden")
    one = one_process("lfr", "leiden")
    assert not isinstance(found, Communities)
    assert not hasattr(found, "labels")
    assert (found.modularity, found.levels[0].arcs) == (one.modularity, graph.n_arcs)
    assert found.sizes.tolist() == one.sizes.tolist()
    assert [Path(file).name for file in found.files] == [f"part-0000{i}.parquet" for i in range(3)]
    assert pq.read_table(tmp_path / "out")["community"].to_pylist() == one.labels.tolist()
    with pytest.raises(LouvainUmError, match="has files already"):
        lu.detect_partitioned(graph, tmp_path / "out", cluster=client)
    with pytest.raises(LouvainUmError, match="cannot be written to"):
        lu.detect_partitioned(graph, tmp_path / "out" / "part-00000.parquet" / "x", cluster=client)


def test_the_command_line_leaves_labels_to_ranks(tmp_path):
    graph, folder = tmp_path / "graph.npz", tmp_path / "out"
    lu.write_graph(graph, graph_named("rmat"))
    arguments = ["detect", str(graph), "--labels-folder", str(folder)]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    both = CliRunner().invoke(app, [*arguments, "--cluster", "local:2", "-o", "a.csv"])
    assert both.exit_code == 2
    done = CliRunner().invoke(app, [*arguments, "--cluster", "local:2"])
    assert done.exit_code == 0, done.output
    assert f"written to {folder} (2 files)" in " ".join(done.output.split())
    one = one_process("rmat", "louvain")
    assert pq.read_table(folder)["community"].to_pylist() == one.labels.tolist()


def test_a_recording_says_what_each_rank_did(client):
    from louvain_um.profiling.session.data import ranks_of
    from louvain_um.profiling.views.timeline import trace

    with lu.recording() as recorded:
        found = lu.louvain(graph_named("lfr"), cluster=client, observer=recorded)
    rows = ranks_of(recorded.session)
    assert [row.rank for row in rows] == [0, 1, 2]
    assert [row.work for row in rows] == [each["work"] for each in found.provenance["by_rank"]]
    events = trace(recorded.session)["traceEvents"]
    lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert lanes >= {"rank 0", "rank 1", "rank 2"}


def test_a_closed_client_and_a_dask_table_lead_on(start):
    frame = pytest.importorskip("dask.dataframe").from_pandas(
        lu.read_graph("example:karate").to_pandas(), npartitions=2
    )
    with pytest.raises(lu.GraphError, match=r"pass read_partitioned\(frame\)"):
        lu.louvain(frame)
    assert repr(lu.read_partitioned(frame)) == "PartitionedGraph(a Dask DataFrame)"
    client = start(1)
    client.close()
    with pytest.raises(LouvainUmError, match="the client of the cluster is closed; connect"):
        lu.louvain("example:karate", cluster=client)
