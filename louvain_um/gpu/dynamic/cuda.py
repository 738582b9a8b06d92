"""Arrays and kernels of the current CUDA device, for stores of changing graphs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.dynamic.batch_arrays import MOST_BLOCKS
from louvain_um.gpu.level import or_null
from louvain_um.gpu.runtime.structs import Struct

THREADS: Final = 256
"""Threads of a block (`batch.cuh`)."""


class Cuda:
    """The current device: CuPy's arrays, and the kernels of changing graphs."""

    def __init__(self) -> None:
        import cupy

        from louvain_um.gpu.runtime.compile import kernels

        self.xp: Any = cupy
        self.kernels = kernels

    def threads(self, source: str, kernel: str, types: str = "") -> int:
        """Return how many threads of a kernel are resident at once, at most."""
        found = self.kernels.get(source, kernel, types)
        return min(self.kernels.resident_blocks(found, THREADS), MOST_BLOCKS) * THREADS

    def launch(self, source: str, kernel: str, types: str, items: int, *args: Any) -> None:
        """Run a kernel with a thread per item, but no more than are resident.

        Parameters
        ----------
        source, kernel, types : str
            As `louvain_um.gpu.runtime.kernel_list` spells them.
        items : int
            Work, about.
        *args
            Arrays, structures, scalars of the parameters' types, and None for a null pointer.
        """
        found = self.kernels.get(source, kernel, types)
        most = min(self.kernels.resident_blocks(found, THREADS), MOST_BLOCKS)
        blocks = max(1, min(most, -(-items // THREADS)))
        given = [arg.argument if isinstance(arg, Struct) else or_null(arg) for arg in args]
        found((blocks,), (THREADS,), given)

    def address(self, array: Any) -> int:
        """Return where an array is; 0 for None."""
        return 0 if array is None else int(array.data.ptr)

    def clear(self, array: Any) -> None:
        """Fill an array with zero bytes."""
        array.data.memset_async(0, array.nbytes)

    def get(self, array: Any) -> np.ndarray[Any, Any]:
        """Copy to the host."""
        copied: np.ndarray[Any, Any] = self.xp.asnumpy(array)
        return copied
