"""What happened when: by phase and level, by group within them, iteration by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.compile_time import COMPILE
from louvain_um.profiling.session.events import MOST_LEVELS, Kind
from louvain_um.profiling.views.session import residency
from louvain_um.profiling.views.session.evidence import evidence, there
from louvain_um.profiling.views.session.pages import rebin
from louvain_um.profiling.views.session.reading import NAMES, Reading
from louvain_um.profiling.views.session.traffic import MOVED, both_of, first, memory_of, moved
from louvain_um.profiling.views.table import Column, Table


def by_phase(reading: Reading) -> Table:
    """Return what happened in each phase of each level."""
    events = reading.events
    spans: dict[tuple[str, int], dict[str, Any]] = {}
    for span in reading.phases:
        row = spans.setdefault(
            (span.phase, span.level),
            {"phase": span.phase, "level": _level(span.level), "seconds": 0.0, "start": 0.0},
        )
        row["seconds"] += span.seconds
        for key, size in (("vertices", span.vertices), ("arcs", span.arcs)):
            row[key] = max(row.get(key) or 0, size) or None
    for span in reading.iterations:
        row = spans.get((span.phase, span.level), {})
        row["iterations"] = row.get("iterations", 0) + 1
    if reading.compiled:
        spans[COMPILE, -1] = {"phase": COMPILE, "level": None, "seconds": reading.compiled}
    if len(events) and there(reading.session, "memory"):
        where, which = _occurring(reading)
        found = moved(reading, which, len(where))
        for row in spans.values():
            row.update(dict.fromkeys(found[0], 0))  # unless something happened, nothing did
        for (name, level), row in zip(where, found, strict=True):
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
            *MOVED,
        ),
        evidence=f"seconds {evidence(reading.session, 'time')}; {memory_of(reading)}",
        **first(
            tuple(spans.values()),
            "Levels count from the input graph, 0; each is the one before, aggregated."
            + (" Compiling is no part of any other phase." if reading.compiled else ""),
        ),
    )


def by_phase_and_group(reading: Reading) -> Table:
    """Return accesses, faults, bytes moved and residency of each group in each phase."""
    places = list(dict.fromkeys((span.phase, span.level) for span in reading.phases))
    places += [(COMPILE, -1)] if reading.compiled else []
    number = {place: at for at, place in enumerate(places)}
    size = (len(places) + 1) * len(NAMES)
    key = _places(reading, number) * len(NAMES) + reading.group_of
    rows = moved(reading, key, size)
    for at, counts in enumerate(_accesses(reading, number, key, size)):
        rows[at]["accesses"] = counts
    for (stage, name), nbytes in _resident_at_end(reading).items():
        rows[number[stage] * len(NAMES) + NAMES.index(name)]["resident"] = nbytes
    found = []
    for at, row in enumerate(rows):
        if any(row.values()):
            place, group = divmod(at, len(NAMES))
            phase, level = places[place] if place < len(places) else ("outside phases", -1)
            about = {"phase": phase, "level": _level(level), "group": NAMES[group]}
            found.append({**about, **row})
    return Table(
        name="by-phase-and-group",
        title="By phase, level and group",
        columns=(
            Column("phase", "phase", "text"),
            Column("level", "level"),
            Column("group", "group", "text"),
            Column("accesses", "accesses"),
            *MOVED,
            Column("resident", "came and there at its end", "bytes"),
        ),
        evidence=f"{both_of(reading)}; residency modelled from migrations",
        **first(
            found,
            "What came and is there is what came less what left, of managed memory; pages first "
            "touched on the device are not seen.",
        ),
    )


def _places(reading: Reading, number: dict[tuple[str, int], int]) -> NDArray[np.int64]:
    """Return which place each event belongs to, the last for none."""
    where, which = _occurring(reading)
    places = np.array([number.get(place, len(number)) for place in where], np.int64)
    found: NDArray[np.int64] = places[which]
    return found


def _occurring(reading: Reading) -> tuple[list[tuple[str, int]], NDArray[np.intp]]:
    """Return the phases and levels that events have, and which of them each event has."""
    phases, levels = (reading.events[name].astype(np.int64) for name in ("phase", "level"))
    keys, which = np.unique(phases * (2 * MOST_LEVELS) + levels + 1, return_inverse=True)
    names = (*reading.events.phases, "outside phases")  # -1, the last, is none
    pairs = (divmod(key, 2 * MOST_LEVELS) for key in keys.tolist())
    return [(names[phase], level - 1) for phase, level in pairs], which


def _accesses(
    reading: Reading, number: dict[tuple[str, int], int], key: NDArray[np.int64], size: int
) -> list[int]:
    """Return accesses by key; maps have no phases, so their bins are shared out by time."""
    if reading.total(Kind.ACCESS, "count"):
        return reading.sums(key, size, Kind.ACCESS, "count")
    maps = [page for page in reading.maps if page.kind == "access"]
    if not maps:
        return []
    counts = np.zeros(size)
    groups = {array.name: NAMES.index(array.group) for array in reading.arrays}
    for page in maps:
        group = groups.get(page.array, len(NAMES) - 1)
        bins = page.counts.sum(axis=0, dtype=np.float64)[:, None]
        edges = page.edges.astype(np.float64)
        left = float(bins.sum())
        for span in reading.phases:
            mine = rebin(bins, edges, np.array([span.start_ns, span.end_ns], np.float64))
            counts[number[span.phase, span.level] * len(NAMES) + group] += mine[0, 0]
            left -= mine[0, 0]
        if left >= 0.5:
            counts[len(number) * len(NAMES) + group] += left
    return [round(value) for value in counts]


def _resident_at_end(reading: Reading) -> dict[tuple[tuple[str, int], str], int]:
    """Return managed bytes on the device when a phase last ended."""
    ends = {(span.phase, span.level): span.end_ns for span in reading.phases}
    times = np.array(list(ends.values()), np.float64)
    curves = residency.resident(reading, times)
    if curves is None:
        return {}
    at = np.searchsorted(curves.times, times / 1e9)
    return {
        (place, group): round(float(values[where]))
        for group, values in curves.values.items()
        for place, where in zip(ends, at.tolist(), strict=True)
    }


def iterations(reading: Reading) -> Table:
    """Return the sweeps of moving, one a row; the cycle is told where there are several."""
    cycles = _cycles(reading)
    several = max(cycles, default=1) > 1
    told = any(span.moved for span in reading.iterations)
    rows = [
        {
            "cycle": cycle,
            "phase": span.phase,
            "level": _level(span.level),
            "iteration": span.iteration,
            "seconds": span.seconds,
            "moved": span.moved if told else None,
        }
        for cycle, span in zip(cycles, reading.iterations, strict=True)
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
        evidence=f"seconds {evidence(reading.session, 'time')}",
        **first(rows, "Each cycle begins on the input graph, level 0, anew." if several else ""),
    )


def _cycles(reading: Reading) -> list[int]:
    """Return which cycle each iteration belongs to, from 1: one begins where moving goes back."""
    found: list[int] = []
    cycle, last = 1, (-1, -1)
    for span in reading.iterations:
        if span.phase == "move":
            place = (span.level, span.iteration)
            cycle += place <= last
            last = place
        found.append(cycle)
    return found


def _level(level: int) -> int | None:
    return level if level >= 0 else None
