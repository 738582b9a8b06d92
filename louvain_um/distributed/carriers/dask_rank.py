"""A rank on a Dask worker: arrays travel over the workers' own connections (TCP, TLS, UCX)."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from distributed import WorkerPlugin, get_worker
from distributed.protocol import to_serialize

from louvain_um import errors
from louvain_um.distributed.communicator import Array, Communicator, version_digest
from louvain_um.distributed.files.reading import PartitionedGraph
from louvain_um.distributed.files.writing import PartitionedLabels
from louvain_um.distributed.partition import RowBlock
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import LouvainUmError, WorkerLostError
from louvain_um.events import Event, Observer
from louvain_um.options import Options
from louvain_um.results.communities import Communities

SHOWN = ("kind", "phase", "level", "iteration", "vertices", "arcs", "moved", "modularity")
"""What of an event is reported to the client."""

RANKS = "louvain-um-"
"""Begins the names of sessions' topics and tasks."""

RANKS_TOPIC = "louvain-um-ranks"
"""Topic of Dask's events under which every rank logs the phase that it begins."""


@dataclass(frozen=True, kw_only=True)
class RankSession:
    """What every rank knows of a run on a cluster."""

    name: str
    addresses: tuple[str, ...]  # of workers, by rank
    patience: float  # seconds that a rank waits for another one
    version: str  # digest of the client's rules and kernels

    @property
    def topic(self) -> str:
        """Name under which the ranks report their progress to the client."""
        return f"{RANKS}{self.name}"

    def worker(self, rank: int) -> str:
        """Return a worker's name for messages."""
        return f"worker {self.addresses[rank]} (rank {rank} of {len(self.addresses)})"


def receive(session: str, step: int, rank: int, data: Any) -> str:
    """Put a message that another worker sent into its session's mailbox."""
    array = data if isinstance(data, np.ndarray) else data.data
    mailbox(session).put(step, rank, array if array.flags.writeable else array.copy())
    return "OK"


def tell_lost(session: str, reason: str) -> None:
    """Make the rank of this worker stop; the client calls this on every worker left."""
    mailbox(session).abort(reason)


class Refusals(logging.Filter):
    """Shortens what a worker logs of a rank that was refused: the client reports the rest."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass; one line is left of errors that end in a remedy."""
        if str(record.msg).startswith("Compute Failed") and isinstance(record.args, tuple):
            key, *_, error, _ = map(str, record.args)
            kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
            known = {kind.__name__ for kind in kinds if issubclass(kind, LouvainUmError)}
            if key.startswith(RANKS) and error.partition("(")[0] in known:
                record.msg, record.args = "%s: %s", (key, error)
        return True


class Doors(WorkerPlugin):
    """Opens every worker to messages before any rank sends one."""

    name = "louvain-um-doors"

    def setup(self, worker: Any) -> None:
        """Add the handler of messages, and shorten the log of refusals."""
        worker.handlers["louvain_um_receive"] = receive
        log = logging.getLogger("distributed.worker")
        if not any(isinstance(each, Refusals) for each in log.filters):
            log.addFilter(Refusals())


class DaskCommunicator(Communicator):
    """One rank of a session, on the worker that calls this."""

    def __init__(self, session: RankSession, rank: int) -> None:
        super().__init__(rank, len(session.addresses))
        self.session = session
        self.patience = session.patience
        self.step = 0
        self._worker = get_worker()
        self._mailbox = mailbox(session.name)

    def exchange(self, arrays: list[Array]) -> list[Array]:
        """Send array r to rank r; return what each rank sent here, by rank."""
        session = self.session
        self.step += 1
        others = [to for to in range(self.size) if to != self.rank]

        async def send(to: int) -> None:
            message = {"session": session.name, "step": self.step, "rank": self.rank}
            peer = self._worker.rpc(session.addresses[to])
            try:
                await peer.louvain_um_receive(**message, data=to_serialize(arrays[to]))
            except OSError as error:
                raise WorkerLostError(f"{session.worker(to)} was lost") from error

        async def send_all() -> None:
            await asyncio.gather(*map(send, others))

        sending = asyncio.run_coroutine_threadsafe(send_all(), self._worker.loop.asyncio_loop)

        def check() -> None:
            if sending.done():
                sending.result()

        received: list[Array] = [arrays[self.rank]] * self.size
        try:
            for other in others:
                name = session.worker(other)
                received[other] = self._mailbox.take(
                    self.step, other, session.patience, check, name
                )
            sending.result(session.patience)
        except TimeoutError:
            raise WorkerLostError(f"a worker received nothing for {session.patience:g} s") from None
        finally:
            sending.cancel()
        return received

    def check(self) -> None:
        """Raise if the client, or this rank, aborted the run."""
        self._mailbox.check()

    def abort(self, reason: str) -> None:
        """Make this rank's collectives raise; the client informs the others."""
        self._mailbox.abort(reason)


def reporter(session: RankSession, rank: int) -> Observer:
    """Return an observer that logs each rank's phases; the first rank reports more."""
    worker = get_worker()

    def report(event: Event) -> None:
        if event.kind in ("start", "iteration", "end") and rank == 0:
            worker.log_event(session.topic, {name: getattr(event, name) for name in SHOWN})
        if event.kind == "start":
            about = {"run": session.name, "rank": rank, "phase": event.phase, "level": event.level}
            worker.log_event(RANKS_TOPIC, about)

    return report


def event_of(reported: Mapping[str, Any]) -> Event:
    """Return the event that `reporter` reported."""
    return Event(**{name: reported[name] for name in SHOWN})


def run_rank(
    session: RankSession,
    rank: int,
    rows: RowBlock | PartitionedGraph,
    frames: list[Any] | None,
    options: Options,
    values: dict[str, Any],
) -> Communities | PartitionedLabels | None:
    """Run one rank to its end; the first one returns the communities, without what is in files."""
    if version_digest() != session.version:
        raise LouvainUmError(
            f"{session.worker(rank)} runs another version of louvain-um than the client; install "
            "the same version on all machines"
        )
    ranks = DaskCommunicator(session, rank)
    try:
        options = replace(options, threads=options.threads or get_worker().state.nthreads)
        block = local_arrays(rows) if isinstance(rows, RowBlock) else rows.rows(ranks, frames)
        found = detect_on_rank(ranks, block, options, reporter(session, rank), **values)
    finally:
        close_mailbox(session.name)
    if rank:
        return None
    return PartitionedLabels.of(found) if values.get("labels") else found


def local_arrays(block: RowBlock) -> RowBlock:
    """Return a block that may be written to: arrays that arrive in a message may not."""
    arrays: dict[str, Array | None] = {
        name: getattr(block, name) for name in ("offsets", "targets", "weights", "loops")
    }
    copied: dict[str, Any] = {
        name: np.require(array, requirements=["C", "W"])
        for name, array in arrays.items()
        if array is not None
    }
    return replace(block, **copied)


KEPT: Final = 64
"""Sessions that ended here: their late messages are dropped."""

POLL_SECONDS: Final = 0.1


class Mailbox:
    """The messages of one session to one rank, by step and sender."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._arrived: dict[tuple[int, int], Array] = {}
        self._reason = ""

    def put(self, step: int, sender: int, array: Array) -> None:
        """Keep a message until it is taken."""
        with self._changed:
            self._arrived[step, sender] = array
            self._changed.notify_all()

    def abort(self, reason: str) -> None:
        """Make every `take` raise; the first reason counts."""
        with self._changed:
            self._reason = self._reason or reason
            self._changed.notify_all()

    def check(self) -> None:
        """Raise if the session was aborted."""
        with self._changed:
            if self._reason:
                raise WorkerLostError(self._reason)

    def take(
        self, step: int, sender: int, patience: float, check: Callable[[], None], name: str
    ) -> Array:
        """Return a message, which `name` sends, as soon as it is here."""
        deadline = time.monotonic() + patience
        while True:
            with self._changed:
                if self._reason:
                    raise WorkerLostError(self._reason)
                if (step, sender) in self._arrived:
                    return self._arrived.pop((step, sender))
                self._changed.wait(POLL_SECONDS)
            check()
            if time.monotonic() > deadline:
                raise WorkerLostError(f"{name} did not answer for {patience:g} s")


_open: dict[str, Mailbox] = {}
_closed: deque[str] = deque(maxlen=KEPT)
_lock = threading.Lock()


def mailbox(session: str) -> Mailbox:
    """Return the mailbox of a session; a message may arrive before its rank has started."""
    with _lock:
        return Mailbox() if session in _closed else _open.setdefault(session, Mailbox())


def close_mailbox(session: str) -> None:
    """Drop what a session left, and what still comes of it."""
    with _lock:
        _open.pop(session, None)
        _closed.append(session)
