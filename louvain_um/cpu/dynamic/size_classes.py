"""Which size class each touched row wants after a batch."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from typing import Final

from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import prefetch
from louvain_um.core.size_classes import NONE

AHEAD: Final = 16
"""Rows ahead whose entries are prefetched."""


@kernel()
def want_classes(
    t, threads, rows, growth, begins, ends, classes, capacities, old_begins, lengths, old, wanted
):
    """Write where each touched row lies, its length and class, and the class it wants.

    A row keeps its class unless it no longer fits, or fills less than half of it.
    """
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
