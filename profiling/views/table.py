"""A table before it is drawn: terminal, HTML and charts all draw this one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ValueFormat = Literal["text", "count", "bytes", "seconds", "share", "times", "score", "rate"]
"""How a column's values are formatted."""

ROW_NUMBERS = ("cycle", "level", "iteration", "oversubscription")
"""Headings of numeric columns that identify a row: a 0 there is a number, not an amount."""

ZEROS = ("0", "0 B", "0 s")
"""Zeros in columns of formatted values."""

SHORTENED_FROM = 1e9
"""Counts from here on are shortened where space is scarce."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its key in the rows, its heading, how its values are formatted."""

    key: str
    head: str
    kind: ValueFormat = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings, with the evidence for their numbers."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    evidence: str = ""
    about: str = ""
    highlight: Literal["", "least", "most"] = ""

    def best(self, row: Mapping[str, Any], column: Column) -> bool:
        """Say whether a cell is the one to emphasise in its column."""
        if not self.highlight or column.kind == "text" or row.get(column.key) is None:
            return False
        values = [each[column.key] for each in self.rows if each.get(column.key) is not None]
        best: Any = min(values) if self.highlight == "least" else max(values)
        return bool(row[column.key] == best)

    def text(self, row: Mapping[str, Any], column: Column) -> str:
        """Return what is shown in a cell."""
        return format_value(row.get(column.key), column.kind)

    def is_zero(self, row: Mapping[str, Any], column: Column) -> bool:
        """Say whether a cell counts nothing: 0 where amounts stand, which is shown pale."""
        value = row.get(column.key)
        if column.kind == "text":
            return value in ZEROS
        return column.head not in ROW_NUMBERS and value == 0

    def used(self) -> tuple[Column, ...]:
        """Return the columns in which any row has a value."""
        return tuple(
            column
            for column in self.columns
            if any(row.get(column.key) is not None for row in self.rows)
        )

    def split(self) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """Return the columns with information, and those that are zero in every row."""
        used = self.used()
        zero = tuple(
            column
            for column in used
            if column.kind in ("count", "bytes", "share")
            and column.head not in ROW_NUMBERS
            and not any(row.get(column.key) for row in self.rows)
        )
        return tuple(column for column in used if column not in zero), zero


def format_value(value: Any, kind: ValueFormat = "count") -> str:
    """Return a value as text, with its unit."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if kind == "text":
        return str(value)
    if kind == "bytes":
        return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
    if kind == "seconds":
        return _seconds(float(value))
    if kind == "share":
        return f"{100 * value:.1f} %"
    if kind == "times":
        return f"{value:,.2f}×"
    if kind == "score":
        return f"{value:.4f}"
    if kind == "rate":
        return _scaled(value, 1000, ("", "k", "M", "G", "T")).strip()
    return f"{value:,.1f}" if isinstance(value, float) and value % 1 else f"{int(value):,}"


def format_short(value: Any, kind: ValueFormat = "count") -> str:
    """Return a value as short text: counts of a billion or more are rounded."""
    large = kind == "count" and value is not None and abs(value) >= SHORTENED_FROM
    return format_value(value, "rate" if large else kind)


def _scaled(value: float, step: int, units: tuple[str, ...]) -> str:
    size, at = abs(value), 0
    while size >= step and at < len(units) - 1:
        size /= step
        at += 1
    sign = "-" if value < 0 else ""
    return f"{sign}{size:,.0f} {units[0]}" if at == 0 else f"{sign}{size:,.1f} {units[at]}"


def _seconds(value: float) -> str:
    for least, scale, unit in ((100.0, 1.0, "s"), (1.0, 1.0, "s"), (1e-3, 1e3, "ms")):
        if abs(value) >= least:
            digits = 1 if least == 100.0 else 2
            return f"{value * scale:,.{digits}f} {unit}"
    return f"{value * 1e6:,.0f} µs" if value else "0 s"
