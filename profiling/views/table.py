"""A table before it is drawn: terminal, HTML and charts all draw this one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

As = Literal["text", "count", "bytes", "seconds", "share", "times", "score", "rate"]
"""How a column's values are meant."""

PLACES = ("level", "oversubscription", "oversubscribed")
"""Headings of numbers that tell which row it is, beside its texts: 0 is a name there, too."""

BRIEFLY = 1e9
"""Counts from which on there may be no room for every digit."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its key in the rows, its heading, how its values are meant."""

    key: str
    head: str
    kind: As = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings, and how their numbers came about.

    Parameters
    ----------
    name : str
        Short and unique in a report; no spaces.
    title : str
    columns : tuple of Column
    rows : tuple of mapping
        Values by column; one that is missing or None is not available.
    evidence : str
        "measured", "modelled" or "not available", and by what.
    about : str
        A sentence for those who see it for the first time.
    wins : {"", "least", "most"}
        Which value of a column of numbers stands out.

    Examples
    --------
    >>> from louvain_um.profiling.views.table import Column, Table
    >>> table = Table(name="t", title="T", columns=(Column("b", "size", "bytes"),),
    ...               rows=({"b": 2048},))
    >>> [table.text(row, column) for row in table.rows for column in table.columns]
    ['2.0 KiB']
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    evidence: str = ""
    about: str = ""
    wins: Literal["", "least", "most"] = ""

    def best(self, row: Mapping[str, Any], column: Column) -> bool:
        """Say whether a cell is the best of its column."""
        if not self.wins or column.kind == "text" or row.get(column.key) is None:
            return False
        values = [each[column.key] for each in self.rows if each.get(column.key) is not None]
        best: Any = min(values) if self.wins == "least" else max(values)
        return bool(row[column.key] == best)

    def text(self, row: Mapping[str, Any], column: Column) -> str:
        """Return what is shown in a cell."""
        return format_value(row.get(column.key), column.kind)

    def used(self) -> tuple[Column, ...]:
        """Return the columns in which any row has a value."""
        return tuple(
            column
            for column in self.columns
            if any(row.get(column.key) is not None for row in self.rows)
        )

    def split(self) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """Return the columns that tell something, and those in which nothing happened."""
        used = self.used()
        idle = tuple(
            column
            for column in used
            if column.kind in ("count", "bytes", "share")
            and column.head not in PLACES
            and not any(row.get(column.key) for row in self.rows)
        )
        return tuple(column for column in used if column not in idle), idle


def format_value(value: Any, kind: As = "count") -> str:
    """Return a value as people read it.

    Examples
    --------
    >>> from louvain_um.profiling.views.table import format_value
    >>> format_value(1536, "bytes"), format_value(0.00042, "seconds"), format_value(None)
    ('1.5 KiB', '420 µs', '–')
    """
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


def format_short(value: Any, kind: As = "count") -> str:
    """Return a value in few letters, where there is no room for a count of billions.

    Examples
    --------
    >>> from louvain_um.profiling.views.table import format_short
    >>> format_short(28_336_058_572), format_short(92_192), format_short(None)
    ('28.3 G', '92,192', '–')
    """
    large = kind == "count" and value is not None and abs(value) >= BRIEFLY
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
