"""What each rank did with its time: its own work, and exchanges with the wait for other ranks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from louvain_um.distributed.communicator import Communicator, Traffic
from louvain_um.events import Event, Observer


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

    def __init__(self, traffic: Traffic, observer: Observer) -> None:
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
        own = json.dumps([asdict(span) for span in self.spans]).encode()
        sent = ranks.allgatherv(np.frombuffer(own, np.uint8))
        return [
            summary(rank, [RankSpan(**span) for span in json.loads(bytes(each))])
            for rank, each in enumerate(sent)
        ]


def tell(observer: Observer, provenance: Mapping[str, Any]) -> None:
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
