"""What a run consists of, from any source: events in columns, arrays, phases, maps of pages.

Kinds and causes carry CUPTI's numbers where CUPTI has one; our own begin at 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from numbers import Real
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import distinct
from louvain_um.core.plain_data import Whole, Within
from louvain_um.events import Phase
from louvain_um.placement.hardware import BLOCK


class Source(IntEnum):
    """The source that recorded an event."""

    CUPTI = 1
    TRACER = 2
    NSYS = 3
    NVML = 4
    ENGINE = 5
    SIMULATOR = 6
    UVM = 7


NAME_NO_GPU = (Source.TRACER, Source.NVML, Source.ENGINE, Source.UVM)
"""Sources whose events say nothing of which GPU they concern."""


class Kind(IntEnum):
    """What happened; 1 to 8 are CUPTI's unified-memory counters.

    Copies are those a program asked for by name (`cudaMemcpy`, `cudaMemset`): the driver's own
    migrations are never among them. A first touch makes pages on the device; nothing is copied.
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
    FIRST_TOUCH = 71


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

MOST_EVENTS = 4_000_000
"""Rows that a session keeps by default, some 300 MB in memory."""

BLOCK_BYTES = BLOCK
"""What the driver moves and evicts as one."""

FIRST_BIN_NS = 1_000_000
"""Where merging begins, with blocks of the driver."""

#: Columns and their types. `time` is in nanoseconds since the session began, `duration` in
#: nanoseconds, 0 where none is known; `kernel` and `phase` are indices into the tables' names, −1
#: for none; `level` and `iteration` are −1 outside any. `count` is how often it happened: faults
#: in a group, accesses, 1 for a copy; `rows` is how many of the source's rows one row stands for,
#: more than 1 only where a long session was merged, and so the number of fault groups. `device` is
#: the number of the GPU that ran, faulted, sent or received bytes, of two the one that received;
#: the first in use, or 0, if the source names none.
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
    "device": np.dtype(np.uint8),
}
_NONE = {"kernel": -1, "phase": -1, "level": -1, "iteration": -1, "count": 1, "rows": 1}


def device_numbers(found: NDArray[Any]) -> NDArray[np.int64]:
    """Return the numbers of GPUs, limited to what events can store."""
    return np.clip(found.astype(np.int64), 0, np.iinfo(COLUMNS["device"]).max)


@dataclass(frozen=True, slots=True)
class EventTable:
    """Events in columns.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The columns of `COLUMNS`, all of one length, or a number for all rows; those left out are
        filled with "none".
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

    columns: Mapping[str, Any]
    kernels: tuple[str, ...] = ()
    phases: tuple[str, ...] = field(default=PHASES)

    def __post_init__(self) -> None:
        unknown = set(self.columns) - set(COLUMNS)
        if unknown:
            raise ValueError(f"events have no column {sorted(unknown)[0]!r}; see COLUMNS")
        given = {name: np.asarray(values, COLUMNS[name]) for name, values in self.columns.items()}
        lengths = {len(values) for values in given.values() if values.ndim}
        if len(lengths) > 1:
            raise ValueError(f"columns of events differ in length: {sorted(lengths)}")
        rows = lengths.pop() if lengths else 0
        whole = {
            name: given[name]
            if name in given and given[name].ndim
            else np.full(rows, given.get(name, _NONE.get(name, 0)), dtype)
            for name, dtype in COLUMNS.items()
        }
        object.__setattr__(self, "columns", whole)

    def __len__(self) -> int:
        return len(self.columns["time"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        column: NDArray[Any] = self.columns[name]
        return column

    @property
    def devices(self) -> list[int]:
        """Numbers of the GPUs that events concern, in order, by sources that name them."""
        named = ~np.isin(self["source"], NAME_NO_GPU)
        return [int(number) for number in distinct(self["device"][named])]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """One array, from its allocation to its end, in nanoseconds since the session began.

    `level` is the level whose array it is, −1 for those of no level.
    """

    name: str
    group: str
    address: Whole
    nbytes: Whole
    start_ns: Whole
    end_ns: Whole
    level: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """A phase (`iteration` −1) or one iteration of it; iterations lie inside their phase.

    `phase` is one of the engines' (`louvain_um.events.Phase`), or a name that a user's code gave.
    """

    phase: str
    level: Annotated[int, Within(-1, MOST_LEVELS - 1)]
    iteration: int
    start_ns: int
    end_ns: int
    vertices: int = 0
    arcs: int = 0
    moved: int = 0
    modularity: Annotated[float, Real] = float("nan")

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageMap:
    """How often each range of an array was touched in each interval of time.

    Parameters
    ----------
    array : str
        Name of the array, as in the lifetimes.
    page_bytes : int
        Bytes of the array that one row stands for; the last row may stand for fewer.
    edges : int64[bins + 1]
        Where bins of time begin and end, in nanoseconds since the session began.
    counts : uint32[rows, bins]
        Accesses, or faults, of a row in a bin.
    kind : {"access", "fault"}
    """

    array: str
    page_bytes: Annotated[int, Within(1)]
    edges: NDArray[np.int64]
    counts: NDArray[np.uint32]
    kind: Literal["access", "fault"] = "access"

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or self.counts.shape[1] + 1 != len(self.edges):
            raise ValueError(
                f"map of {self.array!r}: {len(self.edges)} edges bound {len(self.edges) - 1} "
                f"bins, the counts have shape {self.counts.shape}"
            )

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum(dtype=np.int64))


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


def merge(events: EventTable, owners: NDArray[np.int32], most: int) -> tuple[EventTable, int, int]:
    """Return the events in at most `most` rows, with the nanoseconds and bytes of a bin."""
    same = ("kind", "source", "cause", "kernel", "phase", "level", "iteration", "device")
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
        return len(distinct(key))
    # All rows of one in so many numbers: sorting them all would take most of the time.
    chosen = (key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(60) == 0
    return 16 * len(distinct(key[chosen]))
