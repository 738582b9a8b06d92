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
    writing: common.Writing = common.Writing(),
) -> None:
    """Show a recorded run: time, memory traffic, bottleneck and what to try."""
    paths = [session, *(others or ())]
    result = write_report(paths, output=output, trace=trace, charts=charts, force=writing.force)
    if trace is not None and others and not writing.quiet:
        print_note(f"{trace} is of the first session, {session}; call again for each other one")
    if writing.json:
        common.print_json(result.summary())
        return
    if output is None:
        result.show()
    if not writing.quiet:
        print_note(*(f"wrote {path}" for path in result.written))


PAGES = (".html", ".htm")


@dataclass(slots=True, kw_only=True)
class ReportFiles:
    """What ``louvain-um report`` reads, and the files that it writes."""

    paths: Sequence[Path]
    output: Path | None
    trace: Path | None
    charts: Path | None
    force: bool
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

    def check(self) -> None:
        """Raise for output that cannot be written, before anything is read."""
        if self.output is not None and self.output.suffix.lower() not in PAGES:
            raise OptionError("output", self.output.name, "must end in .html")
        if self.output is not None:
            require_packages("a page", "jinja2")
        if self.trace is not None:
            from louvain_um.profiling.views.timeline import SUFFIXES

            if not self.trace.name.lower().endswith(SUFFIXES):
                raise OptionError("trace", self.trace.name, f"must end in {', '.join(SUFFIXES)}")
        for path in filter(None, (self.output, self.trace)):
            for source in self.paths:
                if source.exists() and path.exists() and path.samefile(source):
                    raise OptionError(remedy=f"{path}: is also the input; choose another name")
            check_output(path, force=self.force)
        if self.charts is None:
            return
        require_packages("--charts", "matplotlib")
        if str(self.charts) == "-" or (self.charts.exists() and not self.charts.is_dir()):
            raise OptionError(
                remedy=f"{self.charts}: is not a folder; --charts writes several files"
            )

    def read(self) -> None:
        """Read sessions or sweeps."""
        from louvain_um.profiling import load
        from louvain_um.profiling.sweep import files
        from louvain_um.profiling.sweep.results import join_sweeps

        for path in self.paths:
            if files.is_results(path):
                read = files.read(path)
                self.sweep = read if self.sweep is None else join_sweeps(self.sweep, read)
            else:
                self.sessions = (*self.sessions, load(path))
        if self.sweep is not None and self.trace is not None:
            raise OptionError(remedy="--trace needs a session; a sweep has no timeline")

    def write(self) -> None:
        """Write every file requested."""
        if self.charts is not None:
            # First: which files these are, and whether they exist, is known only now.
            from louvain_um.profiling import load
            from louvain_um.profiling.views.charts import save

            self.written += save(self.sessions, self.charts, sweep=self.sweep, force=self.force)
            for kept in sorted(kept for path in self.paths for kept in path.glob("sessions/*.npz")):
                self.written += save((load(kept),), self.charts / kept.stem, force=self.force)
        if self.output is not None:
            from louvain_um.profiling.views.html import write

            write(self.sessions, self.output, sweep=self.sweep, force=self.force)
            self.written.append(self.output)
        if self.trace is not None:
            from louvain_um.profiling.views import timeline

            timeline.write(self.sessions[0], self.trace, force=self.force)
            self.written.append(self.trace)


def write_report(paths: Sequence[Path], **asked: Any) -> ReportFiles:
    """Read the input and write every file requested."""
    report = ReportFiles(paths=paths, **asked)
    report.check()
    report.read()
    report.write()
    return report
