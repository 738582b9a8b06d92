"""When a breadth-first search changes direction; what it finds does not depend on it.

Beamer, Asanović, Patterson: Direction-Optimizing Breadth-First Search, 2012, whose constants
these are.
"""

from __future__ import annotations

from typing import Final

from louvain_um.core.compiled import kernel

PULL_SHARE: Final = 14
"""Pull where the frontier has more than this part of the arcs that are not visited."""

PUSH_SHARE: Final = 24
"""Push again where the frontier has less than this part of the vertices, and shrinks."""


@kernel(inline="always")
def pulls(arcs, unvisited):  # type: ignore[no-untyped-def]
    """Tell whether to pull into a frontier with so many arcs."""
    return arcs * PULL_SHARE > unvisited


@kernel(inline="always")
def pushes_again(width, before, n):  # type: ignore[no-untyped-def]
    """Tell whether to push from a frontier that has so many vertices, and had `before`."""
    return width == 0 or (width <= before and width * PUSH_SHARE < n)
