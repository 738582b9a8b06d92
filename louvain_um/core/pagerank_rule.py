"""The arithmetic of PageRank that both engines share.

Ranks are integers in units of 2^-60, and so are the parts that arcs carry: sums of them are exact,
whatever their order. A part is the product of two doubles, each rounded once, cut to an integer.
"""

from __future__ import annotations

from typing import Final

UNIT: Final = 1 << 60
"""The sum of all ranks, but for what cutting loses: less than one unit per arc and iteration."""


def teleport(damping: float, n: int) -> int:
    """Return the rank that every vertex gets in each iteration, whatever its neighbours.

    Examples
    --------
    >>> from louvain_um.core.pagerank_rule import UNIT, teleport
    >>> teleport(0.5, 4) / UNIT
    0.125
    """
    return int(UNIT * (1.0 - damping) / n)
