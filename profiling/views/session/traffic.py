"""Memory traffic summed by any key, and what the program itself issued: kernels and copies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence, is_available
from louvain_um.profiling.views.table import Column, Table

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
    for name in analysis.not_recorded:
        key_of = "fault_groups" if name == "gpu_fault_groups" else name
        if not any(columns.get(key_of, ())):
            columns.pop(key_of, None)
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
