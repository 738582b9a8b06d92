"""Threads for compiled code: Numba functions that release the GIL, run side by side.

Python threads instead of Numba's `prange`: no threading layer that aborts when two threads
of one process call in, nothing that breaks after a fork, a third of the compile time.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from louvain_um.core import headroom
from louvain_um.core.compiled import atomic_add, atomic_load, give_way, kernel
from louvain_um.core.interrupts import uninterrupted
from louvain_um.core.threads import default_threads as default_threads

PIECE = 1 << 18
"""Elements that a thread takes at a time of a long array: they stay in its cache."""

SPINS = 1000
"""Polls of a counter before yielding the core to another thread: some microseconds."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _pool(pid: int, workers: int) -> ThreadPoolExecutor:
    """Return one pool per process and size; `pid` keeps a forked child off its parent's."""
    return ThreadPoolExecutor(workers, thread_name_prefix="louvain-um")


@cache
def _started_pool(pid: int, workers: int) -> ThreadPoolExecutor:
    """Return a pool whose threads have all started."""
    headroom.require(workers * headroom.THREAD_BYTES + headroom.KERNEL_BYTES)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="louvain-um")
    started = threading.Event()
    try:
        for _ in range(workers):  # each waits, so that the next one needs a thread of its own
            pool.submit(started.wait)
    except RuntimeError as error:
        pool.shutdown(wait=False)
        raise MemoryError(
            f"cannot start {workers} threads; set LOUVAIN_UM_THREADS lower"
        ) from error
    finally:
        started.set()
    return pool


def run(kernel: Callable[..., None], threads: int, *args: Any) -> None:
    """Call ``kernel(t, threads, *args)`` for every t in 0 … threads − 1, side by side.

    The kernel must release the GIL and must not depend on the order of the calls.
    """
    if threads == 1:
        kernel(0, 1, *args)
        return
    with uninterrupted():  # the other threads would have to be waited for
        pool = _started_pool(os.getpid(), threads - 1)
        pending: list[Future[None]] = []
        try:
            for t in range(1, threads):
                pending.append(pool.submit(copy_context().run, kernel, t, threads, *args))
            kernel(0, threads, *args)
        finally:
            failures = [task.exception() for task in pending]
    for failure in failures:
        if failure is not None:
            raise failure


def over_pieces(
    function: Callable[[NDArray[Any]], Result], array: NDArray[Any], overlap: int = 0
) -> list[Result]:
    """Return ``function(piece)`` of every piece of a long array, in any order."""
    found = list[Result]()
    end = len(array) - overlap

    def work(thread: int, threads: int) -> None:
        for begin in range(thread * PIECE, end, threads * PIECE):
            found.append(function(array[begin : begin + PIECE + overlap]))

    run(work, default_threads() if end > PIECE else 1)
    return found


class Task(Generic[Result]):
    """A call handed to a pool."""

    # An interrupt while `Future.result` waits may leave a lock taken, on which the pool's thread
    # then waits forever; here it does not.

    def __init__(self, future: Future[Result]) -> None:
        self._future, self._running = future, (running := threading.Lock())
        running.acquire()
        # Not of `self`: in a cycle, what the call returned would wait for the garbage collector.
        future.add_done_callback(lambda _: running.release())

    def result(self) -> Result:
        """Wait for the end of the call; return or raise what it did."""
        with self._running:
            pass
        with uninterrupted():
            return self._future.result()

    def cancel(self) -> None:
        """Do not begin the call, if it has not begun."""
        with uninterrupted():
            self._future.cancel()


def _submit(threads: int, function: Callable[[Item], Result], item: Item) -> Task[Result]:
    """Hand one call to the pool, which starts threads as they are needed."""
    with uninterrupted():
        pool = _pool(os.getpid(), threads)
        if len(pool._threads) < threads:
            headroom.require(headroom.THREAD_BYTES)
        try:
            return Task(pool.submit(copy_context().run, function, item))
        except RuntimeError as error:
            raise MemoryError("cannot start a thread; set LOUVAIN_UM_THREADS lower") from error


def aside(function: Callable[[Item], Result], item: Item) -> Task[Result]:
    """Return what will hold ``function(item)``, computed while other work continues."""
    return _submit(default_threads(), function, item)


def stream(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Yield ``function(item)`` for every item, in order, computed side by side."""
    if threads == 1:
        yield from map(function, items)
        return
    rest = iter(items)
    # The first runs here: a short list needs no thread, and it compiles what must be compiled.
    for item in rest:
        yield function(item)
        break
    pending: deque[Task[Result]] = deque()
    try:
        for item in rest:
            pending.append(_submit(threads, function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for task in pending:
            task.cancel()


@kernel()
def take(counter, step):  # type: ignore[no-untyped-def]
    """Return the start of the next unclaimed range of `step` items."""
    return atomic_add(counter, 0, step)


@kernel(inline="always")
def claim(progress, stage, step):  # type: ignore[no-untyped-def]
    """Return the start of the next unclaimed range of a stage."""
    return atomic_add(progress, 2 * stage, step)


@kernel(inline="always")
def finish(progress, stage, items):  # type: ignore[no-untyped-def]
    """Count `items` of a stage as finished."""
    atomic_add(progress, 2 * stage + 1, items)


@kernel()
def wait(progress, stage, items):  # type: ignore[no-untyped-def]
    """Wait until all items of a stage are done; yield the core when that takes long."""
    polls = 0
    while atomic_load(progress, 2 * stage + 1) < items:
        polls += 1
        if polls > SPINS:
            give_way()
