"""Vertex blocks: ranges of vertices whose arcs are on the device at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from louvain_um.gpu.runtime.launch import THREADS, Launch
from louvain_um.placement.hardware import PAGE, WARP
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.block_cache import BlockCache
from louvain_um.placement.model.cost import FACTORS, tune

WARPS: Final = THREADS // WARP
TRIAL: Final = 8 << 20
"""Bytes touched to measure one number of pages per warp."""


class PageToucher:
    """Touches every page of a range."""

    def __init__(self, memory: RunMemory, factor: int) -> None:
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
        launch = Launch("vertex_blocks", "touch_pages", most=-(-warps // WARPS))
        launch(
            np.uint64(address), np.int64(0), np.int64(nbytes), np.uint32(PAGE), np.uint32(factor),
            self.sink,
        )  # fmt: skip


@dataclass(slots=True)
class VertexBlocks:
    """The vertex blocks of a level."""

    cache: BlockCache
    touch: PageToucher
    begins: Any
    bounds: list[int]
    forward: bool = True

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.bounds) - 1

    def order(self, wanted: list[int]) -> Iterator[tuple[int, int | None]]:
        """Yield blocks, each with the one after it; every second time backwards."""
        path = wanted if self.forward else wanted[::-1]
        self.forward = not self.forward
        # `wanted` is empty where no vertex is active.
        yield from zip(path, [*path[1:], None][: len(path)], strict=True)
