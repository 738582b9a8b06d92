"""Progress of long calls as one line: on a terminal, or in a notebook's output."""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from louvain_um.errors import OptionError, check_switch, is_switch
from louvain_um.events import Event, Observer, both, ignore

P = ParamSpec("P")
R = TypeVar("R")

Progress = Callable[[int, int, str], None]
"""Called with the steps done, the most there can be, and what is done next."""

COMPILING: Final = "compiling kernels for the first time …"

VERBS: Final = {
    "load": "loading",
    "move": "moving",
    "refine": "refining",
    "aggregate": "aggregating",
    "fetch": "fetching",
    "run": "running",
}

PAUSE_SECONDS: Final = 0.2
"""Time between updates: each is a message to a notebook's browser."""

BAR: Final = 20
"""Characters of a bar."""


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


class ProgressLine:
    """A line that each text replaces, on a terminal and in a notebook; nothing elsewhere."""

    def __init__(self) -> None:
        ipython = sys.modules.get("IPython")
        self._notebook = hasattr(ipython and ipython.get_ipython(), "kernel")
        self._terminal = not self._notebook and sys.stderr is not None and sys.stderr.isatty()
        self._began = self._next = time.monotonic()
        self._shown: Any = None
        self._modularity = math.nan

    def show(self, text: str) -> None:
        """Replace the line unless it was replaced a moment ago."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PAUSE_SECONDS
            self._replace(text)

    def observe(self, event: Event) -> None:
        """Show an event of an engine."""
        if event.phase == "compile" and event.kind == "start":
            self._next = 0.0
            self.show(COMPILING)
        if not math.isnan(event.modularity):
            self._modularity = event.modularity
        if event.phase != "compile" and event.kind in ("start", "iteration"):
            self.show(describe(event, self._modularity))

    def count(self, done: int, total: int, text: str) -> None:
        """Show steps of many runs, and a bar of the share that is done."""
        full = BAR * done // max(total, 1)
        self.show(f"{'█' * full}{'░' * (BAR - full)} {done} of {total}, {text}")

    def close(self) -> None:
        """Clear the line; a notebook keeps the time that the call took."""
        if self._shown is not None:
            self._replace(f"{time.monotonic() - self._began:.1f} s" if self._notebook else "")

    def _replace(self, text: str) -> None:
        if self._notebook:
            from IPython.display import display

            data = {"text/plain": text}
            if self._shown is None:
                self._shown = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                self._shown.update(data, raw=True)
        elif self._terminal:
            self._shown = text
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


@contextmanager
def observed(observer: Observer | None, progress: bool) -> Iterator[Observer]:
    """Yield an observer that also shows events on a line, if `progress` is on."""
    check_switch("progress", progress)
    if not progress:
        yield observer or ignore
        return
    line = ProgressLine()
    try:
        yield both(line.observe, observer)
    finally:
        line.close()


def counts_progress(call: Callable[P, R]) -> Callable[P, R]:
    """Let a function's `progress`, which it calls, also be True, for a line, or False."""

    @functools.wraps(call)
    def counting(*args: P.args, **kwargs: P.kwargs) -> R:
        progress: Any = kwargs.get("progress")
        if callable(progress):
            return call(*args, **kwargs)
        if progress is not None and not is_switch(progress):
            raise OptionError("progress", progress, "must be True, False or a function")
        line = ProgressLine()
        kwargs["progress"] = line.count if progress else None
        try:
            return call(*args, **kwargs)
        finally:
            line.close()

    return counting
