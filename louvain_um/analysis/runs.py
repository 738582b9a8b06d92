"""Many runs of one detection: how many, and their seeds."""

from __future__ import annotations

from typing import Final

from louvain_um.errors import OptionError
from louvain_um.options import is_whole

MOST_RUNS: Final = 1000


def refuse_count(name: str, value: object, low: int, high: int) -> None:
    """Raise an OptionError for what is no whole number from `low` to `high`."""
    if not is_whole(value):
        raise OptionError(name, value, "must be a whole number")
    if not low <= int(value) <= high:
        raise OptionError(name, value, f"must lie in {low} … {high}")


def seeds_of(runs: int, first: int) -> range:
    """Return the seeds of so many runs."""
    refuse_count("runs", runs, 1, MOST_RUNS)
    if first + runs > 2**32:
        raise OptionError("seed", first, f"must leave room for {runs} seeds below 2^32")
    return range(first, first + runs)
