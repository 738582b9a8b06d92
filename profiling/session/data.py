"""One recorded run as plain data; whatever recorded it, views read only this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.ledger import GROUPS
from louvain_um.profiling.session.attribution import event_arrays
from louvain_um.profiling.session.events import EventTable, Kind, Lifetime, PageMap, PhaseSpan

OTHER = "other"
"""What lies in no array; no group is called so."""

SCHEMA = 1
"""Raised whenever older code could no longer read what is saved."""

LEAST_WAIT: Final = 0.05
"""Share of a rank's time from which its wait is worth a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SessionData:
    """One recorded run, without anything to save or show it: `Session` adds that.

    Parameters
    ----------
    metadata : mapping
        What ran where. Always there: `version`, `created` (ISO 8601), `device`, `policy`,
        `seconds` (of the run), `complete` (False in a session whose run was cut short), and
        `sources`, a mapping from the name of each source ("cupti", "nvml", "tracer",
        "recorder", "nsys", "engine") to "measured", "modelled" or "not available: why". Of a
        detection also `method`, `seed`, `graph` (`vertices`, `edges`, `arcs`, `weighted`),
        `modularity`, `communities`, `arcs_visited`, `timings`, `peak_bytes` by group, and the
        result's provenance (`budget_bytes`, `placements` …). `about_sources` holds what each
        source reports of itself: events, `dropped`, the driver's totals next to those recorded.
    plan : mapping, optional
        The plan made for the run, as `louvain-um plan --json` prints it.
    lifetimes : tuple of Lifetime
        Arrays, in the order of their allocation; a name may come back later.
    phases : tuple of PhaseSpan
        Phases and their iterations, in order of their beginnings.
    events : EventTable
        In order of time.
    maps : tuple of PageMap
    notes : tuple of str
        What is missing, sampled, merged or dropped, a sentence each.
    energy : mapping, optional
        `joules` and `seconds` of the run, `times_ns` and `watts` of samples, `counter`
        ("total energy" or "integrated power").
    schema : int

    Examples
    --------
    >>> from louvain_um.profiling.session import SessionData
    >>> from louvain_um.profiling.session.events import EventTable
    >>> SessionData(events=EventTable({"kind": [1], "bytes": [65536]})).event_arrays().tolist()
    [-1]
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None
    lifetimes: tuple[Lifetime, ...] = ()
    phases: tuple[PhaseSpan, ...] = ()
    events: EventTable = field(default_factory=lambda: EventTable({}))
    maps: tuple[PageMap, ...] = ()
    notes: tuple[str, ...] = ()
    energy: Mapping[str, Any] | None = None
    schema: int = SCHEMA

    def event_arrays(self) -> NDArray[np.int32]:
        """Return for each event the index in `lifetimes` of the array at its address, else −1.

        Kernels and copies have no address and so no array.
        """
        return event_arrays(self.events, self.lifetimes)

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups of arrays: the four of this package, then others, as they first occur."""
        found = dict.fromkeys((*GROUPS, *(life.group for life in self.lifetimes)))
        found.pop(OTHER, None)
        return tuple(found)

    @property
    def unattributed(self) -> int:
        """Rows of unified-memory events that lie in no array."""
        memory = self.events["kind"] <= Kind.DTOD
        return int(np.count_nonzero(self.event_arrays()[memory] < 0))

    @property
    def seconds(self) -> float:
        """Length of the run; of what was recorded, where the run's own is not known."""
        if "seconds" in self.metadata:
            return float(self.metadata["seconds"])
        ends = [span.end_ns for span in self.phases]
        if len(self.events):
            ends.append(int((self.events["time"] + self.events["duration"]).max()))
        return max(ends, default=0) / 1e9


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
