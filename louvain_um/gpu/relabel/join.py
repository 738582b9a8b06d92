"""The communities that the next level's vertices start in, by Leiden: those found by moving."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.relabel.relabel import relabel_communities, relabelled_sums
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.placement.memory.run_memory import RunMemory


class Join:
    """Finds the communities that the next level's vertices start in, by Leiden."""

    def __init__(self, kernels: Kernels, memory: RunMemory, level: GpuLevel, numbers: Any) -> None:
        self.kernels = kernels
        self.memory = memory
        self.level = level
        self.numbers = numbers
        self.start: Any = None
        self.sums: Any = None

    def launch(self, vertices: int) -> None:
        """Launch it, for a level of so many vertices, or fewer."""
        level, memory = self.level, self.memory
        if level.refined is not None:
            name = start_after(level)
            self.start = memory.empty(name, "community", vertices, np.uint32)
            self.sums = relabel_communities(self.kernels, memory, level, self.numbers, self.start)

    def finish(self, coarse: GpuLevel) -> GpuLevel:
        """Give them to the next level, and this level the numbers; wait for the device."""
        level = self.level
        if level.refined is not None:
            if self.start is None:
                self.launch(coarse.vertices)
            else:
                self.start = self.memory.shrink(start_after(level), coarse.vertices)
            coarse.start = self.start
            coarse.start_sums = relabelled_sums(self.memory, level, self.sums)
        level.numbers, level.refined = self.numbers, None
        return coarse

    def discard(self) -> None:
        """Free what was launched for nothing, and what it was made of."""
        level = self.level
        if level.refined is not None:
            sums = "relabel_result" if level.found_sums is None else "found_sums"
            self.memory.free(f"refined.{level.cycle}.{level.number}", sums)
            if self.start is not None:
                self.memory.free(start_after(level))
            level.refined = level.found_sums = None


def start_after(level: GpuLevel) -> str:
    """Return the name of the communities that the next level starts in."""
    return f"start.{level.cycle}.{level.number + 1}"
