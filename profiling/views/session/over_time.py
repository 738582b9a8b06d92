"""Memory traffic: bytes summed by any key, and over time by group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.data import OTHER
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import (
    FIGURES,
    SessionAnalysis,
    evidence,
    is_available,
)
from louvain_um.profiling.views.session.pages import rebin
from louvain_um.profiling.views.table import Column, Table, format_value

MOST_ROWS = 400
"""Most rows of a table; the others are summed in one row or left out, with a note."""

TRAFFIC_COLUMNS = (
    Column("bytes_to_device", "to the device", "bytes"),
    Column("bytes_to_host", "to the host", "bytes"),
    Column("bytes_evicted", "evicted by the driver", "bytes"),
    Column("evictions", "evictions"),
    Column("gpu_fault_groups", "fault groups"),
    Column("gpu_faults", "GPU faults"),
    Column("cpu_faults", "CPU faults"),
    Column("remote_maps", "remote maps"),
    Column("bytes_remote", "read in place", "bytes"),
    Column("thrashing", "thrashing"),
)
"""Columns of memory traffic."""

LONG = 48
"""Longest kernel name shown in full."""


def first_rows(rows: Sequence[Mapping[str, Any]], about: str = "") -> dict[str, Any]:
    """Return `rows` and `about` of a table that ends after `MOST_ROWS` rows and says so."""
    cut = len(rows) - MOST_ROWS
    more = [f"The first {MOST_ROWS:,} rows of {len(rows):,}."] if cut > 0 else []
    return {"rows": tuple(rows[:MOST_ROWS]), "about": " ".join([*filter(None, [about]), *more])}


def traffic_by(analysis: SessionAnalysis, key: Any, size: int) -> list[dict[str, Any]]:
    """Return the values of `TRAFFIC_COLUMNS` summed by `key`, which has one entry per event."""
    if not is_available(analysis.session, "memory"):
        return [{} for _ in range(size)]
    sums = analysis.sums
    columns = {
        column.key: sums(key, size, *FIGURES[column.key])
        for column in TRAFFIC_COLUMNS
        if column.key in FIGURES
    }
    if Kind.EVICTION in analysis.rows_by_kind:
        columns["evictions"] = sums(key, size, Kind.EVICTION, "rows")
    if analysis.driver_totals is not None:
        for name in ("bytes_to_device", "bytes_to_host", "bytes_evicted"):
            del columns[name]  # known for the whole run only
    for name in analysis.not_recorded:
        if not any(columns.get(name, ())):
            columns.pop(name, None)
    if Kind.REMOTE_ACCESS in analysis.rows_by_kind:
        columns["bytes_remote"] = sums(key, size, Kind.REMOTE_ACCESS, "bytes")
    return [{name: values[at] for name, values in columns.items()} for at in range(size)]


def memory_evidence(analysis: SessionAnalysis) -> str:
    """Return the evidence for memory traffic."""
    return f"memory {evidence(analysis.session, 'memory')}"


def memory_and_access_evidence(analysis: SessionAnalysis) -> str:
    """Return the evidence for memory traffic and accesses."""
    return f"{memory_evidence(analysis)}; accesses {evidence(analysis.session, 'access')}"


def short_name(name: str) -> str:
    """Return a kernel's name without long template arguments."""
    if len(name) <= LONG:
        return name
    plain, before = name, ""
    while plain != before:
        before, plain = plain, re.sub(r"\([^()]*\)", "", re.sub(r"<[^<>]*>", "\0", plain))
    parts = plain.removeprefix("void ").split("::")
    label = parts[0] if len(parts) == 1 else f"{parts[0]}::{parts[-1]}"
    label = re.sub("\0+", "<…>", label).strip()
    return label if len(label) <= LONG else f"{label[: LONG - 1]}…"


def kernels(analysis: SessionAnalysis) -> Table:
    """Return launches and time of each kernel, the costliest first."""
    rows = analysis.rows_of(Kind.KERNEL)
    rows = rows[analysis.events["kernel"][rows] >= 0]
    which = analysis.events["kernel"][rows]
    size = len(analysis.events.kernels)
    launches = np.bincount(which, analysis.events["rows"][rows], size)
    spent = np.bincount(which, analysis.events["duration"][rows], size) / 1e9
    total = float(spent.sum())
    order = np.argsort(-spent, kind="stable")
    table_rows = [
        {
            "kernel": short_name(analysis.events.kernels[at]),
            "full_name": analysis.events.kernels[at],
            "launches": int(launches[at]),
            "seconds": float(spent[at]),
            "each": float(spent[at] / launches[at]),
            "share": float(spent[at] / total) if total else None,
        }
        for at in order.tolist()
        if launches[at]
    ]
    return Table(
        name="kernels",
        title="Kernels",
        columns=(
            Column("kernel", "kernel", "text"),
            Column("launches", "launches"),
            Column("seconds", "seconds", "seconds"),
            Column("each", "per launch", "seconds"),
            Column("share", "share of kernel time", "share"),
        ),
        evidence=evidence(analysis.session, "kernel"),
        **first_rows(table_rows, "Kernel time includes waiting for pages."),
    )


def copies(analysis: SessionAnalysis) -> Table:
    """Return bytes and time of the program's explicit copies."""
    rows = []
    for kind, way in ((Kind.COPY_TO_DEVICE, "to the device"), (Kind.COPY_TO_HOST, "to the host"),
                      (Kind.COPY, "on the device")):  # fmt: skip
        some = analysis.rows_of(kind)
        if len(some):
            rows.append(
                {
                    "way": way,
                    "bytes": int(analysis.events["bytes"][some].sum()),
                    "copies": int(analysis.events["rows"][some].sum()),
                    "seconds": int(analysis.events["duration"][some].sum()) / 1e9,
                }
            )
    return Table(
        name="copies",
        title="Explicit copies",
        columns=(
            Column("way", "direction", "text"),
            Column("bytes", "bytes", "bytes"),
            Column("copies", "copies"),
            Column("seconds", "seconds", "seconds"),
        ),
        rows=tuple(rows),
        evidence=evidence(analysis.session, "kernel"),
        about="Copies and fills issued by the program; they migrate no page.",
    )


POINTS = 400

BINS = 240

F64 = NDArray[np.float64]


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
    coming = [kind for kind in (Kind.HTOD, Kind.FIRST_TOUCH) if kind in analysis.rows_by_kind]
    if not is_available(analysis.session, "memory") or not coming:
        return None
    edges = _edges(analysis)
    if more is not None:
        edges = np.union1d(edges, more)
    # Eviction events, where recorded, cover all evicted bytes, copied back or dropped.
    leaving: list[tuple[Kind, Cause | None]] = [(Kind.DTOH, None)]
    if Kind.EVICTION in analysis.rows_by_kind:
        leaving = [(Kind.DTOH, cause) for cause in Cause if cause != Cause.EVICTION]
        leaving.append((Kind.EVICTION, None))
    # Of a run, pages stay for the next one; a simulated run frees them with their array.
    lives = analysis.session.lifetimes if _is_simulated(analysis) else ()
    names = analysis.group_names
    size = len(lives) + len(names)
    holder = analysis.group_of + np.int64(len(lives))
    if lives:
        holder = np.where(analysis.owners < 0, holder, analysis.owners)
    flow = np.zeros((size, len(edges) + 1))
    flows = [*((kind, None, 1) for kind in coming), *((k, cause, -1) for k, cause in leaving)]
    for kind, cause, sign in flows:
        rows = analysis.rows_of(kind, cause)
        key = holder[rows] * (len(edges) + 1)
        key += np.searchsorted(edges, analysis.events["time"][rows])
        flow += sign * np.bincount(key, analysis.events["bytes"][rows], flow.size).reshape(
            flow.shape
        )
    level = np.cumsum(flow[:, :-1], axis=1)
    # Bytes that left first were there before: no curve falls below zero.
    level -= np.minimum(np.minimum.accumulate(level, axis=1), 0)
    held = level[len(lives) :]
    last = max((life.end_ns for life in lives), default=0)
    for life, row in zip(lives, level, strict=False):  # the last ones live to the end
        there = (edges <= life.end_ns) | (life.end_ns == last)
        held[names.index(life.group)] += np.where(there, row, 0)
    values = {name: row for name, row in zip(names, held, strict=True) if row.any()}
    how = "modelled: bytes in, or first touched on the device, less bytes out"
    if not _is_simulated(analysis):
        how = (
            "modelled from migrations: bytes in less bytes out; "
            "pages first touched on the device are not counted"
        )
    return Curves(
        title="Managed memory resident on the device",
        evidence=how,
        times=edges / 1e9,
        values=values,
    )


def _is_simulated(analysis: SessionAnalysis) -> bool:
    """Return whether a model of the driver made the events, first touches among them."""
    return "simulator" in analysis.session.metadata.get("sources", {})


def _edges(analysis: SessionAnalysis) -> NDArray[np.float64]:
    first, end = analysis.window
    return np.linspace(first, end, POINTS)


def overview(analysis: SessionAnalysis) -> Curves | None:
    """Return bytes migrated to the device over time or, if none were, accesses."""
    first, end = analysis.window
    edges = np.linspace(first, end, BINS + 1)
    step = format_value((end - first) / BINS / 1e9, "seconds")
    by_group = _migrated(analysis, edges)
    if by_group:
        title, matter = f"Bytes migrated to the device, per {step}", "memory"
    else:
        by_group = _accessed(analysis, edges)
        title, matter = f"Accesses, per {step}", "access"
    if not by_group:
        return None
    return Curves(
        title=title,
        evidence=evidence(analysis.session, matter),  # type: ignore[arg-type]
        times=edges / 1e9,
        # A curve holds each value until the next time.
        values={name: np.append(values, values[-1]) for name, values in by_group.items()},
    )


def _migrated(analysis: SessionAnalysis, edges: F64) -> dict[str, F64]:
    rows = analysis.rows_of(Kind.HTOD)
    times = analysis.events["time"][rows]
    at = np.clip(np.searchsorted(edges, times, "right") - 1, 0, BINS - 1)
    key = analysis.group_of[rows].astype(np.int64) * BINS + at
    sums = np.bincount(key, analysis.events["bytes"][rows], len(analysis.group_names) * BINS)
    return _nonzero(
        dict(zip(analysis.group_names, sums.reshape(len(analysis.group_names), BINS), strict=True))
    )


def _accessed(analysis: SessionAnalysis, edges: F64) -> dict[str, F64]:
    groups = {array.name: array.group for array in analysis.arrays}
    counts = {name: np.zeros(BINS) for name in analysis.group_names}
    for page in analysis.maps:
        if page.kind == "access":
            bins = page.counts.sum(axis=0, dtype=np.float64)[:, None]
            part = rebin(bins, page.edges.astype(np.float64), edges)[:, 0]
            counts[groups.get(page.array, OTHER)] += part
    return _nonzero(counts)


def _nonzero(values: dict[str, F64]) -> dict[str, F64]:
    return {name: row for name, row in values.items() if row.any()}
