"""Keep a table of events bounded: merge rows that are alike and close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.events import EventTable

MOST_EVENTS = 4_000_000
"""Rows that a session keeps by default, some 300 MB in memory."""

BLOCK_BYTES = 2 << 20
"""Where merging begins: the driver moves and evicts blocks of this size."""

FIRST_BIN_NS = 1_000_000


def merge(events: EventTable, owners: NDArray[np.int32], most: int) -> tuple[EventTable, int, int]:
    """Return the events in at most `most` rows, with the nanoseconds and bytes of a bin."""
    same = ("kind", "source", "cause", "kernel", "phase", "level", "iteration")
    likeness = _key([owners, *(events[name] for name in same)])
    ns, size = FIRST_BIN_NS, BLOCK_BYTES
    while True:
        place = (events["address"] // np.uint64(size)).astype(np.int64)
        key = _key([likeness, events["time"] // ns, place])
        rows = _distinct(key)
        if rows <= most or (ns > 1 << 60 and size > 1 << 60):
            break
        # Times are merged first: sessions are read by page above all.
        factor = 1 << min(6, (rows // most).bit_length())
        if ns < 16 * FIRST_BIN_NS * (size // BLOCK_BYTES):
            ns *= factor
        else:
            size *= factor
    _, group = np.unique(key, return_inverse=True)
    rows = int(group.max(initial=-1)) + 1
    first = np.full(rows, len(events), np.int64)
    np.minimum.at(first, group, np.arange(len(events)))
    columns = {name: values[first] for name, values in events.columns.items()}
    for name in ("bytes", "count", "duration", "rows"):
        columns[name] = np.zeros(rows, np.int64)
        np.add.at(columns[name], group, events[name])
    order = np.argsort(first)
    columns = {name: values[order] for name, values in columns.items()}
    return EventTable(columns, events.kernels, events.phases), ns, size


def _key(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return a number for each row, equal rows having the same."""
    key, many = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        if not len(column):
            break
        values = column.astype(np.int64)
        low = int(values.min())
        span = int(values.max()) - low + 1
        if many * span >= 1 << 62:
            _, key = np.unique(key, return_inverse=True)
            many = int(key.max()) + 1
        if many * span >= 1 << 62:
            _, values = np.unique(values, return_inverse=True)
            low, span = 0, int(values.max()) + 1
        key = key * span + (values - low)
        many *= span
    return key


def _distinct(key: NDArray[np.int64]) -> int:
    """Return how many different numbers there are; of a million or more, about."""
    if len(key) < 1 << 20:
        return len(np.unique(key))
    # All rows of one in so many numbers: sorting them all would take most of the time.
    chosen = (key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(60) == 0
    return 16 * len(np.unique(key[chosen]))
