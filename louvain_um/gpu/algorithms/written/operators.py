"""The operators that users call, on the device: expressions become CUDA, compiled once each.

See `louvain_um.algorithms.operators`. Arrays are CuPy's.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.algorithms.launch import STATE_WORDS, DeviceRows, Launch
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.launch import THREADS

WAYS: Final = {"min": "Least", "max": "Most", "or": "Bits", "add": "Sum"}
"""Types of along.cu by the way in which values are combined."""


class WrittenLaunch(Launch):
    """A kernel with an expression of the user's."""

    def __init__(self, source: str, name: str, types: str, expression: str) -> None:
        self.kernel = kernels.written(source, name, types, f"#define EXPRESSION {expression}\n")
        self.blocks = kernels.resident_blocks(self.kernel, THREADS)


def follow(
    rows: DeviceRows, frontier: Any, combine: str, expression: str, xs: Any, ys: Any, into: Any
) -> bool:
    """Combine a value along every arc of a frontier, uint32[k]."""
    import cupy

    items = len(frontier)
    launch = WrittenLaunch("along", "combine_along", f"{rows.types}, {WAYS[combine]}", expression)
    state = cupy.zeros(STATE_WORDS, np.uint64)
    launch(
        rows.argument(), frontier, np.int64(items), xs, ys, into, cupy.empty(items + 1, np.int64),
        cupy.empty(launch.blocks, np.int64), state,
    )  # fmt: skip
    return bool(state[1])


def keep(frontier: Any, arrays: list[Any], expression: str) -> tuple[Any, bool]:
    """Return which items of a frontier, uint32[k], meet a condition, and whether 0 divided."""
    import cupy

    places = cupy.asarray(np.array([array.data.ptr for array in arrays] or [0], np.uint64))
    kept, state = cupy.empty(len(frontier), np.uint32), cupy.zeros(STATE_WORDS, np.uint64)
    launch = WrittenLaunch("keep", "keep", "", expression)
    launch(frontier, np.int64(len(frontier)), places, kept, state)
    return kept != 0, bool(state[1])


def count_common(rows: DeviceRows, pairs: Any, each: Any) -> Any:
    """Return the common neighbours of pairs, uint32[p, 2], as int64[p]; add to `each`, if any."""
    import cupy

    counts = cupy.zeros(len(pairs), np.int64)
    Launch("common", "count_common")(
        rows.argument(weighted=False), pairs, np.int64(len(pairs)), counts,
        np.uint64(0) if each is None else each,
    )  # fmt: skip
    return counts
