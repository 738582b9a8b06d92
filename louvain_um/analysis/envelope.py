"""Which of many partitions is best at each resolution: the upper envelope of straight lines.

The value of a partition falls linearly with the resolution γ: ``inside − γ · expected``. Of a set
of partitions only those on the upper envelope are ever best, each in one range of γ.

References
----------
Eisner, Severance: Mathematical techniques for efficient record segmentation in large shared
databases, 1976. Weir, Emmons, Gibson, Taylor, Mucha: Post-processing partitions to identify domains
of modularity optimization, 2017.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A partition as a function of γ, and the run that found it."""

    inside: float
    expected: float
    communities: int
    resolution: float
    seed: int
    start: tuple[float, int] | None = None

    def value(self, resolution: float) -> float:
        """Return the value at a resolution."""
        return self.inside - resolution * self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A range of γ in which one partition is the best known."""

    low: float
    high: float
    line: Line


def envelope(lines: Iterable[Line], low: float, high: float) -> list[Piece]:
    """Return the pieces of the upper envelope from `low` to `high`, in order."""
    known = list(lines)
    if not known:
        return []
    # Of equal values, the one that falls least will be above.
    best = max(known, key=lambda line: (line.value(low), -line.expected))
    pieces, at = list[Piece](), low
    while True:
        flatter = [line for line in known if line.expected < best.expected]
        crossings = [((best.inside - line.inside) / (best.expected - line.expected), line)
                     for line in flatter]  # fmt: skip
        end, after = min(
            crossings,
            key=lambda crossing: (crossing[0], crossing[1].expected),
            default=(high, None),
        )
        if after is None or end >= high:
            return [*pieces, Piece(low=at, high=high, line=best)]
        if end > at:
            pieces.append(Piece(low=at, high=end, line=best))
            at = end
        best = after
