"""Regular grids: each vertex is joined to the grid points around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError
from louvain_um.generators.base import (
    CommonOptions,
    Generated,
    Weights,
    check_memory,
    whole_number,
)
from louvain_um.graph.limits import MAX_VERTICES

POINTS = {1: (2, 2), 2: (4, 8), 3: (6, 26)}
"""Number of dimensions → neighbours along the axes, and with the diagonals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StencilParameters:
    """What determines all rows, for the kernels on the CPU and on the device."""

    n: int
    arcs: int
    shape: tuple[int, int, int]
    diagonals: bool
    ids: NDArray[np.uint64]
    common: CommonOptions


def stencil_parameters(
    dims: Sequence[int],
    *,
    points: int | None = None,
    periodic: bool = False,
    permute: bool = False,
    weights: Weights = "none",
    seed: int = 0,
) -> StencilParameters:
    """Check the arguments of `stencil` and compute what its kernels need; `arcs` is a bound."""
    common = CommonOptions(permute=permute, weights=weights, seed=seed)
    if isinstance(dims, str) or not isinstance(dims, Sequence | np.ndarray):
        raise OptionError("dims", dims, "must be one to three whole numbers")
    if not 1 <= len(dims) <= 3:
        raise OptionError("dims", len(dims), "must be one to three whole numbers")
    shape = [whole_number("each of dims", d, 3 if periodic else 1) for d in dims]
    n = math.prod(shape)
    if n > MAX_VERTICES:
        raise OptionError("dims", n, f"must multiply to at most {MAX_VERTICES} points")
    axes, full = POINTS[len(shape)]
    if points is None:
        points = full
    if points not in (axes, full, axes + 1, full + 1):
        expected = str(axes) if axes == full else f"{axes} or {full}"
        raise OptionError("points", points, f"must be {expected} in {len(shape)} dimensions")

    x, y, z = (*shape, 1, 1)[:3]
    return StencilParameters(
        n=n,
        arcs=(full if points >= full else axes) * n,
        shape=(x, y, z),
        diagonals=points >= full,
        ids=common.vertex_ids(n),
        common=common,
    )


def stencil(
    dims: Sequence[int],
    *,
    points: int | None = None,
    periodic: bool = False,
    permute: bool = False,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate a grid of one, two or three dimensions."""
    parameters = stencil_parameters(
        dims, points=points, periodic=periodic, permute=permute, weights=weights, seed=seed
    )
    check_memory(parameters.n, parameters.arcs // 3)

    from louvain_um.generators import rows

    lattice = (*parameters.shape, parameters.diagonals, periodic, parameters.ids)
    graph = parameters.common.graph_of_rows(
        parameters.n, rows.count_stencil, rows.fill_stencil, *lattice
    )
    return Generated(graph)


def grid(
    dims: Sequence[int],
    *,
    periodic: bool = False,
    permute: bool = False,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate a grid with neighbours along the axes only; see `stencil`."""
    points = (
        POINTS[len(dims)][0]
        if isinstance(dims, Sequence | np.ndarray) and 1 <= len(dims) <= 3
        else None
    )
    return stencil(
        dims, points=points, periodic=periodic, permute=permute, weights=weights, seed=seed
    )
