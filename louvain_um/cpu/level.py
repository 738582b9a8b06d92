"""One level in host memory: its graph, where its vertices start, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

NONE = np.zeros(0, np.int64)
NOBODY = np.zeros(0, np.uint32)
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


def widest(offsets: I64) -> int:
    """Return the arcs of the vertex that has most."""
    return int(np.diff(offsets).max(initial=0))


@dataclass(slots=True)
class CpuLevel:
    """One level: its graph, where its vertices start, and what became of them.

    Parameters
    ----------
    cycle, number : int
    offsets, targets, weights, loops, degrees
        As in `Graph`; no weights is an empty array.
    widest : int
        Arcs of the vertex that has most.
    start : uint32[n] or None
        Community each vertex starts in; None when every one is alone.
    labels : uint32[n]
        Communities after moving.
    numbers : uint32[n]
        Vertex of the next level for each vertex.
    """

    cycle: int
    number: int
    offsets: I64
    targets: U32
    weights: U32 | I64
    loops: I64
    degrees: I64
    widest: int
    start: U32 | None = None
    labels: U32 = field(default_factory=lambda: NOBODY)
    totals: I64 = field(default_factory=lambda: NONE)
    parts: U32 | None = None
    numbers: U32 = field(default_factory=lambda: NOBODY)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.loops)

    @property
    def work(self) -> dict[str, Any]:
        """What an observer of any step may look at."""
        return {
            "cycle": self.cycle,
            "widest": self.widest,
            "start": self.start,
            "offsets": self.offsets,
            "targets": self.targets,
            "weighted": len(self.weights) > 0,
        }
