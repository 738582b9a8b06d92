"""Layout of the block of constant memory that instrumented code reads."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

SYMBOL: Final = "louvain_um_trace"
"""Name of the block in every instrumented module."""

RANGES: Final = 256
"""Ranges of addresses in the block; the first stands for all other addresses."""

GRAIN: Final = 4096
"""Bytes of a bulk copy that count as one access."""

RANGE: Final = np.dtype(
    [
        ("start", np.uint64),
        ("nbytes", np.uint64),
        ("row", np.uint32),
        ("shift", np.uint32),
        ("copies", np.uint32),
        ("rows", np.uint32),
    ]
)
"""An array: its addresses, the row of its first page, log2 of its pages' bytes, how many copies
of its rows there are less one, and how many rows each has.

Unused ranges have no bytes, so that a hint that was never set cannot mislead.
"""

COPIES: Final = 32
"""Most copies of an array's rows, a power of two; a block of threads counts in one of them.

Without, all that a device does to a small array would meet in one counter.
"""

STATE: Final = np.dtype(
    [
        ("cells", np.uint64, 3),  # counters of reads, writes, atomics: uint32[rows, bins]
        ("origin", np.uint64),  # global timer at the beginning of bin 0
        ("log", np.uint64),  # records of LOG
        ("logged", np.uint64),  # where the number of samples is counted
        ("capacity", np.uint64),  # records that the log holds
        ("limit", np.uint32),  # a sample is taken if a hash is no larger
        ("module", np.uint32),  # which module this is, in the upper half
        ("bins", np.uint32),
        ("last_bin", np.uint32),
        ("bin_shift", np.uint32),  # log2 of a bin's nanoseconds
        ("count", np.uint32),  # ranges in use, the first included
        ("unused", np.uint64, 6),
        ("ranges", RANGE, RANGES),
    ]
)

LOG: Final = np.dtype(
    [("address", np.uint64), ("time", np.uint64), ("use", np.uint32), ("kernel", np.uint32)]
)
"""A sampled access; `use` indexes `USES`, `kernel` is module and function, a half word each."""

USES: Final = ("read", "write", "atomic")


def offset(name: str) -> int:
    """Return where a field lies in the block, in bytes."""
    fields: Any = STATE.fields
    return int(fields[name][1])


FIRST_RANGE: Final = offset("ranges")
"""Where the ranges begin; vectors are loaded from them, which wants a multiple of 16."""
