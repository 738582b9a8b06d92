"""``louvain-um report``: a recorded run, or two compared, as one page of HTML or as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louvain_um.cli import common
from louvain_um.cli.guard import guarded, note


@guarded
def report(
    session: Annotated[
        Path,
        typer.Argument(
            metavar="SESSION",
            help="What louvain-um profile wrote, or an export of Nsight Systems (SQLite); or the "
            "results of louvain-um sweep.",
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="SESSION2", help="A second one, to set beside the first.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="REPORT",
            help="Page to write, .html; it opens without a network.  [default: tables on stdout]",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="TRACE",
            help="Also a timeline for Perfetto or chrome://tracing: .json, .json.gz or .pftrace.",
            show_default=False,
        ),
    ] = None,
    charts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also charts in print quality (PDF) in this folder; needs matplotlib.",
            show_default=False,
        ),
    ] = None,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Show a recorded run: where its time went, what memory did, what to try."""
    from louvain_um.cli.reporting import make

    made = make(session, other, output=output, trace=trace, charts=charts, force=force)
    if json:
        common.print_json(made.summary())
        return
    if output is None:
        made.show()
    if not quiet:
        for path in made.written:
            note(f"wrote {path}")
