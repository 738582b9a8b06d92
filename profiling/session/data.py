"""One recorded run as plain data: events, and the arrays and phases that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.ledger import GROUPS
from louvain_um.profiling.session.events import (
    BLOCK_BYTES,
    EventTable,
    Kind,
    Lifetime,
    PageMap,
    PhaseSpan,
)

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


def event_arrays(events: EventTable, lifetimes: Sequence[Lifetime]) -> I32:
    """Return for each event the index of the lifetime it belongs to; −1 for none."""
    found = np.full(len(events), -1, np.int32)
    rows = np.flatnonzero((events["address"] != 0) & (events["kind"] != Kind.KERNEL))
    rows = rows[np.argsort(events["time"][rows], kind="stable")]
    if not len(rows) or not lifetimes:
        return found
    times = events["time"][rows]
    low = events["address"][rows].astype(np.int64)
    high = low + np.maximum(events["bytes"][rows], 1)
    array = np.full(len(rows), -1, np.int32)
    for since, until, addresses in _epochs(lifetimes):
        part = slice(*np.searchsorted(times, (since, until), "left"))
        if part.start < part.stop:
            array[part] = addresses.look_up(low[part], high[part])
    missing = np.flatnonzero(array < 0)
    if len(missing):
        order = sorted(range(len(lifetimes)), key=lambda n: lifetimes[n].start_ns, reverse=True)
        first = _paint([(number, _span(lifetimes[number])) for number in order])
        array[missing] = _look_up(first, low[missing], high[missing])
    found[rows] = array
    return found


Painted = tuple[I64, I32]
"""Addresses at which the array changes, and its index from there on; −1 for none."""


class _AddressMap:
    """The array that each range of addresses belongs to, or belonged to last."""

    def __init__(self) -> None:
        self.alive: dict[int, tuple[int, int]] = {}
        self.gone: dict[int, tuple[int, int]] = {}
        self._painted: Painted | None = None

    def enter(self, number: int, array: Lifetime) -> None:
        """Note a new array; freed ones whose addresses it takes are forgotten."""
        low, high = _span(array)
        for other, (first, end) in list(self.gone.items()):
            if low <= first and end <= high:
                del self.gone[other]
        self.alive[number] = (low, high)
        self._painted = None

    def leave(self, number: int) -> None:
        """Note that an array is freed; its pages stay."""
        self.gone[number] = self.alive.pop(number)
        self._painted = None

    def look_up(self, low: I64, high: I64) -> I32:
        """Return the array of each range of addresses, −1 for none."""
        if self._painted is None:
            # Arrays alive cover freed ones.
            self._painted = _paint([*self.gone.items(), *self.alive.items()])
        return _look_up(self._painted, low, high)


def _span(array: Lifetime) -> tuple[int, int]:
    return array.address, array.address + max(array.nbytes, 1)


def _paint(spans: Sequence[tuple[int, tuple[int, int]]]) -> Painted:
    """Overlay spans, the last on top; the rest of their 2 MiB blocks lies below all."""
    if not spans:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    rest = [(number, (end, -(-end // BLOCK_BYTES) * BLOCK_BYTES)) for number, (_, end) in spans]
    layers = [*sorted(rest, key=lambda layer: layer[1]), *spans]
    bounds = np.array([span for _, span in layers], np.int64)
    edges, where = np.unique(bounds, return_inverse=True)
    owner = np.full(len(edges), -1, np.int32)
    for (number, _), (first, end) in zip(layers, where.reshape(-1, 2).tolist(), strict=True):
        owner[first:end] = number
    return edges, owner


def _look_up(painted: Painted, low: I64, high: I64) -> I32:
    """Return the array of each range of addresses, −1 for none."""
    edges, owner = painted
    if not len(edges):
        return np.full(len(low), -1, np.int32)
    at = np.searchsorted(edges, low, "right") - 1
    mine = np.where(at >= 0, owner[at], -1)
    # Where the first byte lies in no array, the next array counts if it begins inside the range.
    after = np.minimum(at + 1, len(edges) - 1)
    follows = (mine < 0) & (edges[after] > low) & (edges[after] < high)
    return np.where(follows, owner[after], mine).astype(np.int32)


def _epochs(lifetimes: Sequence[Lifetime]) -> Iterator[tuple[int, int, _AddressMap]]:
    """Yield periods in which no array is made or freed, with the addresses of that time."""
    changes = [(array.end_ns, 0, number) for number, array in enumerate(lifetimes)]
    changes += [(array.start_ns, 1, number) for number, array in enumerate(lifetimes)]
    changes.sort()
    addresses = _AddressMap()
    since = np.iinfo(np.int64).min
    for time, comes, number in changes:
        if time > since:
            yield since, time, addresses
            since = time
        if comes:
            addresses.enter(number, lifetimes[number])
        elif number in addresses.alive:
            addresses.leave(number)
    yield since, np.iinfo(np.int64).max, addresses


def with_phases(events: EventTable, phases: Sequence[PhaseSpan]) -> EventTable:
    """Return the events with the phase, level and iteration of their time."""
    columns = dict(events.columns)
    names = tuple(dict.fromkeys([*events.phases, *(span.phase for span in phases)]))
    unknown = events["phase"] < 0
    whole = [span for span in phases if span.iteration < 0]
    parts = [span for span in phases if span.iteration >= 0]
    for name, spans, values in (
        ("phase", whole, [names.index(span.phase) for span in whole]),
        ("level", whole, [span.level for span in whole]),
        ("iteration", parts, [span.iteration for span in parts]),
    ):
        at = _span_at(spans, events["time"])
        inside = unknown & (at >= 0)
        columns[name] = columns[name].copy()
        columns[name][inside] = np.array(values, columns[name].dtype)[at[inside]]
    return EventTable(columns, events.kernels, names)


def _span_at(spans: Sequence[PhaseSpan], times: I64) -> I32:
    """Return the innermost span around each time, −1 for none."""
    if not spans:
        return np.full(len(times), -1, np.int32)
    bounds = np.array([(span.start_ns, span.end_ns) for span in spans], np.int64)
    edges = np.unique(bounds)
    owner = np.full(len(edges), -1, np.int32)
    for number in np.lexsort((-bounds[:, 1], bounds[:, 0])):
        first, end = np.searchsorted(edges, bounds[number])
        owner[first:end] = number
    at = np.searchsorted(edges, times, "right") - 1
    return np.where(at >= 0, owner[at], -1).astype(np.int32)


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
