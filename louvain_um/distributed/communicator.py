"""What ranks exchange, what each did with its time, and the digest by which they know each other.

Every rank calls the same collectives in the same order. Reductions are of integers and bits, so
that no result depends on the order in which messages arrive.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.events import Event, Observer

Array = NDArray[Any]
Exchange = Literal["host", "nccl"]
"""How ranks with GPUs exchange what is on them: by way of the hosts, or through NCCL."""

NCCL_ON_ONE_MACHINE: Final = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_RAS_ENABLE": "0"}
"""Environment in which NCCL opens ports on the loopback interface only, and none for reports."""


@dataclass(slots=True)
class RankTraffic:
    """What a rank has exchanged."""

    collectives: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0


class Communicator(ABC):
    """One rank's end of the connections between all, made of one exchange of a carrier."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.traffic = RankTraffic()
        self.patience = 600.0

    @abstractmethod
    def exchange(self, arrays: list[Array]) -> list[Array]:
        """Send array r to rank r; return what each rank sent here, by rank."""

    @abstractmethod
    def abort(self, reason: str) -> None:
        """Make every rank's collectives raise, now and later."""

    def check(self) -> None:  # noqa: B027 - where a rank's abort ends all of them
        """Raise if the run was aborted, as far as this rank knows."""

    def gather(self, array: Array) -> list[Array]:
        """Return every rank's array, by rank."""
        return self.exchange([array] * self.size)

    def alltoallv(self, arrays: list[Array]) -> list[Array]:
        """Send array r to rank r; return what each rank sent here, by rank."""
        since = time.perf_counter()
        received = self.exchange([np.ascontiguousarray(array) for array in arrays])
        self._count(sum(map(_bytes, arrays)) - arrays[self.rank].nbytes, received, since)
        return received

    def allgatherv(self, array: Array) -> list[Array]:
        """Return every rank's one-dimensional array, by rank; lengths may differ."""
        since = time.perf_counter()
        received = self.gather(np.ascontiguousarray(array))
        self._count(array.nbytes * (self.size - 1), received, since)
        return received

    def or_bits(self, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bitwise or of all ranks' arrays of equal length."""
        slices = np.array_split(bits, self.size)
        local = np.bitwise_or.reduce(self.alltoallv(slices), axis=0)
        return np.concatenate(self.allgatherv(local))

    def sum_exact(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the sums of all ranks' int64 arrays of equal length."""
        sums: NDArray[np.int64] = np.sum(
            self.allgatherv(np.asarray(values, np.int64)), axis=0, dtype=np.int64
        )
        return sums

    def _count(self, sent: int, received: list[Array], since: float) -> None:
        self.note(sent, sum(map(_bytes, received)) - received[self.rank].nbytes, since)

    def note(self, sent: int, received: int, since: float) -> None:
        """Count a collective that began at `since`, by `time.perf_counter`."""
        traffic = self.traffic
        traffic.collectives += 1
        traffic.sent += sent
        traffic.received += received
        traffic.seconds += time.perf_counter() - since


def gather_columns(ranks: Communicator, *columns: Array) -> list[Array]:
    """Return columns of equal length in one message, each with those of all ranks."""
    words = np.concatenate([column.view(np.uint32) for column in columns])
    received = ranks.allgatherv(words)
    share = [column.dtype.itemsize // 4 for column in columns]
    lengths = [len(words) // sum(share) for words in received]
    whole, done = list[Array](), 0
    for column, width in zip(columns, share, strict=True):
        parts = [
            words[done * length : (done + width) * length]
            for words, length in zip(received, lengths, strict=True)
        ]
        whole.append(np.concatenate(parts).view(column.dtype))
        done += width
    return whole


def _bytes(array: Array) -> int:
    return int(array.nbytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSpan:
    """One phase on one rank."""

    phase: str
    level: int
    start: float
    seconds: float
    exchange: float
    received: int


class RankTimes:
    """An observer that times the phases of this rank, and hands events on."""

    def __init__(self, traffic: RankTraffic, observer: Observer) -> None:
        self.traffic = traffic
        self.observer = observer
        self.since = time.perf_counter()
        self.spans: list[RankSpan] = []
        self.begun: tuple[float, float, int] = (self.since, 0.0, 0)

    def __call__(self, event: Event) -> None:
        """Note where a phase begins and ends."""
        now, traffic = time.perf_counter(), self.traffic
        if event.kind == "start":
            self.begun = now, traffic.seconds, traffic.received
        elif event.kind == "end":
            start, exchanged, received = self.begun
            self.spans.append(
                RankSpan(
                    phase=event.phase,
                    level=event.level,
                    start=start - self.since,
                    seconds=now - start,
                    exchange=traffic.seconds - exchanged,
                    received=traffic.received - received,
                )
            )
        self.observer(event)

    def of_all(self, ranks: Communicator) -> list[dict[str, Any]]:
        """Return what every rank noted, by rank; every rank calls this."""
        local = json.dumps([asdict(span) for span in self.spans]).encode()
        sent = ranks.allgatherv(np.frombuffer(local, np.uint8))
        return [
            summary(rank, [RankSpan(**span) for span in json.loads(bytes(each))])
            for rank, each in enumerate(sent)
        ]


def report(observer: Observer, provenance: Mapping[str, Any]) -> None:
    """Hand what a result says of its ranks to an observer, such as a recording."""
    by_rank = provenance.get("by_rank")
    if by_rank:
        observer(Event(kind="ranks", ranks=by_rank))


def summary(rank: int, spans: Sequence[RankSpan]) -> dict[str, Any]:
    """Return a rank's spans and their sums as plain data."""
    exchange = sum(span.exchange for span in spans)
    return {
        "rank": rank,
        "work": sum(span.seconds for span in spans) - exchange,
        "exchange": exchange,
        "received": sum(span.received for span in spans),
        "spans": [asdict(span) for span in spans],
    }


FOLDERS: Final = ("core", "cpu", "gpu", "distributed")
SUFFIXES: Final = (".py", ".cu", ".cuh")


@cache
def version_digest() -> str:
    """Return a digest of the sources of rules, level loop, kernels and exchanges."""
    root, total = Path(__file__).parent.parent, hashlib.sha256()
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES:
                total.update(file.relative_to(root).as_posix().encode())
                total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:16]
