"""CUPTI's activity records: the buffers that it fills, decoded into arrays with compiled code.

Only the first fields of each record are read, which are the same in CUPTI 12 and 13. The length
of a record differs, so it is queried from CUPTI, once per kind.
"""

from __future__ import annotations

import atexit
import ctypes
import queue
import re
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.profiling.session.events import (
    EventTable,
    Kind,
    Source,
    concatenate,
    device_numbers,
)
from louvain_um.profiling.sources.source import record_dtype

BUFFER_BYTES = 4 << 20
"""One buffer: some 60,000 migrations."""

MOST_BUFFERS = 64
"""Buffers that may wait to be decoded; with more outstanding, records are dropped, and counted."""

LAST_RECORD = 12
"""Status at a buffer's end."""

FORCED = 1
"""Flag of a flush that returns unfinished buffers, too."""

REQUEST = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)  # fmt: skip
COMPLETE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)

MEMCPY: Final = 1
MEMSET: Final = 2
CONCURRENT_KERNEL: Final = 10
OVERHEAD: Final = 17
UNIFIED_MEMORY: Final = 25
"""CUpti_ActivityKind."""

KINDS: Final = 256
"""More than CUPTI has."""

_SPAN = {"start": (16, "u8"), "end": (24, "u8")}
_HEADS = {
    UNIFIED_MEMORY: {
        "counter": (4, "u4"),
        "value": (8, "u8"),
        **_SPAN,
        "address": (32, "u8"),
        "sender": (40, "u4"),
        "receiver": (44, "u4"),
        "flags": (56, "u4"),
    },
    CONCURRENT_KERNEL: {**_SPAN, "device": (40, "u4"), "name": (104, "u8")},
    MEMCPY: {"copy": (4, "u1"), "bytes": (8, "u8"), **_SPAN, "device": (32, "u4")},
    MEMSET: {"bytes": (8, "u8"), **_SPAN, "device": (32, "u4")},
    OVERHEAD: {"start": (24, "u8"), "end": (32, "u8")},
}
"""Offsets of the fields read (cupti_activity.h of CUDA 12.6, 12.9 and 13.0)."""

_DTYPES = {kind: record_dtype(fields) for kind, fields in _HEADS.items()}
_COPIES = {1: Kind.COPY_TO_DEVICE, 2: Kind.COPY_TO_HOST}
_MOVES = (Kind.HTOD, Kind.DTOH, Kind.DTOD)
_SIZED = (*_MOVES, Kind.THRASHING, Kind.REMOTE_MAP)
_TIMED = (*_MOVES, Kind.GPU_FAULT_GROUP, Kind.THROTTLING)
"""Counters whose value is bytes; counters that have an end."""

_RECEIVED = (Kind.HTOD, Kind.DTOD)
_OF_NO_GPU = (Kind.CPU_FAULT, Kind.THRASHING)
"""Counters whose GPU is the receiver; counters that name none, or several at once."""


class Buffers:
    """Buffers on their way to CUPTI and back; its callbacks stay registered for good."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.in_use: dict[int, NDArray[np.uint8]] = {}
        self.full: queue.SimpleQueue[tuple[NDArray[np.uint8], int]] = queue.SimpleQueue()
        self.spare: list[NDArray[np.uint8]] = []
        self.dropped = 0
        self.sizes = np.zeros(256, np.int64)
        self.free = threading.Lock()
        # CUPTI keeps the pointers: these objects must outlive the interpreter.
        self.callbacks = REQUEST(self._request), COMPLETE(self._complete)
        for callback in self.callbacks:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
        library.check("ActivityRegisterCallbacks", *self.callbacks)
        atexit.register(self._part)

    def _part(self) -> None:
        """Take everything back while Python still runs; afterwards CUPTI calls nothing of ours."""
        idle = ctypes.CDLL(None).getpid
        self.library.call("ActivityFlushAll", FORCED)
        self.library.call("ActivityRegisterCallbacks", idle, idle)

    def _request(self, buffer: Any, size: Any, most_records: Any) -> None:
        most_records[0] = 0
        if len(self.in_use) + self.full.qsize() >= MOST_BUFFERS:
            size[0] = 0
            return
        array = self.spare.pop() if self.spare else np.empty(BUFFER_BYTES, np.uint8)
        self.in_use[array.ctypes.data] = array
        buffer[0] = array.ctypes.data
        size[0] = array.nbytes

    def _complete(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        self.full.put((self.in_use.pop(buffer), valid))
        lost = ctypes.c_size_t()
        if (
            self.library.call("ActivityGetNumDroppedRecords", context, stream, ctypes.byref(lost))
            == 0
        ):
            self.dropped += lost.value

    def take(self, device: int = 0) -> tuple[list[EventTable], int]:
        """Decode all buffers that came back; return events and CUPTI's overhead in ns."""
        # Events that name no GPU are of `device`.
        tables: list[EventTable] = []
        overhead = 0
        while True:
            try:
                array, valid = self.full.get_nowait()
            except queue.Empty:
                return tables, overhead
            learn = partial(self._measure, array, valid)
            offsets, kinds = split(array, valid, self.sizes, learn)
            table, extra = decode(array, offsets, kinds, device)
            overhead += extra
            tables.append(table)
            self.spare.append(array)

    def _measure(self, array: NDArray[np.uint8], valid: int, at: int) -> int:
        """Return the bytes of a record, which CUPTI knows."""
        base = array.ctypes.data
        record = ctypes.c_void_p(base + at)
        status = self.library.call("ActivityGetNextRecord", base, valid, ctypes.byref(record))
        if status == LAST_RECORD or record.value is None:
            return valid - at
        return record.value - base - at if status == 0 else 0


@kernel()
def walk(raw, valid, start, sizes, offsets, kinds, found):
    """Store offset and kind of each record; return their number and where reading stopped."""
    at = start
    while at < valid:
        kind = raw[at] | raw[at + 1] << 8 | raw[at + 2] << 16 | raw[at + 3] << 24
        size = sizes[kind] if kind < sizes.size else 0
        if size == 0:
            break
        offsets[found] = at
        kinds[found] = kind
        found += 1
        at += size
    return found, at


def split(
    raw: NDArray[np.uint8], valid: int, sizes: NDArray[np.int64], learn: Callable[[int], int]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return offset and kind of every record in the first `valid` bytes of a buffer."""
    offsets = np.empty(valid // 8 + 1, np.int64)
    kinds = np.empty(valid // 8 + 1, np.uint8)
    found, at = walk(raw, valid, 0, sizes, offsets, kinds, 0)
    while at < valid:
        kind = int(raw[at : at + 4].view(np.uint32)[0])
        size = learn(at)
        if kind >= KINDS or size < 8:
            break  # not a valid record; the rest cannot be read
        sizes[kind] = size
        found, at = walk(raw, valid, at, sizes, offsets, kinds, found)
    return offsets[:found], kinds[:found]


def decode(
    raw: NDArray[np.uint8], offsets: NDArray[np.int64], kinds: NDArray[np.uint8], device: int = 0
) -> tuple[EventTable, int]:
    """Return the events of a buffer, in CUPTI's time, and the nanoseconds of overhead."""
    tables, overhead = list[EventTable](), 0
    for kind, dtype in _DTYPES.items():
        at = offsets[kinds == kind]
        if not len(at):
            continue
        rows = raw[at[:, None] + np.arange(dtype.itemsize)].view(dtype)[:, 0]
        start, end = rows["start"].astype(np.int64), rows["end"].astype(np.int64)
        duration = np.maximum(end - start, 0)
        if kind == OVERHEAD:
            overhead += int(duration.sum())
            continue
        names: tuple[str, ...] = ()
        part: dict[str, Any] = {"time": start, "duration": duration, "source": Source.CUPTI}
        if kind == UNIFIED_MEMORY:
            part |= counter_columns(rows, duration, device)
        elif kind == CONCURRENT_KERNEL:
            pointers, part["kernel"] = np.unique(rows["name"], return_inverse=True)
            names = tuple(kernel_name(int(pointer)) for pointer in pointers)
            part["kind"] = Kind.KERNEL
        else:
            direction = rows["copy"] if kind == MEMCPY else np.zeros(len(rows), np.uint8)
            part["kind"] = np.full(len(rows), Kind.COPY)
            for code, meaning in _COPIES.items():
                part["kind"][direction == code] = meaning
            part["bytes"] = rows["bytes"]
        if kind != UNIFIED_MEMORY:
            part["device"] = device_numbers(rows["device"])
        tables.append(EventTable(part, names))
    return concatenate(tables), overhead


def counter_columns(
    rows: NDArray[Any], duration: NDArray[np.int64], device: int = 0
) -> dict[str, Any]:
    """Return the columns of unified-memory counters; what a value means depends on the kind."""
    # Counters that name no GPU are of `device`.
    kind, value = rows["counter"], rows["value"].astype(np.int64)
    named = np.where(np.isin(kind, _RECEIVED), rows["receiver"], rows["sender"])
    return {
        "kind": kind,
        "address": rows["address"],
        "bytes": np.where(np.isin(kind, _SIZED), value, 0),
        # A group's value is its number of faults; a fault of the CPU has an address of code there.
        "count": np.where(kind == Kind.GPU_FAULT_GROUP, value, 1),
        "cause": np.where(np.isin(kind, _MOVES), rows["flags"], 0),
        "duration": np.where(np.isin(kind, _TIMED), duration, 0),
        "device": np.where(np.isin(kind, _OF_NO_GPU), device, device_numbers(named)),
    }


@cache
def kernel_name(pointer: int) -> str:
    """Return the name of a kernel from where CUPTI keeps it, without its parameters."""
    if pointer == 0:
        return "kernel"
    return short_name(demangle(ctypes.string_at(pointer)))


@cache
def _demangler() -> Any:
    for name in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            function = ctypes.CDLL(name).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        return function
    return None


def demangle(name: bytes) -> str:
    """Return a C++ name demangled; any other unchanged."""
    function = _demangler() if name.startswith(b"_Z") else None
    if function is None:
        return name.decode(errors="replace")
    status = ctypes.c_int()
    text = function(name, None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return name.decode(errors="replace")
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        free(text)


def short_name(name: str) -> str:
    """Drop the return type and the parameters of a kernel's name."""
    name = re.sub(r"^void ", "", name)
    if name.endswith(")"):
        depth = 0
        for at in range(len(name) - 1, 0, -1):
            depth += (name[at] == ")") - (name[at] == "(")
            if depth == 0:
                return name[:at]
    return name
