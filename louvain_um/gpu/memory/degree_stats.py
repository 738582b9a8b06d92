"""Statistics of a graph's degrees that a plan needs besides its size."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class DegreeStats(NamedTuple):
    """Statistics of the arcs per vertex.

    Parameters
    ----------
    max_degree : int
        Most arcs of a vertex.
    degree_squares : int
        Sum of the squares of all vertices' arcs.
    isolated : int
        Vertices without arcs.
    hub_arcs : int, optional
        Arcs of vertices that have more than `HUB_DEGREE`; None if unknown.
    clustering : float, optional
        Share of pairs of neighbours that are joined (`clustering.py`); None if unknown.
    """

    max_degree: int
    degree_squares: int
    isolated: int = 0
    hub_arcs: int | None = None
    clustering: float | None = None


HUB_DEGREE: Final = 1024
"""Arcs of a vertex above which it may take a table of its own (`launch.BLOCK_MAX`)."""


def degree_stats(offsets: Any) -> DegreeStats:
    """Return the degree statistics of a graph.

    Parameters
    ----------
    offsets : int64[n + 1]
        NumPy's or CuPy's.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.gpu.memory.degree_stats import degree_stats
    >>> degree_stats(np.array([0, 2, 2, 3, 4]))
    DegreeStats(max_degree=2, degree_squares=6, isolated=1, hub_arcs=0, clustering=None)
    """
    arcs = (offsets[1:] - offsets[:-1]).astype("float64")
    max_degree = int(arcs.max()) if len(arcs) else 0
    hub_arcs = int(arcs[arcs > HUB_DEGREE].sum())
    return DegreeStats(max_degree, int((arcs * arcs).sum()), int((arcs == 0).sum()), hub_arcs)
