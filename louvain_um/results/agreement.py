"""Agreement of partitions as arrays of small numbers, without other libraries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel

U32 = NDArray[np.uint32]

AMI_TERMS = 10**9
"""Terms of AMI's expected value above which it is not computed: they would take over 10 s."""

NEGLIGIBLE = 1e-17
"""Share of a sum below which its next term is left out: the sum does not change."""


def contingency(a: U32, b: U32) -> Any:
    """Return the number of vertices by community of both, a SciPy CSR array of int64."""
    from scipy.sparse import coo_array, csr_array

    shape = (int(a.max()) + 1, int(b.max()) + 1) if len(a) else (0, 0)
    ones = np.ones(len(a), np.int64)
    return csr_array(coo_array((ones, (a.astype(np.int64), b.astype(np.int64))), shape=shape))


def adjusted_rand(a: U32, b: U32) -> float:
    """Return the Rand index adjusted for chance: 1 for the same partition, about 0 by chance."""
    return _adjusted_rand(np.bincount(a), np.bincount(b), contingency(a, b).data)


def mean_agreement(partitions: Sequence[U32]) -> float:
    """Return the mean adjusted Rand index of all pairs of partitions; 1 for a single one."""
    found = [adjusted_rand(a, b) for a, b in combinations(partitions, 2)]
    return float(np.mean(found)) if found else 1.0


def measures(a: U32, b: U32) -> tuple[float, float, float]:
    """Return NMI, ARI and AMI of partitions that differ; AMI is NaN where it takes too long."""
    table = contingency(a, b)
    rows, columns = np.bincount(a), np.bincount(b)
    at = np.repeat(np.arange(len(rows)), np.diff(table.indptr))
    n, both = len(a), table.data
    chance = rows[at].astype(np.float64) * columns[table.indices]
    information = max(float(both @ np.log(both / chance * n)) / n, 0.0)
    entropy = (_entropy(rows) + _entropy(columns)) / 2
    expected = expected_information(rows, columns)
    return (
        min(information / entropy, 1.0),  # else rounding may show
        _adjusted_rand(rows, columns, both),
        min((information - expected) / (entropy - expected), 1.0),
    )


def expected_information(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> float:
    """Return the mean mutual information of random partitions of these sizes, in nats."""
    # Pairs of equal sizes count once (Vinh, Epps, Bailey 2010, equation 24a).
    n = int(rows.sum())
    (few, of_few), (many, of_many) = sorted(
        (np.unique(sizes[sizes > 0], return_counts=True) for sizes in (rows, columns)),
        key=lambda sizes: len(sizes[0]),
    )
    deviations = np.sqrt(few).sum() * np.sqrt(many).sum() / math.sqrt(n)
    if 20 * (len(few) * len(many) + deviations) > AMI_TERMS:
        return math.nan
    # A call for each row: signals are answered between calls.
    each = [_expected(int(size), many, of_many, n) for size in few]
    return float(of_few @ np.array(each)) / n


def _adjusted_rand(
    rows: NDArray[np.int64], columns: NDArray[np.int64], both: NDArray[np.int64]
) -> float:
    pairs = _pairs(np.array([rows.sum()]))
    first, second, common = _pairs(rows), _pairs(columns), _pairs(both)
    expected = first * second / pairs if pairs else 0.0
    most = (first + second) / 2
    return 1.0 if most == expected else (common - expected) / (most - expected)


def _pairs(counts: NDArray[np.integer]) -> int:
    counts = counts.astype(np.int64)
    return int((counts * (counts - 1) // 2).sum())


def _entropy(sizes: NDArray[np.int64]) -> float:
    sizes = sizes[sizes > 0]
    n = sizes.sum()
    return float(sizes @ np.log(n / sizes)) / int(n)


@kernel()
def _expected(a, sizes, counts, n):
    """Return Σ count · E[k log(n k / a b)]: k members are common, which is hypergeometric."""
    # The distribution is summed from its mode in both directions until terms no longer count, and
    # divided by its sum: that needs no factorials.
    total = 0.0
    for j in range(len(sizes)):
        b = sizes[j]
        scale = n / a / b
        mode = (a + 1.0) * (b + 1.0) // (n + 2.0)
        weights, terms, absolute = 1.0, 0.0, 0.0
        if mode > 0:
            terms = mode * math.log(mode * scale)
            absolute = abs(terms)
        for step in (1.0, -1.0):
            weight, k = 1.0, mode
            while True:
                if step > 0:
                    weight *= (a - k) / (k + 1) * ((b - k) / (n - a - b + k + 1))
                else:
                    weight *= k / (a - k + 1) * ((n - a - b + k) / (b - k + 1))
                k += step
                if weight <= 0:
                    break
                term = weight * k * math.log(k * scale) if k > 0 else 0.0
                weights += weight
                terms += term
                absolute += abs(term)
                if weight < NEGLIGIBLE * weights and abs(term) <= NEGLIGIBLE * absolute:
                    break
        total += counts[j] * (terms / weights)
    return total
