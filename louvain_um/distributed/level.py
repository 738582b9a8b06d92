"""One level of a rank: its own rows under the graph's numbers, all other rows empty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from louvain_um.cpu.level import I64, CpuLevel


@dataclass(slots=True)
class RankLevel(CpuLevel):
    """A level whose rows are dealt over ranks, or lie on every rank once it is small."""

    cuts: I64 | None = None
    rank: int = 0

    @property
    def own(self) -> tuple[int, int]:
        """First vertex whose row lies here, and the one behind the last."""
        if self.cuts is None:
            return 0, self.vertices
        return int(self.cuts[self.rank]), int(self.cuts[self.rank + 1])


def spread(vertices: int, first: int, values: I64) -> I64:
    """Return an array with one entry per vertex: values from `first` on, else 0."""
    array = np.zeros(vertices, np.int64)
    array[first : first + len(values)] = values
    return array
