"""Text for the terminal: without commands to it, and with options as commands spell them."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer
from typer.models import OptionInfo

if TYPE_CHECKING:
    from rich.console import Console

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but tab and line feed, marks that reverse text, bytes that are no text."""

NARROWEST = 20
"""Columns of the narrowest terminal; `COLUMNS` may say less."""


def safe(text: str) -> str:
    """Return text with characters that control a terminal written as escapes."""
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


OPTIONS = (
    "allow_rounding", "best_of", "bipartite", "checkpoint", "cluster", "date_format", "device",
    "device_budget", "directed", "duplicates", "effort", "every", "exchange", "fixed", "force",
    "format", "header", "ids", "initial", "kind", "loops", "max_level", "max_size", "memory",
    "method", "n_iterations", "objective", "on_loss", "one_based", "peer_memory", "resolution",
    "seed", "separator", "signed", "sort", "source", "symmetrize", "target", "threads",
    "threshold", "time", "tracer", "trusted", "weight", "weighted",
)  # fmt: skip
"""Arguments that have an option of the same name."""

OPPOSITES = {
    "bipartite": "--one-mode",
    "header": "--no-header",
    "one_based": "--zero-based",
    "weighted": "--unweighted",
}
"""Options that set an argument to False."""

NAME = "|".join(OPTIONS)
ARGUMENT = re.compile(rf"\b({NAME})=(True|False|'[^']*'|…|\.\.\.)( \(--[\w-]+\))?")
TWICE = re.compile(rf"(--[\w-]+) \(({NAME})=True\)")


def with_flags(text: str) -> str:
    """Return a message with Python arguments replaced by options."""
    text = TWICE.sub(r"\1", text)
    return ARGUMENT.sub(lambda match: option(match[1], match[2]), text)


def flags(command: Callable[..., Any]) -> dict[str, str]:
    """Return the flags of a command's options, by parameter name and by option name.

    Positional arguments are left out.
    """
    result = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        declared = (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))
        for info in declared:
            if isinstance(info, OptionInfo):
                # In an annotation, Typer takes the first name as the default.
                texts = [str(text) for text in (info.default, *(info.param_decls or ()))]
                shown = next((text for text in texts if text.startswith("--")), flag(name))
                shown = shown.partition("/")[0]
                result[name] = result[shown[2:].replace("-", "_")] = shown
    return result


def option(name: str, value: str) -> str:
    """Return the option for an argument and its value."""
    if value == "True":
        return flag(name)
    if value == "False":
        return OPPOSITES.get(name, f"no {flag(name)}")
    return f"{flag(name)} {value.strip(chr(39))}"


def flag(name: str) -> str:
    """Return the option for an argument's name."""
    return f"--{name.replace('_', '-')}"
