"""Buffers that CUPTI fills with activity records, one set for the process."""

from __future__ import annotations

import atexit
import ctypes
import queue
import threading
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.events import EventTable
from louvain_um.profiling.sources.cupti.library import Library

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


class Buffers:
    """Buffers on their way to CUPTI and back; its callbacks stay registered for good."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.lent: dict[int, NDArray[np.uint8]] = {}
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
        if len(self.lent) + self.full.qsize() >= MOST_BUFFERS:
            size[0] = 0
            return
        array = self.spare.pop() if self.spare else np.empty(BUFFER_BYTES, np.uint8)
        self.lent[array.ctypes.data] = array
        buffer[0] = array.ctypes.data
        size[0] = array.nbytes

    def _complete(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        self.full.put((self.lent.pop(buffer), valid))
        lost = ctypes.c_size_t()
        if (
            self.library.call("ActivityGetNumDroppedRecords", context, stream, ctypes.byref(lost))
            == 0
        ):
            self.dropped += lost.value

    def take(self) -> tuple[list[EventTable], int]:
        """Decode all buffers that came back; return events and CUPTI's overhead in ns."""
        from louvain_um.profiling.sources.cupti.records import decode, split

        tables: list[EventTable] = []
        overhead = 0
        while True:
            try:
                array, valid = self.full.get_nowait()
            except queue.Empty:
                return tables, overhead
            learn = partial(self._measure, array, valid)
            offsets, kinds = split(array, valid, self.sizes, learn)
            table, extra = decode(array, offsets, kinds)
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


_lock = threading.Lock()
_shared: list[Buffers] = []


def shared_buffers() -> Buffers:
    """Return the process's one set of buffers."""
    with _lock:
        if not _shared:
            _shared.append(Buffers(Library()))
        return _shared[0]
