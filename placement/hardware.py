"""Sizes that NVIDIA's devices, driver and runtime fix, and the size of blocks; units as text.

Kernels have THREADS, WARP, PAGE and SECTOR from here (`DEFINES` of `gpu.runtime.compile_cache`).
"""

from __future__ import annotations

from typing import Final

BLOCK: Final = 2 << 20
"""Bytes of the driver's blocks, a migration unit: advice that ends inside one splits it, and memory
is mapped to multiples of it."""

LARGE_PAGE: Final = 64 << 10
"""Bytes that a page fault brings at least."""

PAGE: Final = 4 << 10
"""Bytes of a page of the host, and the unit of a fault."""

ALIGNED: Final = 256
"""Bytes to whose multiples cudaMalloc aligns: every array begins at one."""

SECTOR: Final = 32
"""Bytes that one access over the bus moves at least."""

WARP: Final = 32
"""Threads that run, and wait for an access, together."""

THREADS: Final = 256
WARPS: Final = THREADS // WARP
"""Threads of a block of every kernel, and its warps."""

CONTEXT: Final = 512 << 20
"""Bytes of a device that its context and the kernels' code take, about."""


def seconds(value: float) -> str:
    """Return a time for people."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= unit or (unit == 1e-6 and value):
            return (
                f"{value / unit:,.0f} {name}"
                if abs(value) >= 1000
                else f"{value / unit:.3g} {name}"
            )
    return "0 s"


def size(nbytes: int) -> str:
    """Return bytes for people."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:,.1f} {name}"
    return f"{nbytes / 1024:,.1f} KiB" if nbytes >= 1024 else f"{nbytes:,.0f} B"
