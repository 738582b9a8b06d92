"""Vertex blocks: ranges of vertices whose arcs are on the device at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from louvain_um.gpu.out_of_core.page_toucher import PageToucher
from louvain_um.placement.lru.residency import Residency


@dataclass(slots=True)
class VertexBlocks:
    """The vertex blocks of a level."""

    residency: Residency
    touch: PageToucher
    begins: Any
    bounds: list[int]
    forward: bool = True

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.bounds) - 1

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """First vertex of each block, and the first behind it."""
        return list(pairwise(self.bounds))

    def need_range(self, first: int, last: int) -> None:
        """Bring the arcs of a block, given by its vertices."""
        self.residency.need(self.bounds.index(first))

    def order(self, wanted: list[int]) -> Iterator[tuple[int, int | None]]:
        """Yield blocks, each with the one after it; every second time backwards."""
        path = wanted if self.forward else wanted[::-1]
        self.forward = not self.forward
        # `wanted` is empty where no vertex is active.
        yield from zip(path, [*path[1:], None][: len(path)], strict=True)
