"""Attribute events: to arrays by address and lifetime, to phases by time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.events import BLOCK_BYTES, EventTable, Kind, Lifetime, PhaseSpan

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
