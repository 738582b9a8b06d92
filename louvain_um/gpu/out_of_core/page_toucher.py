"""Demand paging: kernels touch every page of a range, and the driver brings it."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.launch import THREADS
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.model.cost import FACTORS, tune

PAGE: Final = 4096
"""Bytes of a page."""

WARPS: Final = THREADS // 32
TRIAL: Final = 8 << 20
"""Bytes touched to measure one number of pages per warp."""


class PageToucher:
    """Touches every page of a range."""

    def __init__(self, kernels: Kernels, memory: RunMemory, factor: int) -> None:
        self.kernels = kernels
        self.kernel = kernels.get("vertex_blocks", "touch_pages")
        self.sink = memory.empty("touched", "scratch", 1, np.uint32)
        self.factor = factor
        self.tuned = False

    def __call__(self, address: int, nbytes: int) -> None:
        """Touch a range of managed memory."""
        left = nbytes
        if not self.tuned and nbytes >= len(FACTORS) * TRIAL:
            self.tuned = True

            def measure(factor: int) -> float:
                nonlocal left
                cuda_calls.synchronize()
                since = time.perf_counter()
                self.touch(address + nbytes - left, TRIAL, factor)
                cuda_calls.synchronize()
                left -= TRIAL
                return time.perf_counter() - since

            self.factor = tune(measure, self.factor)
        self.touch(address + nbytes - left, left, self.factor)

    def touch(self, address: int, nbytes: int, factor: int) -> None:
        """Touch a range with `factor` pages per warp."""
        if nbytes <= 0:
            return
        pages = -(-nbytes // PAGE)
        warps = -(-pages // factor)
        blocks = min(self.kernels.resident_blocks(self.kernel, THREADS), -(-warps // WARPS))
        self.kernel(
            (blocks,), (THREADS,),
            (np.uint64(address), np.int64(0), np.int64(nbytes), np.uint32(PAGE),
             np.uint32(factor), self.sink),
        )  # fmt: skip
