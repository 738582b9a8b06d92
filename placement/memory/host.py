"""Host memory: populated, page-locked and copied by several threads.

One thread makes fresh pages, and copies, more slowly than a bus takes them; several together are
faster.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.core.headroom import host_memory
from louvain_um.core.threads import default_threads, usable_cores
from louvain_um.placement.hardware import BLOCK, PAGE
from louvain_um.placement.memory import cuda_calls

MOST_THREADS: Final = 16
"""More threads were not seen to help."""

SMALLEST_SHARE: Final = 4 << 20
"""Bytes below which a thread is not worth waking."""


def populate(address: int, nbytes: int) -> None:
    """Touch fresh memory, so that its pages exist; its first bytes become zero."""
    _side_by_side(_touch, address, nbytes)


def copy(target: int, source: int, nbytes: int) -> None:
    """Copy between host addresses."""

    def part(address: int, count: int) -> None:
        ctypes.memmove(address, source + address - target, count)

    _side_by_side(part, target, nbytes)


def fill(address: int, nbytes: int, dtype: DTypeLike, value: Any) -> None:
    """Set every element of a range to a value; elements do not cross multiples of 2 MiB."""

    def part(begin: int, count: int) -> None:
        _bytes(begin, count).view(dtype)[:] = value

    _side_by_side(part, address, nbytes)


def available() -> int | None:
    """Return the bytes of host memory that can be page-locked, where the system says so."""
    return host_memory(swap=False)


def host_array(
    address: int,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    strides: tuple[int, ...] | None = None,
    owner: object = None,
) -> NDArray[Any]:
    """Return an array over host memory, which keeps an owner of that memory alive."""

    class Interface:
        __array_interface__: ClassVar[dict[str, Any]] = {
            "data": (address, False),
            "shape": tuple(shape),
            "strides": strides,
            "typestr": np.dtype(dtype).str,
            "version": 3,
        }

    interface = Interface()
    interface.owner = owner  # type: ignore[attr-defined]
    return np.asarray(interface)


class PageLocked:
    """Page-locked host memory that every device can reach; begins at 2 MiB."""

    def __init__(self, nbytes: int) -> None:
        room = available()
        if room is not None and nbytes > room:
            raise MemoryError
        try:
            self.pages = mmap.mmap(-1, nbytes + BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError:
            raise MemoryError from None
        with suppress(AttributeError, OSError):
            self.pages.madvise(mmap.MADV_HUGEPAGE)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self.address = -(-begin // BLOCK) * BLOCK
        populate(self.address, nbytes)
        try:
            cuda_calls.register(self.address, nbytes)
        except BaseException:
            self.pages.close()
            raise

    def close(self) -> None:
        """Unlock the pages and give them back."""
        try:
            cuda_calls.unregister(self.address)
        finally:
            self.pages.close()


def _touch(address: int, nbytes: int) -> None:
    # Once a page. NumPy lets other threads run meanwhile from 500 elements on.
    _bytes(address, nbytes)[::PAGE] = 0


def _bytes(address: int, nbytes: int) -> NDArray[np.uint8]:
    """Return an array over host addresses."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))


def _side_by_side(work: Callable[[int, int], object], address: int, nbytes: int) -> None:
    """Call ``work(address, bytes)`` for parts of a range, cut at the driver's blocks."""
    threads = threads_for(nbytes, SMALLEST_SHARE)
    if threads <= 1:
        if nbytes:
            work(address, nbytes)
        return
    first, last = address // BLOCK, -(-(address + nbytes) // BLOCK)
    step = -(-(last - first) // threads)
    parts = []
    for block in range(first, last, step):
        begin, end = max(address, block * BLOCK), min(address + nbytes, (block + step) * BLOCK)
        parts.append((begin, end - begin))
    for _ in pool().map(lambda part: work(*part), parts):
        pass


def threads_for(nbytes: int, share: int) -> int:
    """Return how many threads have a share of so many bytes to work on."""
    return min(default_threads(), MOST_THREADS, nbytes // share)


def pool() -> ThreadPoolExecutor:
    """Return the threads of this process for host memory."""
    return _pool(os.getpid())


@cache
def _pool(pid: int) -> ThreadPoolExecutor:
    """One pool a process; `pid` keeps a forked child from using its parent's."""
    return ThreadPoolExecutor(
        min(usable_cores(), MOST_THREADS), thread_name_prefix="louvain-um-pages"
    )
