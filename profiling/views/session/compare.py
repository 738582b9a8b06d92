"""Two sessions side by side: what changed, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.session.summary import summary
from louvain_um.profiling.views.session import phase_tables, tables
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence
from louvain_um.profiling.views.table import Column, Table, ValueFormat, format_value

WHOLE: tuple[tuple[str, str, ValueFormat], ...] = (
    ("seconds", "run", "seconds"),
    ("arcs_per_second", "arcs per second", "rate"),
    ("bytes_to_device", "moved to the device", "bytes"),
    ("bytes_to_host", "moved to the host", "bytes"),
    ("bytes_evicted", "evicted by the driver", "bytes"),
    ("gpu_fault_groups", "fault groups", "count"),
    ("gpu_faults", "GPU faults", "count"),
    ("cpu_faults", "CPU faults", "count"),
    ("remote_maps", "remote maps", "count"),
    ("accesses", "accesses", "count"),
    ("joules", "joules", "count"),
    ("arcs_per_joule", "arcs per joule", "rate"),
)

GRAPH: tuple[tuple[str, str, ValueFormat], ...] = (
    ("name", "graph", "text"),
    ("vertices", "vertices", "count"),
    ("arcs", "arcs", "count"),
)
"""Properties shown of both graphs."""

KINDS: dict[str, ValueFormat] = {
    "modularity": "score",
    "communities": "count",
    "budget_bytes": "bytes",
}
"""Formats of the other metadata shown, where they are not text."""


def comparison_tables(first: SessionAnalysis, second: SessionAnalysis) -> tuple[Table, ...]:
    """Return tables that compare two sessions: as a whole, by group, by phase."""
    tables = (overall(first, second), groups(first, second), phases(first, second))
    return tuple(table for table in tables if table.rows)


def overall(first: SessionAnalysis, second: SessionAnalysis) -> Table:
    """Return the main figures of both sessions."""
    a, b = summary(first.original), summary(second.original)
    rows = [_row(name, a.get(key), b.get(key), kind) for key, name, kind in WHOLE]
    rows.append(_row("read in place", _remote(first), _remote(second), "bytes"))
    one, other = (analysis.session.metadata.get("graph") or {} for analysis in (first, second))
    rows += [_row(what, one.get(key), other.get(key), kind) for key, what, kind in GRAPH]
    for key in ("method", "policy", "device", "modularity", "communities", "budget_bytes"):
        values = [analysis.session.metadata.get(key) for analysis in (first, second)]
        if any(value is not None for value in values):
            kind = KINDS.get(key, "text")
            texts = [format_value(value, kind) for value in values]
            rows.append({"what": key.replace("_", " "), "first": texts[0], "second": texts[1]})
    return Table(
        name="compare-whole",
        title=" against ".join(_names(first, second)),
        columns=_columns("what", first, second),
        rows=tuple(row for row in rows if row["first"] != "–" or row["second"] != "–"),
        evidence=_evidence(first, second),
        about="The last column is the second session's figure divided by the first's.",
    )


def _remote(analysis: SessionAnalysis) -> int | None:
    """Return bytes read over the bus; None if no source recorded it."""
    return (
        analysis.total(Kind.REMOTE_ACCESS) if Kind.REMOTE_ACCESS in analysis.rows_by_kind else None
    )


def groups(first: SessionAnalysis, second: SessionAnalysis) -> Table:
    """Return bytes and faults of every group in both."""
    return _by("group", "compare-groups", "By group", first, second, tables.by_group,
               (("bytes_to_device", "to the device", "bytes"),
                ("bytes_remote", "read in place", "bytes"), ("gpu_faults", "faults", "count"),
                ("accesses", "accesses", "count")))  # fmt: skip


def phases(first: SessionAnalysis, second: SessionAnalysis) -> Table:
    """Return seconds of every phase and level in both."""
    table = phase_tables.by_phase
    return _by("phase", "compare-phases", "By phase and level", first, second, table,
               (("seconds", "seconds", "seconds"),))  # fmt: skip


def _by(
    key: str,
    name: str,
    title: str,
    first: SessionAnalysis,
    second: SessionAnalysis,
    maker: Any,
    columns: tuple[tuple[str, str, ValueFormat], ...],
) -> Table:
    a, b = (
        {(row[key], row.get("level")): row for row in maker(analysis).rows}
        for analysis in (first, second)
    )
    rows = []
    for what, level in dict.fromkeys([*a, *b]):
        for column, label, kind in columns:
            left, right = (side.get((what, level), {}).get(column) for side in (a, b))
            if left or right:
                where = f"{what}, level {level}" if level is not None else f"{what}"
                text = where if len(columns) == 1 else f"{where}: {label}"
                rows.append(_row(text, left, right, kind))
    return Table(
        name=name,
        title=title,
        columns=_columns(key, first, second),
        rows=tuple(rows),
        evidence=_evidence(first, second),
    )


def comparison_title(first: SessionData, second: SessionData) -> str:
    """Return the graph of two sessions, and what tells their runs apart."""
    runs = [_described(session.metadata) for session in (first, second)]
    keys = [key for key in runs[0] if runs[0][key] != runs[1][key]]
    shared = [] if "graph" in keys or not runs[0]["graph"] else [runs[0]["graph"]]
    labels = [" ".join(run[key] for key in keys if run[key]) or "the other" for run in runs]
    return " · ".join([*shared, " against ".join(labels) if keys else "two runs"])


def _described(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what may tell a run from another, in words; empty where nothing is known."""
    budget, device = about.get("budget_bytes"), about.get("device")
    return {
        "graph": str((about.get("graph") or {}).get("name") or ""),
        "method": str(about.get("method") or "louvain"),
        "policy": str(about.get("policy") or ""),
        "budget": f"within {format_value(budget, 'bytes')}" if budget else "",
        "device": f"on {device}" if device else "",
    }


def difference(first: SessionAnalysis, second: SessionAnalysis) -> str:
    """Return in one sentence how much longer or shorter the second run took, and what it moved."""
    a, b = summary(first.original), summary(second.original)
    if not a.get("seconds") or not b.get("seconds"):
        return ""
    ratio = b["seconds"] / a["seconds"]
    times = format_value(max(ratio, 1 / ratio), "times")
    speed = ("as fast as" if times == "1.00×" else f"{times} slower than" if ratio > 1
             else f"{times} faster than")  # fmt: skip
    seconds = [format_value(each["seconds"], "seconds") for each in (a, b)]
    text = f"The second run was {speed} the first: {seconds[1]} instead of {seconds[0]}."
    moved = [each.get("bytes_to_device") for each in (a, b)]
    if moved[0] is not None and moved[1] is not None and moved[0] != moved[1]:
        amounts = [format_value(each, "bytes") for each in moved]
        text += f" It moved {amounts[1]} to the device instead of {amounts[0]}."
    return text


def run_labels(sessions: Sequence[SessionData]) -> list[str]:
    """Return a label for each session; graphs are named if they differ."""
    graphs = [str((session.metadata.get("graph") or {}).get("name") or "") for session in sessions]
    if len(set(graphs)) == 1:
        graphs = [""] * len(graphs)
    return [": ".join(filter(None, (graph, run_label(session))))
            for graph, session in zip(graphs, sessions, strict=True)]  # fmt: skip


def _names(first: SessionAnalysis, second: SessionAnalysis) -> tuple[str, str]:
    one, other = run_labels([first.session, second.session])
    return one or "the first", other or "the second"


def run_label(session: SessionData) -> str:
    """Return policy, budget and device of a session, and a method other than Louvain."""
    about = session.metadata
    budget = about.get("budget_bytes")
    within = f" within {format_value(budget, 'bytes')}" if budget else ""
    policy = f"{about['policy']}{within}" if about.get("policy") else ""
    where = " on ".join(filter(None, (policy, str(about.get("device") or ""))))
    method = str(about.get("method") or "louvain")
    return ", ".join(filter(None, ("" if method == "louvain" else method, where)))


def _columns(key: str, first: SessionAnalysis, second: SessionAnalysis) -> tuple[Column, ...]:
    one, other = _names(first, second)
    return (
        Column("what", key, "text"),
        Column("first", f"1: {one}", "text"),
        Column("second", f"2: {other}", "text"),
        Column("ratio", "2 ÷ 1", "times"),
    )


def _row(what: str, left: Any, right: Any, kind: ValueFormat) -> dict[str, Any]:
    ratio = right / left if left and right is not None and kind != "text" else None
    return {
        "what": what,
        "first": format_value(left, kind),
        "second": format_value(right, kind),
        "ratio": ratio,
    }


def _evidence(first: SessionAnalysis, second: SessionAnalysis) -> str:
    parts = [
        f"{at}: time {evidence(analysis.session, 'time')}, memory "
        f"{evidence(analysis.session, 'memory')}"
        for at, analysis in enumerate((first, second), 1)
    ]
    return "; ".join(parts)
