"""What the ranks of a run, or its GPUs, did with their time, as its metadata says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from louvain_um.profiling.session.data import SessionData

LEAST_WAIT: Final = 0.05
"""Share of a rank's time from which its wait is worth a sentence."""


class RankRow(NamedTuple):
    """Seconds and bytes of one rank."""

    rank: int
    work: float
    exchange: float
    received: int

    @property
    def share(self) -> float:
        """Share of the rank's time in exchanges, waiting for others included."""
        return self.exchange / max(self.work + self.exchange, 1e-12)


def ranks_of(session: SessionData) -> list[RankRow]:
    """Return the ranks of a session; none of a run in one process."""
    return [
        RankRow(
            int(each["rank"]), float(each["work"]), float(each["exchange"]), int(each["received"])
        )
        for each in entries(session)
    ]


def entries(session: SessionData) -> list[dict[str, Any]]:
    """Return what a session's metadata says of each rank."""
    found = session.metadata.get("by_rank")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def spans_of(session: SessionData) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each rank's phases in order."""
    for each in entries(session):
        for span in each.get("spans", ()):
            yield int(each["rank"]), span


def waiting(session: SessionData) -> str | None:
    """Return which rank waited longest, and for which; None if none waited long."""
    rows = ranks_of(session)
    if len(rows) < 2:
        return None
    idle, busy = max(rows, key=lambda row: row.share), max(rows, key=lambda row: row.work)
    if idle.share < LEAST_WAIT:
        return None
    share = f"{round(100 * idle.share)} %"
    if idle.rank == busy.rank:
        return f"rank {idle.rank} spent {share} in exchanges"
    return f"rank {idle.rank} waited {share} for rank {busy.rank}"
