"""Background threads, usable cores, and signals that must wait.

LLVM calls back into Python. An exception in such a callback cannot pass through LLVM: it is lost,
or leaves LLVM in a state in which it fails or crashes later; so signals wait meanwhile.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from louvain_um.core import headroom
from louvain_um.errors import OptionError
from louvain_um.options import MAX_THREADS

_depth = 0
_waiting: Callable[[], None] | None = None


@contextmanager
def hold_signals() -> Iterator[None]:
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


def signal_pending() -> bool:
    """Return whether a signal waits for the end of `hold_signals`."""
    return _waiting is not None


def delay_signal(raise_later: Callable[[], None]) -> bool:
    """Return whether a signal has to wait, for the end of `hold_signals`, which then calls this."""
    global _waiting
    if _depth:
        _waiting = raise_later
    return _depth > 0


_given: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def given_threads(threads: int | None) -> Iterator[None]:
    """Let all that works in this context use so many threads; None changes nothing."""
    token = _given.set(_given.get() if threads is None else threads)
    try:
        yield
    finally:
        _given.reset(token)


def default_threads() -> int:
    """Return the number of threads to use."""
    threads = _given.get()
    if threads is not None:
        return threads
    given = os.environ.get("LOUVAIN_UM_THREADS")
    if given:
        if not given.isdecimal() or not 1 <= int(given) <= MAX_THREADS:
            raise OptionError("LOUVAIN_UM_THREADS", given, f"must lie in 1 … {MAX_THREADS}")
        return int(given)
    return usable_cores()


START_SECONDS = 10.0
"""Seconds in which a thread has to begin."""


class _Start(threading.Event):
    """What Python waits for when it starts a thread: here with an end."""

    def __init__(self) -> None:
        super().__init__()
        self.given_up = False
        self.deciding = threading.Lock()

    def set(self) -> None:
        """Note that the thread has begun."""
        with self.deciding:
            super().set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has; give up after `START_SECONDS`."""
        if not super().wait(START_SECONDS if timeout is None else timeout):
            with self.deciding:
                self.given_up = not self.is_set()
            if self.given_up:
                raise MemoryError("a thread got no memory to begin; close other programs")
        return True


def start_thread(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a thread that ends with the process."""
    headroom.require(headroom.THREAD_BYTES)
    start = _Start()

    def begin() -> None:
        if not start.given_up:
            work()

    thread = threading.Thread(target=begin, name=name, daemon=True)
    # CPython's own, without another way to bound the wait; a test fails when it has gone.
    thread._started = start  # type: ignore[attr-defined]
    try:
        thread.start()
    except RuntimeError as error:
        raise MemoryError("cannot start a thread; close other programs") from error
    return thread


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
