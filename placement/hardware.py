"""Sizes that NVIDIA's devices, driver and runtime fix, and the size of blocks.

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
