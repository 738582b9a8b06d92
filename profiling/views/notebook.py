"""A session in a notebook's cell: verdict and table by group."""

from __future__ import annotations

from html import escape

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.lines import lines
from louvain_um.profiling.views.session.tables import by_group
from louvain_um.profiling.views.session.verdict import verdict
from louvain_um.profiling.views.table import Table


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
        pieces += [_table(table), f"<p><small>{escape(table.evidence)}</small></p>"]
    pieces += [f"<p><small>note: {escape(note)}</small></p>" for note in session.notes]
    return f"<div>{''.join(pieces)}</div>"


def _table(table: Table) -> str:
    columns = table.used()
    head = "".join(f"<th>{escape(column.head)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(table.text(row, c))}</td>' for c in columns)}</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
