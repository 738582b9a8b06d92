"""A report as one self-contained page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from louvain_um.core.atomic_files import check_output, replacing
from louvain_um.errors import LouvainUmError

if TYPE_CHECKING:
    from louvain_um.profiling.session import SessionData
    from louvain_um.profiling.sweep.results import Sweep


def write(
    session: SessionData | None,
    path: str | Path,
    *,
    other: SessionData | None = None,
    sweep: Sweep | None = None,
    force: bool = False,
) -> None:
    """Write a report on one session, two compared, a sweep, or all of them."""
    check_output(path, force=force)  # before rendering
    text = render(session, other=other, sweep=sweep)
    with replacing(path, force=force) as part:
        part.write_text(text, encoding="utf-8")


def render(
    session: SessionData | None, *, other: SessionData | None = None, sweep: Sweep | None = None
) -> str:
    """Return the page that `write` writes."""
    try:
        from louvain_um.profiling.views.html.page import render
    except ImportError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise LouvainUmError("a report needs Jinja: pip install 'louvain-um[report]'") from None
    return render(session, other=other, sweep=sweep)
