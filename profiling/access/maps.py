"""Page touches as counts: accesses of ranges of an array, for the maps of a session."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session import PageMap
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import Array, Launch, Trace

ROWS: Final = 256
"""Rows of a map at most."""

BINS: Final = 512
"""Bins of time of a map at most."""


def shift_of(nbytes: int) -> int:
    """Return log2 of the bytes of a row of an array's map."""
    return max(12, (max(nbytes, 1) - 1).bit_length() - (ROWS.bit_length() - 1))


def by_page(
    touches: Touches, number: int, array: Array
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Return pages of an array, accesses of each, and bytes of all."""
    mine = touches.array == number
    first, length = touches.first[mine], touches.length[mine]
    streamed = touches.kinds[mine] <= Access.WRITE
    totals = touches.totals[mine]
    counts = np.where(streamed, totals / array.itemsize, totals) / length
    starts = np.repeat(np.cumsum(length) - length, length)
    pages = np.repeat(first, length) + np.arange(int(length.sum())) - starts
    size = int(np.where(streamed, totals, totals * array.itemsize).sum())
    return pages, np.repeat(counts, length), size


def access_maps(trace: Trace, times: NDArray[np.int64]) -> tuple[PageMap, ...]:
    """Return a map of each array that the launches of a trace touch."""
    if not trace.steps:
        return ()
    each = -(-len(trace.steps) // BINS)
    edges = np.array([*times[:-1:each], times[-1]], np.int64)
    shifts = [shift_of(array.nbytes) for array in trace.arrays]
    found: dict[int, NDArray[np.float64]] = {}
    for at, step in enumerate(trace.steps):
        if not isinstance(step, Launch):
            continue
        for number in np.unique(step.touches.array).tolist():
            array, shift = trace.arrays[number], shifts[number]
            pages, counts, _ = by_page(step.touches, number, array)
            rows = (max(array.nbytes, 1) - 1 >> shift) + 1
            counted = found.setdefault(number, np.zeros((rows, len(edges) - 1)))
            at_row = np.minimum(pages >> shift - 12, rows - 1)
            counted[:, at // each] += step.repeats * np.bincount(at_row, counts, rows)
    most = np.iinfo(np.uint32).max
    return tuple(
        PageMap(
            array=trace.arrays[number].name,
            page_bytes=1 << shifts[number],
            edges=edges,
            counts=np.minimum(np.rint(counts), most).astype(np.uint32),
        )
        for number, counts in found.items()
    )
