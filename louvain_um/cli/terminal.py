"""Text for the terminal: names in it cannot carry commands to the terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but tab and line feed, marks that reverse text, bytes that are no text."""

NARROWEST = 20
"""Columns of the narrowest terminal; `COLUMNS` may say less."""


def safe(text: str) -> str:
    r"""Return text with characters that control a terminal written as escapes.

    Examples
    --------
    >>> from louvain_um.cli.terminal import safe
    >>> print(safe("\x1b[31mred.csv"))
    \x1b[31mred.csv
    """
    return UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def print_line(text: str) -> None:
    """Print one line on stderr."""
    with suppress(OSError):
        print(safe(text), file=sys.stderr, flush=True)


def echo(text: str) -> None:
    """Print a line on stdout."""
    typer.echo(safe(text))


def safe_console(**options: Any) -> Console:
    """Return a console of Rich that interprets nothing in the text it is given."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or not UNSAFE.search(segment.text):
                    yield segment
                else:
                    yield Segment(safe(segment.text), segment.style)

    return SafeConsole(highlight=False, markup=False, emoji=False, width=_width(), **options)


def _width() -> int | None:
    """Return the width that a `COLUMNS` of too few columns stands for, otherwise None."""
    columns = os.environ.get("COLUMNS", "")
    if not columns.isdecimal() or int(columns) >= NARROWEST:
        return None
    return NARROWEST if int(columns) else shutil.get_terminal_size().columns
