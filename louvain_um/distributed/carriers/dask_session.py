"""A run on a Dask cluster, as its client sees it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from distributed import Client, Future, Scheduler, Security, Worker
from distributed.deploy.spec import SpecCluster
from distributed.deploy.subprocess import SubprocessWorker

from louvain_um.core.interrupts import uninterrupted
from louvain_um.core.parallel import default_threads
from louvain_um.distributed.carriers.dask_rank import (
    Doors,
    RankSession,
    event_of,
    run_rank,
    tell_lost,
)
from louvain_um.distributed.communicator import NCCL_ON_ONE_MACHINE, version_digest
from louvain_um.distributed.files.reading import PartitionedGraph, blocks_to_read
from louvain_um.distributed.files.writing import PartitionedLabels
from louvain_um.distributed.partition import blocks_of
from louvain_um.errors import LouvainUmError, OptionError, WorkerLostError, needed
from louvain_um.events import Event, Observer
from louvain_um.formats.file_types import first_line_of
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.communities import Communities

POLL_SECONDS: Final = 0.1
CONNECT_SECONDS: Final = 20


class ClosingClient(Client):
    """A client that closes if it cannot connect; garbage collection could deadlock in its place."""

    def start(self, **options: Any) -> None:
        """Connect to the scheduler."""
        try:
            super().start(**options)
        except BaseException:
            with suppress(Exception):
                self.close()
            raise


@contextmanager
def client_of(cluster: Any) -> Iterator[Client]:
    """Yield a client of a cluster; close what was opened for it."""
    if isinstance(cluster, str) and cluster.startswith("local"):
        with local_client(int(cluster.partition(":")[2] or default_threads())) as client:
            yield client
    elif isinstance(cluster, str):
        try:
            client = ClosingClient(cluster, timeout=CONNECT_SECONDS)
        except OSError as error:
            raise LouvainUmError(
                f"no Dask scheduler answers at {cluster}; start one with 'dask scheduler', or use "
                "cluster='local:2'"
            ) from error
        except (RuntimeError, TypeError, ValueError) as error:  # an address or certificates
            raise LouvainUmError(
                f"{cluster}: Dask cannot connect ({first_line_of(error)}); check the address and "
                "Dask's configuration of distributed.comm.tls"
            ) from error
        with client:
            yield client
    elif isinstance(cluster, Client):
        if cluster.status in ("closing", "closed"):
            raise LouvainUmError("the client of the cluster is closed; connect another one")
        yield cluster
    elif hasattr(cluster, "get_client"):
        with cluster.get_client() as client:
            yield client
    else:
        raise OptionError("cluster", type(cluster).__name__, "must be a client of Dask or a name")


def workers_of(client: Client) -> list[str]:
    """Return the addresses of a cluster's workers."""
    return sorted(client.nthreads())


def detect_with_client(
    client: Client,
    graph: Graph | PartitionedGraph,
    options: Options,
    observer: Observer,
    *,
    patience: float,
    resume: bool = False,
    **values: Any,
) -> Communities | PartitionedLabels:
    """Detect communities with all workers of a cluster."""
    client.register_plugin(Doors())
    while True:
        addresses = workers_of(client)
        if not addresses:
            raise WorkerLostError("the cluster has no workers left; start some and run again")
        session = RankSession(
            name=uuid.uuid4().hex[:12],
            addresses=tuple(addresses),
            patience=patience,
            version=version_digest(),
        )
        try:
            return run_session(client, session, graph, options, observer, values)
        except WorkerLostError:
            if not resume:
                raise


def run_session(
    client: Client,
    session: RankSession,
    graph: Graph | PartitionedGraph,
    options: Options,
    observer: Observer,
    values: dict[str, Any],
) -> Communities | PartitionedLabels:
    """Run one rank on every worker of a session; on a failure, stop them all."""
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    client.subscribe_topic(session.topic, lambda message: events.put(event_of(message[1])))
    futures: list[Future] = []
    level = -1
    try:
        for rank, (rows, frames) in enumerate(parts_of(client, session, graph)):
            where = [session.addresses[rank]]
            futures.append(
                client.submit(
                    run_rank, session, rank, rows, frames, options, values, workers=where,
                    allow_other_workers=False, pure=False, retries=0,
                    key=f"{session.topic}-{rank}",
                )
            )  # fmt: skip
            futures[-1].add_done_callback(lambda future: events.put(None))
        while not all(future.status == "finished" for future in futures):
            level = next_level(events, observer, level)
            check(client, session, futures)
        found: Communities | PartitionedLabels = futures[0].result()
        if isinstance(graph, Graph) and isinstance(found, Communities):
            return replace(found, graph=graph)
        return found
    except WorkerLostError as error:
        stop(client, session, futures, str(error))
        raise WorkerLostError(f"{error} in level {max(level, 0)}") from error
    except BaseException as error:
        stop(client, session, futures, f"a rank failed: {error}")
        raise
    finally:
        client.unsubscribe_topic(session.topic)


def parts_of(
    client: Client, session: RankSession, graph: Graph | PartitionedGraph
) -> Iterator[tuple[Any, Any]]:
    """Yield each rank's rows, sent to its worker, or what it reads and its partitions."""
    ranks = len(session.addresses)
    if isinstance(graph, Graph):
        for rank, block in enumerate(blocks_of(graph, ranks)):
            where = [session.addresses[rank]]
            try:
                rows = client.scatter(block, workers=where, direct=True, hash=False)
            except OSError as error:
                raise WorkerLostError(f"{session.worker(rank)} was lost") from error
            yield rows, None
    elif graph.frame is None:
        for _ in range(ranks):
            yield graph, None
    else:
        partitions = client.compute(graph.frame.to_delayed())
        for local in blocks_to_read(graph, ranks):
            yield replace(graph, frame=None), [partitions[k] for k in local]


def next_level(events: queue.SimpleQueue[Event | None], observer: Observer, level: int) -> int:
    """Wait a moment for progress; hand it on and return the last level."""
    with suppress(queue.Empty):
        event = events.get(timeout=POLL_SECONDS)
        while True:
            if event is not None:
                observer(event)
                level = max(level, event.level)
            event = events.get_nowait()
    return level


def check(client: Client, session: RankSession, futures: Sequence[Future]) -> None:
    """Raise that a worker is gone, or what a rank raised first of all."""
    left = workers_of(client)
    for rank, address in enumerate(session.addresses):
        if address not in left or futures[rank].status in ("cancelled", "lost"):
            raise WorkerLostError(f"{session.worker(rank)} was lost")
    failed = [future.exception() for future in futures if future.status == "error"]
    for error in sorted(failed, key=lambda error: isinstance(error, WorkerLostError)):
        if isinstance(error, LouvainUmError):
            raise error
        raise LouvainUmError(f"a rank failed: {type(error).__name__}: {error}") from error


def stop(client: Client, session: RankSession, futures: Sequence[Future], reason: str) -> None:
    """Make all ranks stop, and give up their tasks."""
    workers = workers_of(client)
    left = [address for address in session.addresses if address in workers]
    client.run(tell_lost, session.name, reason, workers=left, on_error="ignore")
    client.cancel(list(futures), force=True)


START_SECONDS: Final = 120
START_POLL_SECONDS: Final = 0.05
LOOPBACK: Final = "127.0.0.1"


class NoPages:
    """Keeps a Dask node from opening a web server, which no certificate would protect."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Open nothing."""


class LocalScheduler(NoPages, Scheduler):
    """A scheduler without a web server."""


class LocalWorker(NoPages, Worker):
    """A worker without a web server."""


class WorkerProcess(SubprocessWorker):
    """A worker in a separate process, which reads its options from a pipe and ends with it."""

    async def _start(self) -> None:
        # -P and this path: a worker imports what the client does, not what is in its folder.
        command = f"from {__name__} import serve; serve()"
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", command, stdin=asyncio.subprocess.PIPE,
            env={
                **NCCL_ON_ONE_MACHINE, **os.environ, "PYTHONPATH": path,
                # Dask hands its key to OpenSSL through a file there; a kill must not leave it.
                "TMPDIR": self.worker_kwargs["local_directory"],
            },
        )  # fmt: skip
        assert self.process.stdin
        options = {"scheduler_ip": self.scheduler, **self.worker_kwargs}
        self.process.stdin.write(f"{json.dumps(options)}\n".encode())

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self.process is not None and self.process.returncode is not None


def serve() -> None:
    """Be a worker with the options that the client writes to the standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides when to end
    given = sys.stdin.buffer.readline()
    if not given.endswith(b"\n"):  # the client was killed while it started
        return
    options = json.loads(given)
    threading.Thread(target=end_with_client, args=[options["local_directory"]], daemon=True).start()

    async def run() -> None:
        async with LocalWorker(**options) as worker:
            await worker.finished()

    with suppress(OSError):  # the scheduler does not answer
        asyncio.run(run())


def end_with_client(folder: str) -> None:
    """Wait until the client ends; remove the run's files, if it was killed, and end."""
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


@contextmanager
def local_client(workers: int) -> Iterator[Client]:
    """Start workers on this machine, each in a separate process; stop them in the end."""
    # Workers that stop close connections first, which this logger reports with a traceback.
    logging.getLogger("distributed.batched").setLevel(logging.ERROR)
    security = run_identity()
    with run_folder() as folder:
        options = {
            "host": LOOPBACK,
            "security": tls_options(security),
            "nthreads": max(1, default_threads() // workers),
            "memory_limit": 0,
            "local_directory": folder,
            "death_timeout": START_SECONDS,
            "silence_logs": logging.CRITICAL,  # the client raises what a rank raised
        }
        cluster = SpecCluster(
            scheduler={
                "cls": LocalScheduler,
                "options": {
                    "host": LOOPBACK, "port": 0, "dashboard": False, "security": security,
                    "local_directory": folder,
                },
            },
            workers={
                rank: {"cls": WorkerProcess, "options": {"worker_kwargs": options}}
                for rank in range(workers)
            },
            security=security,
            name=f"louvain-um-{os.getpid()}",
            silence_logs=logging.CRITICAL,  # an error names a lost worker
        )  # fmt: skip
        with cluster, ClosingClient(cluster) as client:
            wait_for_workers(cluster, client)
            yield client


@contextmanager
def run_folder() -> Iterator[str]:
    """Yield a private folder for the files of a run; remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="louvain-um-", ignore_cleanup_errors=True) as folder:
        try:
            yield folder
        finally:  # Dask imports from it; later, others could make a folder of that name
            sys.path[:] = [path for path in sys.path if not path.startswith(folder)]


def wait_for_workers(cluster: SpecCluster, client: Client) -> None:
    """Wait until all workers have started."""
    end = time.monotonic() + START_SECONDS
    while len(client.nthreads()) < len(cluster.worker_spec):
        if any(each.has_ended() for each in cluster.workers.values()):
            raise LouvainUmError(
                "a worker ended while it started; check whether memory is left, or start fewer"
            )
        if time.monotonic() > end:
            raise LouvainUmError(f"not all workers started within {START_SECONDS} s; start fewer")
        time.sleep(START_POLL_SECONDS)


class Identity(Security):
    """A certificate and its key, whose contexts are made once, while signals wait."""

    # Dask hands the key to OpenSSL through a file, which a run that ends meanwhile would leave.
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        with uninterrupted():
            self.connecting = super().get_connection_args("client")
            self.listening = super().get_listen_args("scheduler")

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """Return how each role connects."""
        return dict(self.connecting)

    def get_listen_args(self, role: str) -> dict[str, Any]:
        """Return how each role listens."""
        return dict(self.listening)


def run_identity() -> Security:
    """Return a new certificate and its key, which every end of a connection must have."""
    what = "cluster='local:N' needs cryptography, so that nobody else can connect"
    needed("cryptography", what, "cluster")
    return Identity.temporary()


def tls_options(security: Security) -> dict[str, Any]:
    """Return an identity as values of JSON."""
    values = {name: getattr(security, name) for name in security.__slots__}
    return {name: value for name, value in values.items() if isinstance(value, str | bool)}
