"""Stores on a device grow where they lie, past a budget on the host; the driver is emulated."""

import gc

import numpy as np
import pytest

from louvain_um import DynamicGraph, Graph
from louvain_um.dynamic.declared import GraphBudget
from louvain_um.dynamic.stores import share_of
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.memory import cuda_calls, vmm
from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.vmm import GrowingRange
from tests.gpu_emulated.emulated_device import Emulated, on_device
from tests.gpu_emulated.emulated_engine import HostRuntime, driver_of

pytestmark = pytest.mark.deep

STEP = 4096
"""Bytes to whose multiples memory is mapped here, so that small graphs take many steps."""

N = 600


@pytest.fixture
def runtime(monkeypatch):
    runtime = HostRuntime(1)
    driver = driver_of(runtime)
    monkeypatch.setattr(cuda_calls, "cupy_runtime", lambda: runtime)
    monkeypatch.setattr(cuda_calls, "driver", lambda: driver)
    monkeypatch.setattr(guard, "ranges", {})
    monkeypatch.setattr(guard, "permitted", {})
    monkeypatch.setattr(vmm, "BLOCK", STEP)
    monkeypatch.setattr(vmm, "MOST_CHUNK", 2 * STEP)
    monkeypatch.setattr(vmm, "CHUNKS", 2)
    yield runtime
    gc.collect()
    assert not runtime.held
    assert not runtime.files


def pair(library, budget=None, share=None, *, weighted=False, n=N):
    """Return an empty graph on the host, and one on an emulated device that maps memory."""
    graphs = [DynamicGraph(n, weighted=weighted) for _ in range(2)]
    on_device(graphs[1], Emulated(library, 2, maps=True), "rows", budget, share)
    return graphs


def edges(rng, count, n=N):
    return rng.integers(0, n, count), rng.integers(0, n, count)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pool_grows_where_it_lies(runtime, emulated, weighted):
    here, there = pair(emulated, weighted=weighted)
    rng = np.random.default_rng(1)
    for graph in (here, there):
        graph.apply(insert=edges(np.random.default_rng(0), 6000))
    store = there._store
    pool, address = store.pool, store.targets.ctypes.data
    grown = set()
    for _ in range(30):
        batch = edges(rng, 60)
        for graph in (here, there):
            graph.apply(insert=batch)
        if store.pool is not pool:  # too many pages were free
            pool, address = store.pool, store.targets.ctypes.data
        assert store.targets.ctypes.data == address
        grown.add(len(store.targets))
    there.check()
    assert there.digest() == here.digest()
    assert len(grown) > 3
    assert there.memory.host_bytes == 0
    assert {kind for kind, _, _ in runtime.created} == {1}  # of the device
    assert all(nbytes % STEP == 0 for _, _, nbytes in runtime.created)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
def test_what_is_past_the_budget_lies_on_the_host(runtime, emulated, weighted, share):
    budget = N * 17 + 16 * STEP
    here, there = pair(emulated, budget, share, weighted=weighted)
    rng, window = np.random.default_rng(2), []
    seen = []
    for count in (3000, 4000, 200, 3000, 40, 5000, 60, 4000):
        batch = edges(rng, count)
        window.append(batch)
        for graph in (here, there):
            graph.apply(insert=batch)
        there.check()
        assert there.digest() == here.digest()
        assert there._store.pool.on_device <= share * 16 * STEP
        memory = there.memory
        assert memory.host_bytes <= memory.held_bytes
        assert memory.device_bytes <= N * 34 + share * 16 * STEP
        seen.append(memory.host_bytes)
    assert seen[-1] > 0
    assert isinstance(there.snapshot(), Graph)
    for batch in window[1:]:
        for graph in (here, there):
            graph.apply(delete=batch)
    for graph in (here, there):
        graph.compact()
    there.check()
    assert there.digest() == here.digest()
    fits = share == 1 or (share == 0.5 and not weighted)
    assert (there.memory.host_bytes == 0) == fits


def test_wide_weights_past_the_budget(runtime, emulated):
    here, there = pair(emulated, N * 17 + 4 * STEP, 1.0, weighted=True)
    rng = np.random.default_rng(3)
    for heaviest in (9, 2**40, 7):
        u, v = edges(rng, 3000)
        w = rng.integers(1, heaviest, 3000)
        for graph in (here, there):
            graph.apply(insert=(u, v, w))
        assert there.digest() == here.digest()
    assert there.memory.host_bytes > 0
    assert there._store.weights.dtype == np.uint64


def test_new_vertices_drive_arcs_to_the_host(runtime, emulated):
    here, there = pair(emulated, 20 * STEP, 1.0)
    there._budget = GraphBudget(34 * N + 20 * STEP)
    for graph in (here, there):
        graph.apply(insert=edges(np.random.default_rng(4), 6000))
    assert there.memory.host_bytes == 0
    for graph in (here, there):
        graph.add_vertices(1000)
        graph.apply(insert=edges(np.random.default_rng(5), 50, N + 1000))
    there.check()
    assert there.digest() == here.digest()
    assert there.memory.host_bytes > 0
    assert there.memory.device_bytes <= there.device_budget
    with pytest.raises(MemoryBudgetError):
        there.add_vertices(10_000)
    assert there.digest() == here.digest()


@pytest.mark.parametrize("failing", ["host memory", "cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_batch_without_memory_changes_nothing(runtime, emulated, failing, monkeypatch):
    _, there = pair(emulated, N * 17 + 8 * STEP, 1.0)
    rng = np.random.default_rng(5)
    there.apply(insert=edges(rng, 3000))
    before, held = there.digest(), there._store.pool.places
    batch = edges(rng, 9000)
    with monkeypatch.context() as patch:
        if failing == "host memory":
            patch.setattr(vmm, "available", lambda: STEP)
        else:

            class Full(int):
                name = "CUDA_ERROR_OUT_OF_MEMORY"

            patch.setattr(cuda_calls.driver(), failing, lambda *_: (Full(2),))
        with pytest.raises(MemoryBudgetError) as error:
            there.apply(insert=batch)
        assert "\n" not in str(error.value)
    assert (there.digest(), there.epoch) == (before, 1)
    assert there._store.pool.places == held
    there.check()
    there.apply(insert=batch)
    there.check()


def test_a_range_keeps_its_values_and_its_address(runtime):
    with GrowingRange("test", 40 * STEP, 0) as room:
        view = np.frombuffer((np.ctypeslib.ctypes.c_uint8 * (9 * STEP)).from_address(room.address))
        room.grow(3 * STEP, 4 * STEP)
        room.grow(9 * STEP - 5, 4 * STEP)
        assert room.parts == [(0, 3 * STEP), (0, STEP), *[(HOST, 2 * STEP)] * 2, (HOST, STEP)]
        view[:] = values = np.arange(len(view), dtype=view.dtype)
        copied = np.empty_like(values[:-3])
        room.fetch(copied)
        assert np.array_equal(copied, values[:-3])
        room.bring(7 * STEP)
        assert (room.on_device, room.on_host) == (7 * STEP, 2 * STEP)
        assert np.array_equal(view, values)
        with pytest.raises(MemoryBudgetError, match="device_budget"):
            room.grow(41 * STEP, 99 * STEP)
        assert room.mapped == 9 * STEP


def test_policies_say_which_arcs_leave_the_device():
    assert [share_of(name) for name in ("auto", "device", "zero_copy", "base")] == [1, None, 0, 1]
