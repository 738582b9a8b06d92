"""The first chart of a report: traffic to the device over time, by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session.data import OTHER
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.evidence import evidence
from louvain_um.profiling.views.session.pages import rebin
from louvain_um.profiling.views.session.residency import Curves
from louvain_um.profiling.views.table import format_value

BINS = 240

F64 = NDArray[np.float64]


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
