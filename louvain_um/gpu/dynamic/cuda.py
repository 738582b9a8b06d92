"""Arrays and kernels of the current CUDA device, for stores of changing graphs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.level import or_null

THREADS: Final = 256
"""Threads of a block (`batches.cu`)."""

ITEMS_A_BLOCK: Final = 4096
"""Items of work per block: fewer leave warps without any."""


class Cuda:
    """The current device: CuPy's arrays, and the kernels of `batches.cu`."""

    def __init__(self) -> None:
        import cupy

        from louvain_um.gpu.runtime.compile import kernels

        self.xp: Any = cupy
        self.kernels = kernels

    def launch(self, kernel: str, types: str, items: int, *args: Any) -> None:
        """Run a kernel with a block for `ITEMS_A_BLOCK` items, at most as many as are resident.

        Parameters
        ----------
        kernel, types : str
            As `louvain_um.gpu.runtime.kernel_list` spells them.
        items : int
            Work, about.
        *args
            Arrays, scalars of the parameters' types, and None for a null pointer.
        """
        found = self.kernels.get("batches", kernel, types)
        most = self.kernels.resident_blocks(found, THREADS)
        blocks = max(1, min(most, -(-items // ITEMS_A_BLOCK)))
        found((blocks,), (THREADS,), [or_null(arg) for arg in args])

    def get(self, array: Any) -> np.ndarray[Any, Any]:
        """Copy to the host."""
        copied: np.ndarray[Any, Any] = self.xp.asnumpy(array)
        return copied
