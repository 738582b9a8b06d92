"""Assembles the page: template, style and scripts from files, parts from the views."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from louvain_um.drawing.reports import embedded, template_of, text_of
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.views.html.parts import PagePart, heading
from louvain_um.profiling.views.html.session_parts import ROOM, comparison, session_parts
from louvain_um.profiling.views.session.analysis import SessionAnalysis, overall
from louvain_um.profiling.views.session.compare import comparison_title, ordinal
from louvain_um.version import __version__

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.results import Sweep

HERE: Final = "louvain_um.profiling.views.html"


def render(sessions: Sequence[SessionData], sweep: Sweep | None) -> str:
    """Return the page as text."""
    parts: list[PagePart] = []
    data: dict[str, Any] = {}
    title, subtitle, badge = "Policies by oversubscription", "", ""
    if sessions:
        analyses = [SessionAnalysis(session) for session in sessions]
        title, subtitle = heading(sessions[0])
        badge = overall(*sessions)
        room = ROOM // len(sessions)
        of_session = session_parts(analyses[0], data, room)
        if len(sessions) > 1:
            # Several sessions are shown to be compared: that comes first.
            title = comparison_title(sessions)
            subtitles = [heading(session)[1] for session in sessions]
            if len(set(subtitles)) > 1:
                subtitle = "; ".join(f"{ordinal(number)}: {text}"
                                     for number, text in enumerate(subtitles, 1))  # fmt: skip
            parts += comparison(analyses, data, room)
        parts += of_session
    if sweep is not None:
        from louvain_um.profiling.sweep import results
        from louvain_um.profiling.views.html.sweep_parts import sweep_parts

        if not sessions:
            labels = dict.fromkeys(gpu for _, gpu in results.machines(sweep.results) if gpu)
            title = " · ".join([title, *labels])
            kinds = {str(row["evidence"]) for row in sweep.results}
            badge = kinds.pop() if len(kinds) == 1 else "mixed" if kinds else ""
        parts += sweep_parts(sweep)
    template = template_of("report.html.j2", HERE, trim_blocks=True, lstrip_blocks=True)
    text: str = template.render(
        title=title,
        subtitle=subtitle,
        badge=badge,
        parts=parts,
        version=__version__,
        style=Markup(text_of("style.css", HERE)),
        scripts=[Markup(text_of(name, HERE)) for name in ("tables.js", "maps.js")],
        data=embedded(data),
        options=options,
    )
    return text


def options(text: str) -> Markup:
    """Return a text as HTML with its command-line options as code, which stay on one line."""
    return Markup(re.sub(r"(?<!\S)(--[a-z][a-z-]*)", r"<code>\1</code>", str(escape(text))))
