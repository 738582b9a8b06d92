"""The command line: registers the commands, each of which has a module in `commands`.

These modules import slow libraries inside functions, so that ``--help`` stays fast.
"""

from __future__ import annotations

import gc
from typing import Annotated, Any, Final

import typer

from louvain_um.cli.commands import (
    calibrate,
    compare,
    convert,
    detect,
    doctor,
    draw,
    ensemble,
    generate,
    plan,
    profile,
    resolution,
)
from louvain_um.cli.commands import report as report_command
from louvain_um.cli.commands import run as run_command
from louvain_um.cli.commands import simulate as simulate_command
from louvain_um.cli.commands import stores as stores_command
from louvain_um.cli.commands import stream as stream_command
from louvain_um.cli.commands import sweep as sweep_command
from louvain_um.cli.exit_codes import (
    CLOSED_PIPE,
    SIGNAL,
    open_standard_streams,
    report_error,
)
from louvain_um.cli.help import Command, Group
from louvain_um.cli.signals import Interruption, handler
from louvain_um.cli.startup import mmap_large_arrays
from louvain_um.core.atomic_files import remove_temporary_files


class Commands(Group):
    """All commands, in the order of `PANELS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of commands."""
        return [name for commands in PANELS.values() for name in commands]


app = typer.Typer(
    name="louvain-um",
    cls=Commands,
    help="Find communities in large graphs.",
    epilog="`louvain-um COMMAND --help` explains a command. GRAPH is a file, - for standard "
    "input, or example:les-miserables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EVERYDAY: Final[dict[str, Any]] = {
    "detect": detect.detect,
    "compare": compare.compare,
    "draw": draw.draw,
    "resolution": resolution.resolution,
    "ensemble": ensemble.ensemble,
    "stream": stream_command.stream,
    "convert": convert.convert,
    "generate": generate.app,
    "doctor": doctor.doctor,
}
MEMORY: Final[dict[str, Any]] = {
    "plan": plan.app,
    "profile": profile.profile,
    "report": report_command.report,
    "simulate": simulate_command.simulate,
    "sweep": sweep_command.sweep,
    "calibrate": calibrate.calibrate,
}
MORE: Final[dict[str, Any]] = {"run": run_command.app, "stores": stores_command.stores}

PANELS: Final = {"Commands": EVERYDAY, "Memory": MEMORY, "More": MORE}

for title, commands in PANELS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=title)
        else:
            app.command(name, cls=Command, rich_help_panel=title)(command)


def print_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        from louvain_um.version import __version__

        typer.echo(f"louvain-um {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Find communities in large graphs."""


def main() -> None:
    """Run the command line; the entry point of ``louvain-um``."""
    try:
        run()
    except KeyboardInterrupt as error:  # before signals were handled, or while one was reported
        raise SystemExit(report_error(error)) from None
    finally:
        handler.remove()


def run() -> None:
    """Handle signals, and run the command that the arguments name."""
    # Imports create some 100,000 objects and no garbage. At the default threshold the garbage
    # collector takes a tenth of a short command's time.
    gc.set_threshold(200_000, 20, 20)
    mmap_large_arrays()
    handler.install()
    try:
        open_standard_streams()
        app(prog_name="louvain-um")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # met by Rich or by the parser
            raise SystemExit(CLOSED_PIPE) from None
        # The parser of arguments ends silently, with its own code, where a signal interrupts it.
        if handler.first is None or end.code == SIGNAL + handler.first:
            raise
        raise SystemExit(report_error(Interruption(handler.first))) from None
    except (Exception, KeyboardInterrupt) as error:
        # Commands report their own errors. This one came from the help: a full disk or Ctrl-C.
        raise SystemExit(report_error(error)) from None
    finally:
        remove_temporary_files()
