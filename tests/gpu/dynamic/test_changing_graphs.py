"""Changing graphs on a device, or on emulated blocks: stores, budgets, trackers, allocator."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um import DynamicGraph
from louvain_um.analysis.store_comparison import Comparison, compare_stores
from louvain_um.dynamic import scenarios
from louvain_um.dynamic.batches import device_batch
from louvain_um.dynamic.stores import DEVICE_STORES, STORES
from louvain_um.dynamic.stores.ouroboros import VARIANTS, Ouroboros
from louvain_um.errors import (
    DeviceUnavailableError,
    GraphError,
    LouvainUmError,
    MemoryBudgetError,
    OptionError,
)
from louvain_um.generators import rmat
from tests.dynamic.model import Model, follow, operate
from tests.dynamic.test_batches import REFUSED
from tests.gpu.algorithms.emulated_algorithms import emulate
from tests.gpu_emulated.emulated_device import Emulated, on_device
from tests.tiers import EXAMPLES

CHAINED = ("bump:page=32", "pages:page=32", "pages:page=256:order=sorted", "vine:block=3")
PUBLISHED = "vine:block=3:worker=thread:query=entries"
UPDATES = ("pages:update=thread", "pages:update=block:order=sorted", "bump:update=warp")
LAYOUTS = (
    "pages:layout=aos:ids=queue", "pages:layout=soa:update=warp", "pages:edges=semantic",
    "pages:layout=soa:edges=semantic:order=sorted", "pages:layout=aos:edges=semantic:page=32",
    "pages:layout=aos:edges=semantic:update=thread",
)  # fmt: skip
ONE_WAY = "pages:directed=yes:page=32", "pages:directed=yes:update=thread:edges=semantic"
OPTIONS = (
    *CHAINED, *UPDATES, *LAYOUTS, *ONE_WAY, PUBLISHED, "pages:deletion=reverse",
    "ouro-vl-c:update=unchecked", "ouro-s-p:update=unchecked:chunk=1024",
    "ouro-va-p:chunk=1024:page=64", "ouro-s-c:chunk=65536",
)  # fmt: skip
LINKED = (*CHAINED, *LAYOUTS, "bump", "pages", "vine", "bal", "bal:block=2")


@dataclass(frozen=True)
class Place:
    """Where graphs change: on a device, or, with libraries of kernels, on emulated blocks."""

    n: int
    counts: tuple[int, ...]
    """Of vertices, and of the edges of batches."""
    libraries: Any = None
    blocks: int = 3

    def graph(self, given, store="rows", budget=None, **options):
        if self.libraries is None:
            memory = "auto" if budget is None else "device"
            return DynamicGraph(
                given, store=store, device="cuda", device_budget=budget, memory=memory, **options
            )
        if store.startswith("bal"):  # a replica
            graph = DynamicGraph(given, store=store, **options)
            graph._store.device = Emulated(self.libraries, self.blocks)
            return graph
        graph = DynamicGraph(given, **options)
        on_device(graph, Emulated(self.libraries, self.blocks), store, budget=budget)
        return graph

    def put(self, array):
        if self.libraries is not None:
            return array
        import cupy

        return cupy.asarray(array)


@pytest.fixture(
    params=[
        pytest.param("emulated", marks=pytest.mark.deep),
        pytest.param("gpu", marks=pytest.mark.gpu),
    ]
)
def place(request, monkeypatch):
    if request.param == "gpu":
        request.getfixturevalue("gpu")
        return Place(4096, (20_000, 50, 3000, 1, 900, 200_000, 70, 10))
    monkeypatch.setattr(device_batch, "MOST_SORTED_HERE", 10_000)  # others sort larger ones
    libraries = request.getfixturevalue("emulated")
    return Place(2500, (9000, 50, 3000, 1, 900, 12_000, 70, 10), libraries)


@pytest.mark.parametrize("store", [*DEVICE_STORES, *OPTIONS])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_device_store_holds_what_a_dict_does(place, store, weighted):
    @settings(max_examples=10 * EXAMPLES)
    @given(data=st.data(), blocks=st.sampled_from([1, 3]))
    def check(data, blocks):
        model = Model(data.draw(st.integers(1, 24)), weighted, store)
        graph = replace(place, blocks=blocks).graph(model.n, store, weighted=weighted)
        follow(data, graph, model)

    check()


@pytest.mark.parametrize("store", DEVICE_STORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_contents_and_labels_are_those_of_the_host(place, store, weighted):
    n, rng, window = place.n, np.random.default_rng(5), []
    base = lu.Graph.from_edges(*rng.integers(0, n, (2, 4 * n)), n_vertices=n)
    host = DynamicGraph(base, weighted=weighted or None)
    there = place.graph(base, store, weighted=weighted or None)
    for count in place.counts:
        u, v = rng.integers(0, n, count), (n * rng.random(count) ** 4).astype(np.int64)
        w = (rng.integers(1, 2**33 if count == 70 else 99, count),) if weighted else ()
        gone = window.pop() if window else None
        window.append((u, v))
        once = "once" if count == 900 else None
        one = host.apply(insert=(u, v, *w), delete=gone, duplicates=once)
        given = tuple(map(place.put, (u, v, *w)))
        two = there.apply(insert=given, delete=gone, duplicates=once)
        assert repr(one) == repr(two)
        two = two.to_host()
        for name in ("u", "v", "before", "after"):
            assert np.array_equal(getattr(one, name), getattr(two, name)), name
        there.check()
        assert there.digest() == host.digest()
    assert np.array_equal(there.has_edges(u, v), host.has_edges(u, v))
    assert np.array_equal(there.host_snapshot().targets, host.snapshot().targets)
    ids = rng.integers(0, n, 30)
    for graph in (host, there):
        graph.remove_vertices(ids)
        graph.add_vertices(5)
    there.check()
    assert there.digest() == host.digest()
    if place.libraries is None:
        expected = lu.louvain(host.snapshot(), device="cpu").labels
        for result in (lu.louvain(there, device="cuda"), lu.louvain(host, device="cuda")):
            assert np.array_equal(result.labels, expected)
        there.compact()
        assert np.array_equal(lu.leiden(there).labels, lu.leiden(host, device="cpu").labels)


@pytest.mark.parametrize("store", DEVICE_STORES)
def test_a_batch_past_the_budget_changes_nothing(place, store):
    n, rng = 2048, np.random.default_rng(3)
    # The smallest heap takes 1 MiB, and as much for its weights; a page of a chain takes 128 bytes.
    room, count = (2 << 20, 9000) if store.startswith("ouro-") else (40_000, 90)
    always = 17 if place.libraries else 34  # bytes a vertex; a device has its arrays as well
    small = replace(place, blocks=1).graph(n, store, always * n + room, weighted=True)
    with pytest.raises(MemoryBudgetError):  # noqa: PT012
        for _ in range(40):
            before = small.digest(), small.epoch
            small.apply(insert=(rng.integers(0, n, count), rng.integers(0, n, count)))
    assert (small.digest(), small.epoch) == before
    assert small.epoch > 0
    small.check()


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_what_the_host_refuses(place, case):
    batch, _ = REFUSED[case]
    weighted, reported = case != "decrease without", []
    for g in (DynamicGraph(6, weighted=weighted), place.graph(6, weighted=weighted)):
        g.apply(insert=([0, 1, 2, 4], [1, 2, 0, 4]))
        before = g.digest()
        with pytest.raises(LouvainUmError) as error:
            g.apply(**batch)
        assert (g.digest(), g.epoch) == (before, 1)
        reported.append(str(error.value))
    assert reported[0] == reported[1]


def test_columns_of_any_type_and_removed_vertices(place):
    g = place.graph(40, weighted=True, scale=4.0)
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


def test_options_that_a_store_lacks_are_refused(gpu):
    with pytest.raises(OptionError, match="page=32"):
        DynamicGraph(3, store="pages:page=48", device="cuda")


@pytest.mark.parametrize("store", [*DEVICE_STORES, *OPTIONS])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_hundred_thousand_operations(place, store, weighted):
    model = Model(150, weighted, store)
    steps = 100 if place.libraries is None else 10
    operate(
        np.random.default_rng(2), place.graph(150, store, weighted=weighted), model, steps, 1000
    )


@pytest.mark.parametrize("store", LINKED)
@pytest.mark.parametrize("weighted", [False, True])
def test_algorithms_walk_linked_rows(place, store, weighted, monkeypatch):
    n, rng = place.n // 4, np.random.default_rng(5)
    host = DynamicGraph(n, weighted=weighted)
    there = place.graph(n, store, weighted=weighted)
    if place.libraries is not None:
        emulate(monkeypatch, place.libraries["algorithms"])
    x = rng.standard_normal(n)
    for count in (4000, 30, 600):
        u, v = rng.integers(0, n, count), (n * rng.random(count) ** 3).astype(np.int64)
        w = (rng.integers(1, 2**33, count),) if weighted else ()
        for graph in (host, there):
            graph.apply(insert=(u, v, *w), delete=(v[::2], u[::2]))
        moved, options = there.memory.moved_bytes, {"tolerance": 1e-3}
        expected, found = (
            [
                *lu.bfs(graph, 0, device=device), lu.pagerank(graph, device=device, **options),
                lu.spmv(graph, x, device=device), lu.triangles(graph, device=device),
                *lu.sssp(graph, 0, device=device), lu.connected_components(graph, device=device),
                *lu.minimum_spanning_forest(graph, device=device),
            ]
            for graph, device in ((host, "cpu"), (there, "cuda"))
        )  # fmt: skip
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.tobytes() == theirs.tobytes()
        assert (there.memory.moved_bytes > moved) == store.startswith("bal")
        there.check()
        assert there.digest() == host.digest()


@pytest.mark.parametrize("store", ["bal", "bal:block=2"])
def test_attributes_are_on_the_replica(place, store):
    n, rng = 500, np.random.default_rng(3)
    graph = place.graph(n, store)
    for count in (4000, 20, 900):
        graph.apply(insert=(u := rng.integers(0, n, count), v := (u + 1 + u % 7) % n))
        graph.attributes.edit("length", rng.random(9), u[-9:], v[-9:])
        graph.attributes.edit("height", np.arange(9), u[:9])
        graph.apply(delete=(u[::3], v[::3]))
        here, there = graph.attributes.arrays(), graph.attributes.arrays(device=True)
        get = graph._store.device.get
        assert [get(array).tolist() for array in there] == [array.tolist() for array in here]
        assert here[0].any()


def test_scenarios_end_alike(gpu):
    scenario = scenarios.planted(2000, change="merge", batch=40, steps=30, seed=4)
    graphs = [DynamicGraph(scenario.initial, device=device) for device in ("cpu", "cuda")]
    for step in scenario.steps():
        for g in graphs:
            step.apply(g)
    assert graphs[0].digest() == graphs[1].digest()


def test_stores_are_compared_on_a_device(gpu, tmp_path):
    base = rmat(10, edge_factor=8, seed=3).graph
    found = [
        compare_stores(
            [("rmat", base)],
            Comparison(stores=tuple(STORES), batches=(50, 900), steps=2, device=device),
            tmp_path / device,
        )
        for device in ("cpu", "cuda")
    ]
    for here, there in zip(*found, strict=True):
        assert here["contents"] == there["contents"]
        assert there["insert_ms"] > 0


def test_another_current_device_is_refused(gpu):
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


@pytest.mark.parametrize("budget", [None, "14MiB"])
@pytest.mark.parametrize("store", [name for name in DEVICE_STORES if name.startswith("ouro-")])
def test_a_batch_for_which_a_heap_lacks_pages_is_whole_or_refused(gpu, store, budget):
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
def test_a_pool_grows_where_it_lies_and_past_its_budget_on_the_host(gpu, store, weighted):
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


def test_a_batch_for_which_the_device_lacks_memory_is_reported_in_a_line(gpu):
    import cupy

    g = DynamicGraph(1000, device="cuda")
    g.apply(insert=([0, 1], [1, 2]))
    before, pool = g.digest(), cupy.get_default_memory_pool()
    u, v = np.random.default_rng(1).integers(0, 1000, (2, 1 << 20))
    limit = pool.get_limit()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + (1 << 20))
    try:
        with pytest.raises(MemoryBudgetError, match="split the batch") as reported:
            g.apply(insert=(u, v))
    finally:
        pool.set_limit(size=limit)
    assert "\n" not in str(reported.value)
    assert (g.digest(), g.epoch) == (before, 1)
    g.check()
    assert int(g.apply(insert=(u, v)).inserted.sum()) > 100_000


@pytest.mark.parametrize("connected", ["renewal", "always"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tracker_follows_a_graph_on_a_device(gpu, weighted, connected):
    base = rmat(12, edge_factor=8, seed=3).graph
    kind = {"weighted": weighted or None}
    graphs = DynamicGraph(base, **kind), DynamicGraph(base, device="cuda", **kind)
    options = {"renew": 0.05, "audit": 0.001, "connected": connected}
    trackers = [lu.Tracker(graph, **options) for graph in graphs]
    rng = np.random.default_rng(4)
    for k in range(40):
        u, v = rng.integers(0, 4096, (2, 600))
        w = (rng.integers(1, 50, 400),) if weighted else ()
        results = [
            tracker.update(
                tracker.graph.apply(insert=(u[:400], v[:400], *w), delete=(u[400:], v[400:]))
            )
            for tracker in trackers
        ]
        assert results[0].modularity == results[1].modularity
        if k % 4 == 0:
            assert np.array_equal(results[0].labels, results[1].labels)
            assert np.array_equal(results[0].ids, results[1].ids)
            assert np.array_equal(results[0].changed, results[1].changed)
            assert results[0].events.tolist() == results[1].events.tolist()
    frames = [tracker.to_frame() for tracker in trackers]
    assert frames[0]["renewed"].sum() > 1
    for column in ("changed", "communities", "marked", "split", "moves", "renewed", "audit_lead"):
        assert frames[0][column].equals(frames[1][column]), column


def test_a_tracker_keeps_to_a_budget(gpu):
    ends = np.arange(1000), np.arange(1000, 2000)
    base = lu.Graph.from_edges(*ends, n_vertices=200_000)
    held = DynamicGraph(base, device="cuda").memory.total_bytes
    tight = DynamicGraph(base, device="cuda", device_budget=held + 5_000_000)
    with pytest.raises(MemoryBudgetError, match="follow the graph on the CPU"):
        lu.Tracker(tight)
    wide = DynamicGraph(base, device="cuda", device_budget=held + (64 << 20))
    tracker = lu.Tracker(wide)
    found = tracker.update(wide.apply(insert=(np.arange(1000), np.arange(1, 1001))))
    assert found.n_communities < 200_000
    assert tracker.following_bytes + wide.memory.total_bytes < wide.device_budget


CODE = """
extern "C" __global__ void trade(HEAP heap, unsigned n, const unsigned* bytes, unsigned* wrong) {
  const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
  if (own >= n) return;
  for (unsigned round = 0; round < 8; ++round) {
    unsigned* page = (unsigned*)heap.malloc(bytes[(own + round) % n]);
    if (!page) {
      atomicAdd(&wrong[1], 1u);
      continue;
    }
    *page = own;
    if (*(volatile unsigned*)page != own) atomicAdd(&wrong[0], 1u);
    heap.free(page);
  }
}
"""


@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_of_ones_own_allocate_and_free(gpu, variant):
    import cupy

    heap = Ouroboros(64 << 20, variant)
    code = heap.include + CODE.replace("HEAP", heap.struct)
    trade = cupy.RawKernel(code, "trade", options=heap.options)
    rng = np.random.default_rng(4)
    bytes_ = cupy.asarray(1 + (rng.integers(0, 8192, 8192) >> rng.integers(0, 10, 8192)), np.uint32)
    wrong = cupy.zeros(2, np.uint32)
    trade((32,), (256,), (heap.argument, np.uint32(bytes_.size), bytes_, wrong))
    assert wrong.tolist() == [0, 0]
    assert heap.statistics().used_bytes == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_pieces_are_separate_and_memory_runs_out(gpu, variant):
    import cupy

    heap = Ouroboros(1 << 20, variant)
    for _ in range(2):
        found = heap.malloc(cupy.full(12_000, 128, np.uint64))
        got = cupy.sort(found[found != 0])
        assert int((got[1:] - got[:-1]).min()) >= 128
        assert len(got) == heap.statistics().used_pages[3]
        assert 128 * len(got) > 0.7 * heap.nbytes
        heap.free(found)
        assert heap.statistics().used_bytes == 0


def test_a_heap_for_which_there_is_no_room_is_refused(gpu):
    import cupy

    heap = Ouroboros(1 << 20)
    pool = cupy.get_default_memory_pool()
    before = pool.get_limit()
    pool.set_limit(size=pool.total_bytes() + (1 << 20))
    try:
        with pytest.raises(MemoryBudgetError, match="ask for fewer bytes"):
            heap.reinitialise(1 << 30)
    finally:
        pool.set_limit(size=before)
    assert heap.statistics().used_bytes == 0
