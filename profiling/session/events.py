"""The schema of events: a row of the same columns, from any source.

Kinds and causes carry CUPTI's numbers where CUPTI has one; our own begin at 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Phase


class Source(IntEnum):
    """The source that recorded an event."""

    CUPTI = 1
    TRACER = 2
    NSYS = 3
    NVML = 4
    ENGINE = 5
    SIMULATOR = 6
    UVM = 7


class Kind(IntEnum):
    """What happened; 1 to 8 are CUPTI's unified-memory counters.

    The copies that end the list are those a program asked for by name (`cudaMemcpy`,
    `cudaMemset`): the driver's own migrations are never among them.
    """

    HTOD = 1
    DTOH = 2
    CPU_FAULT = 3
    GPU_FAULT_GROUP = 4
    THRASHING = 5
    THROTTLING = 6
    REMOTE_MAP = 7
    DTOD = 8
    KERNEL = 64
    ACCESS = 65
    REMOTE_ACCESS = 66
    EVICTION = 67
    COPY_TO_DEVICE = 68
    COPY_TO_HOST = 69
    COPY = 70


class Cause(IntEnum):
    """Why bytes moved, in CUPTI's numbers."""

    UNKNOWN = 0
    USER = 1
    COHERENCE = 2
    PREFETCH = 3
    EVICTION = 4
    ACCESS_COUNTERS = 5


PHASES: tuple[str, ...] = get_args(Phase)

MOST_LEVELS = 1 << 15
"""Upper bound of levels."""

#: Columns and their types. `time` is in nanoseconds since the session began, `duration` in
#: nanoseconds, 0 where none is known; `kernel` and `phase` are indices into the tables' names, −1
#: for none; `level` and `iteration` are −1 outside any. `count` is how often it happened: faults
#: in a group, accesses, 1 for a copy; `rows` is how many of the source's rows one row stands for,
#: more than 1 only where a long session was merged, and so the number of fault groups.
COLUMNS: dict[str, np.dtype[Any]] = {
    "time": np.dtype(np.int64),
    "duration": np.dtype(np.int64),
    "source": np.dtype(np.uint8),
    "kind": np.dtype(np.uint8),
    "address": np.dtype(np.uint64),
    "bytes": np.dtype(np.int64),
    "count": np.dtype(np.int64),
    "rows": np.dtype(np.int32),
    "cause": np.dtype(np.uint8),
    "kernel": np.dtype(np.int32),
    "phase": np.dtype(np.int32),
    "level": np.dtype(np.int16),
    "iteration": np.dtype(np.int32),
}
_NONE = {"kernel": -1, "phase": -1, "level": -1, "iteration": -1, "count": 1, "rows": 1}


@dataclass(frozen=True, slots=True)
class EventTable:
    """Events in columns.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The columns of `COLUMNS`, all of one length; those left out are filled with "none".
    kernels : tuple of str
        Names that the column `kernel` points into.
    phases : tuple of str
        Names that the column `phase` points into.

    Examples
    --------
    >>> from louvain_um.profiling.session.events import Cause, EventTable, Kind
    >>> events = EventTable({"kind": [1, 2], "bytes": [4096, 65536], "cause": [2, 4]})
    >>> events.total(Kind.DTOH, Cause.EVICTION)
    65536
    """

    columns: Mapping[str, NDArray[Any]]
    kernels: tuple[str, ...] = ()
    phases: tuple[str, ...] = field(default=PHASES)

    def __post_init__(self) -> None:
        unknown = set(self.columns) - set(COLUMNS)
        if unknown:
            raise ValueError(f"events have no column {sorted(unknown)[0]!r}; see COLUMNS")
        lengths = {len(values) for values in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of events differ in length: {sorted(lengths)}")
        rows = lengths.pop() if lengths else 0
        whole = {
            name: np.asarray(self.columns[name], dtype)
            if name in self.columns
            else np.full(rows, _NONE.get(name, 0), dtype)
            for name, dtype in COLUMNS.items()
        }
        object.__setattr__(self, "columns", whole)

    def __len__(self) -> int:
        return len(self.columns["time"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def where(self, kind: Kind | None = None, cause: Cause | None = None) -> NDArray[np.bool_]:
        """Return which rows are of a kind, a cause, or both."""
        rows = np.ones(len(self), np.bool_)
        if kind is not None:
            rows &= self["kind"] == kind
        if cause is not None:
            rows &= self["cause"] == cause
        return rows

    def total(self, kind: Kind, cause: Cause | None = None, column: str = "bytes") -> int:
        """Return the sum of `bytes` (or `count`) over the rows of a kind and cause."""
        return int(self[column][self.where(kind, cause)].sum())

    def select(self, rows: NDArray[Any] | slice) -> EventTable:
        """Return some of the rows, by mask, index or slice."""
        chosen = {name: values[rows] for name, values in self.columns.items()}
        return EventTable(chosen, self.kernels, self.phases)


def concatenate(tables: Iterable[EventTable]) -> EventTable:
    """Concatenate tables of any sources in order of time; names of kernels are renumbered."""
    parts = list(tables)
    if len({part.phases for part in parts}) > 1:
        raise ValueError("tables name different phases; they belong to different versions")
    names = tuple(dict.fromkeys(name for part in parts for name in part.kernels))
    numbers = {name: number for number, name in enumerate(names)}
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
    for part in parts:
        # The last entry serves those without a kernel, whose number is −1.
        table = np.array([*(numbers[name] for name in part.kernels), -1], np.int32)
        for name in COLUMNS:
            columns[name].append(table[part[name]] if name == "kernel" else part[name])
    joined = {
        name: np.concatenate(values) if values else np.empty(0, COLUMNS[name])
        for name, values in columns.items()
    }
    order = np.argsort(joined["time"], kind="stable")
    phases = parts[0].phases if parts else PHASES
    return EventTable({name: values[order] for name, values in joined.items()}, names, phases)
