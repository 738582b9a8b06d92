"""The command line: one module a command; this one only names them.

Modules of commands import nothing that costs at their top, so that ``--help`` is quick.
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
    generate,
    plan,
    profile,
)
from louvain_um.cli.commands import report as report_command
from louvain_um.cli.commands import simulate as simulate_command
from louvain_um.cli.commands import sweep as sweep_command
from louvain_um.cli.guard import keep_interrupts, open_standard_streams, report
from louvain_um.cli.heap import map_arrays_apart
from louvain_um.cli.help import Command, Group

app = typer.Typer(
    name="louvain-um",
    cls=Group,
    help="Find communities in large graphs.",
    epilog="`louvain-um COMMAND --help` explains a command. GRAPH is a file, - for standard "
    "input, or example:les-miserables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("detect", cls=Command)(detect.detect)
app.command("profile", cls=Command)(profile.profile)
app.command("report", cls=Command)(report_command.report)
app.command("sweep", cls=Command)(sweep_command.sweep)
app.command("simulate", cls=Command)(simulate_command.simulate)
app.command("calibrate", cls=Command)(calibrate.calibrate)
app.command("plan", cls=Command)(plan.plan)
app.command("compare", cls=Command)(compare.compare)
app.command("convert", cls=Command)(convert.convert)
app.add_typer(generate.app, name="generate")
app.command("doctor", cls=Command)(doctor.doctor)


def print_version(asked: bool) -> None:
    """Print the version and leave."""
    if asked:
        from louvain_um.version import __version__

        typer.echo(f"louvain-um {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Find communities in large graphs."""


def main() -> None:
    """Run the command line; the entry point of ``louvain-um``."""
    # Importing makes objects by the hundred thousand and no garbage: with the collector's
    # usual threshold a tenth of a short command's time went into looking for it.
    gc.set_threshold(200_000, 20, 20)
    map_arrays_apart()
    open_standard_streams()
    keep_interrupts()
    try:
        app(prog_name="louvain-um")
    except (Exception, KeyboardInterrupt) as error:
        # Commands report their own; this is help that met a full disc or an interrupt.
        raise SystemExit(report(error)) from None
