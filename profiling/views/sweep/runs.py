"""Runs of a sweep by evidence (measured or modelled) and machine."""

from __future__ import annotations

from collections.abc import Iterable

from louvain_um.profiling.sweep.results import Row


def evidence_of(rows: Iterable[Row]) -> str:
    """Return the evidence of rows."""
    kinds = sorted({str(row.get("evidence") or "unknown") for row in rows})
    return " and ".join(kinds)


def machines(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Return evidence and machine of rows, each pair once, measured first."""
    pairs = {(str(row["evidence"]), str(row.get("gpu") or "")) for row in rows}
    return sorted(pairs)


def runs_on(rows: Iterable[Row], machine: tuple[str, str]) -> list[Row]:
    """Return the rows of one evidence and machine."""
    return [row for row in rows if (str(row["evidence"]), str(row.get("gpu") or "")) == machine]


def machine_label(machine: tuple[str, str]) -> str:
    """Return evidence and machine as one label."""
    return ", ".join(part for part in machine if part)


def format_rate(rate: float) -> str:
    """Return an oversubscription in percent as text."""
    return f"{rate:g} %"
