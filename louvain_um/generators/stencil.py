"""Kinds whose neighbours follow from positions: regular grids, and geometric graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError, checks_kinds, is_number
from louvain_um.generators.base import (
    CommonOptions,
    Generated,
    Weights,
    check_memory,
    real_number,
    whole_number,
)
from louvain_um.graph.limits import MAX_VERTICES

POINT_STREAM = 16

COORDINATE_BITS = 31
"""The sum of two squared differences fits 64 bits."""


@checks_kinds
def geometric(
    n: int,
    *,
    degree: float | None = None,
    radius: float | None = None,
    permute: bool = False,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate a random geometric graph in the unit square."""
    n = whole_number("n", n, 0)
    common = CommonOptions(permute=permute, weights=weights, seed=seed)
    if degree is not None and radius is not None:
        raise OptionError(remedy="pass degree or radius, not both")
    if radius is None:
        degree = (
            min(15.0, max(n - 1, 0) / 2) if degree is None else real_number("degree", degree, 0.0)
        )
        if n > 1 and degree > 0.9 * (n - 1):
            raise OptionError("degree", degree, f"must be at most 0.9 (n - 1) = {0.9 * (n - 1):g}")
        radius = radius_for(degree / max(n - 1, 1))
    radius = real_number("radius", radius, 0.0, 1.5)
    check_memory(n, int(n * max(n - 1, 0) * min(1.0, math.pi * radius**2) / 3))

    from louvain_um.generators import rows

    reach = round(radius * 2**COORDINATE_BITS)
    # Cells are at least as wide as the reach, so that only neighbouring cells matter, and
    # no more than vertices.
    side = max(1, min(2**COORDINATE_BITS // max(reach, 1), math.isqrt(n)))
    points = rows.place_points(common.key(POINT_STREAM), n, side)
    near = (side, reach, *points, common.vertex_ids(n))
    return Generated(common.graph_of_rows(n, rows.count_near, rows.fill_near, *near))


def radius_for(share: float) -> float:
    """Return the radius within which a share of all pairs of random points of the square lies."""
    low, high = 0.0, 1.0
    for _ in range(60):
        r = (low + high) / 2
        if math.pi * r**2 - 8 * r**3 / 3 + r**4 / 2 < share:
            low = r
        else:
            high = r
    return high


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
    dims = dims.tolist() if isinstance(dims, np.ndarray) else dims
    if isinstance(dims, str) or not isinstance(dims, Sequence):
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
    if not is_number(points) or points not in (axes, full, axes + 1, full + 1):
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


@checks_kinds
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


@checks_kinds
def grid(
    dims: Sequence[int],
    *,
    periodic: bool = False,
    permute: bool = False,
    weights: Weights = "none",
    seed: int = 0,
) -> Generated:
    """Generate a grid with neighbours along the axes only; see `stencil`."""
    dims = dims.tolist() if isinstance(dims, np.ndarray) else dims
    known = isinstance(dims, Sequence) and 1 <= len(dims) <= 3
    points = POINTS[len(dims)][0] if known else None
    return stencil(
        dims, points=points, periodic=periodic, permute=permute, weights=weights, seed=seed
    )
