from __future__ import annotations

import numpy as np
import pytest

from louvain_um.errors import MemoryBudgetError
from louvain_um.gpu.device import Choice
from louvain_um.gpu.memory import DeviceAllocator

pytestmark = pytest.mark.gpu


def test_bytes_are_on_the_ledger_and_return_to_the_device(gpu: Choice) -> None:
    memory = DeviceAllocator()
    array = memory.empty("a", "graph", 1000, np.uint32)
    memory.empty("b", "hash", 0, np.uint64)
    assert (array.shape, array.dtype) == ((1000,), np.uint32)
    assert memory.peak_bytes["graph"] == 4000
    with pytest.raises(KeyError, match="live already"):
        memory.empty("a", "graph", 1, np.uint8)
    del array
    memory.close()
    assert memory.pool.total_bytes() == 0
    assert sum(memory.ledger.live_bytes.values()) == 0


def test_a_device_that_is_full(gpu: Choice) -> None:
    memory = DeviceAllocator()
    memory.empty("labels", "community", 1 << 20, np.uint8)
    with pytest.raises(MemoryBudgetError, match="largest: targets") as caught:
        memory.empty("targets", "graph", 1 << 50, np.uint8)
    assert caught.value.needed > caught.value.budget > 1 << 20
    assert "\n" not in str(caught.value)
    memory.close()


def test_the_pool_of_others_is_left_alone(gpu: Choice) -> None:
    import cupy

    before = cupy.get_default_memory_pool().total_bytes()
    memory = DeviceAllocator()
    memory.empty("a", "scratch", 1 << 24, np.uint8)
    assert cupy.get_default_memory_pool().total_bytes() == before
    memory.close()
