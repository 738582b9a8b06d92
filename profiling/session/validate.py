"""Check that a file held a valid session; views rely on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

import numpy as np

from louvain_um.profiling.session.data import SessionData
from louvain_um.profiling.session.events import MOST_LEVELS

MOST = 1 << 63
"""Upper bound of whole numbers in a session: nanoseconds, bytes and addresses are int64."""

MOST_TOTAL = 1 << 62
"""Upper bound of times, and of the sum of a column: an event's time and duration are added."""

MOST_REAL = 1e300
"""Largest number that is calculated with."""

MOST_WORD = 200
"""Characters of a group's name."""

SUMMED = ("bytes", "count", "rows", "duration")
"""Columns of events that views add up."""

MAPPINGS = ("sources", "about_sources", "graph", "timings", "peak_bytes", "terms")

TEXT = (str, NoneType)
COUNT = (int, NoneType)
NUMBER = (int, float, NoneType)
KINDS: dict[str, tuple[type, ...]] = {
    "device": TEXT, "policy": TEXT, "method": TEXT, "communities": COUNT, "budget_bytes": COUNT,
    "modularity": NUMBER,
}  # fmt: skip
"""What the metadata that views calculate with, or cut up, may be."""

SOURCE = (
    "events", "samples", "launches", "instrumented_places", "dropped", "period_seconds",
    "overhead_seconds",
)  # fmt: skip
"""Numbers that a source may report of itself."""


def check(session: SessionData) -> None:
    """Raise ValueError where a part of a session is of another kind than documented."""
    _check_metadata(session.metadata)
    _need(_each(session.notes, str), "notes")
    _need(session.plan is None or isinstance(session.plan, Mapping), "plan")
    _check_energy(session.energy)
    for life in session.lifetimes:
        stretch = (life.address, life.nbytes, life.start_ns, life.end_ns)
        _need(isinstance(life.name, str) and _is_word(life.group), "lifetimes")
        _need(_whole(*stretch, life.level) and min(stretch) >= 0, "lifetimes")
        _need(life.address + life.nbytes < MOST, "lifetimes")
    for span in session.phases:
        whole = (span.start_ns, span.end_ns, span.vertices, span.arcs, span.moved)
        _need(isinstance(span.phase, str) and isinstance(span.modularity, int | float), "phases")
        _need(
            _whole(*whole, span.iteration, span.level) and -1 <= span.level < MOST_LEVELS, "phases"
        )
    _check_events(session)
    for page in session.maps:
        _need(isinstance(page.array, str) and page.kind in ("access", "fault"), "maps")
        _need(_whole(page.page_bytes) and page.page_bytes > 0, "maps")
        _need(page.counts.dtype.kind in "iu" and page.edges.dtype.kind in "iu", "maps")
        _need(page.edges.ndim == 1 and bool(np.all(np.diff(page.edges) >= 0)), "maps")
        _need(not page.counts.size or int(page.counts.min()) >= 0, "maps")


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MOST_WORD and value.isprintable()


def _check_metadata(about: Mapping[str, Any]) -> None:
    _need(isinstance(about, Mapping), "metadata")
    for name in MAPPINGS:
        _need(isinstance(about.get(name, {}), Mapping) or (name == "graph" and not about[name]),
              name)  # fmt: skip
    for name, kinds in KINDS.items():
        _need(isinstance(about.get(name), kinds), name)
    inputs = about.get("inputs") or []
    _need(isinstance(inputs, list) and _each(inputs, str), "inputs")
    graph = about.get("graph") or {}
    counts = (graph.get(name) for name in ("vertices", "edges", "arcs"))
    _need(isinstance(graph.get("name"), TEXT) and _each(counts, COUNT), "graph")
    _need(_each(about.get("sources", {}).values(), str), "sources")
    for source in about.get("about_sources", {}).values():
        _check_source(source)
    for name in ("peak_bytes", "terms", "timings"):
        _need(all(map(_real, about.get(name, {}).values())), name)
    seconds = about.get("seconds", 0.0)
    _need(_real(seconds) and seconds >= 0, "seconds")


def _check_source(about: object) -> None:
    """Check what a source reports of itself."""
    if not isinstance(about, Mapping):
        raise ValueError("about_sources")
    _need(_each((about.get(name) for name in SOURCE), NUMBER), "about_sources")
    for name in ("recorded", "driver_totals"):
        counts = about.get(name) or {}
        _need(isinstance(counts, Mapping) and _each(counts.values(), int), "about_sources")


def _check_energy(energy: Mapping[str, Any] | None) -> None:
    if energy is None:
        return
    _need(isinstance(energy, Mapping) and isinstance(energy.get("joules"), NUMBER), "energy")
    samples = [energy.get(name) or [] for name in ("times_ns", "watts")]
    _need(all(isinstance(each, list) and all(map(_real, each)) for each in samples), "energy")
    _need(len(samples[0]) == len(samples[1]), "energy")


def _check_events(session: SessionData) -> None:
    events = session.events
    names = {"kernel": len(events.kernels), "phase": len(events.phases)}
    for name, values in events.columns.items():
        _need(values.ndim == 1, name)
        if name in names and len(values):
            _need(int(values.min()) >= -1 and int(values.max()) < names[name], name)
        if name in SUMMED:
            _need(not len(values) or int(values.min()) >= 0, name)
            _need(float(values.sum(dtype=np.float64)) < MOST_TOTAL, name)
    time = events.columns["time"]
    _need(not len(time) or -MOST_TOTAL < int(time.min()) <= int(time.max()) < MOST_TOTAL, "time")
    _need(all(isinstance(name, str) for name in (*events.kernels, *events.phases)), "names")


def _whole(*values: object) -> bool:
    """Return whether all are whole numbers within int64."""
    return all(isinstance(v, int) and -MOST <= v < MOST for v in values)


def _each(values: Iterable[object], kinds: type | tuple[type, ...]) -> bool:
    return all(isinstance(value, kinds) for value in values)


def _real(value: object) -> bool:
    """Return whether a value is a finite number that a double holds."""
    return isinstance(value, int | float) and abs(value) <= MOST_REAL


def _need(true: bool, what: str) -> None:
    if not true:
        raise ValueError(f"{what}: not as in a session")
