"""Stores on a device, their kernels emulated on the CPU, hold what stores on the host do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um import DynamicGraph
from louvain_um.dynamic.stores import device_rows
from louvain_um.errors import GraphError, LouvainUmError, MemoryBudgetError
from louvain_um.gpu.dynamic.batch_arrays import LONG_ROW
from tests.dynamic.model import Model, apply, batches, same_contents
from tests.dynamic.test_batches import REFUSED
from tests.gpu_emulated.emulated_device import Emulated, Libraries, on_device


@pytest.fixture(scope="module")
def library(emulated: Libraries) -> Libraries:
    return emulated


@pytest.mark.parametrize("store", device_rows.STORES)
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=20, deadline=None)
@given(data=st.data(), blocks=st.sampled_from([1, 3]))
def test_a_device_store_holds_what_a_dict_does(library, store, weighted, data, blocks):
    model = Model(data.draw(st.integers(1, 24)), weighted)
    g = DynamicGraph(model.n, weighted=weighted)
    on_device(g, Emulated(library, blocks), store)
    for _ in range(data.draw(st.integers(1, 5))):
        step = data.draw(st.sampled_from(["batch", "batch", "add", "remove", "compact"]))
        if step == "batch":
            batch = data.draw(batches(model))
            expected, missing = model.apply(**batch)
            change = apply(g, batch)
            assert (len(change), change.missing) == (len(expected), missing)
        elif step == "add":
            model.n = g.add_vertices(3)[-1] + 1
        elif step == "remove":
            living = sorted(set(range(model.n)) - model.dead)
            ids = data.draw(st.lists(st.sampled_from(living), max_size=3)) if living else []
            g.remove_vertices(np.array(ids, np.int64))
            model.edges = {e: w for e, w in model.edges.items() if not set(e) & set(ids)}
            model.dead |= set(ids)
        else:
            g.compact()
        g.check()
        same_contents(g, model)


@pytest.mark.parametrize("store", device_rows.STORES)
def test_hubs_large_batches_and_budgets(library, store):
    rng = np.random.default_rng(3)
    n = 2500
    host = DynamicGraph(n, weighted=True)
    g = DynamicGraph(n, weighted=True)
    on_device(g, Emulated(library, 3), store)
    window = []
    for count in (9000, 40, 3000, 60, 200, 12_000, 30, 90):
        u, v = rng.integers(0, n, count), (n * rng.random(count) ** 4).astype(np.int64)
        gone = window.pop() if window else None
        window.append((u, v))
        for graph in (host, g):
            graph.apply(insert=(u, v), delete=gone)
        g.check()
        assert g.digest() == host.digest()
        assert g._store.traverse() == host._store.traverse()
    assert np.array_equal(g.has_edges(u, v), host.has_edges(u, v))
    rows, whole = g.device_view(), host.snapshot()
    assert rows.begins.flags.c_contiguous  # as kernels read them
    assert rows.ends.flags.c_contiguous
    for vertex in range(n):
        row = rows.targets[rows.begins[vertex] : rows.ends[vertex]]
        first, last = whole.offsets[vertex : vertex + 2]
        assert np.array_equal(row, whole.targets[first:last])
    small = DynamicGraph(n, weighted=True)
    on_device(small, Emulated(library, 1), store, budget=17 * n + 20_000)
    with pytest.raises(MemoryBudgetError):  # noqa: PT012
        for _ in range(40):
            before = small.digest()
            small.apply(insert=(rng.integers(0, n, 90), rng.integers(0, n, 90)))
    assert small.digest() == before
    assert small.epoch > 0
    small.check()


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_all_blocks_merge(library, weighted):
    n = 3 * LONG_ROW
    rng = np.random.default_rng(7)
    host = DynamicGraph(n, weighted=weighted)
    g = DynamicGraph(n, weighted=weighted)
    on_device(g, Emulated(library, 2), "rows")
    hub, leaves = np.zeros(n - 1, np.int64), np.arange(1, n)
    few = rng.choice(leaves, 300, replace=False)
    for batch in (
        {"insert": (hub, leaves)},  # the pool is rebuilt around a long row
        {"insert": (rng.integers(0, n, 200), rng.integers(0, n, 200)), "delete": (hub[:300], few)},
        {"insert": (hub[:300], few)},  # merged into its own page, by way of the room behind all
        {"delete": (hub, leaves)},
    ):
        for graph in (host, g):
            graph.apply(**batch)
        g.check()
        assert g.digest() == host.digest()


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_what_the_host_refuses(library, case):
    batch, _ = REFUSED[case]
    told = []
    for device in (None, Emulated(library, 2)):
        g = DynamicGraph(6, weighted=case != "decrease without")
        g.apply(insert=([0, 1, 2, 4], [1, 2, 0, 4]))
        if device:
            on_device(g, device, "rows")
        before = g.digest()
        with pytest.raises(LouvainUmError) as error:
            g.apply(**batch)
        assert (g.digest(), g.epoch) == (before, 1)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_columns_of_any_type_and_removed_vertices(library):
    g = DynamicGraph(40, weighted=True, scale=4.0)
    on_device(g, Emulated(library, 1), "rows")
    ends = np.array([1, 2, 3]), np.array([2, 3, 4])
    for i, dtype in enumerate((np.uint8, np.int16, np.uint32, np.int32, np.uint64, np.int64)):
        u, v = (end.astype(dtype) + dtype(i) for end in ends)
        for w in (np.ones(3, np.float32), np.array([True] * 3), np.ones(3, np.float16), None):
            g.apply(insert=(u, v) if w is None else (u, v, w))
    g.check()
    assert g.weights_of([1, 8], [2, 9]).tolist() == [4 + 1 + 4 + 4, 4 + 1 + 4 + 4]
    g.remove_vertices([3])
    with pytest.raises(GraphError, match="3, which was removed"):
        g.apply(insert=([0], [3]))
    assert g.add_vertices(1, reuse=True).tolist() == [3]
    assert len(g.apply(insert=([0], [3]))) == 1
