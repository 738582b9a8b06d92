"""A session with the time of compilation taken out.

A first run on a machine compiles for seconds or minutes, inside the phase that needs the code.
The run's seconds exclude that, so every time compared with them must, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.data import SessionData
from louvain_um.profiling.session.events import EventTable

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
