"""A session in a few figures, with the time of compilation taken out.

A first run on a machine compiles for seconds or minutes, inside the phase that needs the code.
The run's seconds exclude that, so every time compared with them must, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.data import OTHER, SessionData
from louvain_um.profiling.session.events import Cause, EventTable, Kind

COMPILE = "compile"

I64 = NDArray[np.int64]
S = TypeVar("S", bound=SessionData)


def compile_spans(session: SessionData) -> I64:
    """Return begin and end of each compilation, int64[n, 2] in nanoseconds, in order."""
    found: list[list[int]] = []
    spans = [span for span in session.phases if span.phase == COMPILE]
    for span in sorted(spans, key=lambda span: span.start_ns):
        if found and span.start_ns <= found[-1][1]:
            found[-1][1] = max(found[-1][1], span.end_ns)
        else:
            found.append([span.start_ns, span.end_ns])
    return np.array(found, np.int64).reshape(-1, 2)


def without_compiling(session: S) -> S:
    """Return the session without compile time; itself if nothing was compiled."""
    stops = compile_spans(session)
    if not len(stops):
        return session

    def at(times: I64) -> I64:
        return times - _stood(stops, times)

    def one(time: int) -> int:
        return int(at(np.array([time], np.int64))[0])

    events = session.events
    columns = {**events.columns, "time": at(events["time"])}
    return replace(
        session,
        lifetimes=tuple(
            replace(life, start_ns=one(life.start_ns), end_ns=one(life.end_ns))
            for life in session.lifetimes
        ),
        phases=tuple(
            replace(span, start_ns=one(span.start_ns), end_ns=one(span.end_ns))
            for span in session.phases
            if span.phase != COMPILE
        ),
        events=EventTable(columns, events.kernels, events.phases),
        maps=tuple(replace(page, edges=at(page.edges)) for page in session.maps),
        energy=_energy(session, stops),
    )


def run_joules(session: SessionData) -> float | None:
    """Return the energy of the run without compiling; None if unknown."""
    energy = session.energy or {}
    whole = energy.get("joules") or None  # a counter that did not move
    stops = compile_spans(session)
    if whole is None or not len(stops):
        return whole
    times = np.array(energy.get("times_ns") or [], np.float64)
    watts = np.array(energy.get("watts") or [], np.float64)
    if not len(times):
        return None
    edges = np.union1d(times, stops.ravel())
    power = np.interp(edges, times, watts)
    spent = np.concatenate([[0.0], np.cumsum(np.diff(edges) * (power[1:] + power[:-1]) / 2e9)])
    begin, end = np.searchsorted(edges, stops).T
    left = float(whole - (spent[end] - spent[begin]).sum())
    return left if left > 0 else None


def _energy(session: SessionData, stops: I64) -> dict[str, object] | None:
    if session.energy is None:
        return None
    times = np.array(session.energy.get("times_ns") or [], np.int64)
    watts = np.array(session.energy.get("watts") or [], np.float64)
    # Samples taken while the clock stops are dropped.
    at = np.searchsorted(stops[:, 0], times, "right") - 1
    kept = (at < 0) | (times >= stops[at, 1])
    return {
        **session.energy,
        "joules": run_joules(session),
        "times_ns": (times - _stood(stops, times))[kept].tolist(),
        "watts": watts[kept].tolist(),
    }


def _stood(stops: I64, times: I64) -> I64:
    """Return for how long the clock had stopped before each time."""
    before = np.concatenate([[0], np.cumsum(stops[:, 1] - stops[:, 0])])
    at = np.searchsorted(stops[:, 0], times, "right")
    last = np.maximum(at - 1, 0)
    # Inside a stop, only its part so far counts.
    inside = np.where(at > 0, np.maximum(stops[last, 1] - times, 0), 0)
    found: I64 = before[at] - inside
    return found


FIGURES = (
    "bytes_to_device", "bytes_to_host", "bytes_evicted", "gpu_fault_groups", "gpu_faults",
    "cpu_faults", "thrashing", "throttling", "remote_maps", "accesses",
)  # fmt: skip
"""What `by_group` holds of each group."""

KNOWN = ("measured", "modelled")

MEMORY = ("uvm", "cupti", "nsys", "simulator")
"""Sources that record managed memory."""


def summary(session: SessionData) -> dict[str, Any]:
    """Return the figures of a session; those that no source recorded are None."""
    groups = by_group(session)
    whole: dict[str, int | None] = {
        name: sum(group[name] for group in groups.values()) for name in FIGURES
    }
    sources = session.metadata.get("sources", {})
    if not any(sources.get(name, "") in KNOWN for name in MEMORY):
        whole |= {name: whole[name] or None for name in FIGURES if name != "accesses"}
    whole |= {name: whole[name] or None for name in session.metadata.get("not_recorded", ())}
    if not session.maps:
        whole["accesses"] = whole["accesses"] or None
    by_groups: dict[str, dict[str, int | None]] = {
        name: {key: None if whole[key] is None else value for key, value in group.items()}
        for name, group in groups.items()
    }
    totals = _totals_alone(session)
    for name, value in totals.items():
        whole[name] = value
        for group in by_groups.values():
            group[name] = None
    complete = session.metadata.get("complete", True)
    # The rate is known only of a complete run.
    arcs = (session.metadata.get("graph") or {}).get("arcs") if complete else None
    spent = run_joules(session)
    memory = session.events["kind"] <= Kind.DTOD
    return {
        "seconds": session.seconds,
        "arcs_per_second": arcs / session.seconds if arcs and session.seconds else None,
        "joules": spent,
        "arcs_per_joule": arcs / spent if arcs and spent else None,
        **whole,
        "by_group": by_groups,
        "events": len(session.events),
        "memory_events": int(np.count_nonzero(memory)),
        "unattributed": session.unattributed,
        "dropped": _dropped(session),
        "sources": dict(sources),
        "notes": list(session.notes),
        "complete": complete,
    }


def _totals_alone(session: SessionData) -> dict[str, int]:
    """Return bytes that the driver counted where migrations were not recorded one by one."""
    about = session.metadata.get("about_sources", {}).get("uvm", {})
    if about.get("migrations", True):
        return {}
    counted = about.get("driver_totals") or {}
    return {name: counted[name] for name in ("bytes_to_device", "bytes_to_host") if name in counted}


def _dropped(session: SessionData) -> int | None:
    """Return records that sources lost, as far as they know."""
    about = session.metadata.get("about_sources", {}).values()
    known = [source.get("dropped") for source in about]
    lost = [count for count in known if count is not None]
    return sum(lost) if lost else None


def by_group(session: SessionData) -> dict[str, dict[str, int]]:
    """Return `FIGURES` of each group that has arrays, and of `other` if there is any."""
    names = [*session.groups, OTHER]
    number = np.array([*(names.index(array.group) for array in session.lifetimes), len(names) - 1])
    group = number[session.event_arrays()]  # −1, the last, is other
    events = session.events

    def total(column: str, kind: Kind, cause: Cause | None = None) -> list[int]:
        rows = events.where(kind, cause)
        # Sums stay exact below 2⁵³.
        sums = np.bincount(group[rows], events[column][rows], len(names))
        return [int(value) for value in sums]

    accesses = total("count", Kind.ACCESS)
    maps = [page for page in session.maps if page.kind == "access"]
    if maps and not any(accesses):
        groups = {array.name: array.group for array in session.lifetimes}
        accesses = [0] * len(names)
        for page in maps:
            accesses[names.index(groups.get(page.array, OTHER))] += page.total
    columns = (
        total("bytes", Kind.HTOD),
        total("bytes", Kind.DTOH),
        total("bytes", Kind.DTOH, Cause.EVICTION),
        total("rows", Kind.GPU_FAULT_GROUP),
        total("count", Kind.GPU_FAULT_GROUP),
        total("count", Kind.CPU_FAULT),
        total("count", Kind.THRASHING),
        total("count", Kind.THROTTLING),
        total("count", Kind.REMOTE_MAP),
        accesses,
    )
    there = {array.group for array in session.lifetimes}
    return {
        name: dict(zip(FIGURES, row, strict=True))
        for name, row in zip(names, zip(*columns, strict=True), strict=True)
        if name in there or any(row)
    }
