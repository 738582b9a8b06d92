"""What `cluster="local:N"` starts is out of everybody else's reach."""

import contextlib
import ipaddress
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("dask", reason="Dask is not installed")
import distributed

psutil = pytest.importorskip("psutil")

import louvain_um as lu  # noqa: E402
from louvain_um.distributed.carriers.dask_session import local_client, run_identity  # noqa: E402
from louvain_um.distributed.partition import blocks_of  # noqa: E402
from louvain_um.errors import LouvainUmError, WorkerLostError  # noqa: E402
from tests.cli.failures.processes import is_running, kill_when_busy, start  # noqa: E402
from tests.distributed.runs import assert_equal, graph_named, one_process  # noqa: E402
from tests.paths import ROOT  # noqa: E402

pytestmark = pytest.mark.system


BEFORE = set()
"""Sockets that other tests left open in this process."""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Workers that were started in a folder where somebody left a module."""
    folder = tmp_path_factory.mktemp("shared")
    for name in ("json", "distributed"):
        (folder / f"{name}.py").write_text("raise SystemExit('this is not what was asked for')")
    BEFORE.update(listening(psutil.Process()))
    with contextlib.chdir(folder), local_client(2) as client:
        yield client


def family():
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def listening(process):
    """Return addresses and ports at which a process accepts connections or takes datagrams."""
    found = getattr(process, "net_connections", process.connections)(kind="inet")
    return [
        (each.laddr.ip, each.laddr.port)
        for each in found
        if each.status == psutil.CONN_LISTEN or (each.status == psutil.CONN_NONE and each.laddr)
    ]


def test_only_this_machine_can_connect(client):
    assert_equal(lu.louvain(graph_named("lfr"), cluster=client), one_process("lfr", "louvain"))
    sockets = {process.pid: {*listening(process)} - BEFORE for process in family()}
    outside = [
        address for found in sockets.values() for address in found
        if not ipaddress.ip_address(address[0]).is_loopback
    ]  # fmt: skip
    assert not outside
    # The scheduler's, which is in this process, and one of each worker: no web servers.
    assert sum(map(len, sockets.values())) == 3


@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_only_the_client_of_the_run_can_connect(client, protocol):
    addresses = [client.scheduler.address, *client.nthreads()]
    stranger = distributed.Security()
    if protocol == "tls":
        stranger = distributed.Security.temporary()

    async def call(address):
        from distributed.core import rpc

        arguments = stranger.get_connection_args("client")
        where = f"{protocol}://{address.partition('://')[2]}"
        try:
            async with rpc(where, timeout=2, connection_args=arguments) as other:
                await other.identity()
        except (OSError, TimeoutError) as error:
            return type(error).__name__
        return f"{where} answered"

    assert len(addresses) == 3
    answers = [client.sync(call, address) for address in addresses]
    assert not [text for text in answers if "answered" in text]


def test_the_key_is_neither_shown_nor_on_disk(client):
    secret = client.security.tls_client_key.splitlines()[3]
    for process in family():
        assert not [text for text in process.cmdline() if secret in text or "PRIVATE" in text]
        assert not [text for text in process.environ().values() if secret in text]

    def scratch(dask_worker):
        return str(dask_worker.local_directory)

    for folder in client.run(scratch).values():
        top = Path(folder).parents[1]
        assert top.stat().st_mode & 0o077 == 0
        assert top.stat().st_uid == os.getuid()
        assert not [path for path in top.rglob("*") if path.is_file() and path.stat().st_size > 100]
        # Where workers hand the key to OpenSSL; a kill of the run removes it.
        assert {*client.run(tempfile.gettempdir).values()} == {str(top)}


def test_the_key_goes_through_a_file_only_while_signals_wait(monkeypatch):
    identity, made = run_identity(), tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", pytest.fail)
    for role in ("client", "scheduler"):
        assert identity.get_connection_args(role)["require_encryption"]
        assert identity.get_listen_args(role)["ssl_context"].verify_mode == ssl.CERT_REQUIRED

    def interrupted(*args, **options):
        path = made(*args, **options)
        folders.append(Path(path))
        signal.raise_signal(signal.SIGINT)
        return path

    folders = []
    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_identity()
    assert folders
    assert not [path for path in folders if path.exists()]


PROGRAM = """
import os, signal, sys
from louvain_um.distributed.carriers.dask_session import local_client
from louvain_um.errors import WorkerLostError
from tests.distributed.test_dask import before_exchange, kill_function, run, workers_of

if __name__ == "__main__":
    with local_client(2) as client:
        before_exchange(client, workers_of(client)[1], 4, kill_function())
        try:
            run(client)
        except WorkerLostError as error:
            print(error, file=sys.stderr)
        print(*client.run(os.getpid).values(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_lost_worker_is_one_line_and_a_killed_client_leaves_nothing(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    assert done.stderr.count("\n") == 1, done.stderr
    assert "(rank 1 of 2) was lost in level" in done.stderr
    (left,) = map(int, done.stdout.split())
    end = time.monotonic() + 20
    while psutil.pid_exists(left) or list(tmp_path.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_worker_whose_client_says_nothing_ends_in_silence():
    command = "from louvain_um.distributed.carriers.dask_session import serve; serve()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", command],  # as workers begin: nothing of this folder
        input=b'{"host": ',
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("seconds", "worker"), [(0.3, True), (1.2, True), (1.4, True), (1.8, False)]
)
def test_a_kill_leaves_one_line_or_nothing(tmp_path, seconds, worker):
    """While workers import, connect and compute; and that of the command, with its scheduler."""
    graph, out, temporary = (tmp_path / name for name in ("graph.npz", "labels.npz", "temporary"))
    lu.write_graph(graph, graph_named("lfr"))
    temporary.mkdir()
    shared = {*Path("/dev/shm").glob("[!m]*")}  # without those of MPICH in other tests
    command = start(
        "detect", graph, "-o", out, "-q", "--cluster", "local:2", cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
    )  # fmt: skip
    family = kill_when_busy(command, seconds, child=worker)
    _, reported = command.communicate(timeout=60)
    if command.returncode == 0:
        found = lu.read_labels(out).communities
        assert found.tolist() == one_process("lfr", "louvain").labels.tolist()
    else:
        assert command.returncode == (1 if worker else -signal.SIGKILL)
        assert reported.count("\n") == worker, reported
        assert reported.startswith("louvain-um: " if worker else "")
        assert not out.exists()
    end = time.monotonic() + 20
    while [*filter(is_running, family)] or [*temporary.iterdir()]:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert {*Path("/dev/shm").glob("[!m]*")} <= shared
    assert {path.name for path in tmp_path.iterdir()} <= {graph.name, out.name, temporary.name}


def test_a_worker_that_cannot_start_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    path = list(sys.path)
    with pytest.raises(LouvainUmError, match="a worker ended while it started; check"):
        lu.louvain(graph_named("lfr"), cluster="local:1")
    assert sys.path == path  # without the folder of the run, which is gone


def test_a_worker_lost_before_it_has_its_rows(client, monkeypatch):
    from louvain_um.distributed.carriers import dask_session

    victim = sorted(client.run(os.getpid).items())[1][1]

    def killing(graph, ranks):
        os.kill(victim, signal.SIGKILL)
        return blocks_of(graph, ranks)

    monkeypatch.setattr(dask_session, "blocks_of", killing)
    with pytest.raises(WorkerLostError, match=r"\(rank 1 of 2\) was lost in level 0; run again"):
        lu.louvain(graph_named("lfr"), cluster=client)
