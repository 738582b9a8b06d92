"""What an engine tells the world while it runs; progress bars and profilers listen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Phase = Literal["compile", "load", "move", "refine", "aggregate", "fetch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    Parameters
    ----------
    kind : {"start", "iteration", "end"}
        A phase began, an iteration of it ended, the phase ended.
    phase : str
        "compile", "load", "move", "refine", "aggregate" or "fetch" (labels to the host).
    level, iteration : int
        Where the run stands; −1 outside levels or iterations.
    vertices, arcs : int
        Size of the level's graph.
    moved : int
        Vertices moved in the iteration.
    modularity : float
        Modularity known so far; NaN before any is.
    arrays : tuple of str
        Names of the arrays the phase touches.
    """

    kind: Literal["start", "iteration", "end"]
    phase: Phase
    level: int = -1
    iteration: int = -1
    vertices: int = 0
    arcs: int = 0
    moved: int = 0
    modularity: float = float("nan")
    arrays: tuple[str, ...] = ()


Observer = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Observe nothing."""
