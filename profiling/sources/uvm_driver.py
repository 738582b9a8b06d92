"""The unified-memory driver's interface for tools: its event queue, decoded, and its counters.

As in the driver's open source (`uvm_ioctl.h`, `uvm_types.h`).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.events import EventTable, Kind, Source, concatenate
from louvain_um.profiling.sources.source import SourceUnavailableError, record_dtype

DEVICE = "/dev/nvidia-uvm-tools"
DRIVER = "/dev/nvidia-uvm"

INIT, ENABLE_EVENTS, ENABLE_COUNTERS, FLUSH = 56, 58, 60, 67
"""Numbers of the driver's requests."""

NOT_SERVED = 0x16, 0x1B
"""NV_ERR_ILLEGAL_ACTION and NV_ERR_INSUFFICIENT_PERMISSIONS: how newer and older drivers answer the
first request for a file that is no address space."""

VERSION = 1
"""Version of the entries' layout; newer drivers take it as a request, older ones have no other."""

COUNTERS = {"bytes_to_device": 0, "bytes_to_host": 1, "cpu_faults": 2}
"""Totals the driver keeps, by their index."""

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
_DTYPES = {kind: record_dtype(fields, ENTRY_BYTES) for kind, fields in _FIELDS.items()}
_PLAIN = {
    CPU_FAULT: Kind.CPU_FAULT,
    THRASHING: Kind.THRASHING,
    MAP_REMOTE: Kind.REMOTE_MAP,
    EVICTION: Kind.EVICTION,
}


class _Init(ctypes.Structure):
    """UVM_TOOLS_INIT_EVENT_TRACKER_PARAMS."""

    _fields_ = (
        ("queue", ctypes.c_uint64),
        ("entries", ctypes.c_uint64),
        ("control", ctypes.c_uint64),
        ("processor", ctypes.c_uint8 * 16),
        ("all_processors", ctypes.c_uint32),
        ("driver", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("wanted_version", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("spare", ctypes.c_uint8 * 64),
    )


class _Flags(ctypes.Structure):
    """Parameters of the requests that switch events or counters on."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("status", ctypes.c_uint32),
        ("spare", ctypes.c_uint8 * 52),
    )


class NoAddressSpaceError(SourceUnavailableError):
    """A file of the driver that serves no managed memory."""


class EventQueue:
    """One listener of the driver: a queue of events or, without entries, a page of counters."""

    # `driver` is a file of the driver open in this process, `entries` a power of two or 0.

    def __init__(self, driver: int, entries: int = 0, wanted: Iterable[int] = WANTED) -> None:
        self.driver = driver
        self.file = _tools()
        try:
            self.queue = _pages(max(entries, 1) * ENTRY_BYTES).reshape(-1, ENTRY_BYTES)
            self.control = _pages(mmap.PAGESIZE)
            request = _Init(
                queue=self.queue.ctypes.data if entries else 0,
                entries=entries,
                control=self.control.ctypes.data,
                all_processors=1,
                driver=driver,
                wanted_version=VERSION,
            )
            _ask(self.file, INIT, request)
            if request.version not in (0, VERSION):
                raise SourceUnavailableError("this driver writes events in a form not known yet")
            numbers = wanted if entries else COUNTERS.values()
            switch = _Flags(flags=sum(1 << number for number in numbers))
            _ask(self.file, ENABLE_EVENTS if entries else ENABLE_COUNTERS, switch)
        except BaseException:
            self.close()
            raise

    def take(self) -> NDArray[np.uint8]:
        """Return the new entries, uint8[n, 64], and free their places."""
        places = self.control[:16].view(np.uint32)
        get, put = int(places[1]), int(places[3])
        if put >= get:
            taken = self.queue[get:put].copy()
        else:
            taken = np.concatenate([self.queue[get:], self.queue[:put]])
        places[0] = places[1] = put
        return taken

    @property
    def dropped(self) -> int:
        """Events dropped because the queue was full."""
        return int(self.control[16:528].view(np.uint64).sum())

    @property
    def totals(self) -> NDArray[np.int64]:
        """Return what the driver counted, in the order of `COUNTERS`."""
        values = self.control[:80].view(np.int64)
        return values[list(COUNTERS.values())].copy()

    def flush(self) -> None:
        """Flush events that wait for the GPU's clock."""
        with suppress(SourceUnavailableError):
            _ask(self.driver, FLUSH, _Flags())

    def close(self) -> None:
        """Stop listening."""
        os.close(self.file)


def listen(entries: int = 0, wanted: Iterable[int] = WANTED) -> list[EventQueue]:
    """Return a tracker of each address space of managed memory that this process has."""
    wanted, found = tuple(wanted), list[EventQueue]()
    try:
        for driver in _driver_files():
            with suppress(NoAddressSpaceError):
                found.append(EventQueue(driver, entries, wanted))
    except BaseException:
        for tracker in found:
            tracker.close()
        raise
    if not found:
        os.close(_tools())  # a reason of its own, where it cannot be opened
        raise SourceUnavailableError("the driver serves no managed memory of this process yet")
    return found


def _tools() -> int:
    """Return the driver's device for tools, opened."""
    if not sys.platform.startswith("linux"):
        raise SourceUnavailableError("the driver's event queue exists on Linux only")
    try:
        return os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise SourceUnavailableError(
            f"{DEVICE} cannot be opened ({(error.strerror or 'refused').lower()}); in a "
            f"container, start it with --device {DEVICE}; on the machine itself, "
            "nvidia-modprobe -u creates it"
        ) from None


def _pages(nbytes: int) -> NDArray[np.uint8]:
    """Return zeroed memory that begins at a page and stays where it is."""
    array = np.frombuffer(mmap.mmap(-1, -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE), np.uint8)
    array[:] = 0  # the driver takes hold of pages, so they must be there
    return array[:nbytes]


def _driver_files() -> list[int]:
    """Return the driver's files open in this process."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}") == DRIVER:
                found.append(int(name))
    return sorted(found)


def _ask(file: int, number: int, request: Any) -> None:
    """Send a request; a refusal is an error."""
    library = ctypes.CDLL(None, use_errno=True)
    library.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
    if library.ioctl(file, number, ctypes.addressof(request)):
        reason = os.strerror(ctypes.get_errno()).lower()
        raise SourceUnavailableError(f"the unified-memory driver refused ({reason})")
    # The flush's status comes first, where the others have their flags.
    status = request.status if number != FLUSH else 0
    if number == INIT and status in NOT_SERVED:
        raise NoAddressSpaceError("this file of the driver serves no managed memory")
    if status:
        raise SourceUnavailableError(f"the unified-memory driver refused (status {status:#x})")


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
            # Nothing starts before it is queued: the least delay is the difference of the clocks.
            difference = (start - queued)[timed].min()
            time[timed] = start[timed] - difference
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
    given = {"kind": kind, "time": time, "address": address, **columns}
    return EventTable({**given, "source": Source.UVM})
