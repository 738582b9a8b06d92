"""``louvain-um report``: show one session or compare two, as tables or an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louvain_um.cli import common
from louvain_um.cli.exit_codes import print_note, with_exit_code


@with_exit_code
def report(
    session: Annotated[
        Path,
        typer.Argument(
            metavar="SESSION",
            help="A session of louvain-um profile, an Nsight Systems export (SQLite), or the "
            "folder or results of louvain-um sweep.",
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="SESSION2", help="A second one to compare with the first.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="REPORT",
            help="HTML page to write; self-contained.  [default: tables on stdout]",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="TRACE",
            help="Also write a timeline for Perfetto: .json, .json.gz or .pftrace.",
            show_default=False,
        ),
    ] = None,
    charts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also write charts as PDF into this folder; needs matplotlib.",
            show_default=False,
        ),
    ] = None,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Show a recorded run: time, memory traffic, bottleneck and what to try."""
    from louvain_um.cli.report_files import write_report

    result = write_report(session, other, output=output, trace=trace, charts=charts, force=force)
    if json:
        common.print_json(result.summary())
        return
    if output is None:
        result.show()
    if not quiet:
        for path in result.written:
            print_note(f"wrote {path}")
