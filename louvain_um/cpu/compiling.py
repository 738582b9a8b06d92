"""Announce Numba's compilation, which delays a first run by seconds, to an observer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from louvain_um.events import Event, Observer


class Announcer(event.Listener):
    """Turns Numba's nested compile events into one phase; loading from the cache raises none."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.depth = 0

    def on_start(self, event: Any) -> None:
        """Announce the outermost compilation."""
        self.depth += 1
        if self.depth == 1:
            self.observer(Event(kind="start", phase="compile"))

    def on_end(self, event: Any) -> None:
        """Announce the end of the outermost compilation."""
        self.depth -= 1
        if self.depth == 0:
            self.observer(Event(kind="end", phase="compile"))


@contextmanager
def announced(observer: Observer) -> Iterator[None]:
    """Announce what is compiled inside the block as a phase "compile"."""
    with event.install_listener("numba:compile", Announcer(observer)):
        yield
