"""Ranks that `mpiexec` or `srun` started, each a process that runs the same program."""

from __future__ import annotations

import atexit
import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from mpi4py import MPI

from louvain_um.distributed.communicator import NCCL_ON_ONE_MACHINE, Array, Communicator
from louvain_um.distributed.files.reading import PartitionedGraph
from louvain_um.distributed.partition import NoGraphError, deal
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import WorkerLostError
from louvain_um.events import Observer, ignore
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.communities import Communities

EAGER_SECONDS: Final = 2e-4
"""How long to poll without a pause: longer than a small collective takes."""

PAUSE_SECONDS: Final = 1e-4
"""Between later polls. Ranks that outnumber cores would otherwise take each other's time."""

SHARED_BY_MPICH: Final = re.compile(r"/dev/shm/mpich_\S+")

INTERRUPTED: Final = 130
"""Exit status of an interrupted process in a shell."""

LAST_WORDS: Final = 0.5
"""Seconds for the launcher to pass on why a rank aborts: it drops what it has not yet read."""


class MpiCommunicator(Communicator):
    """One process's end of the connections between all processes of the job."""

    def __init__(self, patience: float = 600.0) -> None:
        self.world = MPI.COMM_WORLD
        super().__init__(self.world.Get_rank(), self.world.Get_size())
        self.patience = patience

    def exchange(self, arrays: list[Array]) -> list[Array]:
        """Send array r to rank r; return what each rank sent here, by rank."""
        counts = np.array([array.nbytes for array in arrays], np.int64)
        expected = np.empty_like(counts)
        self._wait(self.world.Ialltoall(counts, expected))
        sent = np.concatenate([array.view(np.uint8) for array in arrays])
        buffer = np.empty(int(expected.sum()), np.uint8)
        self._wait(self.world.Ialltoallv([sent, counts, MPI.BYTE], [buffer, expected, MPI.BYTE]))
        return parts(buffer, expected, arrays[0].dtype)

    def gather(self, array: Array) -> list[Array]:
        """Return every rank's array, by rank."""
        expected = np.empty(self.size, np.int64)
        self._wait(self.world.Iallgather(np.array([array.nbytes], np.int64), expected))
        buffer = np.empty(int(expected.sum()), np.uint8)
        sent = array.view(np.uint8)
        self._wait(self.world.Iallgatherv([sent, MPI.BYTE], [buffer, expected, MPI.BYTE]))
        return parts(buffer, expected, array.dtype)

    def on_one_machine(self) -> bool:
        """Return whether all processes of the job share a machine; every one calls this."""
        here = self.world.Split_type(MPI.COMM_TYPE_SHARED)
        try:
            return bool(here.Get_size() == self.size)
        finally:
            here.Free()

    def abort(self, reason: str) -> None:
        """End all processes of the job: MPI knows no other way out of a collective."""
        print(f"louvain-um: {reason}", file=sys.stderr, flush=True)
        time.sleep(LAST_WORDS)
        self.end_all(1)

    def end_all(self, status: int) -> None:
        """End all processes of the job, and remove the memory they share: MPICH would leave it."""
        with suppress(OSError):
            for name in set(SHARED_BY_MPICH.findall(Path("/proc/self/maps").read_text())):
                os.unlink(name)
        self.world.Abort(status)

    def _wait(self, request: Any) -> None:
        since = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - since
            if waited > self.patience:
                raise WorkerLostError(f"a rank did not answer for {self.patience:g} s")
            if waited > EAGER_SECONDS:
                time.sleep(PAUSE_SECONDS)


def parts(buffer: Array, lengths: Array, dtype: Any) -> list[Array]:
    """Return the arrays of which a buffer of bytes consists."""
    return [part.copy().view(dtype) for part in np.split(buffer, np.cumsum(lengths)[:-1])]


def detect_with_mpi(
    graph: Graph | PartitionedGraph | None,
    options: Options,
    observer: Observer,
    *,
    patience: float,
    **values: Any,
) -> Communities:
    """Detect communities with all processes of the job; every one calls this."""
    ranks = MpiCommunicator(patience)
    if values.get("exchange") == "nccl" and ranks.on_one_machine():
        os.environ.update({**NCCL_ON_ONE_MACHINE, **os.environ})
    try:
        block = graph.rows(ranks) if isinstance(graph, PartitionedGraph) else deal(ranks, graph)
        options = replace(options, threads=options.threads or 1)
        watcher = ignore if ranks.rank else observer
        found = detect_on_rank(ranks, block, options, watcher, **values)
    except NoGraphError:
        raise  # to abort now could end the first rank before it has said why
    except KeyboardInterrupt:
        if ranks.size > 1:  # to finalize would be to wait for a rank that may have been killed
            atexit.register(ranks.end_all, INTERRUPTED)
        raise
    except Exception as error:
        if ranks.size > 1:
            ranks.abort(f"rank {ranks.rank} of {ranks.size} failed: {error}")
        raise
    return replace(found, graph=graph) if isinstance(graph, Graph) and not ranks.rank else found


def is_follower() -> bool:
    """Return whether another process of the job reads the graph and prints the result."""
    return bool(MPI.COMM_WORLD.Get_rank())


def give_up() -> None:
    """Inform the other processes that the first one has no graph for them."""
    deal(MpiCommunicator(), None)
