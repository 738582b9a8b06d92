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
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from distributed import Client, Scheduler, Security, Worker
from distributed.deploy.spec import SpecCluster
from distributed.deploy.subprocess import SubprocessWorker

from louvain_um.core.parallel import default_threads
from louvain_um.distributed.communicator import NCCL_ON_ONE_MACHINE
from louvain_um.errors import LouvainUmError

START_SECONDS: Final = 60
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
    """A worker in a separate process, which reads its options from a pipe."""

    async def _start(self) -> None:
        options = {"cls": self.worker_class, "opts": self.worker_kwargs}
        # -P and this path: a worker imports what the client does, not what is in its folder.
        command = [sys.executable, "-P", "-m", "dask", "spec", self.scheduler]
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        self.process = await asyncio.create_subprocess_exec(
            *command, "--spec-file", "/dev/stdin", stdin=asyncio.subprocess.PIPE,
            env={**NCCL_ON_ONE_MACHINE, **os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert self.process.stdin
        self.process.stdin.write(json.dumps(options).encode())
        self.process.stdin.close()


@contextmanager
def local_client(workers: int) -> Iterator[Client]:
    """Start workers on this machine, each in a separate process; stop them in the end."""
    # Workers that stop close connections first, which this logger tells with a traceback.
    logging.getLogger("distributed.batched").setLevel(logging.ERROR)
    security = run_identity()
    with tempfile.TemporaryDirectory(prefix="louvain-um-", ignore_cleanup_errors=True) as folder:
        options = {
            "host": LOOPBACK,
            "security": tls_options(security),
            "nthreads": max(1, default_threads() // workers),
            "memory_limit": 0,
            "local_directory": folder,
            "death_timeout": START_SECONDS,
            "silence_logs": logging.CRITICAL,  # the client raises what a rank raised
        }
        spec: dict[str, Any] = {
            "worker_class": f"{__name__}.{LocalWorker.__name__}",
            "worker_kwargs": options,
        }
        cluster = SpecCluster(
            scheduler={
                "cls": LocalScheduler,
                "options": {
                    "host": LOOPBACK, "port": 0, "dashboard": False, "security": security,
                },
            },
            workers={rank: {"cls": WorkerProcess, "options": spec} for rank in range(workers)},
            security=security,
            name=f"louvain-um-{os.getpid()}",
            silence_logs=logging.ERROR,
        )  # fmt: skip
        with cluster, Client(cluster) as client:
            try:
                client.wait_for_workers(workers, timeout=START_SECONDS)
            except TimeoutError as error:
                raise LouvainUmError(
                    f"the {workers} workers did not start within {START_SECONDS} s; start fewer"
                ) from error
            yield client


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
