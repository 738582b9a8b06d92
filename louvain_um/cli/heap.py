"""Return the memory of freed arrays to the operating system."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of mallopt."""

LARGE: Final = 1 << 20
"""Bytes from which each array gets a memory mapping of its own."""


def mmap_large_arrays() -> bool:
    """Make malloc use mmap for every large array; return whether the C library accepted.

    glibc starts with a threshold of 128 KiB, but raises it up to 32 MiB as mapped blocks are
    freed. Smaller arrays then come from the heap, whose holes are not returned to the system: a
    fifth of the peak on graphs of a few million arcs.
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE))
    return False
