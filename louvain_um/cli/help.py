"""Help in plain text, wrapped but never truncated, and options under other commands' names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from louvain_um.cli.terminal import safe

TYPES = re.compile(r" <(?:str|int|float|bool|path|list\[\w+\])>")
"""Python types that Typer adds to the names of options."""

EXPERIMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "detect": ("ballast", "allow_driver_eviction", "exchange")
}
"""By command, options that its help leaves to the guides: few runs need them."""


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
    """A command with options in panels, which also takes the names that other commands use."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, after options got the names of this command."""
        args, error = names_of_this_command(ctx.command_path.split()[1], args)
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
            if record is None or parameter.name in EXPERIMENTS.get(ctx.info_name, ()):
                continue
            default = "Arguments" if parameter.param_type_name == "argument" else "Options"
            title = getattr(parameter, "rich_help_panel", None) or default
            name, text = record
            sections.setdefault(title, []).append((TYPES.sub("", name), text))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Group(SafeErrors, TyperGroup):
    """A group that lists commands in panels, with their full first sentences."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                title = getattr(command, "rich_help_panel", None)
                about = command.get_short_help_str(limit=1000)
                sections.setdefault(title or "Commands", []).append((name, about))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


SAME: Final[Mapping[str, Mapping[str, str]]] = {
    **{command: {"--policies": "--memory"} for command in ("detect", "plan", "profile")},
    **{command: {"--memory": "--policies"} for command in ("simulate", "sweep")},
}
"""By command, names that others use for the same: --memory takes one policy, --policies several."""

_PLANNED: Final = "is for plan, simulate and sweep; a run uses the GPU that --device names"
_SHARE: Final = "is for simulate and sweep; for 30 % pass --device-budget 70%"

ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "detect": {"--machine": _PLANNED, "--oversubscription": _SHARE},
    "profile": {"--machine": _PLANNED, "--oversubscription": _SHARE},
    "plan": {"--oversubscription": _SHARE},
}
"""By command, options of other commands, and what to do instead."""


def names_of_this_command(command: str, arguments: Sequence[str]) -> tuple[list[str], str]:
    """Return arguments with the command's names of options, and an error or nothing."""
    result: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[number:]], ""
        name, equals, value = argument.partition("=")
        if name in ELSEWHERE.get(command, {}):
            return [], f"{name} {ELSEWHERE[command][name]}"
        new = SAME.get(command, {}).get(name, name)
        result.append(f"{new}{equals}{value}")
    return result, ""
