"""Events that an engine announces while it runs; progress bars and profilers observe them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["compile", "load", "move", "refine", "aggregate", "fetch", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    Parameters
    ----------
    kind : {"plan", "start", "iteration", "end", "array", "freed", "step", "in_place", "ranks"}
        The run was planned (GPU engine only); a phase began, an iteration of it ended, the phase
        ended; an array was allocated or freed; a step's arrays can be inspected (CPU engine only,
        before its "iteration" or "end"); bytes of an array were read over the bus where they
        are, in host memory (GPU engine only, before its "end"); what the ranks of a run, or its
        GPUs, did with their time (after its last phase).
    phase : str
        "compile", "load", "move", "refine", "aggregate" or "fetch" (labels to the host), or a
        program's own word; "" for an array, which may outlive phases.
    level, iteration : int
        Position of the run; −1 outside levels or iterations.
    vertices, arcs : int
        Size of the level's graph.
    moved : int
        Vertices moved in the iteration; of "run", what is left of `vertices` parts of the work.
    modularity : float
        Best modularity so far; NaN before the first.
    arrays : tuple of str
        Names of the arrays the phase touches.
    seconds_ago : float
        Age of the iteration's end: a kernel may run several before the host announces them.
    name, group : str
        The array of "array", "freed" and "in_place".
    address, nbytes : int
        Its address and bytes; of "in_place", the bytes read.
    step : mapping of str to Any
        The engine's own arrays of a "step" by name: read only, and only until the observer returns.
    plan : louvain_um.placement.detection_plan.Plan, optional
        The plan that the run begins under, of "plan".
    ranks : sequence of mapping
        Of "ranks": what ``provenance["by_rank"]`` has.
    """

    kind: Literal[
        "plan", "start", "iteration", "end", "array", "freed", "step", "in_place", "ranks"
    ]
    phase: str = ""
    level: int = -1
    iteration: int = -1
    vertices: int = 0
    arcs: int = 0
    moved: int = 0
    modularity: float = float("nan")
    arrays: tuple[str, ...] = ()
    seconds_ago: float = 0.0
    name: str = ""
    group: str = ""
    address: int = 0
    nbytes: int = 0
    step: Mapping[str, Any] = field(default_factory=dict)
    plan: Any = None
    ranks: Sequence[Mapping[str, Any]] = ()


Observer = Callable[[Event], None]


def array_listener(observer: Observer) -> Callable[[str, str, str, int, int], None] | None:
    """Return a ledger's listener that announces arrays to an observer; None for `ignore`."""
    if observer is ignore:
        return None

    def listener(kind: str, name: str, group: str, address: int, nbytes: int) -> None:
        which: Literal["array", "freed"] = "array" if kind == "array" else "freed"
        observer(Event(kind=which, name=name, group=group, address=address, nbytes=nbytes))

    return listener


def both(first: Observer, second: Observer | None) -> Observer:
    """Return an observer that passes events to two others; the first, if there is no second."""
    if second is None:
        return first

    def tell(event: Event) -> None:
        first(event)
        second(event)

    return tell


def ignore(event: Event) -> None:
    """Observe nothing."""


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Hand an observer what programs in this context `announce`, inside the block."""
    token = _observers.set((*_observers.get(), observer))
    try:
        yield
    finally:
        _observers.reset(token)


def announce(event: Event) -> None:
    """Inform the observers of this context; there may be none."""
    for observer in _observers.get():
        observer(event)


@contextmanager
def announcing(phase: str) -> Iterator[None]:
    """Announce that a phase of a program begins and, behind the block, that it has ended."""
    if not _observers.get():  # the event, too, takes its time
        yield
        return
    announce(Event(kind="start", phase=phase))
    try:
        yield
    finally:
        announce(Event(kind="end", phase=phase))
