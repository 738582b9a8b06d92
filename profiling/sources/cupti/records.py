"""Decode CUPTI's activity records into arrays, with compiled code.

Only the first fields of each record are read, which are the same in CUPTI 12 and 13. The length
of a record differs, so it is queried from CUPTI, once per kind.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.profiling.session.events import EventTable, Kind, Source

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
        "flags": (56, "u4"),
    },
    CONCURRENT_KERNEL: {**_SPAN, "name": (104, "u8")},
    MEMCPY: {"copy": (4, "u1"), "bytes": (8, "u8"), **_SPAN},
    MEMSET: {"bytes": (8, "u8"), **_SPAN},
    OVERHEAD: {"start": (24, "u8"), "end": (32, "u8")},
}
"""Offsets of the fields read (cupti_activity.h of CUDA 12.6, 12.9 and 13.0)."""

_DTYPES = {
    kind: np.dtype(
        {
            "names": list(fields),
            "offsets": [offset for offset, _ in fields.values()],
            "formats": [form for _, form in fields.values()],
        }
    )
    for kind, fields in _HEADS.items()
}
_COPIES = {1: Kind.COPY_TO_DEVICE, 2: Kind.COPY_TO_HOST}
_MOVES = (Kind.HTOD, Kind.DTOH, Kind.DTOD)
_SIZED = (*_MOVES, Kind.THRASHING, Kind.REMOTE_MAP)
_TIMED = (*_MOVES, Kind.GPU_FAULT_GROUP, Kind.THROTTLING)
"""Counters whose value is bytes; counters that have an end."""


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
    raw: NDArray[np.uint8], offsets: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[EventTable, int]:
    """Return the events of a buffer, in CUPTI's time, and the nanoseconds of overhead."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("time", "duration", "kind", "address", "bytes", "count", "cause")
    }
    columns["kernel"] = []
    names: tuple[str, ...] = ()
    overhead = 0
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
        part: dict[str, Any] = {"time": start, "duration": duration}
        if kind == UNIFIED_MEMORY:
            part |= _counters(rows, duration)
        elif kind == CONCURRENT_KERNEL:
            pointers, part["kernel"] = np.unique(rows["name"], return_inverse=True)
            names = tuple(kernel_name(int(pointer)) for pointer in pointers)
            part["kind"] = np.full(len(rows), Kind.KERNEL)
        else:
            direction = rows["copy"] if kind == MEMCPY else np.zeros(len(rows), np.uint8)
            part["kind"] = np.full(len(rows), Kind.COPY)
            for code, meaning in _COPIES.items():
                part["kind"][direction == code] = meaning
            part["bytes"] = rows["bytes"]
        for name, parts in columns.items():
            missing = -1 if name == "kernel" else 1 if name == "count" else 0
            parts.append(part.get(name, np.full(len(rows), missing)))
    joined = {name: np.concatenate(parts) for name, parts in columns.items() if parts}
    if joined:
        joined["source"] = np.full(len(joined["time"]), Source.CUPTI)
    return EventTable(joined, names), overhead


def _counters(rows: NDArray[Any], duration: NDArray[np.int64]) -> dict[str, Any]:
    """Return the columns of unified-memory counters; what a value means depends on the kind."""
    kind, value = rows["counter"], rows["value"].astype(np.int64)
    return {
        "kind": kind,
        "address": rows["address"],
        "bytes": np.where(np.isin(kind, _SIZED), value, 0),
        # A group's value is its number of faults; a fault of the CPU has an address of code there.
        "count": np.where(kind == Kind.GPU_FAULT_GROUP, value, 1),
        "cause": np.where(np.isin(kind, _MOVES), rows["flags"], 0),
        "duration": np.where(np.isin(kind, _TIMED), duration, 0),
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
