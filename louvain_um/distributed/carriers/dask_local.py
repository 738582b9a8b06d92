"""Dask workers on this machine for one run, which nobody else can reach.

Scheduler and workers listen on the loopback interface alone, serve no web pages, and take only
connections with the certificate of the run. Its private key stays in memory: workers read it from
a pipe, since command lines and environments are shown to others.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from distributed import Client, Scheduler, Security, Worker
from distributed.deploy.spec import SpecCluster
from distributed.deploy.subprocess import SubprocessWorker

from louvain_um.core.parallel import default_threads
from louvain_um.distributed.communicator import NCCL_ON_ONE_MACHINE
from louvain_um.errors import LouvainUmError

START_SECONDS: Final = 120
POLL_SECONDS: Final = 0.05
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
            env={**NCCL_ON_ONE_MACHINE, **os.environ, "PYTHONPATH": path},
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
    options = json.loads(sys.stdin.buffer.readline())
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
    # Workers that stop close connections first, which this logger tells with a traceback.
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
        with cluster, Client(cluster) as client:
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
        time.sleep(POLL_SECONDS)


def run_identity() -> Security:
    """Return a new certificate and its key, which every end of a connection must have."""
    try:
        return Security.temporary()
    except ImportError:
        raise LouvainUmError(
            "cluster='local:N' needs cryptography, so that nobody else can connect; install it "
            "with pip install 'louvain-um[cluster]'"
        ) from None


def tls_options(security: Security) -> dict[str, Any]:
    """Return an identity as values of JSON."""
    values = {name: getattr(security, name) for name in security.__slots__}
    return {name: value for name, value in values.items() if isinstance(value, str | bool)}
