"""Targets of 24 bits, for arcs of coarse levels beside weights of a byte: `targets24.cuh`."""

from __future__ import annotations

from typing import Final

MOST_VERTICES: Final = 1 << 24
"""Vertices whose numbers have 24 bits."""


def whole_targets(nbytes: int) -> int:
    """Return of how many targets both words that they are read from are in the first bytes."""
    return max(0, nbytes - 5) // 3
