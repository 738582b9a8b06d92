"""Many runs of one detection: their seeds, their progress, and how far partitions agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError
from louvain_um.options import is_whole

Progress = Callable[[int, int, str], None]
"""Called with the steps done, the most there can be, and what is done next."""

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


U32 = NDArray[np.uint32]


def contingency(a: U32, b: U32) -> Any:
    """Return the number of vertices by community of both, a SciPy CSR array of int64."""
    from scipy.sparse import coo_array, csr_array

    shape = (int(a.max()) + 1, int(b.max()) + 1) if len(a) else (0, 0)
    ones = np.ones(len(a), np.int64)
    return csr_array(coo_array((ones, (a.astype(np.int64), b.astype(np.int64))), shape=shape))


def adjusted_rand(a: U32, b: U32) -> float:
    """Return the Rand index adjusted for chance: 1 for the same partition, about 0 by chance."""
    pairs = _pairs(np.array([len(a)]))
    first, second = _pairs(np.bincount(a)), _pairs(np.bincount(b))
    both = _pairs(contingency(a, b).data)
    expected = first * second / pairs if pairs else 0.0
    most = (first + second) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def mean_agreement(partitions: Sequence[U32]) -> float:
    """Return the mean adjusted Rand index of all pairs of partitions; 1 for a single one."""
    found = [adjusted_rand(a, b) for a, b in combinations(partitions, 2)]
    return float(np.mean(found)) if found else 1.0


def _pairs(counts: NDArray[np.integer]) -> int:
    counts = counts.astype(np.int64)
    return int((counts * (counts - 1) // 2).sum())
