"""Launching the engine's kernels: blocks, grids, and scratch memory in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from louvain_um.events import Observer, ignore
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.structs import address
from louvain_um.placement.hardware import ALIGNED
from louvain_um.placement.memory.run_memory import RunMemory

THREADS: Final = 256
"""Threads of a block of every kernel (`grid.cuh`)."""


class Launch:
    """A kernel and its grid: as many blocks as the current device holds at once, or fewer."""

    __slots__ = ("blocks", "kernel")

    def __init__(
        self,
        source: str,
        name: str,
        types: str = "",
        *,
        most: int | None = None,
        observer: Observer = ignore,
    ) -> None:
        self.kernel = kernels.get(source, name, types, observer)
        resident = kernels.resident_blocks(self.kernel, THREADS)
        self.blocks = resident if most is None else max(1, min(resident, most))

    def __call__(self, *arguments: Any) -> None:
        """Launch; returns before the kernel has run."""
        self.kernel((self.blocks,), (THREADS,), arguments)


def carve(memory: RunMemory, name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the addresses of parts, of so many bytes each, of one array of scratch memory."""
    found, end = {}, 0
    for part, nbytes in sizes.items():
        found[part] = end
        end += -(-nbytes // ALIGNED) * ALIGNED
    begin = address(memory.empty(name, "scratch", end, np.uint8))
    return {part: begin + at for part, at in found.items()}
