"""Changing graphs on a device hold what those on the host do, and find the same communities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um import DynamicGraph
from louvain_um.analysis.stores.comparison import Comparison, compare_stores
from louvain_um.dynamic import scenarios
from louvain_um.dynamic.stores import DEVICE_STORES
from louvain_um.errors import DeviceUnavailableError, GraphError, MemoryBudgetError, OptionError
from louvain_um.generators import rmat
from tests.dynamic.model import Model, follow

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


@pytest.mark.parametrize("store", DEVICE_STORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_digests_and_labels_are_those_of_the_host(store, weighted):
    import cupy

    base = rmat(12, edge_factor=8, seed=2).graph
    host = DynamicGraph(base, weighted=weighted or None)
    there = DynamicGraph(base, weighted=weighted or None, store=store, device="cuda")
    rng = np.random.default_rng(5)
    window = []
    for count in (20_000, 50, 3000, 1, 900, 200_000, 70, 10):
        u, v = rng.integers(0, 4096, count), (4096 * rng.random(count) ** 3).astype(np.int64)
        w = (rng.integers(1, 2**33 if count == 70 else 99, count),) if weighted else ()
        gone = window.pop() if window else None
        window.append((u, v))
        once = "once" if count == 900 else None
        one = host.apply(insert=(u, v, *w), delete=gone, duplicates=once)
        device = [cupy.asarray(array) for array in (u, v, *w)]
        two = there.apply(insert=tuple(device), delete=gone, duplicates=once)
        assert repr(one) == repr(two)
        for name in ("u", "v", "before", "after"):
            assert np.array_equal(getattr(one, name), cupy.asnumpy(getattr(two, name))), name
        there.check()
        assert there.digest() == host.digest()
    ids = rng.integers(0, 4096, 30)
    host.remove_vertices(ids)
    there.remove_vertices(ids)
    host.add_vertices(5)
    there.add_vertices(5)
    there.check()
    assert there.digest() == host.digest()
    expected = lu.louvain(host.snapshot(), device="cpu").labels
    for result in (lu.louvain(there, device="cuda"), lu.louvain(host, device="cuda")):
        assert np.array_equal(result.labels, expected)
    there.compact()
    assert np.array_equal(lu.leiden(there).labels, lu.leiden(host, device="cpu").labels)


@pytest.mark.parametrize("store", DEVICE_STORES)
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_device_store_holds_what_a_dict_does(store, weighted, data):
    model = Model(data.draw(st.integers(1, 24)), weighted)
    follow(data, DynamicGraph(model.n, weighted=weighted, store=store, device="cuda"), model)


def test_refused_batches_change_nothing():
    g = DynamicGraph(
        50, weighted=True, device="cuda", device_budget=50 * 40 + 4000, memory="device"
    )
    g.apply(insert=([0, 1], [1, 2], [3, 4]))
    before = g.digest()
    for batch in (
        {"insert": ([0], [50])},
        {"decrease": ([0], [1], [9])},
        {"insert": ([0], [1], [2.0**53])},
        {"delete": ([5], [6]), "missing": "raise"},
    ):
        with pytest.raises(GraphError):
            g.apply(**batch)
    u, v = np.triu_indices(50, 1)
    with pytest.raises(MemoryBudgetError):
        g.apply(insert=(u, v))
    assert (g.digest(), g.epoch) == (before, 1)
    with pytest.raises(OptionError, match="rows"):
        DynamicGraph(3, store="bal", device="cuda")


def test_scenarios_end_alike():
    scenario = scenarios.planted(2000, change="merge", batch=40, steps=30, seed=4)
    graphs = [DynamicGraph(scenario.initial, device=device) for device in ("cpu", "cuda")]
    for step in scenario.steps():
        for g in graphs:
            step.apply(g)
    assert graphs[0].digest() == graphs[1].digest()


def test_stores_are_compared_on_a_device(tmp_path):
    base = rmat(10, edge_factor=8, seed=3).graph
    found = [
        compare_stores(
            [("rmat", base)],
            Comparison(stores=DEVICE_STORES, batches=(50, 900), steps=2, device=device),
            tmp_path / device,
        )
        for device in ("cpu", "cuda")
    ]
    for here, there in zip(*found, strict=True):
        assert here["contents"] == there["contents"]
        assert there["insert_ms"] > 0


def test_another_current_device_is_refused():
    import cupy

    count, current = cupy.cuda.runtime.getDeviceCount(), cupy.cuda.runtime.getDevice()
    if count < 2:
        pytest.skip("there is one device only")
    g = DynamicGraph(4, device=f"cuda:{current}")
    g.apply(insert=([0, 1], [1, 2]))
    with (
        cupy.cuda.Device((current + 1) % count),
        pytest.raises(DeviceUnavailableError, match=f"cupy.cuda.Device\\({current}\\)"),
    ):
        g.apply(insert=([0], [3]))
    g.apply(insert=([0], [3]))
    g.check()
