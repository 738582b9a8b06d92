"""How far a sweep is, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Tell = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is: points done and in all, seconds left (None before any is done)."""

    done: int
    total: int
    left: float | None
    text: str


class ProgressCounter:
    """Counts points and works out how long the others will take."""

    def __init__(self, total: int, finished: Sequence[Any], tell: Tell) -> None:
        self.total, self.done, self.tell = total, len(finished), tell
        self.new = 0
        self.since = time.perf_counter()

    def say(self, text: str) -> None:
        """Tell what is being done."""
        left = None
        if self.new:
            each = (time.perf_counter() - self.since) / self.new
            left = each * (self.total - self.done)
        self.tell(Progress(self.done, self.total, left, text))

    def step(self, row: dict[str, Any]) -> None:
        """Count a point."""
        self.done += 1
        self.new += 1
        self.say(f"{row['graph']} {row['policy']} at {row['oversubscription']:g} %")
