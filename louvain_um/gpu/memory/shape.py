"""What the sizes of a run's arrays follow from, known before there is a run.

Sizes of coarse levels are not known in advance. Memory is reserved for their graphs, from which
what aggregation and coarse levels take is estimated. A level's graph is made from the one before
it, and no other graph is needed then. So levels alternate between two regions: levels 1, 3, 5 … use
the first, levels 2, 4 … the second. Where level 1 keeps nearly all arcs, level 2 replaces it in the
first region (`louvain_um.gpu.aggregate.reaggregate`), so do later levels as long as they keep them,
and the next one is the first in the second. A level gives back what it does not need of its region;
one that needs more grows outside of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from louvain_um.gpu.aggregate.limits import (
    LIMITS,
    AggregationLimits,
    SumTables,
    chunk_for,
    low_scratch_limits,
    slots_of,
    tables,
)
from louvain_um.gpu.memory.packed import MOST_ARCS, MOST_LENGTH, most_bytes, sorts
from louvain_um.gpu.move.hub_tables import hub_bytes, hub_table_sizes
from louvain_um.options import Method
from louvain_um.placement.machine.profiles import FITTED, rates
from louvain_um.placement.model.workload import LocalStructure


def sums_of_ones(arcs: int) -> int:
    """Return the bytes of sums of weights where each arc weighs 1."""
    return 4 if arcs < 2**32 else 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the sizes of all arrays follow from."""

    vertices: int
    arcs: int
    weight_bytes: int = 0
    sum_bytes: int = 4
    total_weight: int | None = None
    loops: bool = False
    max_degree: int | None = None
    isolated: int = 0
    hub_arcs: int | None = None
    clustering: float | None = None
    structure: LocalStructure | None = None
    skew: float = 1.0
    method: Method = "louvain"
    kind: str = "unknown"
    low_scratch: bool = False
    weights16: bool = False
    sorted_rows: bool = False
    offsets32: bool = False
    target_bytes: float | None = None
    extended: bool = False
    second: bool = False
    members: bool = False
    fixed: bool = False
    keeps_all: bool = False
    starts_joined: bool = False

    @property
    def allows_compact(self) -> bool:
        """Whether the input can take fewer bytes."""
        if self.extended or self.loops or not self.vertices or self.arcs > MOST_ARCS:
            return False
        if self.weight_bytes:
            return self.weights16 and self.sorts
        return self.sum_bytes == 4

    @property
    def sorts(self) -> bool:
        """Whether rows of an input in fewer bytes are sorted by length."""
        pays = self.weight_bytes > 0 or sorts(self.vertices, self.arcs)
        return pays and (self.max_degree or 0) < MOST_LENGTH

    @property
    def packed_bytes(self) -> float:
        """Bytes of a packed target on average, as far as known."""
        most = most_bytes(self.vertices)
        return most if self.target_bytes is None else self.target_bytes

    @property
    def compact(self) -> bool:
        """Whether the input takes fewer bytes."""
        return self.sorted_rows or self.offsets32

    @property
    def byte_sizes(self) -> bool:
        """Whether sizes of communities take a byte while level 0's vertices move."""
        # From given communities they do not: 256 vertices without arcs could share one, and a byte
        # would not count them.
        return self.compact and not self.weight_bytes and not self.starts_joined

    def compacted(self) -> Shape:
        """Return the shape with the input in fewer bytes, if that is possible."""
        allowed, sorts = self.allows_compact, self.sorts
        return replace(self, sorted_rows=allowed and sorts, offsets32=allowed and not sorts)

    @property
    def coarse_shares(self) -> CoarseShares:
        """What coarse levels are expected to keep."""
        if self.keeps_all:
            return WHOLE
        if self.clustering is not None:
            degree = self.arcs / max(self.vertices, 1)
            return shares_from_facts(self.method, self.clustering, self.skew, degree)
        # Measured: weighted graphs keep twice as much, since few arcs of a vertex are heavy.
        degree = self.arcs / max(self.vertices, 1) / (2 if self.weight_bytes else 1)
        return coarse_shares(self.method, self.kind, degree)

    @property
    def kept(self) -> tuple[float, float, float] | None:
        """Share of the arcs that level 1 keeps: low, expected, high; None if nothing is known."""
        if self.clustering is None:
            return None
        degree = self.arcs / max(self.vertices, 1)
        return arcs_range(self.method, self.clustering, self.skew, degree)

    @property
    def coarse_regions(self) -> tuple[CoarseRegion, CoarseRegion]:
        """Memory for the graphs of coarse levels, which alternate between two regions."""
        return coarse_regions(self.vertices, self.arcs, self.coarse_shares)

    @property
    def out_of_core_regions(self) -> tuple[CoarseRegion, CoarseRegion]:
        """The same for an out-of-core run."""
        return coarse_regions(self.vertices, self.arcs, self.coarse_shares, out_of_core=True)

    @property
    def reaggregates(self) -> bool:
        """Whether level 2 is expected to be aggregated from level 0's arcs (`reaggregate.py`)."""
        shares = self.coarse_shares
        large = max(shares.vertices * self.vertices, shares.arcs * self.arcs)
        return not self.extended and shares.reaggregated_arcs > 0 and large > LIMITS.small

    @property
    def communities(self) -> int:
        """Vertices that level 1 is expected to have at most."""
        return self.coarse_regions[0].vertices

    @property
    def filled(self) -> int:
        """Communities of level 1 that have arcs, at most: no row of it is wider."""
        joined = self.vertices - self.isolated
        return max(1, min(joined, max(self.communities - self.isolated, joined // 4)))

    @property
    def limits(self) -> AggregationLimits:
        """How levels are aggregated."""
        return low_scratch_limits(self.arcs) if self.low_scratch else LIMITS

    @property
    def at_once(self) -> bool:
        """Whether level 0 is aggregated by one launch."""
        return max(self.vertices, self.arcs) <= LIMITS.small


SMALL = 1 << 18
"""Bytes of each group for what is small: tiny levels, partial sums, the rounding of addresses."""


def room_for(shape: Shape, arcs: int, communities: int) -> int:
    """Return the most arcs that a chunk of communities has room for."""
    leiden = shape.method == "leiden"
    chunk = chunk_for(arcs, shape.limits, width=shape.sum_bytes, leiden=leiden)
    # The last community of a chunk may have as many neighbours as there are others.
    return min(chunk + min(communities, shape.filled), arcs)


def at_once_bytes(vertices: int, arcs: int, sums: int) -> int:
    """Return the scratch of aggregating a level by one launch."""
    needed = tables(sums, vertices, vertices, arcs, arcs)
    listed = 16 * vertices + (vertices >> 7) + 4 * (needed.block_bin + needed.hub_bin)
    return listed + (4 + sums) * (arcs + needed.slots) + SMALL // 4


ROUNDING: Final = 1 << 14
"""Bytes of what the kernels of one level count in, and of rounding up each of its arrays."""


def begun_at_once_bytes(n: int, arcs: int, sums: int) -> int:
    """Return the bytes of all arrays of aggregating a level by one launch."""
    return at_once_bytes(n, arcs, sums) + (16 + 2 * sums) * n + (4 + sums) * arcs + ROUNDING


def summing(shape: Shape, communities: int, arcs: int) -> SumTables:
    """Return the bins and tables of aggregating a large level."""
    distinct = min(communities, shape.filled)
    found = tables(shape.sum_bytes, communities, distinct, arcs, arcs)
    if shape.method == "leiden" and shape.kind == "mesh":
        return found._replace(slots=0)  # parts of a mesh are small
    return found._replace(slots=slots_of(found.slots, arcs, shape.limits) if found.slots else 0)


def coarse_community_bytes(shape: Shape) -> tuple[int, int]:
    """Return the most bytes of vertices and communities: of level 1, and of all levels above 0."""
    region, after = shape.coarse_regions
    n, left, sums = region.vertices, min(after.vertices, region.vertices), shape.sum_bytes
    # A finished level keeps its map and, for Leiden, its start labels.
    done = 8 if shape.method == "leiden" else 4
    # The current level also has degrees and totals, sizes or labels; Leiden's sub-communities.
    work = 5 + 4 * sums if shape.method == "leiden" else 4 + 2 * sums
    return (done + work) * n, done * (n + shape.coarse_shares.deep_levels * left) + work * left


def coarse_scratch_bytes(shape: Shape, empty: int) -> int:
    """Return the most scratch of a level above 0, with tables as declared."""
    if shape.at_once:
        return 0
    sums = shape.sum_bytes
    region, after = shape.coarse_regions
    n, k, arcs = region.vertices, min(after.vertices, region.vertices), region.arcs
    moving, adding_tables = coarse_table_bytes(shape)
    moving += 8 * n + n // 4 + (sums * n if shape.method == "leiden" else 0)
    adding = at_once_bytes(min(n, LIMITS.small), min(arcs, LIMITS.small), sums)
    if max(n, arcs) > LIMITS.small:
        room = (4 + sums) * room_for(shape, arcs, k)
        adding = max(adding, 8 * (n + k) + (n >> 7) + room + 4 * (arcs // 300))
    if shape.reaggregates:
        # Level 2 has as many vertices as level 1 at most, and groups those of level 0.
        m, room = shape.vertices, (4 + sums) * room_for(shape, shape.arcs, n)
        adding = max(adding, 12 * m + 8 * n + (m >> 7) + room + 4 * (shape.arcs // 300))
    return max(adding, moving - adding_tables - empty)


def coarse_table_bytes(shape: Shape) -> tuple[int, int]:
    """Return the bytes of tables that moving and aggregation of a coarse level may take."""
    region, after = shape.coarse_regions
    n, arcs, sums = region.vertices, region.arcs, shape.sum_bytes
    if shape.kind == "mesh":
        return 0, 0  # its levels stay even
    hubs = hub_table_sizes(n, arcs, min(shape.filled, arcs), sums, low_scratch=shape.low_scratch)
    moving = hub_bytes(hubs, sums)
    k = min(after.vertices, n)
    large = max(n, arcs) > LIMITS.small
    return moving, (4 + sums) * summing(shape, k, arcs).slots if large else 0


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
