"""Progress of a sweep, with an estimate of the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

ProgressCallback = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """Points done and in total, seconds left (None before the first is done), current step."""

    done: int
    total: int
    left: float | None
    text: str


class ProgressCounter:
    """Counts points and estimates the time left."""

    def __init__(self, total: int, finished: Sequence[Any], tell: ProgressCallback) -> None:
        self.total, self.done, self.tell = total, len(finished), tell
        self.new = 0
        self.since = time.perf_counter()

    def report(self, text: str) -> None:
        """Report what is being done."""
        left = None
        if self.new:
            each = (time.perf_counter() - self.since) / self.new
            left = each * (self.total - self.done)
        self.tell(Progress(self.done, self.total, left, text))

    def step(self, row: dict[str, Any]) -> None:
        """Count a point."""
        self.done += 1
        self.new += 1
        self.report(f"{row['graph']} {row['policy']} at {row['oversubscription']:g} %")
