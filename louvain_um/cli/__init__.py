"""The command line: registers the commands, each of which has a module in `commands`.

These modules import slow libraries inside functions, so that ``--help`` stays fast.
"""

from __future__ import annotations

import gc
from typing import Annotated

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
from louvain_um.cli.commands import sweep as sweep_command
from louvain_um.cli.dynamic import stores as stores_command
from louvain_um.cli.dynamic import stream as stream_command
from louvain_um.cli.exit_codes import (
    CLOSED_PIPE,
    SIGNAL,
    open_standard_streams,
    report_error,
)
from louvain_um.cli.heap import mmap_large_arrays
from louvain_um.cli.help import Command, Group
from louvain_um.cli.terminal.signals import Interruption, handler
from louvain_um.core.atomic_files import remove_temporary_files

app = typer.Typer(
    name="louvain-um",
    cls=Group,
    help="Find communities in large graphs.",
    epilog="`louvain-um COMMAND --help` explains a command. GRAPH is a file, - for standard "
    "input, or example:les-miserables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("detect", cls=Command)(detect.detect)
app.command("resolution", cls=Command)(resolution.resolution)
app.command("ensemble", cls=Command)(ensemble.ensemble)
app.command("draw", cls=Command)(draw.draw)
app.command("stream", cls=Command)(stream_command.stream)
app.command("profile", cls=Command)(profile.profile)
app.command("report", cls=Command)(report_command.report)
app.command("sweep", cls=Command)(sweep_command.sweep)
app.command("simulate", cls=Command)(simulate_command.simulate)
app.command("calibrate", cls=Command)(calibrate.calibrate)
app.command("plan", cls=Command)(plan.plan)
app.command("stores", cls=Command)(stores_command.stores)
app.command("compare", cls=Command)(compare.compare)
app.command("convert", cls=Command)(convert.convert)
app.add_typer(run_command.app, name="run")
app.add_typer(generate.app, name="generate")
app.command("doctor", cls=Command)(doctor.doctor)


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
