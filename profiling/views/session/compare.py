"""Sessions side by side: what changed, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.simulator.result import CONFORMANCE
from louvain_um.profiling.views.session import phase_tables, tables
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence, summary
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
"""Properties shown of the graphs."""

RANGE = (
    "at least and at most: with constants that are assumed at either end; how closely the model "
    f"follows the driver: {CONFORMANCE}"
)

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")

KINDS: dict[str, ValueFormat] = {
    "modularity": "score",
    "communities": "count",
    "budget_bytes": "bytes",
}
"""Formats of the other metadata shown, where they are not text."""


def comparison_tables(analyses: Sequence[SessionAnalysis]) -> tuple[Table, ...]:
    """Return tables that compare sessions: as a whole, by group, by phase."""
    tables = (overall(analyses), groups(analyses), phases(analyses))
    return tuple(table for table in tables if table.rows)


def overall(analyses: Sequence[SessionAnalysis]) -> Table:
    """Return the main figures of all sessions."""
    figures = [summary(analysis.original) for analysis in analyses]
    rows = [_row(name, [each.get(key) for each in figures], kind) for key, name, kind in WHOLE]
    remote = Kind.REMOTE_ACCESS
    read = [each.total(remote) if remote in each.rows_by_kind else None for each in analyses]
    rows.append(_row("read in place", read, "bytes"))
    about = [analysis.session.metadata for analysis in analyses]
    ranges = [each.get("seconds_range") or (None, None) for each in about]
    rows[1:1] = [
        _row(f"run, at {end}", values, "seconds")
        for end, values in zip(("least", "most"), zip(*ranges, strict=True), strict=True)
    ]
    graphs = [each.get("graph") or {} for each in about]
    rows += [_row(what, [each.get(key) for each in graphs], kind) for key, what, kind in GRAPH]
    for key in ("method", "policy", "device", "modularity", "communities", "budget_bytes"):
        values = [each.get(key) for each in about]
        rows.append(_row(key.replace("_", " "), values, KINDS.get(key, "text"), ratios=False))
    return Table(
        name="compare-whole",
        title=" against ".join(_names(analyses)),
        columns=_columns("what", analyses),
        rows=tuple(row for row in rows if any(row[key] != "–" for key in _keys(analyses))),
        evidence=_evidence(analyses) + (f"; {RANGE}" if any(any(each) for each in ranges) else ""),
        about="The last columns are a session's figures divided by the first's.",
    )


def groups(analyses: Sequence[SessionAnalysis]) -> Table:
    """Return bytes and faults of every group in all."""
    return _by("group", "compare-groups", "By group", analyses, tables.by_group,
               (("bytes_to_device", "to the device", "bytes"),
                ("bytes_remote", "read in place", "bytes"), ("gpu_faults", "faults", "count"),
                ("accesses", "accesses", "count")))  # fmt: skip


def phases(analyses: Sequence[SessionAnalysis]) -> Table:
    """Return seconds of every phase and level in all."""
    return _by("phase", "compare-phases", "By phase and level", analyses, phase_tables.by_phase,
               (("seconds", "seconds", "seconds"),))  # fmt: skip


def _by(
    key: str,
    name: str,
    title: str,
    analyses: Sequence[SessionAnalysis],
    maker: Any,
    columns: tuple[tuple[str, str, ValueFormat], ...],
) -> Table:
    sides = [{(row[key], row.get("level")): row for row in maker(each).rows} for each in analyses]
    rows = []
    for what, level in dict.fromkeys(place for side in sides for place in side):
        for column, label, kind in columns:
            values = [side.get((what, level), {}).get(column) for side in sides]
            if any(values):
                where = f"{what}, level {level}" if level is not None else f"{what}"
                text = where if len(columns) == 1 else f"{where}: {label}"
                rows.append(_row(text, values, kind))
    return Table(
        name=name,
        title=title,
        columns=_columns(key, analyses),
        rows=tuple(rows),
        evidence=_evidence(analyses),
    )


def comparison_title(sessions: Sequence[SessionData]) -> str:
    """Return the graph of several sessions, and what distinguishes their runs."""
    runs = [_described(session.metadata) for session in sessions]
    keys = [key for key in runs[0] if len({run[key] for run in runs}) > 1]
    shared = [] if "graph" in keys or not runs[0]["graph"] else [runs[0]["graph"]]
    labels = [" ".join(run[key] for key in keys if run[key]) or "the other" for run in runs]
    same = f"{('two', 'three', 'four')[len(runs) - 2] if len(runs) < 5 else len(runs)} runs"
    return " · ".join([*shared, " against ".join(labels) if keys else same])


def ordinal(number: int) -> str:
    """Return a session's place in words."""
    return ORDINALS[number - 1] if number <= len(ORDINALS) else f"{number}th"


def _described(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what may distinguish a run from another, in words; empty where nothing is known."""
    budget, device = about.get("budget_bytes"), about.get("device")
    return {
        "graph": str((about.get("graph") or {}).get("name") or ""),
        "method": str(about.get("method") or "louvain"),
        "policy": str(about.get("policy") or ""),
        "budget": f"within {format_value(budget, 'bytes')}" if budget else "",
        "device": f"on {device}" if device else "",
    }


def difference(first: SessionAnalysis, other: SessionAnalysis, number: int = 2) -> str:
    """Return in words how much longer or shorter the run of a number took, and what it moved."""
    a, b = summary(first.original), summary(other.original)
    if not a.get("seconds") or not b.get("seconds"):
        return ""
    ratio = b["seconds"] / a["seconds"]
    times = format_value(max(ratio, 1 / ratio), "times")
    speed = ("as fast as" if times == "1.00×" else f"{times} slower than" if ratio > 1
             else f"{times} faster than")  # fmt: skip
    seconds = [format_value(each["seconds"], "seconds") for each in (a, b)]
    text = f"The {ordinal(number)} run was {speed} the first: {seconds[1]} instead of {seconds[0]}."
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


def _names(analyses: Sequence[SessionAnalysis]) -> list[str]:
    labels = run_labels([analysis.session for analysis in analyses])
    return [label or f"the {ordinal(number)}" for number, label in enumerate(labels, 1)]


def run_label(session: SessionData) -> str:
    """Return policy, budget and device of a session, and a method other than Louvain."""
    about = session.metadata
    budget = about.get("budget_bytes")
    within = f" within {format_value(budget, 'bytes')}" if budget else ""
    policy = f"{about['policy']}{within}" if about.get("policy") else ""
    where = " on ".join(filter(None, (policy, str(about.get("device") or ""))))
    method = str(about.get("method") or "louvain")
    return ", ".join(filter(None, ("" if method == "louvain" else method, where)))


def _keys(analyses: Sequence[SessionAnalysis]) -> list[str]:
    """Return the keys of the columns of sessions."""
    return [f"run {number}" for number in range(1, len(analyses) + 1)]


def _columns(key: str, analyses: Sequence[SessionAnalysis]) -> tuple[Column, ...]:
    keys, names = _keys(analyses), _names(analyses)
    return (
        Column("what", key, "text"),
        *(Column(key, f"{number}: {name}", "text")
          for number, (key, name) in enumerate(zip(keys, names, strict=True), 1)),
        *(Column(f"ratio {number}", f"{number} ÷ 1", "times")
          for number in range(2, len(analyses) + 1)),
    )  # fmt: skip


def _row(
    what: str, values: Sequence[Any], kind: ValueFormat, *, ratios: bool = True
) -> dict[str, Any]:
    row: dict[str, Any] = {"what": what}
    for number, value in enumerate(values, 1):
        row[f"run {number}"] = format_value(value, kind)
        if number > 1 and ratios and values[0] and value is not None and kind != "text":
            row[f"ratio {number}"] = value / values[0]
    return row


def _evidence(analyses: Sequence[SessionAnalysis]) -> str:
    parts = [
        f"{at}: time {evidence(analysis.session, 'time')}, memory "
        f"{evidence(analysis.session, 'memory')}"
        for at, analysis in enumerate(analyses, 1)
    ]
    return "; ".join(parts)
