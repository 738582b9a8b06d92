"""Keys of faults come out sorted, whatever order they came in."""

import numpy as np
import pytest
from simulator_cases import called

from louvain_um.profiling.simulator.driver import service
from louvain_um.profiling.simulator.driver.constants import DIGITS

sort_keys = called(service.sort_keys)


@pytest.mark.parametrize("most", [1, 2, 256, 257, 1 << 22, 1 << 40])
@pytest.mark.parametrize("count", [0, 1, 2, 37, 256])
def test_keys_are_sorted_and_what_is_behind_them_stays(count, most):
    random = np.random.default_rng(count)
    for keys in (random.integers(0, most, 256), np.arange(256), np.arange(256)[::-1].copy()):
        expected = np.concatenate([np.sort(keys[:count]), keys[count:]])
        sort_keys(keys, count, np.full(DIGITS + 256, -1))
        np.testing.assert_array_equal(keys, expected)
