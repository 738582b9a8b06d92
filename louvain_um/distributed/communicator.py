"""What ranks say to each other: two exchanges of arrays, and two reductions made of them.

Every rank calls the same collectives in the same order. Reductions are of integers and bits, so
that no result depends on the order in which messages arrive.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Exchange = Literal["host", "nccl"]
"""How ranks with GPUs exchange what is on them: by way of the hosts, or through NCCL."""

NCCL_ON_ONE_MACHINE: Final = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_RAS_ENABLE": "0"}
"""Environment in which NCCL opens ports on the loopback interface only, and none for reports."""


@dataclass(slots=True)
class Traffic:
    """What a rank has exchanged."""

    collectives: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0


class Communicator(Protocol):
    """One rank's end of the connections between all ranks."""

    rank: int
    size: int
    traffic: Traffic
    patience: float

    def allgatherv(self, array: Array) -> list[Array]:
        """Return every rank's one-dimensional array, by rank; lengths may differ."""

    def alltoallv(self, arrays: list[Array]) -> list[Array]:
        """Send array r to rank r; return what each rank sent here, by rank."""

    def or_bits(self, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bitwise or of all ranks' arrays of equal length."""

    def sum_exact(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the sums of all ranks' int64 arrays of equal length."""

    def check(self) -> None:
        """Raise if the run was aborted, as far as this rank knows."""

    def abort(self, reason: str) -> None:
        """Make every rank's collectives raise, now and later."""


class Collectives(ABC):
    """A communicator made of one exchange of arrays, which a carrier implements."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.traffic = Traffic()
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
        own = np.bitwise_or.reduce(self.alltoallv(slices), axis=0)
        return np.concatenate(self.allgatherv(own))

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
