"""What the sizes of a run's arrays follow from, known before there is a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from louvain_um.gpu.aggregate.limits import LIMITS, AggregationLimits, low_scratch_limits
from louvain_um.gpu.memory.coarse_memory import (
    WHOLE,
    CoarseRegion,
    CoarseShares,
    arcs_range,
    coarse_regions,
    coarse_shares,
    shares_from_facts,
)
from louvain_um.gpu.memory.packed import MOST_ARCS, MOST_LENGTH, most_bytes, sorts
from louvain_um.options import Method
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
        """Whether sizes of communities take a byte while level 0's vertices move.

        From given communities they do not: 256 vertices without arcs could share one, and a byte
        would not count them.
        """
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
