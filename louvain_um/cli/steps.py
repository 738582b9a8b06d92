"""Progress of commands that count steps, such as seeds or resolutions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from louvain_um.cli.sweep_progress import progress_printer


@contextmanager
def counted_steps(*, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function of steps done, all steps and a text, which prints progress on stderr."""
    from louvain_um.profiling.sweep.progress import Progress

    with progress_printer(quiet=quiet) as tell:
        since = time.perf_counter()

        def step(done: int, total: int, text: str) -> None:
            nonlocal since
            if not done:
                since = time.perf_counter()
            left = (time.perf_counter() - since) / done * (total - done) if done else None
            tell(Progress(done, total, left, text))

        yield step
