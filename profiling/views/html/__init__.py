"""A report as one self-contained page of HTML, and a session as a piece of a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from louvain_um.core.atomic_files import check_output, write_text
from louvain_um.errors import needed
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.views.session.analysis import SessionAnalysis, lines
from louvain_um.profiling.views.session.tables import by_group
from louvain_um.profiling.views.session.verdict import verdict
from louvain_um.results.display import html_table

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.results import Sweep


def write(
    sessions: Sequence[SessionData],
    path: str | Path,
    *,
    sweep: Sweep | None = None,
    force: bool = False,
) -> None:
    """Write a report on one session, several compared, a sweep, or all of them."""
    check_output(path, force=force)  # before rendering
    text = render(sessions, sweep=sweep)
    write_text(path, text, force=force)


def render(sessions: Sequence[SessionData], *, sweep: Sweep | None = None) -> str:
    """Return the page that `write` writes."""
    needed("jinja2", "a report needs Jinja", "report")
    from louvain_um.profiling.views.html.page import render

    return render(sessions, sweep)


def html(session: SessionData) -> str:
    """Return a session as a small piece of HTML."""
    analysis = SessionAnalysis(session)
    conclusion = verdict(analysis)
    table = by_group(analysis)
    pieces = [
        f"<b>{escape(next(iter(lines(session))))}</b>",
        f"<p>{escape(str(conclusion))} <small>({escape(conclusion.grounds)})</small></p>",
    ]
    if table.rows:
        columns = table.used()
        rows = [tuple(table.text(row, column) for column in columns) for row in table.rows]
        pieces += [html_table(tuple(column.head for column in columns), rows),
                   f"<p><small>{escape(table.evidence)}</small></p>"]  # fmt: skip
    pieces += [f"<p><small>note: {escape(note)}</small></p>" for note in session.notes]
    return f"<div>{''.join(pieces)}</div>"
