"""The tables of a session: by group, by phase and level, by array, by cause, and so on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from louvain_um.profiling.events import Cause, Kind
from louvain_um.profiling.views.blocks import ping_pong
from louvain_um.profiling.views.evidence import evidence, there
from louvain_um.profiling.views.reading import NAMES, Reading
from louvain_um.profiling.views.table import Column, Table

MOST_ROWS = 400
"""Rows of a table; what comes after them is added up in one."""

MOVED = (
    Column("bytes_to_device", "to the device", "bytes"),
    Column("bytes_to_host", "to the host", "bytes"),
    Column("bytes_evicted", "of it evicted", "bytes"),
    Column("fault_groups", "fault groups"),
    Column("gpu_faults", "GPU faults"),
    Column("cpu_faults", "CPU faults"),
    Column("remote_maps", "remote maps"),
    Column("bytes_remote", "read in place", "bytes"),
    Column("thrashing", "thrashing"),
)
"""What memory did, in every table that tells of it."""

CAUSES = {
    Cause.UNKNOWN: "no cause given",
    Cause.USER: "the program asked",
    Cause.COHERENCE: "a fault: someone needed it there",
    Cause.PREFETCH: "density prefetcher",
    Cause.EVICTION: "eviction: room was needed",
    Cause.ACCESS_COUNTERS: "access counters",
}


def tables(reading: Reading) -> tuple[Table, ...]:
    """Return all tables of a session that have rows."""
    makers: tuple[Callable[[Reading], Table], ...] = (
        by_group, by_phase, by_array, by_cause, iterations, kernels, copies, ping_pong,
    )  # fmt: skip
    found = (maker(reading) for maker in makers)
    return tuple(table for table in found if table.rows)


def moved(reading: Reading, key: Any, size: int) -> list[dict[str, Any]]:
    """Return what `MOVED` names for each value of a key, one for every event."""
    if not there(reading.session, "memory"):
        return [{} for _ in range(size)]
    sums = reading.sums
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
    if Kind.REMOTE_ACCESS in reading.rows:
        columns["bytes_remote"] = sums(key, size, Kind.REMOTE_ACCESS, "bytes")
    return [{name: values[at] for name, values in columns.items()} for at in range(size)]


def by_group(reading: Reading) -> Table:
    """Return accesses, faults and bytes of each group: the thesis's Table 4.4 and more."""
    rows = moved(reading, reading.group_of, len(NAMES))
    counted = reading.accesses_by_array
    peaks = reading.session.metadata.get("peak_bytes") or {}
    for at, (name, row) in enumerate(zip(NAMES, rows, strict=True)):
        row["group"] = name
        row["peak_bytes"] = peaks.get(name)
        row["arrays"] = sum(array.group == name for array in reading.arrays)
        if counted is not None:
            mine = [c for c, a in zip(counted, reading.arrays, strict=False) if a.group == name]
            row["accesses"] = sum(mine) if at < len(NAMES) - 1 else counted[-1]
    used = [row for row in rows if row["arrays"] or any(map(row.get, _keys(MOVED, "accesses")))]
    for whole, share in (("accesses", "access_share"), ("gpu_faults", "fault_share")):
        total = sum(row.get(whole) or 0 for row in used)
        for row in used:
            if total:
                row[share] = (row.get(whole) or 0) / total
    columns = (
        Column("group", "group", "text"),
        Column("arrays", "arrays"),
        Column("peak_bytes", "peak", "bytes"),
        Column("accesses", "accesses"),
        Column("access_share", "of all", "share"),
        *MOVED[:5],
        Column("fault_share", "of all", "share"),
        *MOVED[5:],
    )
    return Table(
        name="by-group",
        title="By group",
        columns=columns,
        rows=tuple(used),
        evidence=_both(reading),
        about="A group is one of the four kinds of arrays that a policy places together.",
    )


def by_phase(reading: Reading) -> Table:
    """Return what happened in each phase of each level."""
    events = reading.events
    spans: dict[tuple[str, int], dict[str, Any]] = {}
    for span in reading.phases:
        row = spans.setdefault(
            (span.phase, span.level),
            {"phase": span.phase, "level": _level(span.level), "seconds": 0.0, "start": 0.0},
        )
        row["seconds"] += span.seconds
        for key, size in (("vertices", span.vertices), ("arcs", span.arcs)):
            row[key] = max(row.get(key) or 0, size) or None
    for span in reading.iterations:
        row = spans.get((span.phase, span.level), {})
        row["iterations"] = row.get("iterations", 0) + 1
    if len(events) and there(reading.session, "memory"):
        levels = events["level"].astype(np.int64)
        low, high = int(levels.min()), int(levels.max())
        width = high - low + 1
        which = (events["phase"].astype(np.int64) + 1) * width + (levels - low)
        size = (len(events.phases) + 1) * width
        found = moved(reading, which, size)
        for row in spans.values():
            row.update(dict.fromkeys(found[0], 0))  # unless something happened, nothing did
        for at, row in enumerate(found):
            if any(row.values()):
                phase, level = at // width - 1, at % width + low
                name = events.phases[phase] if phase >= 0 else "outside phases"
                new = {"phase": name, "level": _level(level)}
                spans.setdefault((name, level), new).update(row)
    return Table(
        name="by-phase",
        title="By phase and level",
        columns=(
            Column("phase", "phase", "text"),
            Column("level", "level"),
            Column("seconds", "seconds", "seconds"),
            Column("vertices", "vertices"),
            Column("arcs", "arcs"),
            Column("iterations", "iterations"),
            *MOVED,
        ),
        rows=tuple(spans.values())[:MOST_ROWS],
        evidence=f"seconds {evidence(reading.session, 'time')}; {_memory(reading)}",
        about="Levels count from the input graph, 0; each is the one before, aggregated.",
    )


def by_array(reading: Reading) -> Table:
    """Return what happened to each array, the largest of a group first."""
    size = len(reading.arrays) + 1
    rows = moved(reading, reading.array_of, size)
    counted = reading.accesses_by_array
    for at, array in enumerate(reading.arrays):
        rows[at] |= {
            "array": array.name,
            "group": array.group,
            "nbytes": array.nbytes,
            "alive": (array.end_ns - array.start_ns) / 1e9,
        }
    rows[-1] |= {"array": "(no array of the run)", "group": "other"}
    if counted is not None:
        for row, count in zip(rows, counted, strict=True):
            row["accesses"] = count
    if not any(map(rows[-1].get, _keys(MOVED, "accesses"))):
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
            Column("alive", "alive", "seconds"),
            Column("accesses", "accesses"),
            *MOVED,
        ),
        rows=tuple(rows),
        evidence=_both(reading),
        about="An array that came back under the same name counts once; its largest size is shown.",
    )


def by_cause(reading: Reading) -> Table:
    """Return how many bytes moved each way, and why."""
    rows: list[dict[str, Any]] = []
    for kind, way in ((Kind.HTOD, "to the device"), (Kind.DTOH, "to the host"),
                      (Kind.DTOD, "between devices")):  # fmt: skip
        for cause, why in CAUSES.items():
            some = reading.of(kind, cause)
            if len(some):
                nbytes = int(reading.events["bytes"][some].sum())
                seconds = int(reading.events["duration"][some].sum()) / 1e9
                many = int(reading.events["rows"][some].sum())
                row: dict[str, Any] = {"way": way, "cause": why, "bytes": nbytes, "copies": many}
                row["each"] = nbytes // max(many, 1)
                if seconds:
                    row |= {"seconds": seconds, "speed": nbytes / seconds}
                rows.append(row)
    return Table(
        name="by-cause",
        title="Migrations by cause",
        columns=(
            Column("way", "way", "text"),
            Column("cause", "cause", "text"),
            Column("bytes", "bytes", "bytes"),
            Column("copies", "copies"),
            Column("each", "a copy", "bytes"),
            Column("seconds", "copying", "seconds"),
            Column("speed", "bytes/s", "rate"),
        ),
        rows=tuple(rows),
        evidence=_memory(reading),
        about="What the driver moved on its own or was asked to; plain copies are told apart.",
    )


def iterations(reading: Reading) -> Table:
    """Return the sweeps of moving, one a row."""
    rows = [
        {
            "phase": span.phase,
            "level": _level(span.level),
            "iteration": span.iteration,
            "seconds": span.seconds,
            "moved": span.moved,
        }
        for span in reading.iterations
    ]
    return Table(
        name="iterations",
        title="Iterations",
        columns=(
            Column("phase", "phase", "text"),
            Column("level", "level"),
            Column("iteration", "iteration"),
            Column("seconds", "seconds", "seconds"),
            Column("moved", "vertices moved"),
        ),
        rows=tuple(rows[:MOST_ROWS]),
        evidence=f"seconds {evidence(reading.session, 'time')}",
    )


def kernels(reading: Reading) -> Table:
    """Return launches and time of each kernel, the costliest first."""
    rows = reading.of(Kind.KERNEL)
    rows = rows[reading.events["kernel"][rows] >= 0]
    which = reading.events["kernel"][rows]
    size = len(reading.events.kernels)
    launches = np.bincount(which, reading.events["rows"][rows], size)
    spent = np.bincount(which, reading.events["duration"][rows], size) / 1e9
    whole = float(spent.sum())
    order = np.argsort(-spent, kind="stable")
    found = [
        {
            "kernel": reading.events.kernels[at],
            "launches": int(launches[at]),
            "seconds": float(spent[at]),
            "each": float(spent[at] / launches[at]),
            "share": float(spent[at] / whole) if whole else None,
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
            Column("each", "a launch", "seconds"),
            Column("share", "of all kernels", "share"),
        ),
        rows=tuple(found[:MOST_ROWS]),
        evidence=evidence(reading.session, "kernel"),
        about="Time in a kernel holds the time that it waits for pages.",
    )


def copies(reading: Reading) -> Table:
    """Return what the program copied by name."""
    rows = []
    for kind, way in ((Kind.COPY_TO_DEVICE, "to the device"), (Kind.COPY_TO_HOST, "to the host"),
                      (Kind.COPY, "on the device")):  # fmt: skip
        some = reading.of(kind)
        if len(some):
            rows.append(
                {
                    "way": way,
                    "bytes": int(reading.events["bytes"][some].sum()),
                    "copies": int(reading.events["rows"][some].sum()),
                    "seconds": int(reading.events["duration"][some].sum()) / 1e9,
                }
            )
    return Table(
        name="copies",
        title="Plain copies",
        columns=(
            Column("way", "way", "text"),
            Column("bytes", "bytes", "bytes"),
            Column("copies", "copies"),
            Column("seconds", "seconds", "seconds"),
        ),
        rows=tuple(rows),
        evidence=evidence(reading.session, "kernel"),
        about="Copies and fills that the program asked for by name; no page moved home.",
    )


def _keys(columns: tuple[Column, ...], *more: str) -> list[str]:
    return [*(column.key for column in columns), *more]


def _level(level: int) -> int | None:
    return level if level >= 0 else None


def _rest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one row for those that a table has no room for."""
    sums: dict[str, Any] = defaultdict(int)
    for row in rows:
        for key, value in row.items():
            if isinstance(value, int):
                sums[key] += value
    return {**sums, "array": f"({len(rows):,} smaller ones)", "group": "", "alive": None}


def _memory(reading: Reading) -> str:
    return f"memory {evidence(reading.session, 'memory')}"


def _both(reading: Reading) -> str:
    return f"{_memory(reading)}; accesses {evidence(reading.session, 'access')}"
