"""Weights of one byte: what a coarse level's arcs weigh, where few weigh much; see `weights8.cuh`.

A byte below 255 is the weight. Heavier arcs are listed in a hash table in front of the bytes,
in the same array: entries of arc and weight, 16 bytes for their number, the bytes. All weights
of a level add up to no more than the input's, which bounds the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import cupy

WIDE: Final = 255
"""The byte of an arc that weighs as much or more."""

ENTRY: Final = 16
"""Bytes of an entry, and of the number of entries."""


def slots_for(total: int) -> int:
    """Return the table's entries for arcs that weigh so much together.

    Examples
    --------
    >>> from louvain_um.gpu.memory.weights8 import slots_for
    >>> slots_for(254), slots_for(255 * 300)
    (1, 401)
    """
    return total // WIDE * 4 // 3 + 1


def head_bytes(slots: int) -> int:
    """Return the bytes in front of the weights."""
    return ENTRY * (slots + 1)


def widened(weights: cupy.ndarray) -> NDArray[np.uint64]:
    """Return a level's narrow weights as they are, on the host."""
    import cupy

    def before(entries: int, back: int) -> Any:
        at = weights.data - ENTRY * back
        return cupy.ndarray((2 * entries,), np.uint64, at).get().reshape(entries, 2)

    wide: NDArray[np.uint64] = weights.get().astype(np.uint64)
    slots = int(before(1, 1)[0, 1])
    table = before(slots, slots + 1)
    arcs, heavy = table[table[:, 0] != np.uint64(2**64 - 1)].T
    wide[arcs] = heavy
    return wide
