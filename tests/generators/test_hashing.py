"""Permutations and draws: the integers that a device must reproduce."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um.generators import base, hashing


def test_compiled_finaliser_equals_the_plain_one_and_splitmix64() -> None:
    for x in (0, 1, 12345, 2**63, 2**64 - 1):
        assert int(hashing.mix64(np.uint64(x))) == base.mix64(x)
    # First output of splitmix64 seeded with 0, as published.
    assert int(hashing.draw(np.uint64(0), 0)) == 0xE220_A839_7B1D_CDAF


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**32 - 1), st.booleans())
def test_a_permutation_hits_everything_once_and_can_be_undone(
    n: int, seed: int, wanted: bool
) -> None:
    p = hashing.permutation(base.stream_key(seed, 5), n, wanted)
    images = hashing.permute_all(p, n)
    assert np.array_equal(np.sort(images), np.arange(n))
    assert wanted or np.array_equal(images, np.arange(n))
    assert all(hashing.unpermute(p, np.uint64(y)) == x for x, y in enumerate(images[:50]))


@pytest.mark.parametrize("n", [2**31 + 11, 2**40 - 3, 2**62])
def test_large_permutations_can_be_undone(n: int) -> None:
    p = hashing.permutation(base.stream_key(1, 2), n)
    for x in (0, 1, 2, n // 2, n - 1):
        y = hashing.permute(p, np.uint64(x))
        assert y < n
        assert hashing.unpermute(p, y) == x


@pytest.mark.parametrize("n", [7, 20, 64])
def test_permutations_of_many_keys_spread_evenly_over_pairs(n: int) -> None:
    """Neighbouring arguments, as stubs are paired, meet every other image equally often."""
    keys = 6000
    together = np.zeros((n, n))
    for seed in range(keys):
        images = hashing.permute_all(hashing.permutation(base.stream_key(seed, 9), n), n)
        together[images[0], images[1]] += 1
    off = ~np.eye(n, dtype=bool)
    expected = keys / (n * (n - 1))
    chi = ((together[off] - expected) ** 2 / expected).sum()
    freedom = n * (n - 1) - 1
    assert abs(chi - freedom) < 6 * np.sqrt(2 * freedom)


def test_one_long_permutation_looks_random() -> None:
    n = 100_000
    images = hashing.permute_all(hashing.permutation(base.stream_key(3, 3), n), n).astype(float)
    steps = np.corrcoef(images[:-1], images[1:])[0, 1]
    order = np.corrcoef(images, np.arange(n))[0, 1]
    assert abs(steps) < 0.02
    assert abs(order) < 0.02


def test_thresholds_of_a_power_law_give_its_frequencies() -> None:
    table = base.power_law(2, 10, 2.0)
    draws = hashing.draws(base.stream_key(0, 0), 0, 200_000)
    values = 2 + np.minimum(np.searchsorted(table, draws, side="right"), 8)
    weights = np.arange(2, 11) ** -2.0
    seen = np.bincount(values, minlength=11)[2:] / len(draws)
    assert np.abs(seen - weights / weights.sum()).max() < 0.005


def test_streams_of_one_seed_and_seeds_of_one_stream_differ() -> None:
    keys = {int(base.stream_key(s, k)) for s in range(50) for k in range(50)}
    assert len(keys) == 2500
