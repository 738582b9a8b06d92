"""Stores on a device, their kernels emulated on the CPU, hold what stores on the host do."""

import signal

import numpy as np
import pytest

from louvain_um import DynamicGraph, Tracker
from louvain_um.dynamic.batches import device_batch
from louvain_um.dynamic.declared import DynamicSize, GraphBudget, declare
from louvain_um.dynamic.stores import DEVICE_STORES
from louvain_um.dynamic.stores.on_device.store import OF_VERTICES
from louvain_um.dynamic.stores.rows import LEAST_FREE
from louvain_um.errors import GraphError, MemoryBudgetError, OptionError
from louvain_um.gpu.dynamic.batch_arrays import COUNTS, LONG_ROW
from tests.dynamic.test_stores import few_hubs
from tests.gpu_emulated.emulated_device import Emulated, on_device

pytestmark = pytest.mark.deep

OURO = tuple(name for name in DEVICE_STORES if name.startswith("ouro-"))


@pytest.fixture(scope="module")
def library(emulated):
    return emulated


@pytest.mark.parametrize("store", [*DEVICE_STORES, "ouro-vl-p:chunk=2048:page=32", "vine:block=3"])
@pytest.mark.parametrize("weighted", [False, True])
def test_plans_are_what_stores_hold(library, store, weighted):
    graph = few_hubs(weighted)
    g = DynamicGraph(graph)
    on_device(g, Emulated(library, 2), store)
    memory, size = g.memory, DynamicSize.of(graph, store=store, batch=500, growth=1.5)
    first = DynamicSize.of(graph, store=store)
    assert first.store_bytes == (memory.held_bytes, memory.row_bytes)
    declared = {array.name: array.nbytes for array in declare(size).arrays}
    rng = np.random.default_rng(7)
    while g.n_arcs < 1.4 * graph.n_arcs:
        g.apply(insert=(*(4000 * rng.random((2, 500)) ** 4).astype(np.int64),))
        held = g.device_store
        for name in ("spans", "classes"):
            assert getattr(held, name, None) is None or getattr(held, name).nbytes <= declared[name]
        for name in ("targets", "weights") if weighted else ("targets",):
            array = getattr(held, name)
            assert array.nbytes <= declared[name] + LEAST_FREE * array.itemsize, name
        assert held.row_bytes <= size.store_bytes[1]


def test_blocks_in_reserve_take_a_share_of_the_budget(library):
    budget, n = 4 << 20, 2000
    g, host, rng = DynamicGraph(n), DynamicGraph(n), np.random.default_rng(4)
    on_device(g, Emulated(library, 2), "vine:reserve=50:block=4", budget=budget)
    held = g.memory.held_bytes
    assert 0.45 * budget < held < 0.5 * budget
    for _ in range(8):
        ends = tuple(rng.integers(0, n, (2, 20_000)))
        g.apply(insert=ends)
        host.apply(insert=ends)
        g.check()
        blocks = g.memory.held_bytes // (4 * g._store.words)
        used = int(g._store.queue.state()["cut"])
        assert 5 * used <= 4 * blocks, "more than four fifths are in use"
    assert g.digest() == host.digest()
    with pytest.raises(OptionError, match="on the CPU"):
        DynamicGraph(3, store="vine:reserve=50")


def test_blocks_in_reserve_stay_as_many_bytes_when_they_get_wider(library):
    n, budget, rng = 200, 1 << 20, np.random.default_rng(4)
    g = DynamicGraph(n)
    on_device(g, Emulated(library, 2), "vine:reserve=50", budget=budget)
    held = g.memory.held_bytes
    g.apply(insert=rng.integers(0, n, (5000, 2)))
    g.check()
    assert g._store.width > 40
    assert 0 <= held - g.memory.held_bytes < 4 * g._store.words


@pytest.mark.parametrize(
    ("n", "blocks"), [*((n, blocks) for n in (3, 256, 700) for blocks in (1, 3)), (70_000, 3)]
)
def test_large_batches_with_loops_and_repeated_edges(library, n, blocks, monkeypatch):
    monkeypatch.setattr(device_batch, "MOST_SORTED_HERE", 0)
    rng = np.random.default_rng(n)
    g, host = DynamicGraph(n), DynamicGraph(n)
    on_device(g, Emulated(library, blocks), "rows")
    for count in (4000, 1500, 6000):
        u, v = rng.integers(0, n, count), (n * rng.random(count) ** 3).astype(np.int64)
        u[:9] = v[:9] = n - 1  # a loop whose key is nearly that of no arc
        for graph in (g, host):
            graph.apply(insert=(u, v))
            graph.apply(delete=(u[::2], v[::2]))
        g.check()
        assert g.digest() == host.digest()
    rows, whole = g.device_view(), host.snapshot()
    assert rows.begins.flags.c_contiguous  # as kernels read them
    assert rows.ends.flags.c_contiguous
    for vertex in range(min(n, 700)):
        row = rows.targets[rows.begins[vertex] : rows.ends[vertex]]
        first, last = whole.offsets[vertex : vertex + 2]
        assert np.array_equal(row, whole.targets[first:last])


@pytest.mark.parametrize("store", ["rows", "ouro-va-c"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_all_blocks_merge(library, weighted, store):
    n = 3 * LONG_ROW
    rng = np.random.default_rng(7)
    host = DynamicGraph(n, weighted=weighted)
    g = DynamicGraph(n, weighted=weighted)
    on_device(g, Emulated(library, 2), store)
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


@pytest.mark.parametrize(
    ("store", "budget"),
    [(store, 2_700_000 if k % 2 else None) for k, store in enumerate(OURO)]
    + [(OURO[0], 2_700_000), (OURO[1], None)],
)
def test_a_batch_for_which_a_heap_lacks_pages_is_whole_or_refused(library, store, budget):
    n = 56_000
    pairs = np.arange(0, n, 2)
    gone = np.random.default_rng(2).permutation(pairs)[: -n // 50]
    # One block at first: where several meet, queues may take more chunks than the budget has.
    g, host, device = DynamicGraph(n), DynamicGraph(n), Emulated(library, 1)
    on_device(g, device, store, budget=budget)
    # A page of the smallest size for each row, nearly all of the smallest heap; then most are free,
    # but on chunks that others share.
    for graph in (g, host):
        graph.apply(insert=(pairs, pairs + 1))
        graph.apply(delete=(gone, gone + 1))
    device.blocks = 3
    heap, before = g._store.heap, g.digest()
    assert before == host.digest()
    hubs = np.repeat(np.arange(30), 1500), np.tile(np.arange(100, 1600), 30)
    if budget:
        with pytest.raises(MemoryBudgetError):
            g.apply(insert=hubs)
        assert g._store.heap is heap
        g.check()
        assert g.digest() == before
        hubs = gone[:99], gone[:99] + 1
    for graph in (g, host):
        graph.apply(insert=hubs)
    assert (g._store.heap is heap) == bool(budget)
    g.check()
    assert g.digest() == host.digest()


@pytest.mark.parametrize("store", OURO[:2])
def test_edges_that_nothing_looks_up_are_looked_up_for_a_larger_heap(library, store):
    n, rng = 90_000, np.random.default_rng(6)
    g, host = DynamicGraph(n), DynamicGraph(n)
    on_device(g, Emulated(library, 3), f"{store}:update=unchecked")
    heap, ends = g._store.heap, rng.permutation(n).reshape(2, -1)
    for part in (slice(99), slice(50, 99), slice(99, None)):
        u, v = ends[:, part]
        if part.start == 99:
            assert g._store.heap is heap
            again = tuple(
                np.append(side, end) for side, end in zip((u, v), ends[:, 9], strict=True)
            )
            with pytest.raises(GraphError, match="is there; leave out update=unchecked"):
                g.apply(insert=again)
            assert g._store.heap is heap
        for graph in (host, g):
            graph.apply(**{"delete" if part.start == 50 else "insert": (u, v)})
        g.check()
        assert g.digest() == host.digest()
    assert g._store.heap is not heap


@pytest.mark.parametrize("store", OURO[:2])
def test_an_interrupt_while_pages_are_taken_gives_them_back(library, store, monkeypatch):
    device, armed = Emulated(library, 1), []
    launch = device.launch

    def interrupted(source, kernel, *args, **options):
        launch(source, kernel, *args, **options)
        if armed and kernel == "take_pages":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(device, "launch", interrupted)
    g = DynamicGraph(50)
    on_device(g, device, store)
    g.apply(insert=([0, 1], [1, 2]))
    before = g.digest()
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        g.apply(insert=([3, 4, 0], [5, 6, 7]))
    armed.clear()
    g.check()
    assert (g.digest(), g.epoch) == (before, 1)
    g.apply(insert=([3, 4, 0], [5, 6, 7]))
    g.check()


class Scarce:
    """NumPy, whose memory for joined arrays ends after a few."""

    left = 1 << 30

    def __getattr__(self, name):
        return getattr(np, name)

    def concatenate(self, arrays):
        self.left -= 1
        if self.left < 0:
            raise MemoryError
        return np.concatenate(arrays)


@pytest.mark.parametrize(("store", "more"), [("rows", 3), ("pages:ids=queue", 3), ("vine", 4)])
def test_vertices_for_which_memory_lacks_are_not_there(library, store, more):
    device = Emulated(library, 1)
    device.xp = Scarce()
    g = DynamicGraph(5, weighted=True)
    on_device(g, device, store)
    g.apply(insert=([0, 1], [1, 2]))
    before = g.digest()
    for left in range(4):
        device.xp.left = left
        with pytest.raises(MemoryError):
            g.add_vertices(more)
        device.xp.left = 1 << 30
        g.check()
        assert (g.n_vertices, g.digest()) == (5, before)
    g.add_vertices(more)
    g.apply(insert=([7], [0]))
    g.check()
    assert g.has_edges([7], [0]).all()


def test_the_dictionary_of_vertices_doubles(library):
    n, rng, places = 100, np.random.default_rng(2), set()
    g, host = DynamicGraph(n, weighted=True), DynamicGraph(n, weighted=True)
    on_device(g, Emulated(library, 2), "vine")
    for _ in range(20):
        n += 50
        u, v, w = *rng.integers(0, n, (2, 90)), rng.integers(1, 9, 90)
        for graph in (g, host):
            graph.add_vertices(50)
            graph.apply(insert=(u, v, w), delete=(v[::3], u[::3]))
        g.check()
        assert g.digest() == host.digest()
        held, records = g._store, 1 << (n - 1).bit_length()
        for name, (words, _) in OF_VERTICES.items():
            assert getattr(held, name) is None or len(held.rooms[name]) == words * records, name
        assert g.memory.row_bytes + 17 * n == 38 * records + held.queue.ring.nbytes
        places.add(held.device.address(held.spans))
    assert len(places) == 4  # of 256, 512, 1,024 and 2,048 records
    g.compact()
    assert len(g._store.rooms["spans"]) == 2 * records


@pytest.mark.parametrize(("store", "more"), [("pages", 300), ("vine", 1)])
def test_vertices_beyond_a_budget_are_refused(library, store, more):
    g = DynamicGraph(512)
    on_device(g, Emulated(library, 1), store, budget=512 * 21 + 7000)
    before = g.memory
    g._budget = GraphBudget(before.total_bytes + 3000)
    with pytest.raises(MemoryBudgetError, match="raise device_budget"):
        g.add_vertices(more)
    assert (g.n_vertices, g.memory) == (512, before)
    g.check()


@pytest.mark.parametrize("weighted", [False, True])
def test_published_workers_and_queries_hold_and_find_the_same(library, weighted):
    n, rng, gone = 300, np.random.default_rng(3), None
    options = "", ":worker=thread", ":query=entries", ":worker=thread:query=entries"
    graphs = [DynamicGraph(n, weighted=weighted) for _ in options]
    for g, given in zip(graphs, options, strict=True):
        on_device(g, Emulated(library, 3), f"vine:block=3{given}")
    for count in (900, 400, 5, 900, 900):
        u, v = rng.integers(0, n, count), (n * rng.random(count) ** 4).astype(np.int64)
        w = (rng.integers(1, 2**33 if count == 5 else 99, count),) if weighted else ()
        changes = [g.apply(insert=(u, v, *w), delete=gone) for g in graphs]
        gone = v[::2], u[::2]
        assert len({repr(change) for change in changes}) == 1
        asked = np.append(u, rng.integers(0, n, 500)), np.append(v, rng.integers(0, n, 500))
        asked[1][-9:] = asked[0][-9:]
        expected = graphs[0].weights_of(*asked)
        assert 0 < np.count_nonzero(expected) < len(expected)
        for g in graphs:
            g.check()
            assert g.digest() == graphs[0].digest()
            assert g._store.held_blocks == graphs[0]._store.held_blocks
            assert np.array_equal(g.weights_of(*asked), expected)
            assert not len(g.weights_of([], []))


@pytest.mark.parametrize(("budget", "rebuilt"), [(3_500_000, False), (5_500_000, True)])
def test_a_crowded_store_that_has_no_room_for_another_still_takes_batches(library, budget, rebuilt):
    hubs, leaves = 60, 2500
    u, v = np.repeat(np.arange(hubs), leaves), np.tile(np.arange(hubs, hubs + leaves), hubs)
    g, host = DynamicGraph(hubs + leaves), DynamicGraph(hubs + leaves)
    on_device(g, Emulated(library, 3), "ouro-va-p", budget=budget)
    for graph in (g, host):
        graph.apply(insert=(u, v))
    heap, few = g._store.heap, v < hubs + 500
    for part in (~few, few):  # rows behind the heap move into pages, and then end
        for graph in (g, host):
            graph.apply(delete=(u[part], v[part]))
        assert (g._store.heap is not heap) == rebuilt
        g.check()
        assert g.digest() == host.digest()


@pytest.mark.parametrize("store", ["ouro-s-p", "pages"])
def test_queues_stay_on_the_device(library, store):
    g = DynamicGraph(5)
    with pytest.raises(OptionError, match="use memory='auto' or 'device', or store='rows'"):
        on_device(g, Emulated(library, 1), store, share=0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_chained_pages_that_rows_leave_serve_others(library, weighted):
    n, rng = 400, np.random.default_rng(9)
    g, host = DynamicGraph(n, weighted=weighted), DynamicGraph(n, weighted=weighted)
    on_device(g, Emulated(library, 3), "pages")
    window, most = [], 0
    for _ in range(12):
        # Each batch deletes the long rows of one before, and makes others long.
        hubs = rng.choice(n, 6, replace=False)
        edges = rng.choice(hubs, 900), rng.integers(0, n, 900)
        window.append(edges)
        gone = window.pop(0) if len(window) > 2 else None
        for graph in (host, g):
            graph.apply(insert=edges, delete=gone)
        g.check()
        assert g.digest() == host.digest()
        most = max(most, int(np.ceil(np.diff(host.snapshot().offsets) / 15).sum()))
    assert g.memory.held_bytes <= 2 * most * 64 * (2 if weighted else 1)
    with pytest.raises(OptionError, match="use store='rows'"):
        Tracker(g)


@pytest.mark.parametrize(
    "store",
    ["pages:page=32", "bump:page=32", "pages:layout=aos:edges=semantic", "pages:layout=soa"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_workers_that_lock_rows_hold_what_a_warp_a_row_does(library, store, weighted):
    n, rng, held = 300, np.random.default_rng(3), []
    graphs = [DynamicGraph(n, weighted=weighted) for _ in range(4)]
    for g, update in zip(graphs, ("vertex", "thread", "warp", "block"), strict=True):
        on_device(g, Emulated(library, 3), f"{store}:update={update}")
    for count in (900, 400, 5, 900, 900):
        u, v = rng.integers(0, n, count), (n * rng.random(count) ** 4).astype(np.int64)
        w = (rng.integers(1, 2**33 if count == 5 else 99, count),) if weighted else ()
        changes = [g.apply(insert=(u, v, *w), delete=held[-1] if held else None) for g in graphs]
        held.append((v[::2], u[::2]))
        assert len({repr(change) for change in changes}) == 1
        for g in graphs:
            g.check()
            assert g.digest() == graphs[0].digest()
            assert g._store.held_blocks >= graphs[0]._store.held_blocks  # insertions may come first
    whole = graphs[0].host_snapshot()
    ends = np.repeat(np.arange(n), np.diff(whole.offsets)), whole.targets
    for g in graphs:
        g.apply(delete=ends)
        g.check()
        assert g.n_arcs == 0


@pytest.mark.parametrize("store", ["bump", "vine"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_take_the_room_that_they_take_on_the_host(library, store, weighted):
    n, rng = 300, np.random.default_rng(4)
    g, host = DynamicGraph(n), DynamicGraph(n, store=store)
    if weighted:
        g, host = DynamicGraph(n, weighted=True), DynamicGraph(n, weighted=True, store=store)
    on_device(g, Emulated(library, 2), store)
    window = []
    for count in (900, 700, 30, 2000, 5, 400, 900):
        edges = (n * rng.random((2, count)) ** 3).astype(np.int64)
        window.append((edges[0], edges[1]))
        gone = window.pop(0) if len(window) > 2 else None
        for graph in (host, g):
            graph.apply(insert=window[-1], delete=gone)
        g.check()
        assert g.digest() == host.digest()
        assert g._store.held_blocks == host._store.held_blocks
        assert np.array_equal(g._store.live, host._store._live.items)
    for edges in window:
        for graph in (host, g):
            graph.apply(delete=edges)
    g.check()
    assert g.n_arcs == 0 < g.memory.held_bytes
    g.compact()
    g.check()
    host.compact()
    assert (g.digest(), g._store.held_blocks) == (host.digest(), host._store.held_blocks)


@pytest.mark.parametrize("count", [1, 31, 1024, 5000, 9217])
@pytest.mark.parametrize("ordered", [False, True])
def test_arcs_of_small_batches_are_sorted_in_one_launch(library, count, ordered):
    rng = np.random.default_rng(count)
    none = np.uint64(0xFFFFFFFFFFFFFFFF)
    given = rng.integers(0, count + 5, count).astype(np.uint64) << np.uint64(32)
    given[rng.random(count) < 0.1] = none
    keys, spare, counts = given.copy(), np.empty_like(given), np.zeros(COUNTS.itemsize, np.uint8)
    orders = [np.empty(count, np.int64) if ordered else None for _ in range(2)]
    Emulated(library, 3).launch(
        "batches", "sort_keys", "", count, np.int64(count), keys, spare, *orders, counts
    )
    assert np.array_equal(keys, np.sort(given))
    if ordered:
        order = orders[0][keys != none]
        assert np.array_equal(np.sort(order), np.flatnonzero(given != none))
        assert np.array_equal(given[order], keys[keys != none])


@pytest.mark.parametrize("store", ["bal:block=2", "bal:block=16"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_replica_is_sent_what_changed(library, store, weighted):
    n, rng = 2000, np.random.default_rng(6)
    g = DynamicGraph(n, weighted=weighted, store=store)
    held = g._store
    held.device = Emulated(library, 1)
    for count in (9000, 5, 400, 12_000, 1):
        before = g.memory.moved_bytes
        u, v = rng.integers(0, n, (2, count))
        g.apply(insert=(u, v), delete=(v[::3], u[::3]))
        there = g.linked_device_view()
        here = g.linked_view()
        moved = g.memory.moved_bytes - before
        whole = sum(array.nbytes for array in held.replica.values())
        assert 0 < moved <= whole or count > 1000
        assert count > 5 or moved < 0.05 * whole
        for vertex in rng.integers(0, n, 50):
            rows = [[], []]
            for row, view in zip(rows, (here, there), strict=True):
                assert here.ends[vertex] == view.ends[vertex]
                at, left = int(view.begins[vertex]), int(view.ends[vertex] - view.begins[vertex])
                while left > 0:
                    row += view.targets[at : at + min(left, held.width)].tolist()
                    left -= held.width
                    at = int(view.targets[at + held.width]) * held.words if left > 0 else 0
            assert rows[0] == rows[1] == sorted(rows[0])


@pytest.mark.parametrize("store", ["bal:block=2", "bal:block=16:order=sorted"])
def test_attributes_follow_edges_to_the_replica(library, store):
    n, rng, model, heights = 300, np.random.default_rng(1), {}, np.zeros(300, np.int32)
    g = DynamicGraph(n, store=store)
    g._store.device = Emulated(library, 1)
    for count in (900, 5, 400, 0, 2000, 1):
        u, v = rng.integers(0, n, (2, count))
        change = g.apply(insert=(u, v), delete=(v[::3], u[::3]))
        for a, b, after in zip(change.u.tolist(), change.v.tolist(), change.after, strict=True):
            model.pop((a, b), None)
            if after and a != b:
                model[a, b] = 0.0
        if count == 0:
            g.compact()
        edges = list(model)[:: 1 + len(model) // 7] if count else []
        values = rng.random(len(edges))
        model |= zip(edges, values.tolist(), strict=True)
        if edges:
            g.attributes.edit("length", values, *np.array(edges)[:, ::-1].T)
        heights[u[:3]] = count
        g.attributes.edit("height", np.int32(count), u[:3])
        before = g.memory.moved_bytes
        view = g.linked_device_view()
        there = g.attributes.arrays(device=True)
        moved = g.memory.moved_bytes - before
        assert count not in (1, 5) or moved < 0.2 * sum(a.nbytes for a in g._store.replica.values())
        for arrays in (there, g.attributes.arrays()):
            assert np.array_equal(arrays[1], heights)
        found, words, width = {}, g._store.words, g._store.width
        for vertex in range(n):
            at, left = int(view.begins[vertex]), int(view.ends[vertex] - view.begins[vertex])
            for k in range(left):
                found[vertex, int(view.targets[at + k % width])] = float(there[0][at + k % width])
                if k % width == width - 1 and k + 1 < left:
                    at = int(view.targets[at + width]) * words
        both = model | {(b, a): value for (a, b), value in model.items()}
        assert found == both


def test_attributes_that_there_cannot_be_are_refused():
    g = DynamicGraph(4, store="bal")
    g.apply(insert=([0, 1], [1, 2]))
    g.attributes.edit("length", 2, [0], [1])
    for error, given, reported in (
        (GraphError, ("length", 1, [0, 0], [1, 3]), "not in the graph; insert it"),
        (GraphError, ("height", 1, [4]), "0 … 3"), (GraphError, ("height", 1, [[0]]), "dimension"),
        (GraphError, ("height", [1, 2], [0]), "as many numbers"),
        (GraphError, ("length", 1, [0, 1], [1]), "length"),
        (OptionError, ("length", 1, [0]), "must be another"),
    ):  # fmt: skip
        with pytest.raises(error, match=reported):
            g.attributes.edit(*given)
    assert [array.sum() for array in g.attributes.arrays()] == [4]
    pages = DynamicGraph(4, store="pages:layout=aos:edges=semantic")
    pages.apply(insert=([0, 1], [1, 2]))
    for value in (-1, 2**32, 0.5):
        with pytest.raises(GraphError, match="'type' must fit its type, uint32"):
            pages.attributes.edit("type", value, [0], [1])
    with pytest.raises(OptionError, match="use store='bal'"):
        _ = DynamicGraph(3).attributes
