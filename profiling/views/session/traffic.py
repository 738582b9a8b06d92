"""Memory traffic summed by any key: the columns that many tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.evidence import evidence, is_available
from louvain_um.profiling.views.table import Column

MOST_ROWS = 400
"""Most rows of a table; the others are summed in one row or left out, with a note."""

TRAFFIC_COLUMNS = (
    Column("bytes_to_device", "to the device", "bytes"),
    Column("bytes_to_host", "to the host", "bytes"),
    Column("bytes_evicted", "evicted by the driver", "bytes"),
    Column("evictions", "evictions"),
    Column("fault_groups", "fault groups"),
    Column("gpu_faults", "GPU faults"),
    Column("cpu_faults", "CPU faults"),
    Column("remote_maps", "remote maps"),
    Column("bytes_remote", "read in place", "bytes"),
    Column("thrashing", "thrashing"),
)
"""Columns of memory traffic."""


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
        "bytes_to_device": sums(key, size, Kind.HTOD, "bytes"),
        "bytes_to_host": sums(key, size, Kind.DTOH, "bytes"),
        "bytes_evicted": sums(key, size, Kind.DTOH, "bytes", Cause.EVICTION),
        "fault_groups": sums(key, size, Kind.GPU_FAULT_GROUP, "rows"),
        "gpu_faults": sums(key, size, Kind.GPU_FAULT_GROUP, "count"),
        "cpu_faults": sums(key, size, Kind.CPU_FAULT, "count"),
        "remote_maps": sums(key, size, Kind.REMOTE_MAP, "count"),
        "thrashing": sums(key, size, Kind.THRASHING, "count"),
    }
    if Kind.EVICTION in analysis.rows_by_kind:
        columns["evictions"] = sums(key, size, Kind.EVICTION, "rows")
    if analysis.driver_totals is not None:
        for name in ("bytes_to_device", "bytes_to_host", "bytes_evicted"):
            del columns[name]  # known for the whole run only
    if Kind.REMOTE_ACCESS in analysis.rows_by_kind:
        columns["bytes_remote"] = sums(key, size, Kind.REMOTE_ACCESS, "bytes")
    return [{name: values[at] for name, values in columns.items()} for at in range(size)]


def memory_evidence(analysis: SessionAnalysis) -> str:
    """Return the evidence for memory traffic."""
    return f"memory {evidence(analysis.session, 'memory')}"


def memory_and_access_evidence(analysis: SessionAnalysis) -> str:
    """Return the evidence for memory traffic and accesses."""
    return f"{memory_evidence(analysis)}; accesses {evidence(analysis.session, 'access')}"
