"""Stores on a device, their kernels emulated on the CPU, hold what stores on the host do."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um import DynamicGraph
from louvain_um.dynamic.stores import device_rows
from louvain_um.errors import MemoryBudgetError
from tests.dynamic.model import Model, apply, batches, same_contents

KINDS = {"Unweighted": 0, "u32": 1, "u64": 2}


@pytest.fixture(scope="module")
def library(emulated: dict[str, ctypes.CDLL]) -> ctypes.CDLL:
    return emulated["batches"]


class Emulated:
    """NumPy's arrays, and kernels run by a few emulated blocks."""

    xp = np

    def __init__(self, library: ctypes.CDLL, blocks: int) -> None:
        self.library, self.blocks = library, blocks

    def launch(self, kernel: str, types: str, items: int, *args: Any) -> None:
        assert items > 0
        given = [ctypes.c_int(self.blocks), ctypes.c_int(KINDS[types])]
        for arg in args:
            if arg is None:
                given.append(ctypes.c_void_p(None))
            elif isinstance(arg, np.ndarray):
                assert arg.flags.c_contiguous, kernel
                given.append(ctypes.c_void_p(arg.ctypes.data))
            else:
                assert isinstance(arg, np.int64)
                given.append(ctypes.c_int64(int(arg)))
        getattr(self.library, f"{kernel}_as")(*given)

    def get(self, array: Any) -> Any:
        return array


def on_device(g: DynamicGraph, device: Emulated, store: str, budget: int | None = None) -> None:
    """Move the rows of a graph to an emulated device."""
    rows = g._store.compressed()
    g._store = device_rows.STORES[store](rows, 1, budget, device)


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
    small = DynamicGraph(n, weighted=True)
    on_device(small, Emulated(library, 1), store, budget=17 * n + 20_000)
    with pytest.raises(MemoryBudgetError):  # noqa: PT012
        for _ in range(40):
            before = small.digest()
            small.apply(insert=(rng.integers(0, n, 90), rng.integers(0, n, 90)))
    assert small.digest() == before
    assert small.epoch > 0
    small.check()
