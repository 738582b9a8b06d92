"""Validation of the model: runs both measured and modelled, and the limits they miss."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any, Final

from louvain_um.profiling.sweep.results import Row, Sweep, format_rate
from louvain_um.profiling.views.table import Column, Table

LIMITS: Final[dict[str, float]] = {"bytes": 0.05, "fault_groups": 0.30, "seconds": 0.40}
"""Largest accepted relative error of a modelled figure."""

FIGURE_NAMES: Final = {
    "bytes": "migrated bytes",
    "fault_groups": "fault groups",
    "seconds": "seconds",
}


def figures(row: Row) -> dict[str, float | None]:
    """Return the figures of a run that are compared: migrated bytes, fault groups, seconds."""
    moved = [row.get("bytes_to_device"), row.get("bytes_to_host")]
    known = None not in moved
    seconds, groups = row.get("seconds"), row.get("fault_groups")
    # Seconds of measured runs leave loading out.
    loading = 0.0 if row.get("evidence") == "measured" else row.get("load_seconds") or 0.0
    return {
        "bytes": sum(moved) - (row.get("bytes_loaded") or 0) if known else None,  # type: ignore[arg-type]
        "fault_groups": groups,
        "seconds": None if seconds is None else seconds - loading,
    }


def ratios(measured: Row, modelled: Row) -> dict[str, float | None]:
    """Return modelled ÷ measured of each figure that both have; 1 if both are 0."""
    theirs = figures(modelled)
    return {name: _ratio(theirs[name], value) for name, value in figures(measured).items()}


def _ratio(modelled: float | None, measured: float | None) -> float | None:
    if modelled is None or measured is None:
        return None
    if measured == 0:
        return 1.0 if modelled == 0 else math.inf
    return modelled / measured


def misses(matches: Mapping[str, float | None]) -> tuple[str, ...]:
    """Return the figures whose ratio is outside its limit."""
    return tuple(
        name
        for name, ratio in matches.items()
        if ratio is not None and abs(ratio - 1) > LIMITS[name] + 1e-9
    )


def pairs(results: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Return runs of one graph, policy and oversubscription, measured and modelled."""
    rows = [row for row in results if row["feasible"] and row["seconds"] is not None]
    modelled: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["evidence"] == "modelled":
            modelled.setdefault(_place(row), []).append(row)
    return [
        (row, other)
        for row in rows
        if row["evidence"] == "measured"
        for other in modelled.get(_place(row), ())
        if _letters(other) in _letters(row)
    ]


def _place(row: Row) -> tuple[Any, ...]:
    return row["graph"], row["policy"], row["oversubscription"]


def _letters(row: Row) -> str:
    return "".join(c for c in str(row.get("gpu") or "").lower() if c.isalnum())


def validation(sweep: Sweep) -> Table:
    """Return every run that was measured and modelled, with ratios and missed limits."""
    matches = [(row, other, ratios(row, other)) for row, other in pairs(sweep.results)]
    rows: list[dict[str, Any]] = []
    for row, other, ratio in matches:
        line: dict[str, Any] = {"graph": row["graph"], "policy": row["policy"]}
        line["rate"] = format_rate(row["oversubscription"])
        for name in LIMITS:
            line[f"measured {name}"] = figures(row)[name]
            line[f"modelled {name}"] = figures(other)[name]
            line[f"ratio {name}"] = ratio[name]
        wrong = misses(ratio)
        unknown = [FIGURE_NAMES[name] for name, value in ratio.items() if value is None]
        line["misses"] = ", ".join(FIGURE_NAMES[name] for name in wrong) or "none"
        if unknown:
            line["misses"] += f" (not measured: {', '.join(unknown)})"
        rows.append(line)
    limits = ", ".join(f"{FIGURE_NAMES[name]} {_percent(share)}" for name, share in LIMITS.items())
    return Table(
        name="validation",
        title=f"The model against the machine: {_limits_met(ratio for _, _, ratio in matches)}",
        columns=(
            Column("graph", "graph", "text"),
            Column("policy", "policy", "text"),
            Column("rate", "oversubscription", "text"),
            Column("measured bytes", "bytes, measured", "bytes"),
            Column("modelled bytes", "bytes, modelled", "bytes"),
            Column("ratio bytes", "bytes, ratio", "times"),
            Column("measured fault_groups", "fault groups, measured"),
            Column("modelled fault_groups", "fault groups, modelled"),
            Column("ratio fault_groups", "fault groups, ratio", "times"),
            Column("measured seconds", "seconds, measured", "seconds"),
            Column("modelled seconds", "seconds, modelled", "seconds"),
            Column("ratio seconds", "seconds, ratio", "times"),
            Column("misses", "limits missed", "text"),
        ),
        rows=tuple(rows),
        evidence=f"ratios are modelled ÷ measured; limits: {limits}",
        about="Excludes bytes that the program copies to the device before its first kernel. "
        + budgets(matches),
    )


def by_policy(sweep: Sweep) -> Table:
    """Return the median and the range of the ratios of each policy."""
    matches: dict[str, list[dict[str, float | None]]] = {}
    for row, other in pairs(sweep.results):
        matches.setdefault(row["policy"], []).append(ratios(row, other))
    rows: list[dict[str, Any]] = []
    lines = list(matches.items())
    if len(lines) > 1:
        lines.append(("all", [ratio for every in matches.values() for ratio in every]))
    for policy, every in lines:
        line: dict[str, Any] = {"policy": policy, "runs": len(every)}
        for name in LIMITS:
            known = [value for each in every if (value := each[name]) is not None]
            if known:
                line[f"median {name}"] = statistics.median(known)
                line[f"least {name}"], line[f"most {name}"] = min(known), max(known)
        rows.append(line)
    return Table(
        name="validation-policies",
        title="Error of the model by policy: modelled ÷ measured",
        columns=(
            Column("policy", "policy", "text"),
            Column("runs", "runs"),
            *(
                Column(f"{what} {name}", f"{name.removeprefix('fault_')}, {what}", "times")
                for name in ("seconds", "bytes", "fault_groups")
                for what in ("median", "least", "most")
            ),
        ),
        rows=tuple(rows),
        evidence="modelled ÷ measured; – where there is no ratio",
    )


def budgets(matches: Iterable[tuple[Row, Row, Any]]) -> str:
    """Return whether compared runs had the same device memory."""
    both = [(row.get("budget_bytes"), other.get("budget_bytes")) for row, other, _ in matches]
    known = [(mine, theirs) for mine, theirs in both if mine and theirs]
    if len(known) < len(both) or not known:
        return "Within a budget, the program moves blocks itself: --eviction program models that."
    most = max(abs(theirs / mine - 1) for mine, theirs in known)
    if most < 0.001:
        return "At each oversubscription both had the same bytes of device memory."
    return (
        f"Modelled runs had up to {100 * most:.1f} % more or less device memory than measured ones "
        "at the same oversubscription: --eviction program models the same budgets."
    )


def _limits_met(matches: Iterable[Mapping[str, float | None]]) -> str:
    """Return how many runs are within each limit, as text."""
    every = list(matches)
    parts = []
    for name, share in LIMITS.items():
        known = [each for each in every if each[name] is not None]
        kept = sum(name not in misses(each) for each in known)
        parts.append(
            f"{FIGURE_NAMES[name]} within {_percent(share)} in {kept} of {len(known)} runs"
        )
    return ", ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
