"""``louvain-um report``: show one session or compare several, as tables or an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.terminal import safe_console
from louvain_um.core.atomic_files import check_output
from louvain_um.errors import OptionError, require_packages

if TYPE_CHECKING:
    from louvain_um.profiling import Session
    from louvain_um.profiling.sweep.results import Sweep


@with_exit_code
def report(
    session: Annotated[
        Path,
        typer.Argument(
            metavar="SESSION",
            help="A session of louvain-um profile, an Nsight Systems export (SQLite, Parquet), or "
            "the folder or results of louvain-um sweep or simulate.",
        ),
    ],
    others: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SESSION2", help="Others to compare with the first.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "--output -o REPORT", "HTML page to write; self-contained.  [default: tables on stdout]"
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        option("--trace TRACE", "Also write a timeline for Perfetto: .json or .json.gz."),
    ] = None,
    charts: Annotated[
        Path | None,
        option("FOLDER", "Also write charts as PDF and SVG into this folder; needs matplotlib."),
    ] = None,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Show a recorded run: time, memory traffic, bottleneck and what to try."""
    paths = [session, *(others or ())]
    result = write_report(paths, output=output, trace=trace, charts=charts, force=force)
    if trace is not None and others and not quiet:
        print_note(f"{trace} is of the first session, {session}; call again for each other one")
    if json:
        common.print_json(result.summary())
        return
    if output is None:
        result.show()
    if not quiet:
        print_note(*(f"wrote {path}" for path in result.written))


PAGES = (".html", ".htm")


@dataclass(slots=True, kw_only=True)
class ReportFiles:
    """Input read and files written by ``louvain-um report``."""

    sessions: tuple[Session, ...] = ()
    sweep: Sweep | None = None
    written: list[Path] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        from louvain_um.profiling.views.session.analysis import SessionAnalysis
        from louvain_um.profiling.views.session.verdict import verdict

        values: dict[str, Any] = {"schema": 1, "written": [str(path) for path in self.written]}
        values["sessions"] = [
            {**session.summary(), "verdict": str(verdict(SessionAnalysis(session)))}
            for session in self.sessions
        ]
        if self.sweep is not None:
            values["results"] = [dict(row) for row in self.sweep.results]
        return values

    def show(self) -> None:
        """Print tables on stdout."""
        from louvain_um.profiling.views import terminal

        terminal.show(self.sessions, self.sweep, safe_console())


def write_report(
    paths: Sequence[Path],
    *,
    output: Path | None,
    trace: Path | None,
    charts: Path | None,
    force: bool,
) -> ReportFiles:
    """Read the input and write every file requested."""
    _check(paths, output=output, trace=trace, charts=charts, force=force)
    report = _read(paths)
    if report.sweep is not None and trace is not None:
        raise OptionError(remedy="--trace needs a session; a sweep has no timeline")
    if charts is not None:
        # First: which files these are, and whether they exist, is known only now.
        from louvain_um.profiling import load
        from louvain_um.profiling.views.charts import save

        report.written += save(report.sessions, charts, sweep=report.sweep, force=force)
        for kept in sorted(kept for path in paths for kept in path.glob("sessions/*.npz")):
            report.written += save((load(kept),), charts / kept.stem, force=force)
    if output is not None:
        from louvain_um.profiling.views.html import write

        write(report.sessions, output, sweep=report.sweep, force=force)
        report.written.append(output)
    if trace is not None:
        from louvain_um.profiling.views import timeline

        timeline.write(report.sessions[0], trace, force=force)
        report.written.append(trace)
    return report


def _check(
    paths: Sequence[Path],
    *,
    output: Path | None,
    trace: Path | None,
    charts: Path | None,
    force: bool,
) -> None:
    """Raise for output that cannot be written, before anything is read."""
    if output is not None and output.suffix.lower() not in PAGES:
        raise OptionError("output", output.name, "must end in .html")
    if output is not None:
        require_packages("a page", "jinja2")
    if trace is not None:
        from louvain_um.profiling.views.timeline import SUFFIXES

        if not trace.name.lower().endswith(SUFFIXES):
            raise OptionError("trace", trace.name, f"must end in {', '.join(SUFFIXES)}")
    for path in (output, trace):
        if path is not None:
            for source in paths:
                if source.exists() and path.exists() and path.samefile(source):
                    raise OptionError(remedy=f"{path}: is also the input; choose another name")
            check_output(path, force=force)
    if charts is None:
        return
    from louvain_um.profiling.views.canvas import require_matplotlib

    require_matplotlib()
    if charts.exists() and not charts.is_dir():
        raise OptionError(remedy=f"{charts}: is not a folder; --charts writes several files")


def _read(paths: Sequence[Path]) -> ReportFiles:
    """Read sessions or sweeps."""
    from louvain_um.profiling import load
    from louvain_um.profiling.sweep import files
    from louvain_um.profiling.sweep.results import join_sweeps

    report = ReportFiles()
    for path in paths:
        if files.is_results(path):
            read = files.read(path)
            report.sweep = read if report.sweep is None else join_sweeps(report.sweep, read)
        else:
            report.sessions = (*report.sessions, load(path))
    return report
