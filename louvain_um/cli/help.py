"""Help in plain text, wrapped but never truncated to the terminal's width."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from louvain_um.cli.option_names import current_names
from louvain_um.cli.terminal.output import safe

TYPES = re.compile(r" <(?:str|int|float|bool|path|list\[\w+\])>")
"""Python types that Typer adds to the names of options."""


def _note(text: str) -> None:
    from louvain_um.cli.exit_codes import print_note

    print_note(text)


class SafeErrors:
    """Usage errors whose text cannot carry commands to the terminal."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse arguments."""
        try:
            return super().make_context(*arguments, **options)  # type: ignore[misc]
        except Exception as error:
            message = getattr(error, "message", None)
            if isinstance(message, str):
                error.message = safe(message)  # type: ignore[attr-defined]
            raise


class Command(SafeErrors, TyperCommand):
    """A command whose help shows options in panels, and that knows options by other names, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, after options got their current names."""
        quiet = not {"-q", "--quiet"}.isdisjoint(args)
        args, error = current_names(
            ctx.info_name, args, lambda text: None if quiet else _note(text)
        )
        if error:
            ctx.fail(error)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # Pydantic's
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, without the braces that some Typer versions add."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", " ").strip() for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and further panels."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            default = "Arguments" if parameter.param_type_name == "argument" else "Options"
            title = getattr(parameter, "rich_help_panel", None) or default
            name, text = record
            sections.setdefault(title, []).append((TYPES.sub("", name), text))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Group(SafeErrors, TyperGroup):
    """A group that lists commands with their full first sentences."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        records = [
            (name, command.get_short_help_str(limit=1000))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(records)
