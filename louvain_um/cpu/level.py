"""One level in host memory: its graph, start communities and results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import rules

EMPTY_I64 = np.zeros(0, np.int64)
EMPTY_U32 = np.zeros(0, np.uint32)
EMPTY_U8 = np.zeros(0, np.uint8)
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


def max_degree(offsets: I64) -> int:
    """Return the largest number of arcs of a vertex."""
    return int(np.diff(offsets).max(initial=0))


@dataclass(slots=True)
class CpuLevel:
    """One level: its graph, start communities and results."""

    cycle: int
    number: int
    offsets: I64
    targets: U32
    weights: U32 | I64
    loops: I64
    degrees: I64
    max_degree: int
    arcs: int
    apart: tuple[I64, I64] | None = None
    start: U32 | None = None
    active: NDArray[np.bool_] | None = None
    sub_rounds: int = rules.SUB_ROUNDS
    labels: U32 = field(default_factory=lambda: EMPTY_U32)
    totals: I64 = field(default_factory=lambda: EMPTY_I64)
    second_totals: I64 = field(default_factory=lambda: EMPTY_I64)
    refined: U32 | None = None
    numbers: U32 = field(default_factory=lambda: EMPTY_U32)
    second: I64 = field(default_factory=lambda: EMPTY_I64)
    members: I64 = field(default_factory=lambda: EMPTY_I64)
    whole: bool = False
    fixed: U8 = field(default_factory=lambda: EMPTY_U8)
    extended: Any = None

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.loops)

    @property
    def own(self) -> tuple[int, int]:
        """First vertex whose row lies in this process, and the one behind the last."""
        return 0, self.vertices

    @property
    def rows(self) -> tuple[I64, I64]:
        """Begin and end of each row in `targets`."""
        return self.apart or (self.offsets[:-1], self.offsets[1:])

    @property
    def masses(self) -> dict[str, NDArray[Any]]:
        """Arrays that aggregation sums by community, those in use."""
        held = {name: getattr(self, name) for name in ("second", "members", "fixed")}
        return {"degrees": self.degrees} | {name: a for name, a in held.items() if len(a)}

    @property
    def observed(self) -> dict[str, Any]:
        """Arrays that every step shows to observers."""
        return {
            "cycle": self.cycle,
            "max_degree": self.max_degree,
            "start": self.start,
            "offsets": self.offsets,
            "targets": self.targets,
            "weighted": len(self.weights) > 0,
        }
