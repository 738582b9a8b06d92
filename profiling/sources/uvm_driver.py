"""The unified-memory driver's interface for tools: its event queue and its counters.

As in the driver's open source (`uvm_ioctl.h`, `uvm_types.h`); seen at work with driver 580.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.sources.source import SourceUnavailableError
from louvain_um.profiling.sources.uvm_events import ENTRY_BYTES, WANTED

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


class Tracker:
    """One listener of the driver: a queue of events or, without entries, a page of counters.

    Parameters
    ----------
    driver : int
        A file of the driver open in this process.
    entries : int
        Room in the queue, a power of two; 0 for counters.
    wanted : iterable of int
        Types of events.

    Raises
    ------
    NoAddressSpaceError
        The file serves no managed memory.
    SourceUnavailableError
        The driver's device for tools is not there, or it refuses.
    """

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


def listen(entries: int = 0, wanted: Iterable[int] = WANTED) -> list[Tracker]:
    """Return a tracker of each address space of managed memory that this process has."""
    wanted, found = tuple(wanted), list[Tracker]()
    try:
        for driver in _driver_files():
            with suppress(NoAddressSpaceError):
                found.append(Tracker(driver, entries, wanted))
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
        raise SourceUnavailableError("the driver's event queue is there on Linux alone")
    try:
        return os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise SourceUnavailableError(
            f"{DEVICE} cannot be opened ({(error.strerror or 'refused').lower()}); in a "
            f"container, start it with --device {DEVICE}; on the machine itself, "
            "nvidia-modprobe -u makes it"
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
