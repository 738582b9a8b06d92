"""The compiled part of `targets24.py`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take

START_BITS: Final = 40
"""Low bits of an offsets entry: where the row begins. The bits above hold its length."""

CLASSES: Final = 25
"""Lengths of rows have 0 … 24 bits."""

STRETCH: Final = 1 << 12
"""Vertices whose rows a thread packs at a time."""


@kernel()
def place_rows(offsets: Any, placed: Any) -> None:
    """Write begin and length of each row to `placed`, rows of shorter classes first."""
    begins = np.zeros(CLASSES + 1, np.int64)
    for v in range(len(offsets) - 1):
        arcs = offsets[v + 1] - offsets[v]
        begins[_bits(arcs) + 1] += arcs
    for k in range(CLASSES):
        begins[k + 1] += begins[k]
    for v in range(len(offsets) - 1):
        arcs = offsets[v + 1] - offsets[v]
        k = _bits(arcs)
        placed[v] = begins[k] | arcs << START_BITS
        begins[k] += arcs


@kernel()
def pack_rows(
    t: int, threads: int, taken: Any, offsets: Any, values: Any, placed: Any, parts: Any
) -> None:
    """Write a value per arc of rows that no other thread took, in as many bytes as `parts` has."""
    n, width = len(offsets) - 1, parts.shape[1]
    first = take(taken, STRETCH)
    while first < n:
        for v in range(first, min(first + STRETCH, n)):
            at = placed[v] & (1 << START_BITS) - 1
            for j in range(offsets[v], offsets[v + 1]):
                value = values[j]
                parts[at, 0] = value & 0xFF
                parts[at, 1] = value >> 8 & 0xFF
                if width == 3:
                    parts[at, 2] = value >> 16
                at += 1
        first = take(taken, STRETCH)


@kernel()
def _bits(number: int) -> int:
    """Return how many bits a number has."""
    bits = 0
    while number:
        number >>= 1
        bits += 1
    return bits
