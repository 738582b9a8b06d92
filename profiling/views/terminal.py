"""Tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.views.session.analysis import SessionAnalysis, data_sources
from louvain_um.profiling.views.table import ROW_NUMBERS, Column, Table
from louvain_um.results.display import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from louvain_um.profiling.sweep.results import Sweep

MOST = 30
"""Rows printed of a table."""

PROSE = 60
"""Width in characters from which a column of texts is printed under its table."""


def show(
    sessions: Sequence[SessionData], sweep: Sweep | None = None, console: Console | None = None
) -> None:
    """Print verdict and tables of sessions, how two compare, and the tables of a sweep."""
    from rich.console import Console

    from louvain_um.profiling.views.session import tables
    from louvain_um.profiling.views.session.compare import comparison_tables
    from louvain_um.profiling.views.session.verdict import verdict

    out = console or Console(highlight=False, markup=False, emoji=False)
    analyses = [SessionAnalysis(session) for session in sessions]
    for analysis in analyses:
        out.print(str(analysis.original).partition("\n")[0], style="bold")
        out.print(str(verdict(analysis)))
        if len(analyses) == 1:
            for table in tables.tables(analysis):
                print_table(table, out)
            for text in data_sources(analysis.original):
                out.print(text)
            for note in analysis.session.notes:
                out.print(f"note: {note}")
    if len(analyses) > 1:
        for table in comparison_tables(analyses):
            print_table(table, out)
    if sweep is not None:
        from louvain_um.profiling.thesis import tables as thesis_tables
        from louvain_um.profiling.views.sweep import cost_breakdown

        out.print(str(cost_breakdown.fastest(sweep)))
        for table in thesis_tables.tables(sweep):
            print_table(table, out)
        for text in cost_breakdown.explanations(sweep):
            out.print(text)
        for note in sweep.notes:
            out.print(f"note: {note}")


def print_table(table: Table, console: Console) -> None:
    """Print one table under its title, in as many parts as its width takes."""
    parts, zero = layout(table, console.width)
    for number, columns in enumerate(parts):
        console.print()
        console.print(rich_table(table, columns, continued=number > 0))
    left = len(table.rows) - MOST
    for text in prose(table):
        console.print(text)
    if left > 0:
        console.print(f"… and {left:,} more")
    same = constant_columns(table)
    if same:
        texts = ", ".join(f"{column.head} {text}" for column, text in same)
        console.print(f"the same in every row: {texts}", style="dim")
    if zero:
        console.print(
            f"zero in every row: {', '.join(column.head for column in zero)}", style="dim"
        )
    if table.evidence:
        console.print(table.evidence, style="dim")


def layout(table: Table, width: int) -> tuple[list[list[Column]], list[Column]]:
    """Return the columns of each part that fits in a width."""
    some, zero = table.split()
    same = [column for column, _ in constant_columns(table)]
    shown = [c for c in some if c not in same and not _is_prose(table, c)]
    names = [column for column in shown if column.kind == "text" or column.head in ROW_NUMBERS]
    rest = [column for column in shown if column not in names]
    names_width = sum(_width(table, column) for column in names)
    parts, room = [[*names]], width - names_width
    for column in rest:
        wide = _width(table, column)
        if wide > room and len(parts[-1]) > len(names):
            parts.append([*names])
            room = width - names_width
        parts[-1].append(column)
        room -= wide
    return parts, list(zero)


def constant_columns(table: Table) -> list[tuple[Column, str]]:
    """Return the columns of texts that are equal in every row, with that text."""
    columns, _ = table.split()
    result = []
    for column in columns[1:]:
        values = {table.text(row, column) for row in table.rows}
        if column.kind == "text" and len(values) == 1 and len(table.rows) > 1:
            result.append((column, printable(values.pop())))
    return result


def _is_prose(table: Table, column: Column) -> bool:
    """Say whether a column holds sentences, too wide for a terminal."""
    return column.kind == "text" and _width(table, column) > PROSE


def prose(table: Table) -> list[str]:
    """Return a line for each sentence that is in no column, prefixed by its row's name."""
    columns, _ = table.split()
    long = [column for column in columns if _is_prose(table, column)]
    same = [column for column, _ in constant_columns(table)]
    short = [
        c
        for c in columns
        if c not in [*long, *same] and (c.kind == "text" or c.head in ROW_NUMBERS)
    ]
    result = []
    for row in table.rows[:MOST]:
        names = [
            table.text(row, c) if c.kind == "text" else f"{c.head} {table.text(row, c)}"
            for c in short
            if row.get(c.key) is not None
        ]
        result += [
            f"{', '.join(names)}: {printable(table.text(row, c))}" for c in long if row.get(c.key)
        ]
    return result


def _width(table: Table, column: Column) -> int:
    texts = [table.text(row, column) for row in table.rows[:MOST]]
    return max(map(len, [column.head, *texts])) + 2


def rich_table(
    table: Table, columns: Sequence[Column] | None = None, *, continued: bool = False
) -> RichTable:
    """Return a table, or some of its columns, as a table of rich."""
    from rich.table import Table as RichTable
    from rich.text import Text

    result = RichTable(box=None, pad_edge=False, header_style="bold", title_justify="left")
    result.title = Text(f"{table.title}, continued" if continued else table.title, style="bold")
    columns = table.used() if columns is None else columns
    for column in columns:
        text = column.kind == "text"
        result.add_column(
            column.head, justify="left" if text else "right", overflow="fold", no_wrap=not text
        )
    for row in table.rows[:MOST]:
        result.add_row(
            *(
                Text(printable(table.text(row, c)), style="dim" if table.is_zero(row, c) else "")
                for c in columns
            )
        )
    return result
