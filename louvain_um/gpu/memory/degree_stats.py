"""How arcs are spread over vertices: what a plan asks of a graph besides its size."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Spread(NamedTuple):
    """How many arcs vertices have.

    Parameters
    ----------
    widest : int
        Most arcs of a vertex.
    squares : int
        Sum of the squares of all vertices' arcs.
    isolated : int
        Vertices without arcs.
    wide : int, optional
        Arcs of vertices that have more than `WIDE`; None where nobody counted.
    """

    widest: int
    squares: int
    isolated: int = 0
    wide: int | None = None


WIDE: Final = 1024
"""Arcs of a vertex above which it may take a table of its own (`launch.BLOCK_MAX`)."""


def spread_of(offsets: Any) -> Spread:
    """Return how arcs are spread over the rows of a graph.

    Parameters
    ----------
    offsets : int64[n + 1]
        NumPy's or CuPy's.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.gpu.memory.degree_stats import spread_of
    >>> spread_of(np.array([0, 2, 2, 3, 4]))
    Spread(widest=2, squares=6, isolated=1, wide=0)
    """
    arcs = (offsets[1:] - offsets[:-1]).astype("float64")
    widest = int(arcs.max()) if len(arcs) else 0
    wide = int(arcs[arcs > WIDE].sum())
    return Spread(widest, int((arcs * arcs).sum()), int((arcs == 0).sum()), wide)
