"""Progress on stderr, driven by the engine's events."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from louvain_um.cli.terminal.output import print_line, safe_console

if TYPE_CHECKING:
    from rich.progress import Progress

    from louvain_um.events import Event

COMPILING = "compiling kernels for the first time …"
VERBS = {
    "load": "loading",
    "move": "moving",
    "refine": "refining",
    "aggregate": "aggregating",
    "fetch": "fetching",
    "run": "running",
}


class Reporter:
    """Shows steps and events on a terminal; elsewhere only the line about compiling.

    `compiled` is the number of seconds spent compiling.
    """

    def __init__(self, *, quiet: bool, progress: Progress | None = None) -> None:
        self.quiet = quiet
        self.progress = progress
        self.task: Any = None
        self.announced = False
        self.compiled = 0.0
        self._since = 0.0
        self.modularity = math.nan

    def step(self, text: str) -> None:
        """Show a new step of the command, such as reading."""
        if self.progress is None:
            return
        if self.task is None:
            self.task = self.progress.add_task(text, total=None)
        else:
            self.progress.update(self.task, description=text, completed=0)

    def compiling(self) -> None:
        """Announce, once, that kernels are being compiled."""
        if not (self.quiet or self.announced):
            print_line(COMPILING)
        self.announced = True

    def __call__(self, event: Event) -> None:
        """Handle an event of the engine."""
        if event.phase == "compile":
            if event.kind == "start":
                self.compiling()
                self._since = time.perf_counter()
            else:
                self.compiled += time.perf_counter() - self._since
            return
        if not math.isnan(event.modularity):
            self.modularity = event.modularity
        if self.progress is None or event.kind not in ("start", "iteration"):
            return
        self.step(describe(event, self.modularity))
        if event.kind == "iteration" and event.vertices:
            # A level ends when few vertices still move, so the bar shows the share at rest.
            resting = 1 - event.moved / event.vertices
            self.progress.update(self.task, total=1.0, completed=resting)


def describe(event: Event, modularity: float) -> str:
    """Return an event as text: level, phase, iteration, modularity."""
    parts = [VERBS.get(event.phase, event.phase)]
    if event.level >= 0:
        parts.insert(0, f"level {event.level}")
    if event.iteration >= 0:
        parts.append(f"iteration {event.iteration}")
    if not math.isnan(modularity):
        from louvain_um.results.display import score

        parts.append(f"modularity {score(modularity)}")
    return " · ".join(parts)


@contextmanager
def progress_reporter(*, quiet: bool) -> Iterator[Reporter]:
    """Yield a reporter that draws a progress bar if stderr is a terminal, unless quiet."""
    if quiet or not sys.stderr.isatty():
        yield Reporter(quiet=quiet)
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=safe_console(stderr=True), transient=True) as progress:
        yield Reporter(quiet=quiet, progress=progress)


@contextmanager
def timed(seconds: dict[str, float], key: str, reporter: Reporter) -> Iterator[None]:
    """Note the seconds of a block in a mapping, less those of compiling."""
    start, compiled = time.perf_counter(), reporter.compiled
    yield
    seconds[key] = time.perf_counter() - start - (reporter.compiled - compiled)
