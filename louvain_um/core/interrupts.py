"""Signals wait while compiled code is made or loaded.

LLVM calls back into Python there. An exception in such a callback cannot pass through LLVM: it is
dropped, or leaves LLVM in a state in which it fails or crashes later.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

Handler = Callable[[int, FrameType | None], Any]

RAISING: Final = tuple(
    getattr(signal, name)
    for name in (
        "SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2",
    )
    if hasattr(signal, name)
)  # fmt: skip
"""Signals whose handlers programs let raise exceptions: to end, or after some time."""

_depth = 0
_waiting: Callable[[], None] | None = None


@contextmanager
def held() -> Iterator[None]:
    """Let signals that would raise in the main thread wait until the end of the block."""
    global _depth, _waiting
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled by the main thread
        return
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0 and _waiting is not None:
            raise_now, _waiting = _waiting, None
            raise_now()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals wait until the end of the block: what is written there is written whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[Callable[[], object]] = []
    try:
        with ExitStack() as restored:
            for number in RAISING:
                handler = signal.getsignal(number)
                if callable(handler):
                    restored.callback(signal.signal, number, handler)
                    signal.signal(number, _noting(caught, handler))
            yield
    finally:
        with ExitStack() as handled:  # all of them, also if one raises
            for handle in reversed(caught):
                handled.callback(handle)


def _noting(caught: list[Callable[[], object]], handler: Handler) -> Handler:
    """Return a handler that notes how another one would be called."""
    return lambda number, frame: caught.append(partial(handler, number, frame))


def pending() -> bool:
    """Return whether a signal waits for the end of `held`."""
    return _waiting is not None


def wait(raise_later: Callable[[], None]) -> bool:
    """Return whether a signal has to wait; if so, the function is called at the end of `held`."""
    global _waiting
    if _depth:
        _waiting = raise_later
    return _depth > 0
