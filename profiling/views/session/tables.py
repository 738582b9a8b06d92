"""The tables of a session: by group, array, cause and rank; and all of them in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from louvain_um.profiling.session.data import ranks_of
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.views.session import phase_tables
from louvain_um.profiling.views.session.analysis import CAUSE_LABELS, SessionAnalysis
from louvain_um.profiling.views.session.over_time import (
    MOST_ROWS,
    TRAFFIC_COLUMNS,
    copies,
    kernels,
    memory_and_access_evidence,
    memory_evidence,
    traffic_by,
)
from louvain_um.profiling.views.session.pages import ping_pong
from louvain_um.profiling.views.table import Column, Table


def tables(analysis: SessionAnalysis) -> tuple[Table, ...]:
    """Return all tables of a session that have rows."""
    makers: tuple[Callable[[SessionAnalysis], Table], ...] = (
        by_group, phase_tables.by_phase, phase_tables.by_phase_and_group, by_array, by_cause,
        phase_tables.iterations, by_gpu, by_rank, kernels, copies, ping_pong,
    )  # fmt: skip
    made = (maker(analysis) for maker in makers)
    return tuple(table for table in made if table.rows)


def by_gpu(analysis: SessionAnalysis) -> Table:
    """Return what each GPU ran, and what moved to it and from it, if there are several."""
    device, gpus = analysis.events["device"], analysis.events.devices
    rows: list[dict[str, Any]] = []
    if len(gpus) > 1:
        size = gpus[-1] + 1
        rows = traffic_by(analysis, device, size)
        took, runs, between = (
            analysis.sums(device, size, kind, column)
            for kind, column in (
                (Kind.KERNEL, "duration"), (Kind.KERNEL, "rows"), (Kind.DTOD, "bytes"),
            )
        )  # fmt: skip
        for gpu, row in enumerate(rows):
            row |= {"gpu": f"GPU {gpu}", "launches": int(runs[gpu]), "seconds": took[gpu] / 1e9}
            row["bytes_between"] = int(between[gpu])
    columns = (
        Column("gpu", "GPU", "text"),
        Column("launches", "launches"),
        Column("seconds", "kernel time", "seconds"),
        *TRAFFIC_COLUMNS[:2],
        Column("bytes_between", "from other GPUs", "bytes"),
        *TRAFFIC_COLUMNS[2:],
    )
    return Table(
        name="by-gpu",
        title="By GPU",
        columns=columns,
        rows=tuple(rows[gpu] for gpu in gpus if rows),
        evidence=memory_and_access_evidence(analysis),
        about="Faults of the CPU count for the GPU whose pages they took, or the first.",
    )


def by_rank(analysis: SessionAnalysis) -> Table:
    """Return what each rank, or GPU, did with its time."""
    rows = [{**row._asdict(), "share": row.share} for row in ranks_of(analysis.session)]
    columns = (
        Column("rank", "rank"),
        Column("work", "own work", "seconds"),
        Column("exchange", "exchange and waiting", "seconds"),
        Column("share", "share", "share"),
        Column("received", "received", "bytes"),
    )
    return Table(
        name="ranks",
        title="By rank",
        columns=columns,
        rows=tuple(rows),
        evidence="measured",
        about="Ranks of a cluster, or GPUs that share a graph.",
    )


def by_group(analysis: SessionAnalysis) -> Table:
    """Return accesses, faults and bytes of each group: the thesis's Table 4.4 and more."""
    rows = traffic_by(analysis, analysis.group_of, len(analysis.group_names))
    counted = analysis.accesses_by_group
    peaks = analysis.session.metadata.get("peak_bytes") or {}
    for at, (name, row) in enumerate(zip(analysis.group_names, rows, strict=True)):
        row["group"] = name
        row["peak_bytes"] = peaks.get(name)
        row["arrays"] = sum(array.group == name for array in analysis.arrays)
        if counted is not None:
            row["accesses"] = counted[at]
    used = [
        row
        for row in rows
        if row["arrays"] or any(map(row.get, _keys(TRAFFIC_COLUMNS, "accesses")))
    ]
    for key, share in (("accesses", "access_share"), ("gpu_faults", "fault_share")):
        total = sum(row.get(key) or 0 for row in used)
        for row in used:
            if total:
                row[share] = (row.get(key) or 0) / total
    columns = (
        Column("group", "group", "text"),
        Column("arrays", "arrays"),
        Column("peak_bytes", "peak", "bytes"),
        Column("accesses", "accesses"),
        Column("access_share", "share of accesses", "share"),
        *TRAFFIC_COLUMNS[:6],
        Column("fault_share", "share of faults", "share"),
        *TRAFFIC_COLUMNS[6:],
    )
    return Table(
        name="by-group",
        title="By group",
        columns=columns,
        rows=tuple(used),
        evidence=memory_and_access_evidence(analysis),
        about="A group is one of the four sets of arrays that a policy places together; the "
        "thesis's Table 4.4 counts accesses in the same way.",
    )


def by_array(analysis: SessionAnalysis) -> Table:
    """Return what happened to each array, the largest of a group first."""
    size = len(analysis.arrays) + 1
    rows = traffic_by(analysis, analysis.array_of, size)
    counted = analysis.accesses_by_array
    for at, array in enumerate(analysis.arrays):
        rows[at] |= {
            "array": array.name,
            "group": array.group,
            "nbytes": array.nbytes,
            "alive": array.alive_ns / 1e9,
        }
    rows[-1] |= {"array": "(no array of the run)", "group": "other"}
    if counted is not None:
        for row, count in zip(rows, counted, strict=True):
            row["accesses"] = count
    if not any(map(rows[-1].get, _keys(TRAFFIC_COLUMNS, "accesses"))):
        rows.pop()
    if len(rows) > MOST_ROWS:
        rows = [*rows[: MOST_ROWS - 1], _rest(rows[MOST_ROWS - 1 :])]
    return Table(
        name="by-array",
        title="By array",
        columns=(
            Column("array", "array", "text"),
            Column("group", "group", "text"),
            Column("nbytes", "bytes", "bytes"),
            Column("alive", "lifetime", "seconds"),
            Column("accesses", "accesses"),
            *TRAFFIC_COLUMNS,
        ),
        rows=tuple(rows),
        evidence=memory_and_access_evidence(analysis),
        about="Arrays of the same name count as one, with the largest size.",
    )


def by_cause(analysis: SessionAnalysis) -> Table:
    """Return migrated bytes by direction and cause."""
    rows: list[dict[str, Any]] = []
    for kind, way in ((Kind.HTOD, "to the device"), (Kind.DTOH, "to the host"),
                      (Kind.DTOD, "between devices")):  # fmt: skip
        for cause, why in CAUSE_LABELS.items():
            some = analysis.rows_of(kind, cause)
            if len(some):
                nbytes = int(analysis.events["bytes"][some].sum())
                seconds = int(analysis.events["duration"][some].sum()) / 1e9
                many = int(analysis.events["rows"][some].sum())
                row: dict[str, Any] = {"way": way, "cause": why, "bytes": nbytes, "copies": many}
                row["each"] = nbytes // max(many, 1)
                if seconds:
                    row |= {"seconds": seconds, "speed": nbytes / seconds}
                rows.append(row)
    return Table(
        name="by-cause",
        title="Migrations by cause",
        columns=(
            Column("way", "direction", "text"),
            Column("cause", "cause", "text"),
            Column("bytes", "bytes", "bytes"),
            Column("copies", "copies"),
            Column("each", "per copy", "bytes"),
            Column("seconds", "copy time", "seconds"),
            Column("speed", "bytes/s", "rate"),
        ),
        rows=tuple(rows),
        evidence=memory_evidence(analysis),
        about="The driver's migrations, automatic or requested; explicit copies not included.",
    )


def _keys(columns: tuple[Column, ...], *more: str) -> list[str]:
    return [*(column.key for column in columns), *more]


def _rest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one row with the sums of those that a table leaves out."""
    sums: dict[str, Any] = defaultdict(int)
    for row in rows:
        for key, value in row.items():
            if isinstance(value, int):
                sums[key] += value
    return {**sums, "array": f"({len(rows):,} smaller ones)", "group": "", "alive": None}
