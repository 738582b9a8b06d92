"""Entries of the unified-memory driver's own event queue as events.

The layout is that of `UvmEventEntry_V1` in the driver's open source (`uvm_types.h`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.events import EventTable, Kind, Source, concatenate

ENTRY_BYTES: Final = 64

CPU_FAULT: Final = 1
MIGRATION: Final = 2
GPU_FAULT: Final = 3
REPLAY: Final = 4
THRASHING: Final = 10
THROTTLING_START: Final = 11
THROTTLING_END: Final = 12
MAP_REMOTE: Final = 13
EVICTION: Final = 14
WANTED: Final = (
    CPU_FAULT, MIGRATION, GPU_FAULT, REPLAY, THRASHING, THROTTLING_START, THROTTLING_END,
    MAP_REMOTE, EVICTION,
)  # fmt: skip
"""Types of entries."""

REGION_BYTES: Final = 64 << 10
"""Faults of one group in one such region of addresses become one row."""

HOST: Final = 0
"""Index of the host among processors."""

_FIELDS: dict[int, dict[str, tuple[int, str]]] = {
    CPU_FAULT: {"address": (8, "u8"), "time": (16, "u8")},
    MIGRATION: {
        "cause": (1, "u1"),
        "source": (2, "u1"),
        "target": (3, "u1"),
        "address": (8, "u8"),
        "bytes": (16, "u8"),
        "queued": (24, "u8"),
        "start": (48, "u8"),
        "end": (56, "u8"),
    },
    GPU_FAULT: {"address": (8, "u8"), "time": (16, "u8"), "batch": (32, "u4")},
    REPLAY: {"batch": (4, "u4"), "time": (8, "u8")},
    THRASHING: {"address": (16, "u8"), "bytes": (24, "u8"), "time": (32, "u8")},
    THROTTLING_START: {"address": (8, "u8"), "time": (16, "u8")},
    THROTTLING_END: {"address": (8, "u8"), "time": (16, "u8")},
    MAP_REMOTE: {"address": (8, "u8"), "bytes": (16, "u8"), "time": (24, "u8")},
    EVICTION: {"address": (8, "u8"), "bytes": (24, "u8"), "time": (32, "u8")},
}
_DTYPES = {
    kind: np.dtype(
        {
            "names": list(fields),
            "offsets": [offset for offset, _ in fields.values()],
            "formats": [form for _, form in fields.values()],
            "itemsize": ENTRY_BYTES,
        }
    )
    for kind, fields in _FIELDS.items()
}
_PLAIN = {
    CPU_FAULT: Kind.CPU_FAULT,
    THRASHING: Kind.THRASHING,
    MAP_REMOTE: Kind.REMOTE_MAP,
    EVICTION: Kind.EVICTION,
}


class Decoder:
    """Turns entries into events, times in nanoseconds of the raw monotonic clock."""

    def __init__(self) -> None:
        self.last_batch = -1
        self.throttled: dict[int, int] = {}

    def decode(self, raw: NDArray[np.uint8]) -> EventTable:
        """Return the events of some entries, uint8[n, 64]."""
        kinds = raw[:, 0]
        rows = {kind: raw[kinds == kind].view(dtype)[:, 0] for kind, dtype in _DTYPES.items()}
        tables = [self._moved(rows[MIGRATION]), self._faulted(rows[GPU_FAULT], rows[REPLAY])]
        tables.append(self._throttled(rows[THROTTLING_START], rows[THROTTLING_END]))
        for number, kind in _PLAIN.items():
            there = rows[number]
            size = there["bytes"] if "bytes" in (there.dtype.names or ()) else 0
            tables.append(_table(kind, there["time"], there["address"], bytes=size))
        return concatenate(tables)

    def _moved(self, rows: NDArray[Any]) -> EventTable:
        """Return migrations, by the GPU's clock where it has one for them."""
        kind = np.full(len(rows), Kind.HTOD)
        kind[rows["source"] != HOST] = Kind.DTOD
        kind[rows["target"] == HOST] = Kind.DTOH
        start, end = rows["start"].astype(np.int64), rows["end"].astype(np.int64)
        queued = rows["queued"].astype(np.int64)
        timed = (start > 0) & (end >= start)
        time = queued.copy()
        if timed.any():
            # Nothing starts before it is queued: the least delay tells the clocks' difference.
            ahead = (start - queued)[timed].min()
            time[timed] = start[timed] - ahead
        return _table(
            kind,
            time,
            rows["address"],
            bytes=rows["bytes"],
            cause=rows["cause"],
            duration=np.where(timed, end - start, 0),
        )

    def _faulted(self, rows: NDArray[Any], replays: NDArray[Any]) -> EventTable:
        """Return a row for each region with faults of a group; the group's first counts as it."""
        if not len(rows):
            return EventTable({})
        batch, region = rows["batch"].astype(np.int64), rows["address"] // np.uint64(REGION_BYTES)
        order = np.lexsort((np.arange(len(rows)), region, batch))
        change = np.ones(len(rows), np.bool_)
        change[1:] = (np.diff(batch[order]) != 0) | (region[order][1:] != region[order][:-1])
        starts = np.flatnonzero(change)
        first = np.minimum.reduceat(order, starts)
        mine = batch[first]
        time = rows["time"][first].astype(np.int64)
        opens = np.zeros(len(first), np.int32)
        _, at = np.unique(mine, return_index=True)
        opens[at] = mine[at] != self.last_batch
        self.last_batch = int(batch[-1])
        ends = dict(zip(replays["batch"].tolist(), replays["time"].tolist(), strict=True))
        duration = np.zeros(len(first), np.int64)
        duration[at] = [
            max(0, ends.get(number, since) - since)
            for number, since in zip(mine[at].tolist(), time[at].tolist(), strict=True)
        ]
        return _table(
            Kind.GPU_FAULT_GROUP,
            time,
            rows["address"][first],
            count=np.diff([*starts, len(rows)]),
            rows=opens,
            duration=duration,
        )

    def _throttled(self, starts: NDArray[Any], ends: NDArray[Any]) -> EventTable:
        """Return throttling, from its beginning to its end."""
        self.throttled |= zip(starts["address"].tolist(), starts["time"].tolist(), strict=True)
        since = [
            self.throttled.pop(address, time)
            for address, time in zip(ends["address"].tolist(), ends["time"].tolist(), strict=True)
        ]
        begun = np.array(since, np.int64)
        return _table(
            Kind.THROTTLING, begun, ends["address"], duration=ends["time"].astype(np.int64) - begun
        )


def _table(
    kind: Any, time: NDArray[Any], address: NDArray[np.uint64], **columns: Any
) -> EventTable:
    rows = len(time)
    whole = {"kind": kind, "source": Source.UVM, **columns}
    return EventTable(
        {
            "time": time.astype(np.int64),
            "address": address,
            **{name: np.broadcast_to(np.asarray(value), rows) for name, value in whole.items()},
        }
    )
