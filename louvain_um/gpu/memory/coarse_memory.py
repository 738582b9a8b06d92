"""Memory reserved for the graphs of coarse levels, before their sizes are known.

A level's graph is made from the one before it, and no other graph is needed then. So levels
alternate between two regions: levels 1, 3, 5 … use the first, levels 2, 4 … the second. Where
level 1 keeps nearly all arcs, level 2 replaces it in the first region
(`louvain_um.gpu.aggregate.reaggregate`), so do later levels as long as they keep them, and the
next one is the first in the second. A level gives back what it does not need of its region; one
that needs more grows outside of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from louvain_um.gpu.aggregate.limits import LIMITS
from louvain_um.options import Method
from louvain_um.placement.machine.profiles import FITTED, rates


@dataclass(frozen=True, slots=True)
class CoarseShares:
    """How much of a graph coarse levels keep."""

    arcs: float
    vertices: float
    next_arcs: float
    next_vertices: float
    deep_levels: int = 1
    mesh_floor: float = 0.0
    reaggregated_arcs: float = 0.0

    def at_degree(self, degree: float) -> CoarseShares:
        """Return the shares for a mean degree: the lower it is, the more a mesh keeps."""
        least = self.mesh_floor / max(degree, 1e-9)
        return replace(self, arcs=max(self.arcs, least), vertices=max(self.vertices, least))


COARSE_SHARES: Final[Mapping[str, Mapping[str, CoarseShares]]] = {
    method: {
        kind: CoarseShares(**shares)
        for kind, shares in FITTED["rates"]["coarse_shares"][method].items()
    }
    for method in ("louvain", "leiden")
}
"""By method and kind of graph (`louvain_um.placement.model.workload`), or "thin".

A graph with equal degrees but without locality, such as a planted partition, is not a mesh: Leiden
keeps nearly all of it, and level 1 outgrows its region.
"""

WHOLE: Final = CoarseShares(1.0, 1.0, 1.0, 1.0, deep_levels=6)
"""For objectives and constraints that can hold all communities small: a maximum size of 2 leaves
nearly all arcs on every level, and so do fixed vertices and a high density of the constant Potts
model."""

ARCS: Final = rates("expected_arcs")
"""What the arcs of level 1 are estimated by."""


def coarse_shares(method: Method, kind: str, degree: float) -> CoarseShares:
    """Return how much of a graph coarse levels keep."""
    if kind == "mesh" and degree < ARCS["thin"]:
        return COARSE_SHARES[method]["thin"]
    return COARSE_SHARES[method][kind].at_degree(degree)


def expected_arcs(method: Method, clustering: float, skew: float, degree: float) -> float:
    """Return the share of the input's arcs that level 1 is expected to keep."""
    most, thin = ARCS["most"], ARCS["thin_share"] if degree < ARCS["thin"] else 1.0
    if method == "leiden":
        # Triangles at hubs hold no small communities together.
        exponent = 2 / (1 + max(skew - ARCS["skewed"], 0) / 4)
        return float(thin * most * (1 - clustering) ** exponent)
    open_ = max(0.0, 1 - clustering / ARCS["open"])
    return thin * min(most, 0.1 + most * open_ / (1 + max(skew - 1, 0) / 2))


def arcs_range(
    method: Method, clustering: float, skew: float, degree: float
) -> tuple[float, float, float]:
    """Return the same: low, expected, high. What a sample does not cover counts as much."""
    expected = expected_arcs(method, clustering, skew, degree)
    if method == "leiden":
        return 0.4 * expected, expected, min(1.0, 0.15 + 1.2 * expected)
    high = 0.3 if clustering > ARCS["open"] else 1.0
    return 0.05 * expected, expected, max(expected, high)


def shares_from_facts(
    method: Method, clustering: float, skew: float, degree: float
) -> CoarseShares:
    """Return what coarse levels are expected to keep, with something to spare."""
    expected = expected_arcs(method, clustering, skew, degree)
    arcs = min(1.0, 1.15 * expected + 0.03)
    vertices = min(0.65, 0.55 * expected + (0.15 if method == "leiden" else 0.12))
    again = method == "leiden" and expected > REAGGREGATED
    next_arcs = 0.45
    if method == "louvain" and degree >= ARCS["thin"]:
        # Where degrees are even and no triangle holds a community together, level 2 is as large.
        next_arcs = max(next_arcs, min(1.0, 1.15 * expected))
    return CoarseShares(
        arcs=arcs,
        vertices=vertices,
        next_arcs=0.8 if again else next_arcs,
        next_vertices=min(0.5, 0.6 * vertices),
        deep_levels=4,
        reaggregated_arcs=0.3 if again else 0.0,
    )


REAGGREGATED: Final = 0.75
"""Expected share of arcs from which level 2 is planned to replace level 1."""


@dataclass(frozen=True, slots=True)
class CoarseRegion:
    """Memory for the graph of every second level."""

    vertices: int
    arcs: int
    wide_weights: int


def coarse_regions(
    vertices: int, arcs: int, shares: CoarseShares, *, out_of_core: bool = False
) -> tuple[CoarseRegion, CoarseRegion]:
    """Return the two regions for coarse levels."""
    n, kept = max(1, int(shares.vertices * vertices)), int(shares.arcs * arcs)
    share = shares.reaggregated_arcs or shares.next_arcs
    if out_of_core:
        share = shares.next_arcs
    left, rest = max(1, int(shares.next_vertices * vertices)), int(share * kept)
    if max(vertices, arcs) <= LIMITS.small:
        whole = CoarseRegion(vertices, arcs, arcs)
        return whole, whole
    few, little = min(n, LIMITS.small), min(kept, LIMITS.small)
    second = CoarseRegion(max(left, few), max(rest, little), little)
    last = min(little, second.arcs)
    return CoarseRegion(max(n, few), max(kept, last), last), second
