"""Ranks that are processes of this machine, without Dask and MPI."""

import multiprocessing
import queue
import time
import traceback
from typing import Any

from louvain_um.distributed.communicator import Array, Communicator
from louvain_um.distributed.partition import blocks_of
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import WorkerLostError
from louvain_um.options import Options
from tests.distributed.runs import graph_named

END_SECONDS = 10
"""In which a process that has answered may end by itself."""


class QueueCommunicator(Communicator):
    """A process' end of one queue for each sender and receiver."""

    def __init__(self, rank, queues, patience):
        super().__init__(rank, len(queues))
        self.queues, self.patience = queues, patience

    def exchange(self, arrays):
        """Send array r to rank r; return what each rank sent here, by rank."""
        for to, array in enumerate(arrays):
            self.queues[self.rank][to].put(array)
        received = list[Array]()
        for sender in range(self.size):
            try:
                received.append(self.queues[sender][self.rank].get(timeout=self.patience))
            except queue.Empty:
                raise WorkerLostError(f"rank {sender} did not answer") from None
        return received

    def abort(self, reason):
        """Nothing: `run_processes` ends all processes."""


def run_processes(task, size, *arguments, patience=60.0):
    """Call `task(ranks, *arguments)` in processes; return the results by rank.

    `task` is a function of a module, since new processes import it. The first failure ends all.
    """
    context = multiprocessing.get_context("spawn")
    queues = [[context.Queue() for _ in range(size)] for _ in range(size)]
    answers = context.Queue()
    processes = [
        context.Process(
            target=run, args=(task, rank, queues, answers, patience, arguments), daemon=True
        )
        for rank in range(size)
    ]
    found = dict[int, Any]()
    try:
        for process in processes:
            process.start()
        deadline = time.monotonic() + patience
        while len(found) < size:
            try:
                rank, failure, result = answers.get(timeout=0.2)
            except queue.Empty:
                assert time.monotonic() < deadline, "the ranks took too long"
                gone = [p.exitcode for p in processes if p.exitcode not in (None, 0)]
                assert not gone, f"a rank ended with status {gone[0]}"
                continue
            assert not failure, f"rank {rank}: {failure}"
            found[rank] = result
    finally:
        for process in processes:
            process.join(END_SECONDS if len(found) == size else 0)
            if process.is_alive():
                process.kill()
            process.join()
    return [found[rank] for rank in range(size)]


def run(task, rank, queues, answers, patience, arguments):
    try:
        answers.put((rank, "", task(QueueCommunicator(rank, queues, patience), *arguments)))
    except BaseException:
        answers.put((rank, traceback.format_exc(), None))


def found_on(ranks, cases, device, exchange):
    """Detect the communities of graphs of `runs.GRAPHS`, each by a method, in turn.

    Every level is dealt over the ranks.
    """
    found = []
    for kind, method in cases:
        block = blocks_of(graph_named(kind), ranks.size)[ranks.rank]
        options = Options(method=method, device=device, threads=1)
        found.append(detect_on_rank(ranks, block, options, collapse_arcs=0, exchange=exchange))
    return found
