"""Progress on stderr: by the engine's events, or by counted steps."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from louvain_um.cli.terminal import print_line, safe_console
from louvain_um.events import Event
from louvain_um.progress import COMPILING, describe

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from louvain_um.profiling.sweep.run import Progress, ProgressCallback


class Reporter:
    """Shows steps and events on a terminal; elsewhere only the line about compiling."""

    # `compiled` is the number of seconds spent compiling.

    def __init__(self, *, quiet: bool, progress: Bar | None = None) -> None:
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

    def read(self, size: int, done: int) -> None:
        """Show how much of a file has been read; then its graph is built."""
        if self.progress is None or self.task is None or not size:
            return
        self.progress.update(self.task, total=size, completed=done)
        if done >= size:
            self.progress.update(self.task, description="building the graph")

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
    from louvain_um.formats.graph_file import watched_by

    with Progress(*columns, console=safe_console(stderr=True), transient=True) as progress:
        reporter = Reporter(quiet=quiet, progress=progress)
        with watched_by(reporter.read):
            yield reporter


@contextmanager
def timed(seconds: dict[str, float], key: str, reporter: Reporter) -> Iterator[None]:
    """Note the seconds of a block in a mapping, less those of compiling."""
    start, compiled = time.perf_counter(), reporter.compiled
    yield
    seconds[key] = time.perf_counter() - start - (reporter.compiled - compiled)


PROGRESS_INTERVAL = 10.0
"""Seconds between lines of progress without a terminal."""


@contextmanager
def progress_printer(*, quiet: bool) -> Iterator[ProgressCallback]:
    """Yield a function that prints progress on stderr: a bar, or a line every few seconds."""
    if quiet:
        yield lambda progress: None
        return
    if not sys.stderr.isatty():
        last = time.perf_counter()

        def print_progress(progress: Progress) -> None:
            nonlocal last
            if progress.total and time.perf_counter() - last >= PROGRESS_INTERVAL:
                last = time.perf_counter()
                parts = f"{progress.done} of {progress.total}", progress.text, time_left(progress)
                print_line(", ".join(filter(None, parts)))

        yield print_progress
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20),
               MofNCompleteColumn(), TextColumn("{task.fields[left]}"))  # fmt: skip
    with Bar(*columns, console=safe_console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def update_bar(progress: Progress) -> None:
            bar.update(
                task, description=progress.text, total=progress.total or None,
                completed=progress.done, left=time_left(progress),
            )  # fmt: skip

        yield update_bar


def time_left(progress: Progress) -> str:
    """Return the remaining time as text."""
    if progress.left is None:
        return ""
    minutes, seconds = divmod(round(progress.left), 60)
    return f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left"


@contextmanager
def counted_steps(*, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function of steps done, all steps and a text, which prints progress on stderr."""
    from louvain_um.profiling.sweep.run import Progress

    with progress_printer(quiet=quiet) as tell:
        since = time.perf_counter()

        def step(done: int, total: int, text: str) -> None:
            nonlocal since
            if not done:
                since = time.perf_counter()
            left = (time.perf_counter() - since) / done * (total - done) if done else None
            tell(Progress(done, total, left, text))

        yield step
