"""Signals wait while compiled code is made or loaded.

LLVM calls back into Python there. An exception in such a callback cannot pass through LLVM: it is
dropped, or leaves LLVM in a state in which it fails or crashes later.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

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
    """Let Ctrl-C wait until the end of the block: what is written there is written whole."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if caught:
            handler(*caught[0])


def pending() -> bool:
    """Return whether a signal waits for the end of `held`."""
    return _waiting is not None


def wait(raise_later: Callable[[], None]) -> bool:
    """Return whether a signal has to wait; if so, the function is called at the end of `held`."""
    global _waiting
    if _depth:
        _waiting = raise_later
    return _depth > 0
