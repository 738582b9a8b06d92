"""Size classes of rows: room for 4·2ᵏ or 6·2ᵏ arcs, at most a third of it unused after growth."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import prefetch

AHEAD: Final = 16
"""Rows ahead whose entries are prefetched."""

CAPACITIES: Final = np.array([base << k for k in range(31) for base in (4, 6)], np.int64)
"""Arcs that a page of each class holds, up to more than any row can have."""

NONE: Final = np.uint8(255)
"""Class of a row without arcs, which has no page."""


def classes_for(
    lengths: NDArray[np.int64], capacities: NDArray[np.int64] = CAPACITIES
) -> NDArray[np.uint8]:
    """Return the smallest class that holds each length; `NONE` for 0."""
    classes = np.searchsorted(capacities, lengths).astype(np.uint8)
    classes[lengths == 0] = NONE
    return classes


def capacities_for(
    lengths: NDArray[np.int64], capacities: NDArray[np.int64] = CAPACITIES
) -> NDArray[np.int64]:
    """Return the room of the smallest class that holds each length; 0 for 0."""
    room: NDArray[np.int64] = capacities[np.searchsorted(capacities, lengths)]
    room[lengths == 0] = 0
    return room


@kernel()
def want_classes(
    t, threads, rows, growth, begins, ends, classes, capacities, old_begins, lengths, old, wanted
):
    """Write where each touched row lies, its length and class, and the class it wants."""
    last = len(rows) * (t + 1) // threads
    for i in range(len(rows) * t // threads, last):
        near = rows[min(i + AHEAD, last - 1)]
        prefetch(begins, near)
        prefetch(ends, near)
        prefetch(classes, near)
        row = rows[i]
        old_begins[i], lengths[i], old[i] = begins[row], ends[row] - begins[row], classes[row]
        length, size_class = lengths[i] + growth[i], classes[row]
        wanted[i] = size_class
        if length == 0:
            wanted[i] = NONE
        elif size_class == NONE or not (
            capacities[size_class] // 2 <= length <= capacities[size_class]
        ):
            fitting = 0
            while capacities[fitting] < length:
                fitting += 1
            wanted[i] = fitting
