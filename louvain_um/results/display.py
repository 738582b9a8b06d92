"""A result as text: in a terminal, in a notebook, and as its `repr`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any, Final

import numpy as np

from louvain_um.errors import needed
from louvain_um.results.partition import Outcome, Result

SHOWN = 8
"""Communities and members listed; the rest is counted."""

Rows = list[tuple[str, ...]]

LEVEL_HEAD = (
    "cycle",
    "level",
    "vertices",
    "arcs",
    "communities",
    "modularity",
    "sweeps",
    "seconds",
)
SIZE_HEAD = ("community", "size", "members")
TEXTS: Final = ("members", "hubs", "distinguished by", "group")
"""Columns without numbers."""


def count(number: int, one: str, several: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else several}"


def quantity(value: float) -> str:
    """Return a sum of weights as text: in full if it is whole, else with 12 digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.12g}"


def score(modularity: float) -> str:
    """Return a modularity as text: four places, unless an extreme resolution makes it huge."""
    return f"{round(modularity, 4) + 0.0:.4f}" if abs(modularity) < 1e6 else f"{modularity:.4g}"


def objective_text(result: Outcome) -> str:
    """Return the value of a result's objective, named."""
    if result.objective == "cpm":
        return f"CPM {result.value:.6g}, modularity {score(result.modularity)}"
    return f"{objective_name(result)} {score(result.modularity)}"


def objective_name(result: Outcome) -> str:
    """Return what a result's objective is called."""
    names = {"cpm": "CPM", "modularity": "modularity"}
    return names.get(result.objective, f"{result.objective} modularity")


def level_rows(result: Outcome) -> Rows:
    """Return one row of text per level."""
    return [
        (
            str(level.cycle),
            str(number),
            f"{level.vertices:,}",
            f"{level.arcs:,}",
            f"{level.communities:,}",
            score(level.modularity),
            str(level.iterations),
            f"{level.seconds:.3f}",
        )
        for number, level in enumerate(result.levels)
    ]


NOT_SHOWN: Final = re.compile(r"[\0-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
"""What XML, fonts or terminals cannot show: control characters, surrogates, byte order marks."""


def shown(name: Any) -> str:
    """Return a name as text of one line that pictures and pages can hold."""
    return NOT_SHOWN.sub("?", str(name))


LONGEST: Final = 24
"""Characters of a name in pictures and pages; longer ones end at a word."""


def cut(name: str) -> str:
    """Return a name, or its first words: no word is broken unless it is too long by itself."""
    if len(name) <= LONGEST:
        return name
    words = re.match(rf"(.{{1,{LONGEST - 1}}})(?<=\w)(?!\w)", name)
    return f"{words[1] if words else name[: LONGEST - 1]}…"


def listable(names: Iterable[Any]) -> list[str]:
    """Return names as text, in quotes those that hold a comma: commas separate them in lists."""
    return [f'"{name}"' if "," in name else name for name in map(shown, names)]


def size_rows(result: Result) -> Rows:
    """Return a row of text for each of the largest communities, and one for the others."""
    rows: Rows = []
    for c in range(min(SHOWN, result.n_communities)):
        # The first members only: listing them all would cost a pass per community.
        found = np.flatnonzero(result.labels == c)[:SHOWN]
        listed = listable(found if result.names is None else result.names[found])
        more = ", …" if result.sizes[c] > SHOWN else ""
        rows.append((str(c), f"{result.sizes[c]:,}", ", ".join(listed) + more))
    others = result.n_communities - SHOWN
    if others > 0:
        rows.append((count(others, "other", "others"), f"{int(result.sizes[SHOWN:].sum()):,}", ""))
    return rows


def text_view(result: Result) -> str:
    """Return the `repr` of a result."""
    vertices = count(result.n_vertices, "vertex", "vertices")
    parts = [f"{vertices} in {count(result.n_communities, 'community', 'communities')}"]
    parts.append(objective_text(result))
    if result.method:
        parts.append(result.method)
    if result.levels:
        parts.append(count(len(result.levels), "level", "levels"))
    return f"Communities({', '.join(parts)})"


def rich_view(result: Result) -> Any:
    """Return the view of a result for `rich.print`."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(text_view(result))]
    for head, rows in ((LEVEL_HEAD, level_rows(result)), (SIZE_HEAD, size_rows(result))):
        if rows:
            table = Table(box=None, pad_edge=False)
            for name in head:
                table.add_column(name, justify="left" if name in TEXTS else "right")
            for row in rows:
                table.add_row(*(Text(cell) for cell in row))
            parts.append(table)
    return Group(*parts)


def html_view(result: Result, picture: str = "") -> str:
    """Return the view of a result for a notebook."""
    parts = [f"<p>{escape(text_view(result))}</p>", picture]
    for head, rows in ((LEVEL_HEAD, level_rows(result)), (SIZE_HEAD, size_rows(result))):
        if rows:
            parts.append(html_table(head, rows))
    return "".join(parts)


def html_table(head: tuple[str, ...], rows: Rows) -> str:
    """Return texts as a table for a notebook."""
    left = [' style="text-align:left"' if name in TEXTS else "" for name in head]

    def line(tag: str, cells: tuple[str, ...]) -> str:
        texts = zip(left, map(escape, cells), strict=True)
        return f"<tr>{''.join(f'<{tag}{style}>{text}</{tag}>' for style, text in texts)}</tr>"

    return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"


def require_pandas() -> Any:
    """Import pandas; the error says how to install it."""
    return needed("pandas", "a frame needs pandas", "formats")


def printable(name: Any) -> str:
    """Return a name with control characters replaced by question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(name))
