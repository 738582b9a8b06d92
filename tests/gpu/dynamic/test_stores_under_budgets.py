"""Stores of changing graphs on a device with too little memory."""

from __future__ import annotations

import numpy as np
import pytest

import louvain_um as lu
from louvain_um import DynamicGraph
from louvain_um.dynamic.stores import DEVICE_STORES
from louvain_um.errors import MemoryBudgetError

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


@pytest.mark.parametrize("budget", [None, "14MiB"])
@pytest.mark.parametrize("store", [name for name in DEVICE_STORES if name.startswith("ouro-")])
def test_a_batch_for_which_a_heap_lacks_pages_is_whole_or_refused(store, budget):
    n = 200_000
    rng = np.random.default_rng(2)
    g = DynamicGraph(n, store=store, device="cuda", device_budget=budget, memory="device")
    host = DynamicGraph(n)
    # Pages of the smallest size for each row, of which few stay, on chunks that others left.
    pairs = rng.permutation(n).reshape(-1, 2)
    for graph in (g, host):
        graph.apply(insert=pairs)
        graph.apply(delete=pairs[3000:])
    before = g.digest()
    assert before == host.digest()
    hubs = np.repeat(np.arange(200), 1500), 1000 + rng.integers(0, 50_000, 300_000)
    if budget:
        with pytest.raises(MemoryBudgetError):
            g.apply(insert=hubs)
        g.check()
        assert (g.digest(), g.epoch) == (before, 2)
        hubs = pairs[3000:3099]
    for graph in (g, host):
        graph.apply(insert=hubs)
    g.check()
    assert g.digest() == host.digest()


@pytest.mark.parametrize("store", ["rows", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pool_grows_where_it_lies_and_past_its_budget_on_the_host(store, weighted):
    n, room = 20_000, 8 << 20
    host = DynamicGraph(n, weighted=weighted)
    options = {"weighted": weighted, "store": store, "device": "cuda"}
    there = DynamicGraph(n, device_budget=34 * n + room, **options)
    free = DynamicGraph(n, **options)
    rng, window = np.random.default_rng(6), []
    for count in (900_000, 5000, 400_000, 300, 700_000, 20_000):
        window.append((rng.integers(0, n, count), rng.integers(0, n, count)))
        address = free._store.targets.data.ptr
        for g in (host, there, free):
            g.apply(insert=window[-1])
        if count < 10_000 and store == "rows":
            assert free._store.targets.data.ptr == address
        there.check()
        assert host.digest() == there.digest() == free.digest()
    assert there.memory.host_bytes > 0 == free.memory.host_bytes
    assert there.memory.device_bytes <= there.device_budget
    assert np.array_equal(lu.bfs(there, 0).distances, lu.bfs(host, 0, device="cpu").distances)
    labels = lu.louvain(host, device="cpu").labels
    for g in (there, free):
        assert np.array_equal(lu.louvain(g, device="cuda").labels, labels)
    for batch in window[:-1]:
        for g in (host, there):
            g.apply(delete=batch)
    there.compact()
    there.check()
    assert there.digest() == host.digest()
    assert there.memory.host_bytes == 0


def test_a_batch_for_which_the_device_lacks_memory_is_told_in_a_line():
    import cupy

    g = DynamicGraph(1000, device="cuda")
    g.apply(insert=([0, 1], [1, 2]))
    before, pool = g.digest(), cupy.get_default_memory_pool()
    u, v = np.random.default_rng(1).integers(0, 1000, (2, 1 << 20))
    limit = pool.get_limit()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + (1 << 20))
    try:
        with pytest.raises(MemoryBudgetError, match="split the batch") as told:
            g.apply(insert=(u, v))
    finally:
        pool.set_limit(size=limit)
    assert "\n" not in str(told.value)
    assert (g.digest(), g.epoch) == (before, 1)
    g.check()
    assert int(g.apply(insert=(u, v)).inserted.sum()) > 100_000
