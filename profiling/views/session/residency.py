"""Bytes over time: allocated, and resident on the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.evidence import evidence, is_available

POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """One line per group over common times."""

    title: str
    evidence: str
    times: NDArray[np.float64]
    values: dict[str, NDArray[np.float64]]


def allocated(analysis: SessionAnalysis) -> Curves | None:
    """Return allocated bytes by group: for each step those at its highest total."""
    lives = [life for life in analysis.session.lifetimes if life.nbytes]
    if not analysis.session.lifetimes:
        return None
    edges = _edges(analysis)
    times = np.array([life.start_ns for life in lives] + [life.end_ns for life in lives], np.int64)
    group = np.array([analysis.group_names.index(life.group) for life in lives] * 2, np.intp)
    size = np.array([life.nbytes for life in lives], np.float64)
    starts = np.arange(len(times)) < len(lives)
    # Of changes at the same time, frees come first.
    order = np.lexsort((starts, times))
    levels = np.zeros((len(analysis.group_names), len(times) + 1))
    levels[group[order], np.arange(len(times)) + 1] = np.concatenate([size, -size])[order]
    levels = np.cumsum(levels, axis=1)
    total = levels.sum(axis=0)
    # Level `n` is the state after `n` changes; a step covers its first state and all changes.
    first = np.searchsorted(times[order], edges)
    last = np.append(first[1:], first[-1])
    fullest = [
        low + int(np.argmax(total[low : high + 1]))
        for low, high in zip(first.tolist(), last.tolist(), strict=True)
    ]
    values = {
        name: levels[at, fullest]
        for at, name in enumerate(analysis.group_names)
        if np.any(group == at)
    }
    return Curves(
        title="Allocated arrays",
        evidence=evidence(analysis.session, "time"),
        times=edges / 1e9,
        values=values,
    )


def resident(analysis: SessionAnalysis, more: NDArray[np.float64] | None = None) -> Curves | None:
    """Return the managed bytes on the device by group, derived from migrations."""
    if not is_available(analysis.session, "memory") or Kind.HTOD not in analysis.rows_by_kind:
        return None
    edges = _edges(analysis)
    if more is not None:
        edges = np.union1d(edges, more)
    # Eviction events, where recorded, cover all evicted bytes, copied back or dropped.
    leaving: list[tuple[Kind, Cause | None]] = [(Kind.DTOH, None)]
    if Kind.EVICTION in analysis.rows_by_kind:
        leaving = [(Kind.DTOH, cause) for cause in Cause if cause != Cause.EVICTION]
        leaving.append((Kind.EVICTION, None))
    lives = analysis.session.lifetimes if _are_freed(analysis) else ()
    names = analysis.group_names
    size = len(lives) + len(names)
    holder = analysis.group_of + np.int64(len(lives))
    if lives:
        holder = np.where(analysis.owners < 0, holder, analysis.owners)
    flow = np.zeros((size, len(edges) + 1))
    for kind, cause, sign in ((Kind.HTOD, None, 1), *((k, c, -1) for k, c in leaving)):
        rows = analysis.rows_of(kind, cause)
        key = holder[rows] * (len(edges) + 1)
        key += np.searchsorted(edges, analysis.events["time"][rows])
        flow += sign * np.bincount(key, analysis.events["bytes"][rows], flow.size).reshape(
            flow.shape
        )
    level = _never_negative(np.cumsum(flow[:, :-1], axis=1))
    held = level[len(lives) :]
    last = max((life.end_ns for life in lives), default=0)
    for life, row in zip(lives, level, strict=False):  # the last ones live to the end
        there = (edges <= life.end_ns) | (life.end_ns == last)
        held[names.index(life.group)] += np.where(there, row, 0)
    values = {name: row for name, row in zip(names, held, strict=True) if row.any()}
    return Curves(
        title="Managed memory resident on the device",
        evidence="modelled from migrations: bytes in less bytes out; "
        "pages first touched on the device are not counted",
        times=edges / 1e9,
        values=values,
    )


def _are_freed(analysis: SessionAnalysis) -> bool:
    """Return whether pages are freed with their array: those of a run stay for the next one."""
    return "simulator" in analysis.session.metadata.get("sources", {})


def _never_negative(level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raise curves by their lowest value below zero: bytes that left first were there before."""
    lifted: NDArray[np.float64] = level - np.minimum(np.minimum.accumulate(level, axis=1), 0)
    return lifted


def _edges(analysis: SessionAnalysis) -> NDArray[np.float64]:
    first, end = analysis.window
    return np.linspace(first, end, POINTS)
