"""Progress of ``louvain-um sweep`` on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from louvain_um.cli.terminal.output import print_line, safe_console

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.progress import Progress, ProgressCallback

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
                print_line(progress_line(progress))

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


def progress_line(progress: Progress) -> str:
    """Return progress as one line of text."""
    parts = [f"{progress.done} of {progress.total} points", progress.text, time_left(progress)]
    return ", ".join(part for part in parts if part)


def time_left(progress: Progress) -> str:
    """Return the remaining time as text."""
    if progress.left is None:
        return ""
    minutes, seconds = divmod(round(progress.left), 60)
    return f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left"
