"""Recursive-matrix graphs (Chakrabarti, Zhan, Faloutsos 2004): heavy tails, no communities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError, checks_kinds
from louvain_um.generators.base import (
    CommonOptions,
    Generated,
    Weights,
    check_memory,
    real_number,
    whole_number,
)

EDGE_STREAM = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RmatParameters:
    """What determines all edges, for `draw_rmat` on the CPU and on the device."""

    n: int
    scale: int
    edges: int
    key: np.uint64
    limits: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    common: CommonOptions


def rmat_parameters(
    scale: int,
    *,
    edge_factor: int = 16,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    permute: bool = True,
    weights: Weights = "none",
    seed: int = 0,
) -> RmatParameters:
    """Check the arguments of `rmat` and compute what its kernel needs."""
    scale = whole_number("scale", scale, 0, 31)
    edge_factor = whole_number("edge_factor", edge_factor, 0)
    common = CommonOptions(permute=permute, weights=weights, seed=seed)
    for name, value in (("a", a), ("b", b), ("c", c)):
        real_number(name, value, 0.0, 1.0)
    if a + b + c > 1.0 + 1e-12:
        raise OptionError("a + b + c", a + b + c, "must be at most 1")

    return RmatParameters(
        n=2**scale,
        scale=scale,
        edges=edge_factor * 2**scale,
        key=common.key(EDGE_STREAM),
        limits=np.array([round(x * 2**32) for x in (a, a + b, a + b + c)], np.uint64),
        ids=common.vertex_ids(2**scale),
        common=common,
    )


@checks_kinds
def rmat(
    scale: int,
    *,
    edge_factor: int = 16,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    permute: bool = True,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate an R-MAT graph of 2^scale vertices.

    Parameters
    ----------
    scale : int
        Binary logarithm of the number of vertices, 0 … 31.
    edge_factor : int
        Edges drawn per vertex; loops and repeated edges are dropped.
    a : float
        Probability of the top left quadrant of the adjacency matrix.
    b : float
        Probability of the top right quadrant.
    c : float
        Probability of the bottom left quadrant; the bottom right one has 1 - a - b - c.
    permute : bool
        Whether ids are permuted; otherwise the largest degrees come first.
    weights : {"none", "uniform"}
        No weights, or integers 1 … 16 with equal probability.
    seed : int
        0 … 2³² − 1.

    Raises
    ------
    OptionError
        A value is out of range.

    Examples
    --------
    >>> from louvain_um.generators import rmat
    >>> rmat(10, seed=1).graph.n_vertices
    1024
    """
    parameters = rmat_parameters(**locals())
    check_memory(parameters.n, 2 * parameters.edges)

    from louvain_um.core import parallel
    from louvain_um.generators import edges as compiled

    u, v = np.empty(parameters.edges, np.uint32), np.empty(parameters.edges, np.uint32)
    parallel.run(
        compiled.draw_rmat,
        parallel.default_threads(),
        parameters.key,
        parameters.scale,
        parameters.limits,
        parameters.ids,
        u,
        v,
    )
    return Generated(parameters.common.graph_of_edges(u, v, parameters.n))
