"""The seeds of many runs of one detection, and how these report progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from louvain_um.errors import OptionError

Progress = Callable[[int, int, str], None]
"""Called with the steps done, the most there can be, and what is done next."""

MOST_RUNS: Final = 1000


def seeds_of(runs: int, first: int) -> range:
    """Return the seeds of so many runs.

    Raises
    ------
    OptionError
        No runs, too many, or seeds beyond 32 bits.
    """
    if not 1 <= runs <= MOST_RUNS:
        raise OptionError("runs", runs, f"must lie in 1 … {MOST_RUNS}")
    if first + runs > 2**32:
        raise OptionError("seed", first, f"must leave room for {runs} seeds below 2^32")
    return range(first, first + runs)
