"""Ranks as threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from louvain_um.core.threads import start_thread
from louvain_um.distributed.communicator import Array, Communicator
from louvain_um.distributed.partition import blocks_of
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import WorkerLostError
from louvain_um.events import Observer, ignore
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.communities import Communities

Result = TypeVar("Result")


class Meeting:
    """Where the ranks of one run meet."""

    def __init__(self, size: int, patience: float) -> None:
        self.size = size
        self.patience = patience
        self.reason = ""
        self.boxes: list[list[Array | None]] = [[None] * size for _ in range(size)]
        self.slots: list[list[Any]] = [[None] * size for _ in range(2)]
        self._barrier = threading.Barrier(size)
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait for all ranks."""
        try:
            self._barrier.wait(self.patience)
        except threading.BrokenBarrierError:
            reason = self.reason or f"a rank did not answer for {self.patience:g} s"
            self.abort(reason)
            raise WorkerLostError(reason) from None

    def abort(self, reason: str) -> None:
        """Make every wait raise; the first reason counts."""
        with self._lock:
            self.reason = self.reason or reason
        self._barrier.abort()


class ThreadCommunicator(Communicator):
    """A rank's end of a `Meeting`."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        super().__init__(rank, meeting.size)
        self.meeting = meeting
        self.patience = meeting.patience

    def exchange(self, arrays: list[Array]) -> list[Array]:
        """Send array r to rank r; return what each rank sent here, by rank."""
        meeting = self.meeting
        for to, array in enumerate(arrays):
            meeting.boxes[to][self.rank] = array
        meeting.wait()
        received = [array.copy() for array in meeting.boxes[self.rank] if array is not None]
        meeting.wait()  # the sender may write to its array again
        return received

    def check(self) -> None:
        """Raise if the run was aborted."""
        if self.meeting.reason:
            raise WorkerLostError(self.meeting.reason)

    def abort(self, reason: str) -> None:
        """Make every rank's collectives raise, now and later."""
        self.meeting.abort(reason)


def run_threads(
    task: Callable[[ThreadCommunicator], Result],
    size: int,
    *,
    patience: float = 600.0,
    communicator: Callable[[Meeting, int], ThreadCommunicator] = ThreadCommunicator,
) -> list[Result]:
    """Call a task on every rank, each in a thread of its own; return the results by rank."""
    meeting = Meeting(size, patience)
    results: dict[int, Result] = {}
    failures: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = task(communicator(meeting, rank))
        except BaseException as failure:
            failures.append(failure)
            meeting.abort(f"rank {rank} of {size} failed: {failure}")

    threads = list[threading.Thread]()
    try:
        for rank in range(size):
            threads.append(start_thread(partial(run, rank), f"louvain-um-rank-{rank}"))
        for thread in threads:
            while thread.is_alive() and not failures:
                thread.join(0.2)
            thread.join(patience if failures else None)
    except BaseException:
        meeting.abort("interrupted")
        raise
    if failures:
        raise next((f for f in failures if not isinstance(f, WorkerLostError)), failures[0])
    return [results[rank] for rank in range(size)]


def detect_in_threads(
    graph: Graph,
    options: Options,
    observer: Observer = ignore,
    *,
    ranks: int,
    patience: float = 600.0,
    communicator: Callable[[Meeting, int], ThreadCommunicator] = ThreadCommunicator,
    **values: Any,
) -> Communities:
    """Detect communities with ranks that are threads of this process."""
    blocks = blocks_of(graph, ranks)
    options = replace(options, threads=options.threads or 1)

    def task(local: ThreadCommunicator) -> Communities:
        rank = local.rank
        watcher = ignore if rank else observer
        return detect_on_rank(local, blocks[rank], options, watcher, **values)

    results = run_threads(task, ranks, patience=patience, communicator=communicator)
    return replace(results[0], graph=graph)
