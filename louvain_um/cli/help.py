"""Help in plain text: nothing is cut off, whatever the terminal's width."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

TYPES = re.compile(r" <(?:str|int|float|bool|path|list\[\w+\])>")
"""What Typer adds to names: Python's words, which tell a user nothing."""


class Command(TyperCommand):
    """A command whose help keeps options in the panels they were given."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line's words; some versions of Typer put arguments in braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and each panel of further options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            title = getattr(parameter, "rich_help_panel", None) or usual
            name, text = record
            sections.setdefault(title, []).append((TYPES.sub("", name), text))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Group(TyperGroup):
    """Commands, each with the whole of its first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line, or as many as it takes, for each command."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        records = [
            (name, command.get_short_help_str(limit=1000))
            for name, command in found
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(records)
