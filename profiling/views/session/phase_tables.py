"""Tables by phase and level, by group within them, and by iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.compiling import COMPILE
from louvain_um.profiling.session.events import MOST_LEVELS, Kind
from louvain_um.profiling.views.session import over_time
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence, is_available
from louvain_um.profiling.views.session.over_time import (
    TRAFFIC_COLUMNS,
    first_rows,
    memory_and_access_evidence,
    memory_evidence,
    traffic_by,
)
from louvain_um.profiling.views.session.pages import rebin
from louvain_um.profiling.views.table import Column, Table

CYCLES: Final = (
    "Each cycle starts again at level 0, the input graph, from the communities found so far."
)


def by_phase(analysis: SessionAnalysis) -> Table:
    """Return time, size and memory traffic of each phase of each level."""
    events = analysis.events
    spans: dict[tuple[str, int], dict[str, Any]] = {}
    for span in analysis.phases:
        row = spans.setdefault(
            (span.phase, span.level),
            {"phase": span.phase, "level": _level(span.level), "seconds": 0.0, "start": 0.0},
        )
        row["seconds"] += span.seconds
        for key, size in (("vertices", span.vertices), ("arcs", span.arcs)):
            row[key] = max(row.get(key) or 0, size) or None
    for span in analysis.iterations:
        row = spans.get((span.phase, span.level), {})
        row["iterations"] = row.get("iterations", 0) + 1
    if analysis.compile_seconds:
        spans[COMPILE, -1] = {"phase": COMPILE, "level": None, "seconds": analysis.compile_seconds}
    if len(events) and is_available(analysis.session, "memory"):
        where, which = _occurring(analysis)
        result = traffic_by(analysis, which, len(where))
        for row in spans.values():
            row.update(dict.fromkeys(result[0], 0))  # phases without events had no traffic
        for (name, level), row in zip(where, result, strict=True):
            if any(row.values()):
                new = {"phase": name, "level": _level(level)}
                spans.setdefault((name, level), new).update(row)
    return Table(
        name="by-phase",
        title="By phase and level",
        columns=(
            Column("phase", "phase", "text"),
            Column("level", "level"),
            Column("seconds", "seconds", "seconds"),
            Column("vertices", "vertices"),
            Column("arcs", "arcs"),
            Column("iterations", "iterations"),
            *TRAFFIC_COLUMNS,
        ),
        evidence=f"seconds {evidence(analysis.session, 'time')}; {memory_evidence(analysis)}",
        **first_rows(
            tuple(spans.values()),
            "Level 0 is the input graph; each further level is the previous one, aggregated."
            + _about_levels(analysis)
            + (" Compile time is not part of any other phase." if analysis.compile_seconds else ""),
        ),
    )


def _about_levels(analysis: SessionAnalysis) -> str:
    """Return what is special about the levels of a run."""
    moved: dict[int, int] = {}
    for span in analysis.iterations:
        moved[span.level] = moved.get(span.level, 0) + span.moved
    still = [level for level, count in moved.items() if not count and level > 0]
    about = ""
    if any(moved.values()) and still:
        about = (
            f" On level {max(still)} no vertex moved: it ended the run, and is not among the "
            "levels of the result."
        )
    if max(iteration_cycles(analysis), default=0):
        about += f" {CYCLES} Their times are added."
    return about


def by_phase_and_group(analysis: SessionAnalysis) -> Table:
    """Return accesses, faults, bytes moved and residency of each group in each phase."""
    places = list(dict.fromkeys((span.phase, span.level) for span in analysis.phases))
    places += [(COMPILE, -1)] if analysis.compile_seconds else []
    number = {place: at for at, place in enumerate(places)}
    size = (len(places) + 1) * len(analysis.group_names)
    key = _places(analysis, number) * len(analysis.group_names) + analysis.group_of
    rows = traffic_by(analysis, key, size)
    for at, counts in enumerate(_accesses(analysis, number, key, size)):
        rows[at]["accesses"] = counts
    resident = _resident_at_end(analysis)
    for (stage, name), nbytes in resident.items():
        rows[number[stage] * len(analysis.group_names) + analysis.group_names.index(name)][
            "resident"
        ] = nbytes
    result = []
    for at, row in enumerate(rows):
        if any(row.values()):
            place, group = divmod(at, len(analysis.group_names))
            phase, level = places[place] if place < len(places) else ("outside phases", -1)
            about = {"phase": phase, "level": _level(level), "group": analysis.group_names[group]}
            result.append({**about, **row})
    return Table(
        name="by-phase-and-group",
        title="By phase, level and group",
        columns=(
            Column("phase", "phase", "text"),
            Column("level", "level"),
            Column("group", "group", "text"),
            Column("accesses", "accesses"),
            *TRAFFIC_COLUMNS,
            Column("resident", "resident at the end", "bytes"),
        ),
        evidence=memory_and_access_evidence(analysis)
        + ("; residency modelled from migrations" if resident else ""),
        **first_rows(
            result,
            "Resident bytes are managed bytes migrated to the device less those that left; pages "
            "first touched on the device count in simulated runs alone."
            if resident
            else "",
        ),
    )


def _places(analysis: SessionAnalysis, number: dict[tuple[str, int], int]) -> NDArray[np.int64]:
    """Return the index of each event's phase and level, the last index for none."""
    where, which = _occurring(analysis)
    places = np.array([number.get(place, len(number)) for place in where], np.int64)
    result: NDArray[np.int64] = places[which]
    return result


def _occurring(analysis: SessionAnalysis) -> tuple[list[tuple[str, int]], NDArray[np.intp]]:
    """Return the phases and levels that events have, and which of them each event has."""
    phases, levels = (analysis.events[name].astype(np.int64) for name in ("phase", "level"))
    keys, which = np.unique(phases * (2 * MOST_LEVELS) + levels + 1, return_inverse=True)
    names = (*analysis.events.phases, "outside phases")  # -1, the last, is none
    pairs = (divmod(key, 2 * MOST_LEVELS) for key in keys.tolist())
    return [(names[phase], level - 1) for phase, level in pairs], which


def _accesses(
    analysis: SessionAnalysis, number: dict[tuple[str, int], int], key: NDArray[np.int64], size: int
) -> list[int]:
    """Return accesses by key; maps have no phases, so their bins are split by time."""
    if analysis.total(Kind.ACCESS, "count"):
        return analysis.sums(key, size, Kind.ACCESS, "count")
    maps = [page for page in analysis.maps if page.kind == "access"]
    if not maps:
        return []
    counts = np.zeros(size)
    groups = {array.name: analysis.group_names.index(array.group) for array in analysis.arrays}
    for page in maps:
        group = groups.get(page.array, len(analysis.group_names) - 1)
        bins = page.counts.sum(axis=0, dtype=np.float64)[:, None]
        edges = page.edges.astype(np.float64)
        left = float(bins.sum())
        for span in analysis.phases:
            inside = rebin(bins, edges, np.array([span.start_ns, span.end_ns], np.float64))
            counts[number[span.phase, span.level] * len(analysis.group_names) + group] += inside[
                0, 0
            ]
            left -= inside[0, 0]
        if left >= 0.5:
            counts[len(number) * len(analysis.group_names) + group] += left
    return [round(value) for value in counts]


def _resident_at_end(analysis: SessionAnalysis) -> dict[tuple[tuple[str, int], str], int]:
    """Return managed bytes on the device at the last end of each phase."""
    ends = {(span.phase, span.level): span.end_ns for span in analysis.phases}
    times = np.array(list(ends.values()), np.float64)
    curves = over_time.resident(analysis, times)
    if curves is None:
        return {}
    at = np.searchsorted(curves.times, times / 1e9)
    return {
        (place, group): round(float(values[where]))
        for group, values in curves.values.items()
        for place, where in zip(ends, at.tolist(), strict=True)
    }


def iterations(analysis: SessionAnalysis) -> Table:
    """Return the iterations of the move phase; with their cycle if there are several."""
    cycles = iteration_cycles(analysis)
    several = max(cycles, default=0) > 0
    known = any(span.moved for span in analysis.iterations)
    rows = [
        {
            "cycle": cycle,
            "phase": span.phase,
            "level": _level(span.level),
            "iteration": span.iteration,
            "seconds": span.seconds,
            "moved": span.moved if known else None,
        }
        for cycle, span in zip(cycles, analysis.iterations, strict=True)
    ]
    return Table(
        name="iterations",
        title="Iterations",
        columns=(
            *([Column("cycle", "cycle")] if several else []),
            Column("phase", "phase", "text"),
            Column("level", "level"),
            Column("iteration", "iteration"),
            Column("seconds", "seconds", "seconds"),
            Column("moved", "vertices moved"),
        ),
        evidence=f"seconds {evidence(analysis.session, 'time')}",
        **first_rows(rows, CYCLES if several else ""),
    )


def _level(level: int) -> int | None:
    return level if level >= 0 else None


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
