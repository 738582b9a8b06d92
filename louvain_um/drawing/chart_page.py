"""Pages of charts and tables that need no network."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from louvain_um.errors import LouvainUmError


def chart(title: str, about: str, height: float, draw: Callable[[Any], None]) -> dict[str, str]:
    """Return a chart as SVG text with its title."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise LouvainUmError(
            "charts of pages need Matplotlib; install it with pip install 'louvain-um[charts]'"
        ) from None
    # Without a salt and a date, the same content gives the same page.
    with mpl.rc_context({"svg.hashsalt": title, "svg.fonttype": "none"}):
        figure = Figure(figsize=(10, height), layout="constrained")
        draw(figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    return {"title": title, "about": about, "svg": svg[svg.index("<svg") :]}


def render(
    title: str,
    kind: str,
    facts: str,
    charts: Sequence[Mapping[str, str]],
    tables: Sequence[Mapping[str, Any]],
) -> str:
    """Return a page."""
    try:
        import jinja2
    except ImportError:
        raise LouvainUmError(
            "pages need Jinja; install it with pip install 'louvain-um[report]'"
        ) from None
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        files("louvain_um.drawing").joinpath("charts.html.j2").read_text("utf-8")
    )
    return template.render(title=title, kind=kind, facts=facts, charts=charts, tables=tables)
