"""Weights of 8 or 16 bits: what a coarse level's arcs weigh, where few weigh much.

The counterpart of `short_weights.cuh`. Heavier arcs are listed in a hash table in front of the
weights, in the same array: entries of arc and weight, 16 bytes for their number, the weights. All
weights of a level add up to no more than the input's, which bounds the table.
"""

from __future__ import annotations

from typing import Final

ENTRY: Final = 16
"""Bytes of an entry, and of the number of entries."""


def widths(*, weighted: bool) -> tuple[int, ...]:
    """Return the bytes that weights may take."""
    return (1, 2) if weighted else (1,)


def heavy_bits(width: int) -> int:
    """Return what stands for an arc that weighs as much or more, of weights of so many bytes."""
    return (1 << 8 * width) - 1


def slots_for(total: int, width: int) -> int:
    """Return the table's entries for arcs that weigh so much together."""
    return total // heavy_bits(width) * 4 // 3 + 1


def head_bytes(slots: int) -> int:
    """Return the bytes in front of the weights."""
    return ENTRY * (slots + 1)
