"""What the sizes of a run's arrays follow from, known before there is a run."""

from __future__ import annotations

from dataclasses import dataclass

from louvain_um.gpu.aggregate.limits import LIMITS, Limits, low_scratch_limits
from louvain_um.gpu.memory.coarse_memory import Coarse, Home, coarse_of, homes
from louvain_um.gpu.memory.targets24 import MOST_VERTICES
from louvain_um.options import Method


def sums_of_ones(arcs: int) -> int:
    """Return the bytes of sums of weights where each arc weighs 1."""
    return 4 if arcs < 2**32 else 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the sizes of all arrays follow from.

    Parameters
    ----------
    vertices, arcs : int
    weight_bytes : {0, 4, 8}
        Bytes of an arc's weight; 0 where all are 1.
    sum_bytes : {4, 8}
        Bytes of a sum of weights.
    loops : bool
        Some vertex has a loop.
    widest : int, optional
        Most arcs of a vertex, if known.
    isolated : int
        Vertices without arcs, as far as known.
    wide : int, optional
        Arcs of vertices that have many (`spread.WIDE`), if known.
    method : {"louvain", "leiden"}
    kind : str
        Kind of graph: how much of it later levels are expected to keep.
    tight : bool
        Scratch as small as it works with, for runs that do not fit otherwise.
    packed : bool
        The input's targets take 24 bits (`packing.py`), for the same runs.
    """

    vertices: int
    arcs: int
    weight_bytes: int = 0
    sum_bytes: int = 4
    loops: bool = False
    widest: int | None = None
    isolated: int = 0
    wide: int | None = None
    method: Method = "louvain"
    kind: str = "unknown"
    tight: bool = False
    packed: bool = False

    @property
    def packs(self) -> bool:
        """Whether the input's targets can be packed."""
        plain = not self.weight_bytes and not self.loops and self.sum_bytes == 4
        return plain and 0 < self.vertices <= MOST_VERTICES

    @property
    def coarse(self) -> Coarse:
        """What later levels are expected to keep."""
        # Few arcs of weighted vertices count: measured, these keep twice as much.
        degree = self.arcs / max(self.vertices, 1) / (2 if self.weight_bytes else 1)
        return coarse_of(self.method, self.kind, degree)

    @property
    def homes(self) -> tuple[Home, Home]:
        """What later levels get, in turns."""
        return homes(self.vertices, self.arcs, self.coarse)

    @property
    def paged_homes(self) -> tuple[Home, Home]:
        """The same where level 0's arcs come and go."""
        return homes(self.vertices, self.arcs, self.coarse, paged=True)

    @property
    def again(self) -> bool:
        """Whether level 2 is expected to be made of level 0's arcs (`again.py`)."""
        large = max(self.coarse.vertices * self.vertices, self.coarse.kept * self.arcs)
        return self.coarse.third > 0 and large > LIMITS.small

    @property
    def communities(self) -> int:
        """Vertices that level 1 is expected to have at most."""
        return self.homes[0].vertices

    @property
    def filled(self) -> int:
        """Communities of level 1 that have arcs, at most: no row of it is wider."""
        joined = self.vertices - self.isolated
        return max(1, min(joined, max(self.communities - self.isolated, joined // 4)))

    @property
    def limits(self) -> Limits:
        """How levels are aggregated."""
        return low_scratch_limits(self.arcs) if self.tight else LIMITS

    @property
    def at_once(self) -> bool:
        """Whether level 0 is aggregated by one launch."""
        return max(self.vertices, self.arcs) <= LIMITS.small
