"""Seconds per level and phase; the thesis calls a level an iteration."""

from __future__ import annotations

from dataclasses import dataclass, field

from louvain_um.profiling.views.session.analysis import SessionAnalysis


@dataclass(slots=True)
class LevelTime:
    """Seconds of one level in one cycle, by phase."""

    cycle: int
    level: int
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Level, and cycle unless it is 0, the first."""
        cycle = f"cycle {self.cycle}, " if self.cycle else ""
        return f"{cycle}level {self.level}"

    @property
    def total(self) -> float:
        """Seconds of all its phases."""
        return sum(self.seconds.values())


def times_by_level(analysis: SessionAnalysis) -> list[LevelTime]:
    """Return the levels of a session in order; a cycle begins where levels restart."""
    result: list[LevelTime] = []
    for span in sorted(analysis.phases, key=lambda span: span.start_ns):
        if span.level < 0:
            continue
        last = result[-1] if result else None
        if last is None or span.level > last.level:
            result.append(LevelTime(last.cycle if last else 0, span.level))
        elif span.level < last.level or (span.phase == "move" and last.seconds.keys() - {"move"}):
            result.append(LevelTime(last.cycle + 1, span.level))
        seconds = result[-1].seconds
        seconds[span.phase] = seconds.get(span.phase, 0.0) + span.seconds
    return result


def times_outside_levels(analysis: SessionAnalysis) -> dict[str, float]:
    """Return the seconds of phases that belong to no level."""
    seconds: dict[str, float] = {}
    for span in analysis.phases:
        if span.level < 0:
            seconds[span.phase] = seconds.get(span.phase, 0.0) + span.seconds
    return seconds


def iteration_cycles(analysis: SessionAnalysis) -> list[int]:
    """Return the cycle of each iteration, from 0; a cycle begins where the move phase restarts."""
    result: list[int] = []
    cycle, last = 0, (-1, -1)
    for span in analysis.iterations:
        if span.phase == "move":
            place = (span.level, span.iteration)
            cycle += place <= last
            last = place
        result.append(cycle)
    return result
