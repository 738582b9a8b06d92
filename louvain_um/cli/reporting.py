"""What ``louvain-um report`` does, apart from its options: all is checked before it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louvain_um.core.atomic_files import check_output
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.profiling import Session
    from louvain_um.profiling.sweep.results import Sweep

PAGES = (".html", ".htm")
TRACES = (".json", ".json.gz", ".pftrace")


@dataclass(slots=True, kw_only=True)
class Report:
    """What was read, and the files that were written."""

    sessions: tuple[Session, ...] = ()
    sweep: Sweep | None = None
    written: list[Path] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        from louvain_um.profiling.views.session.analysis import SessionAnalysis
        from louvain_um.profiling.views.session.verdict import verdict

        found: dict[str, Any] = {"schema": 1, "written": [str(path) for path in self.written]}
        found["sessions"] = [
            {**session.summary(), "verdict": str(verdict(SessionAnalysis(session)))}
            for session in self.sessions
        ]
        if self.sweep is not None:
            found["results"] = [dict(row) for row in self.sweep.results]
        return found

    def show(self) -> None:
        """Print tables."""
        from louvain_um.profiling.views import terminal

        terminal.show(self.sessions, self.sweep)


def make(
    first: Path,
    second: Path | None,
    *,
    output: Path | None,
    trace: Path | None,
    charts: Path | None,
    force: bool,
) -> Report:
    """Read what is to be shown and write what was asked for."""
    _check(first, second, output=output, trace=trace, charts=charts, force=force)
    made = _read(first, second)
    if made.sweep is not None and trace is not None:
        raise OptionError("trace must be of a session; a sweep has no timeline")
    if charts is not None:
        # First, since which files these are, and whether they are there, shows only now.
        from louvain_um.profiling.views.charts import save

        made.written += save(made.sessions, charts, sweep=made.sweep, force=force)
    if output is not None:
        from louvain_um.profiling.views.html import write

        session = made.sessions[0] if made.sessions else None
        other = made.sessions[1] if len(made.sessions) > 1 else None
        write(session, output, other=other, sweep=made.sweep, force=force)
        made.written.append(output)
    if trace is not None:
        from louvain_um.profiling.views import perfetto

        perfetto.write(made.sessions[0], trace, force=force)
        made.written.append(trace)
    return made


def _check(
    first: Path,
    second: Path | None,
    *,
    output: Path | None,
    trace: Path | None,
    charts: Path | None,
    force: bool,
) -> None:
    """Refuse what cannot be written before anything is read."""
    if output is not None and output.suffix.lower() not in PAGES:
        raise OptionError(f"output must end in .html, not {output.name!r}")
    if trace is not None and not trace.name.lower().endswith(TRACES):
        raise OptionError(f"trace must end in {', '.join(TRACES)}, not {trace.name!r}")
    for path in (output, trace):
        if path is not None:
            for source in (first, second):
                if source and source.exists() and path.exists() and path.samefile(source):
                    raise OptionError(f"{path}: is what is to be shown; name another file")
            check_output(path, force=force)
    if charts is None:
        return
    from louvain_um.profiling.views.canvas import require_matplotlib

    require_matplotlib()
    if charts.exists() and not charts.is_dir():
        raise OptionError(f"{charts}: is no folder; charts are several files")


def _read(first: Path, second: Path | None) -> Report:
    """Read sessions, or a sweep."""
    from louvain_um.profiling import load
    from louvain_um.profiling.sweep import files
    from louvain_um.profiling.sweep.results import join_sweeps

    found = Report()
    for path in (first, second):
        if path is None:
            continue
        if files.is_results(path):
            read = files.read(path)
            found.sweep = read if found.sweep is None else join_sweeps(found.sweep, read)
        else:
            found.sessions = (*found.sessions, load(path))
    return found
