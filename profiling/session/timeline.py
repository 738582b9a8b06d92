"""What a session lists beside its events: arrays, phases, and maps of pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """One array, from its allocation to its end, in nanoseconds since the session began.

    `level` is the level whose array it is, −1 for those of no level.
    """

    name: str
    group: str
    address: int
    nbytes: int
    start_ns: int
    end_ns: int
    level: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """A phase (`iteration` −1) or one iteration of it; iterations lie inside their phase.

    `phase` is one of the engines' (`louvain_um.events.Phase`), or a name that a user's code gave.
    """

    phase: str
    level: int
    iteration: int
    start_ns: int
    end_ns: int
    vertices: int = 0
    arcs: int = 0
    moved: int = 0
    modularity: float = float("nan")

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageMap:
    """How often each stretch of an array was touched in each stretch of time.

    Parameters
    ----------
    array : str
        Name of the array, as in the lifetimes.
    page_bytes : int
        Bytes of the array that one row stands for; the last row may stand for fewer.
    edges : int64[bins + 1]
        Where bins of time begin and end, in nanoseconds since the session began.
    counts : uint32[rows, bins]
        Accesses, or faults, of a row in a bin.
    kind : {"access", "fault"}
    """

    array: str
    page_bytes: int
    edges: NDArray[np.int64]
    counts: NDArray[np.uint32]
    kind: Literal["access", "fault"] = "access"

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or self.counts.shape[1] + 1 != len(self.edges):
            raise ValueError(
                f"map of {self.array!r}: {len(self.edges)} edges bound {len(self.edges) - 1} "
                f"bins, the counts have shape {self.counts.shape}"
            )

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum(dtype=np.int64))
