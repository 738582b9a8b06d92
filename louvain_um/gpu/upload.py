"""Filling arrays where their bytes live: nothing is moved twice."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from louvain_um.parallel import default_threads
from louvain_um.placement import calls
from louvain_um.placement.allocator import Allocator

TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
"""Directions of a CUDA copy."""

PIECE: Final = 64 << 20
"""Bytes that a thread copies at a time."""


def fill(memory: Allocator, name: str, source: Any) -> Any:
    """Copy a NumPy or CuPy array into a live array of the same bytes; return that.

    What lives on the device is copied there, what lives on the host is written by the host's
    threads (or copied from the device), and managed memory without advice begins on the host.
    """
    there = memory.live[name]
    if there.nbytes != source.nbytes:
        raise ValueError(f"array {name!r} takes {there.nbytes} bytes, not {source.nbytes}")
    on_host = isinstance(source, np.ndarray)
    if on_host:
        source = np.ascontiguousarray(source)
    begin = source.ctypes.data if on_host else source.data.ptr
    for address, nbytes, side in memory.sides(name):
        part = begin + address - there.data.ptr
        if side == "device":
            _copy(address, part, nbytes, TO_DEVICE if on_host else ON_DEVICE)
        elif on_host:
            _write(address, part, nbytes)
        else:
            _copy(address, part, nbytes, TO_HOST)
        if side == "moving" and not on_host:
            calls.prefetch(address, nbytes, calls.HOST)
    calls.synchronize()
    return there


def _write(address: int, source: int, nbytes: int) -> None:
    """Copy host memory with all threads; ctypes leaves Python's lock meanwhile."""
    pieces = [(at, min(PIECE, nbytes - at)) for at in range(0, nbytes, PIECE)]
    with ThreadPoolExecutor(min(default_threads(), max(len(pieces), 1))) as pool:
        list(pool.map(lambda p: ctypes.memmove(address + p[0], source + p[0], p[1]), pieces))


def _copy(address: int, source: int, nbytes: int, kind: int) -> None:
    from cupy.cuda import runtime

    if nbytes:
        runtime.memcpy(address, source, nbytes, kind)

