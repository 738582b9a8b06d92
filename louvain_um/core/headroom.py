"""Whether memory is left for what cannot report that there is none: threads and the compiler.

LLVM, and the thread-local data of shared libraries, end the process if an allocation fails, and a
Python thread that fails while it starts leaves its starter waiting. Where memory is scarce, a look
before such a step turns that into a `MemoryError`.
"""

from __future__ import annotations

import mmap
from typing import Final

KERNEL_BYTES: Final = 32 << 20
"""Room that loading or compiling one function has to find."""

THREAD_BYTES: Final = 12 << 20
"""Room for each new thread: a stack of 8 MiB, and the data that libraries keep per thread."""


def require(count: int) -> None:
    """Raise `MemoryError` unless this many more bytes can be reserved; they are given back at once.

    Examples
    --------
    >>> from louvain_um.core import headroom
    >>> headroom.require(1 << 20)
    >>> headroom.require(1 << 60)
    Traceback (most recent call last):
    MemoryError: no 1,099,511,627,776 MiB of memory are left
    """
    try:
        mmap.mmap(-1, count).close()
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"no {count >> 20:,} MiB of memory are left") from error
