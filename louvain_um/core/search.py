"""Several runs of one search: their number, their seeds, and which result is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from louvain_um.core import rules
from louvain_um.core.numbering import agreement
from louvain_um.errors import OptionError
from louvain_um.options import Options, is_whole
from louvain_um.results.communities import Communities

MOST_RUNS: Final = 1000


def refuse_count(name: str, value: object, low: int, high: int) -> None:
    """Raise an OptionError for anything but a whole number from `low` to `high`."""
    if not is_whole(value):
        raise OptionError(name, value, "must be a whole number")
    if not low <= int(value) <= high:
        raise OptionError(name, value, f"must lie in {low} … {high}")


def seeds_of(runs: int, first: int, name: str = "runs") -> range:
    """Return the seeds of so many runs, whose number a parameter of that name is."""
    refuse_count(name, runs, 1, MOST_RUNS)
    if not is_whole(first) or first < 0:
        raise OptionError("seed", first, "must lie in 0 … 2^32 - 1")
    if first + runs > 2**32:
        raise OptionError("seed", first, f"must leave room for {runs} seeds below 2^32")
    return range(first, first + runs)


Run = Callable[[Options], Communities]
"""One detection of a graph that does not change."""

COMBINED: Final = 10
"""Runs from single vertices that `effort="best"` combines with the best result so far."""


def search(run: Run, options: Options) -> Communities:
    """Return the best result of the seeds of a run, the first of equal ones; see `Options`."""
    if options.best_of == 1 and options.effort != "best":
        return run(options)
    seconds, memory = dict[str, float](), dict[str, int]()

    def counted(options: Options) -> Communities:
        found = run(options)
        for phase, taken in found.timings.items():
            seconds[phase] = seconds.get(phase, 0.0) + taken
        for group, nbytes in found.memory.items():
            memory[group] = max(memory.get(group, 0), nbytes)
        return found

    seeds = range(options.seed, options.seed + options.best_of)
    each = (replace(options, seed=seed, best_of=1) for seed in seeds)
    if options.effort == "best":
        best = max((combine(counted, one) for one in each), key=value_of)
    else:
        best = max(map(counted, each), key=value_of)
    return replace(best, timings=dict(seconds), memory=dict(memory))


def combine(run: Run, options: Options) -> Communities:
    """Return the best of results that start where the best one and a new run agree."""
    # Communities that both have in common stay together at first; where they differ,
    # sub-communities are free to move as wholes (Ovelgönne and Geyer-Schulz 2012: core groups).
    plain, quick, full = parts(options)
    best = run(plain)
    for number in range(1, COMBINED + 1):
        seed = rules.seed_of_part(options.seed, number)
        start = agreement(best.labels, run(replace(quick, seed=seed)).labels)
        best = max(best, run(replace(plain, initial=start, seed=seed)), key=value_of)
    best = max(best, run(replace(full, initial=best.labels)), key=value_of)
    return replace(best, provenance={**best.provenance, "seed": options.seed})


def parts(options: Options) -> tuple[Options, Options, Options]:
    """Return the options of combined runs: those that count, those that cut, and the last one."""
    plain = replace(options, effort="default", n_iterations=3)
    quick = replace(plain, effort="fast", n_iterations=2, method="louvain")
    return plain, quick, replace(plain, n_iterations=options.n_iterations or -1)


def value_of(found: Communities) -> float:
    """Return the value of the objective."""
    assert found.value is not None
    return found.value
