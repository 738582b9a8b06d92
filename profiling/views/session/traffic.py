"""What memory did, summed by any key: the columns that many tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.evidence import evidence, is_available
from louvain_um.profiling.views.table import Column

MOST_ROWS = 400
"""Rows of a table; what comes after them is added up in one, or left out and told."""

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
"""What memory did, in every table that tells of it."""


def first_rows(rows: Sequence[Mapping[str, Any]], about: str = "") -> dict[str, Any]:
    """Return `rows` and `about` of a table that ends after `MOST_ROWS` rows and says so."""
    cut = len(rows) - MOST_ROWS
    more = [f"The first {MOST_ROWS:,} rows of {len(rows):,}."] if cut > 0 else []
    return {"rows": tuple(rows[:MOST_ROWS]), "about": " ".join([*filter(None, [about]), *more])}


def traffic_by(analysis: SessionAnalysis, key: Any, size: int) -> list[dict[str, Any]]:
    """Return what `TRAFFIC_COLUMNS` names for each value of a key, one for every event."""
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
    if Kind.EVICTION in analysis.rows:
        columns["evictions"] = sums(key, size, Kind.EVICTION, "rows")
    if analysis.totals is not None:
        for name in ("bytes_to_device", "bytes_to_host", "bytes_evicted"):
            del columns[name]  # known of the whole run alone
    if Kind.REMOTE_ACCESS in analysis.rows:
        columns["bytes_remote"] = sums(key, size, Kind.REMOTE_ACCESS, "bytes")
    return [{name: values[at] for name, values in columns.items()} for at in range(size)]


def memory_evidence(analysis: SessionAnalysis) -> str:
    """Return how numbers of memory came about."""
    return f"memory {evidence(analysis.session, 'memory')}"


def memory_and_access_evidence(analysis: SessionAnalysis) -> str:
    """Return how numbers of memory and of accesses came about."""
    return f"{memory_evidence(analysis)}; accesses {evidence(analysis.session, 'access')}"
