"""What memory the host has left, before work that would need more, and what is given back to it.

A process that takes more memory than there is can be ended by the system without a message. LLVM,
and the thread-local data of shared libraries, end the process if an allocation fails, and a Python
thread that fails while it starts leaves its starter waiting. A look before such a step turns all
of these into errors.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from louvain_um.errors import HostMemoryError

KERNEL_BYTES: Final = 32 << 20
"""Room that loading or compiling one function has to find."""

THREAD_BYTES: Final = 12 << 20
"""Room for each new thread: a stack of 8 MiB, and the data that libraries keep per thread."""

SMALL: Final = 16 << 20
"""Bytes for which it does not pay to ask the system what is free."""

LEAST_ADVISED: Final = 1 << 16
"""Bytes for which it pays to give them back."""

MEMORY_INFO: Final = Path("/proc/meminfo")
CONTROL_GROUP: Final = Path("/sys/fs/cgroup")
MEMBERSHIP: Final = Path("/proc/self/cgroup")

CONTROL_GROUP_FILES: Final = {
    "memory.max": ("memory.current", "inactive_file"),
    "memory.limit_in_bytes": ("memory.usage_in_bytes", "total_inactive_file"),
}
"""Of both versions: the limit, what is used, and how much of that is cached files."""


def require(count: int) -> None:
    """Raise `MemoryError` unless this many more bytes can be reserved."""
    try:
        mmap.mmap(-1, count).close()
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"no {count >> 20:,} MiB of memory are left") from error


def give_back(array: Any) -> None:
    """Let the system take the memory of a contiguous array, whose values are lost."""
    if array.nbytes >= LEAST_ADVISED:
        _advise(array, "MADV_DONTNEED")


def by_small_pages(array: Any) -> None:
    """Let a fresh array take memory as it is written, not 2 MiB at a time."""
    _advise(array, "MADV_NOHUGEPAGE")


def return_heap() -> None:
    """Give free memory between small arrays back to the system, as glibc does when asked to."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _advise(array: Any, advice: str) -> None:
    """Advise the system on the whole pages of an array; only Linux frees them at once."""
    if not sys.platform.startswith("linux"):
        return
    size = mmap.PAGESIZE
    begin = -(-array.ctypes.data // size) * size
    end = (array.ctypes.data + array.nbytes) // size * size
    libc = ctypes.CDLL(None)
    libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), getattr(mmap, advice))


def check_host_memory(needed: int, what: str, remedy: str) -> None:
    """Raise an error if something takes more memory than the host has left."""
    if needed <= SMALL:
        return
    free = host_memory()
    if free is not None and needed > free:
        raise HostMemoryError(what, needed, free, remedy)


def host_memory(*, swap: bool = True) -> int | None:
    """Return the bytes of host memory that can still be had, where the system says so."""
    found: dict[str, int] = {}
    with suppress(OSError, ValueError, IndexError):
        for line in MEMORY_INFO.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name in ("MemAvailable", "SwapFree"):
                found[name] = int(value.split()[0]) << 10
    if "MemAvailable" not in found:
        return None
    free = found["MemAvailable"] + (found.get("SwapFree", 0) if swap else 0)
    return min(free, *_limits())


def _limits() -> list[int]:
    """Return the bytes that a container and the shell's ``ulimit -v`` leave; at least one entry."""
    left = [1 << 62]
    for folder in _control_groups():
        for most, (taken, cached) in CONTROL_GROUP_FILES.items():
            with suppress(OSError, ValueError, KeyError):
                given = int((folder / most).read_text(encoding="ascii"))  # or "max"
                held = int((folder / taken).read_text(encoding="ascii"))
                lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
                files = int(dict(line.split() for line in lines)[cached])
                left.append(max(0, given - held + files))
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            left.append(max(0, limit - pages * os.sysconf("SC_PAGE_SIZE")))
    return left


def _control_groups() -> Iterator[Path]:
    """Yield the folders of the groups whose limits count for this process."""
    lines = ["0::/"]
    with suppress(OSError, ValueError):
        lines = MEMBERSHIP.read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for part in (inside, *inside.parents):
            if ".." not in part.parts:
                yield CONTROL_GROUP / ("memory" if controllers else "") / part
