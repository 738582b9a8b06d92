"""Background threads, started with a time limit, and the number of usable cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from louvain_um.core import headroom
from louvain_um.errors import OptionError
from louvain_um.options import MAX_THREADS

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
