"""Threads for compiled code: Numba functions that release the GIL, run side by side.

Python threads instead of Numba's `prange`: no threading layer that aborts when two threads
of one process call in, nothing that breaks after a fork, a third of the compile time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from numba import njit

from louvain_um.core.intrinsics import atomic_add, atomic_load, give_way
from louvain_um.errors import OptionError
from louvain_um.options import MAX_THREADS

SPINS = 1000
"""Polls of a counter before yielding the core to another thread: some microseconds."""


def default_threads() -> int:
    """Return the number of threads to use: LOUVAIN_UM_THREADS, or the cores we may run on."""
    asked = os.environ.get("LOUVAIN_UM_THREADS")
    if asked:
        if not asked.isdecimal() or not 1 <= int(asked) <= MAX_THREADS:
            raise OptionError("LOUVAIN_UM_THREADS", asked, f"must lie in 1 … {MAX_THREADS}")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _pool(pid: int, workers: int) -> ThreadPoolExecutor:
    """One pool a process and size; `pid` keeps a forked child from using its parent's."""
    return ThreadPoolExecutor(workers, thread_name_prefix="louvain-um")


def run(kernel: Callable[..., None], threads: int, *args: Any) -> None:
    """Call ``kernel(t, threads, *args)`` for every t in 0 … threads − 1, side by side.

    The kernel must release the GIL and must not care which of the calls runs first.
    """
    if threads == 1:
        kernel(0, 1, *args)
        return
    pool = _pool(os.getpid(), threads - 1)
    pending = [pool.submit(kernel, t, threads, *args) for t in range(1, threads)]
    try:
        kernel(0, threads, *args)
    finally:
        # Even when interrupted: nobody may free arrays that a thread still writes to.
        failures = [task.exception() for task in pending]
    for failure in failures:
        if failure is not None:
            raise failure


def stream(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Yield ``function(item)`` for every item, in order, computed side by side.

    With more than one thread the next items are fetched, by the caller's, while earlier ones
    are computed. The function must release the GIL where it works.
    """
    if threads == 1:
        yield from map(function, items)
        return
    rest = iter(items)
    # The first here: a short list needs no thread, and what must be compiled is.
    for item in rest:
        yield function(item)
        break
    pending: deque[Future[Result]] = deque()
    try:
        for item in rest:
            pending.append(_pool(os.getpid(), threads).submit(function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for task in pending:
            task.cancel()


@njit(nogil=True, cache=True)
def take(counter, step):  # type: ignore[no-untyped-def]
    """Return the start of the next unclaimed stretch of `step` items."""
    return atomic_add(counter, 0, step)


@njit(nogil=True, cache=True, inline="always")
def claim(progress, stage, step):  # type: ignore[no-untyped-def]
    """Return the start of the next unclaimed stretch of a stage.

    `progress` holds two counters a stage, zero at first: items claimed and items finished.
    """
    return atomic_add(progress, 2 * stage, step)


@njit(nogil=True, cache=True, inline="always")
def finish(progress, stage, items):  # type: ignore[no-untyped-def]
    """Announce that so many items of a stage are done."""
    atomic_add(progress, 2 * stage + 1, items)


@njit(nogil=True, cache=True)
def wait(progress, stage, items):  # type: ignore[no-untyped-def]
    """Wait until all items of a stage are done; yield the core when that takes long."""
    polls = 0
    while atomic_load(progress, 2 * stage + 1) < items:
        polls += 1
        if polls > SPINS:
            give_way()
