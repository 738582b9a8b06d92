from __future__ import annotations

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.gpu.runtime.compile import Kernels

pytestmark = pytest.mark.gpu

SEED = 20


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    edges = np.array([0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)
    a = np.concatenate((edges, rng.integers(0, 2**32, 2000, np.uint32)))
    return a, np.concatenate((a[:500], rng.permutation(a)))[: len(a)]


@pytest.mark.parametrize("sub_rounds", [1, 2, 8])
def test_mixing_buckets_and_tie_breaks_match_the_rule(
    probes: Kernels, numbers: tuple[np.ndarray, np.ndarray], sub_rounds: int
) -> None:
    import cupy

    a, b = (cupy.asarray(x) for x in numbers)
    n = len(a)
    mixed, rounds = cupy.empty(n, np.uint32), cupy.empty(n, np.uint32)
    first = cupy.empty(n, np.uint8)
    salt = rules.salt(1, 3, SEED)
    args = (a, b, mixed, rounds, first, np.int64(n))
    rest = (np.uint32(salt), np.uint32(sub_rounds), np.uint32(SEED))
    probes.get("rule_probe", "probe_rule")((4,), (128,), (*args, *rest))
    left, right = (x.tolist() for x in numbers)
    assert mixed.get().tolist() == [rules.mix32(x) for x in left]
    assert rounds.get().tolist() == [rules.bucket(x, salt, sub_rounds) for x in left]
    order = [
        (rules.mix32(x ^ SEED), x) < (rules.mix32(y ^ SEED), y)
        for x, y in zip(left, right, strict=True)
    ]
    assert first.get().astype(bool).tolist() == order


def test_scores_round_each_operation_on_its_own(probes: Kernels) -> None:
    import cupy

    rng = np.random.default_rng(SEED)
    n = 5000
    weight = rng.integers(0, 2 ** rng.integers(1, 53, n), dtype=np.uint64)
    total = rng.integers(0, 2 ** rng.integers(1, 53, n), dtype=np.uint64)
    pull = rng.random(n)
    score = cupy.empty(n, np.float64)
    args = (cupy.asarray(weight), cupy.asarray(pull), cupy.asarray(total), score, np.int64(n))
    probes.get("rule_probe", "probe_score")((4,), (128,), args)
    expected = weight.astype(np.float64) - pull * total.astype(np.float64)
    assert np.array_equal(score.get(), expected)
