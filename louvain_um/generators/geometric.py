"""Random geometric graphs: points in the unit square, joined if they are close."""

from __future__ import annotations

import math

from louvain_um.errors import OptionError
from louvain_um.generators.base import (
    CommonOptions,
    Generated,
    Weights,
    check_memory,
    real_number,
    whole_number,
)

POINT_STREAM = 16

COORDINATE_BITS = 31
"""The sum of two squared differences fits 64 bits."""


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
