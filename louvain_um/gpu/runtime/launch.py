"""Launching kernels: blocks, grids, and scratch memory in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from louvain_um.events import Observer, announce
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.kernel_list import expression
from louvain_um.gpu.runtime.structs import address
from louvain_um.placement.hardware import ALIGNED, THREADS
from louvain_um.placement.memory.run_memory import RunMemory


class Launcher:
    """A kernel and its grid: as many blocks as the current device holds at once, or fewer.

    Parameters
    ----------
    source, name, types : str
        File without ``.cu``, function, and its template arguments.
    front : str
        Text in front of the source, such as a user's functor.
    most : int, optional
        Most blocks.
    """

    __slots__ = ("blocks", "kernel")

    def __init__(
        self,
        source: str,
        name: str,
        types: str = "",
        *,
        front: str = "",
        most: int | None = None,
        observer: Observer = announce,
    ) -> None:
        if front:
            self.kernel = kernels.written(source, expression(name, types), front)
        else:
            self.kernel = kernels.get(source, name, types, observer)
        resident = kernels.resident_blocks(self.kernel, THREADS)
        self.blocks = resident if most is None else max(1, min(resident, most))

    def __call__(self, *arguments: Any, items: int | None = None) -> None:
        """Launch, with a thread per item at most; returns before the kernel has run."""
        needed = self.blocks if items is None else max(1, -(-items // THREADS))
        self.kernel((min(self.blocks, needed),), (THREADS,), arguments)


def carve(memory: RunMemory, name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the addresses of parts, of so many bytes each, of one array of scratch memory."""
    found, end = {}, 0
    for part, nbytes in sizes.items():
        found[part] = end
        end += -(-nbytes // ALIGNED) * ALIGNED
    begin = address(memory.empty(name, "scratch", end, np.uint8))
    return {part: begin + at for part, at in found.items()}
