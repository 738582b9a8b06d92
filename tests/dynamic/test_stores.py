"""What is particular to one store: footprints, reuse, queues."""

import copy
import itertools
import pickle
import sys
import threading
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import louvain_um
from louvain_um import DynamicGraph, Graph, plan
from louvain_um.algorithms import operators
from louvain_um.algorithms.products import pagerank
from louvain_um.dynamic.declared import DynamicSize
from louvain_um.dynamic.stores import STORES
from louvain_um.dynamic.stores.ouro_heap import HeapShape, PageAllocator
from louvain_um.errors import GraphError, OptionError
from louvain_um.generators import planted
from tests.dynamic.model import Model, operate

PUBLISHED = (
    "pages:deletion=reverse:page=32", "pages:directed=yes:layout=aos:edges=semantic",
    "pages:directed=yes:deletion=reverse:order=sorted", "ouro-vl-c:update=unchecked",
    "ouro-va-p:update=unchecked:chunk=1024",
)  # fmt: skip
SEMANTIC = (
    "pages:layout=aos:ids=queue", "pages:layout=soa:order=sorted", "pages:edges=semantic",
    "pages:layout=soa:edges=semantic", "pages:layout=aos:edges=semantic:page=32",
)  # fmt: skip
BASE = planted(800, blocks=8, seed=1).graph


def test_rows_take_little_room_and_reuse_pages():
    g = DynamicGraph(BASE)
    assert g.memory.bytes_per_arc <= 5.5
    v = np.arange(1, 401)
    for _ in range(5):
        g.apply(insert=(np.zeros(400, np.int64), v), delete=None)
        g.apply(delete=(np.zeros(400, np.int64), v))
    g.check()
    assert g.memory.bytes_per_arc <= 6


@pytest.mark.parametrize(("share", "rebuilt"), [(0.6, False), (0.9, True)])
def test_rows_are_merged_where_they_lie_while_most_are_not_touched(share, rebuilt):
    n = 10_000
    ring = np.arange(n)
    g = DynamicGraph(Graph.from_edges(ring, (ring + 1) % n))
    far = np.random.default_rng(0).permutation(n)[: int(share * n)].reshape(2, -1)
    g.apply(insert=(*far,))
    # A ring's rows have pages of four: two arcs more, from one batch of disjoint edges, fit there.
    assert (g.memory.moved_bytes > 0) == rebuilt
    assert g.has_edges(*far).all()
    assert g.n_arcs == 2 * n + far.size


def test_faimgraphs_footprint_is_as_published():
    g = DynamicGraph(BASE, store="pages")
    pages = int((-(-np.diff(BASE.offsets) // 15)).sum())
    memory = g.memory
    assert memory.held_bytes + memory.row_bytes == 20 * BASE.n_vertices + 64 * pages


def test_the_queue_of_removed_vertices_counts_as_held():
    g = DynamicGraph(40, store="pages:ids=queue")
    for n in (40, 100):
        g.add_vertices(n - g.n_vertices)
        held = 20 * n + 4 * (1 << (n - 1).bit_length())
        assert g.memory.row_bytes == held
        g.remove_vertices(np.flatnonzero(g.alive))
        assert g.memory.row_bytes == held


def test_aimgraph_never_frees_and_fills_gaps():
    g = DynamicGraph(40, store="bump")
    v = np.arange(1, 31)
    g.apply(insert=(np.zeros(30, np.int64), v))
    held = g.memory.held_bytes
    g.apply(delete=(np.zeros(30, np.int64), v))
    g.apply(insert=(np.zeros(30, np.int64), v + 5))
    g.check()
    assert g.memory.held_bytes <= held + 5 * 64  # five more rows have a block


def test_graphvines_dictionary_doubles():
    g = DynamicGraph(BASE, store="vine")
    rows, moved = g._store._live, 0
    for n in range(BASE.n_vertices + 1, 4100):
        room = rows._room
        g.add_vertices(1)
        records = 1 << (n - 1).bit_length()
        assert g.memory.row_bytes == 20 * records
        if rows._room is not room:
            assert len(rows._room) == records
            moved += 1
    assert moved == 4  # at the first one, and at 1,024, 2,048 and 4,096
    g.check()


def test_marrow_pushes_what_was_written():
    g = DynamicGraph(BASE, store="bal")
    store = g._store
    store.device = SimpleNamespace(xp=np)
    store.push()
    moved = g.memory.moved_bytes
    assert moved >= g.memory.held_bytes
    store.push()
    assert g.memory.moved_bytes == moved
    g.apply(delete=([0], BASE.targets[:1]))
    store.push()
    blocks = 2 * (2 + max(g.view().ends - g.view().begins) // 8)
    assert 0 < g.memory.moved_bytes - moved <= blocks * (10 * 4 + 8) + 4 * (8 + 4)


@pytest.mark.parametrize(
    ("store", "reported"),
    [("pages:page=48", "page=32 or 64 or 128 or 256"), ("bal:block=1", "block=2 … 128"),
     ("vine:page=64", "options block, ahead, reserve"), ("vine:reserve=95", "reserve=1 … 90"),
     ("vine:reserve=50", "vine is on the CPU; leave out reserve"),
     ("vine:worker=thread", "vine is on the CPU; leave out worker"),
     ("vine:query=entries", "vine is on the CPU; leave out query"),
     ("vine:worker=block", "worker=warp or thread"), ("vine:query=all", "query=pairs or entries"),
     ("pages:update=warp", "pages is on the CPU; leave out update"),
     ("pages:layout=rows", "layout=arrays or soa or aos"),
     ("pages:ids=heap", "ids=lowest or queue"), ("bump:layout=aos", "options page, update"),
     ("pages:edges=weighted", "edges=plain or semantic"),
     ("pages:deletion=late", "deletion=dual or reverse"), ("bump:directed=yes", "options page"),
     ("ouro-s-p:update=thread", "update=merged or unchecked"),
     ("pages:directed=yes:deletion=dual", "must have deletion=reverse"),
     ("pages:page=32:page=64", "page once; leave out 'page=64'"),
     ("pages:page=32,page=64", "page=32 or 64"),
     ("rows:page=64", "no options"),
     ("ouro-x-p", "must be one of"), ("pages:order", "order=any or sorted"),
     ("ouro-s-p:chunk=3000", "chunk=1024 or 2048 or"), ("ouro-s-p:page=8", "page=16 or 32 or")],
)  # fmt: skip
def test_options_that_a_store_lacks_end_in_a_line(store, reported):
    with pytest.raises(OptionError, match=reported) as error:
        DynamicGraph(3, store=store)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "store",
    [*STORES, "pages:page=32:order=sorted", "bal:block=2", "ouro-vl-p:chunk=1024:page=64",
     "pages:layout=soa:edges=semantic", "pages:layout=aos:edges=semantic:page=32:ids=queue",
     *PUBLISHED],
)  # fmt: skip
def test_operations_of_every_kind(store):
    model, g = Model(60, True, store), DynamicGraph(60, weighted=True, store=store)
    operate(np.random.default_rng(3), g, model, 10, 100)


def found_by_louvain(graph, **options):
    """Return labels, and arcs and modularity by level."""
    found = louvain_um.louvain(graph, effort="best", **options)
    return found.labels, np.array([(level.arcs, level.modularity) for level in found.levels])


LINKED = (
    "pages:page=32", "vine:block=3", "bump", "bal:block=128:order=sorted", "pages:layout=soa",
    "pages:layout=aos", "pages:layout=aos:edges=semantic", "pages:layout=soa:edges=semantic",
)  # fmt: skip


@pytest.mark.parametrize(
    "store", [*LINKED[:2], *(pytest.param(each, marks=pytest.mark.deep) for each in LINKED[2:])]
)
def test_algorithms_walk_linked_rows_where_they_lie(store):
    rng = np.random.default_rng(1)
    n, x = BASE.n_vertices, rng.standard_normal(BASE.n_vertices)
    graph = DynamicGraph(BASE, store=store, weighted="layout" in store)
    ends = rng.integers(0, n, (2, 3000))
    w = (rng.integers(1, 99, 3000),) if graph.weighted else ()
    graph.apply(insert=(*ends, *w), delete=tuple(ends[:, ::3]))
    assert graph.linked_view().blocks is not None
    static = graph.snapshot()
    graph._store.compressed = None  # nothing copies rows
    for threads in (1, 3):
        options = {"device": "cpu", "threads": threads}
        one, two = (
            [
                *louvain_um.bfs(g, 0, **options), *louvain_um.sssp(g, 0, **options),
                *louvain_um.minimum_spanning_forest(g, **options),
                louvain_um.connected_components(g, **options),
                louvain_um.pagerank(g, **options), louvain_um.spmv(g, x, **options),
                louvain_um.triangles(g, **options), *found_by_louvain(g, **options),
            ]
            for g in (graph, static)
        )  # fmt: skip
        for ours, theirs in zip(one, two, strict=True):
            assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("queueing", ["s", "va", "vl"])
@pytest.mark.parametrize("by_chunk", [False, True])
@pytest.mark.parametrize("shape", [{}, {"chunk": 1024, "page": 32}, {"chunk": 32768, "page": 256}])
def test_an_ouroboros_heap_gives_pages_that_do_not_overlap(queueing, by_chunk, shape):
    rng, sizes = np.random.default_rng(3), HeapShape(**shape)
    heap = PageAllocator(queueing, by_chunk=by_chunk, shape=sizes)
    live, kinds = [], heap.classes + 2
    for _ in range(200):
        size_class = int(rng.integers(0, kinds))
        taken = heap.take(size_class, int(rng.integers(1, 9000 >> size_class or 1)))
        live += [(int(begin), size_class) for begin in taken]
        rng.shuffle(live)
        gone, live = live[: len(live) // 2], live[len(live) // 2 :]
        for kind in {kind for _, kind in gone}:
            heap.give(kind, np.array([b for b, k in gone if k == kind], np.int64))
    spans = sorted((begin, begin + int(sizes.capacities[kind])) for begin, kind in live)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))
    assert all(4 * begin % sizes.stride >= sizes.header for begin, _ in spans)
    for kind in range(kinds):
        heap.give(kind, np.array([b for b, k in live if k == kind], np.int64))
    free = sum(len(heap.free_begins(k)) * int(sizes.capacities[k]) for k in range(kinds))
    queues = sum(len(queue.segments) for queue in heap.queues)
    usable, stride = sizes.chunk / sizes.stride - 0.005, heap.stride
    held = free + (len(heap.heap.free) + queues) * stride
    assert held >= usable * heap.heap.chunks * stride - kinds * stride


@pytest.mark.parametrize("store", STORES)
def test_edited_edges_stay_where_they_are(store):
    rng = np.random.default_rng(8)
    u, v = np.nonzero(np.triu(rng.random((60, 60)) < 0.3, 1))
    g = DynamicGraph(60, weighted=True, store=store)
    g.apply(insert=(u, v, rng.integers(1, 9, len(u))))
    held, moved, w = g.memory.held_bytes, g.memory.moved_bytes, rng.integers(9, 2**20, 9)
    g.edit_edges(v[:9], u[:9], w)
    g.check()
    assert g.weights_of(u[:9], v[:9]).tolist() == w.tolist()
    assert g.memory.held_bytes == held
    assert g.memory.moved_bytes == moved or store == "csr"
    g.edit_edges([u[0], v[0]], [v[0], u[0]], [3, 4])
    assert g.weights_of(u[:1], v[:1]).tolist() == [7]
    digest = g.digest()
    with pytest.raises(louvain_um.GraphError, match=r"not in the graph.* or leave them out"):
        g.edit_edges([0, 5], [0, 5], [1, 1])
    with pytest.raises(louvain_um.GraphError, match="edit_edges: u has 2 entries and v 1"):
        g.edit_edges([0, 5], [0], [1, 1])
    with pytest.raises(louvain_um.GraphError, match="edit_edges sets weights"):
        DynamicGraph(60, store=store).edit_edges([0], [1], [1])
    assert g.digest() == digest


@pytest.mark.parametrize(
    "call",
    [louvain_um.louvain, louvain_um.leiden, louvain_um.Tracker, louvain_um.triangles,
     DynamicGraph.snapshot, DynamicGraph.to_networkx,
     lambda g: operators.segmented_intersection(g, None)],
)  # fmt: skip
def test_directed_graphs_have_no_communities(call):
    g = DynamicGraph(4, store="pages:directed=yes")
    g.apply(insert=([0, 1], [1, 2]))
    with pytest.raises(OptionError, match=r"^the graph is directed; leave out directed=yes"):
        call(g)


@pytest.mark.parametrize("weighted", [False, True])
def test_operators_and_products_follow_arcs_one_way(weighted):
    rng, n = np.random.default_rng(1), 300
    g = DynamicGraph(n, weighted=weighted, store="pages:directed=yes:page=32")
    u, v = np.unique(rng.integers(0, n, (2, 2000)), axis=1)
    w = rng.integers(1, 9, len(u)) if weighted else np.ones(len(u), np.int64)
    g.apply(insert=(u, v, w) if weighted else (u, v))
    x, arcs = rng.integers(0, 9, n).astype(float), u != v
    sums = np.bincount(u[arcs], w[arcs] * x[v[arcs]], n)
    found = operators.advance(g, None, lambda u, v, w, arc, x: w * x[v], x, returns="sums")
    assert np.array_equal(found, sums)
    assert np.array_equal(louvain_um.spmv(g, x, device="cpu"), np.bincount(u, w * x[v], n))
    reached = operators.advance(g, [3], lambda u, v, w, arc: True)
    assert reached.tolist() == v[arcs & (u == 3)].tolist()
    rows = np.zeros((n, n), int)
    rows[u[arcs], v[arcs]] = 1
    pairs = rng.integers(0, n, (500, 2))
    common = (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(axis=1)
    assert np.array_equal(operators.segmented_intersection(g, pairs), common)
    assert (g.n_edges, g.total_weight) == (len(u), int(w.sum() + w[~arcs].sum()))
    assert np.array_equal(g.degrees, np.bincount(u, w * (2 - arcs), n).astype(int))


@pytest.mark.parametrize("store", ["pages:ids=queue", "bump", "vine", "bal"])
def test_vertices_that_come_again_have_no_attributes_of_those_before(store):
    g = DynamicGraph(4, store=store)
    g.attributes.edit("age", [1, 2, 3], [0, 1, 2])
    g.remove_vertices([1, 2])
    assert g.add_vertices(1, reuse=True).tolist() == [1]
    assert g.attributes.arrays()[0].tolist() == [1, 0, 3, 0]


def test_a_deleted_edge_is_found_again_only_where_it_is():
    for store in ("bump", "pages", "vine", "bal"):
        g = DynamicGraph(Graph.from_edges([0] * 40, np.arange(1, 41)), store=store)
        g.apply(delete=([0, 0], [1, 1]))
        g.apply(delete=([0, 0], [1, 40]))
        g.check()
        assert g.has_edges([0, 0, 0], [1, 40, 39]).tolist() == [False, False, True]
        assert g.n_edges == 38


def few_hubs(weighted):
    """Return a graph whose rows fill pages of many sizes, long ones past a chunk."""
    rng = np.random.default_rng(5)
    u, v = (4000 * rng.random((2, 12_000)) ** 4).astype(np.int64)
    u, v = np.append(u, np.full(3000, 7)), np.append(v, np.arange(3000))
    weights = rng.integers(1, 9, len(u)) if weighted else None
    return Graph.from_edges(u, v, weights, n_vertices=4000, duplicates="sum")


@pytest.mark.parametrize("store", [*STORES, *SEMANTIC, *PUBLISHED])
@pytest.mark.parametrize("weighted", [False, True])
def test_plans_are_what_stores_hold(store, weighted):
    for graph in (few_hubs(weighted), Graph.from_edges([], [], [] if weighted else None)):
        size = DynamicSize.of(graph, store=store, device="cpu")
        found = plan(dynamic=size, machine="h200")
        planned = {array.name: array.nbytes for array in found.program.arrays}
        memory = DynamicGraph(graph, store=store).memory
        assert (planned["arcs"], planned["rows"]) == (memory.held_bytes, memory.row_bytes)
        assert sum(planned.values()) == memory.total_bytes
        assert not any(found.device_bytes.values())


def test_plans_by_size_alone_come_near():
    rng = np.random.default_rng(6)
    graph = Graph.from_edges(*rng.integers(0, 3000, (2, 40_000)), n_vertices=3000)
    for store in STORES:
        size = DynamicSize(n_vertices=3000, n_arcs=graph.n_arcs, store=store, device="cpu")
        held = DynamicGraph(graph, store=store).memory.held_bytes
        assert 0.7 * held < size.store_bytes[0] < 1.4 * held, store


@pytest.mark.parametrize(
    "wrong",
    [{"store": "heap"}, {"device": "gpu"}, {"store": "bal", "device": "cuda"},
     {"store": "pages", "follow": True}, {"store": "bal", "follow": True}],
)  # fmt: skip
def test_plans_of_what_there_is_not_are_refused(wrong):
    with pytest.raises(OptionError):
        DynamicSize(n_vertices=10, n_arcs=20, **wrong)
    with pytest.raises(OptionError, match="those of rows"):
        DynamicSize.of(BASE, n_arcs=3)
    with pytest.raises(OptionError, match="on the CPU"):
        plan(dynamic=DynamicSize.of(BASE, device="cpu"), device_budget="1GiB")


@pytest.mark.parametrize("wrong", [5, "rows", BASE])
def test_plans_take_a_size(wrong):
    with pytest.raises(OptionError, match="must be a DynamicSize"):
        plan(dynamic=wrong)


@pytest.mark.parametrize("store", [*STORES, "pages:layout=aos:edges=semantic:ids=queue"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_change_as_their_graph_does(store, copied):
    g = DynamicGraph(BASE, store=store)
    for _ in range(2):  # the arrays have room then
        g.add_vertices(2)
    before, other, v = g.digest(), copied(g), np.arange(200)
    other.apply(insert=(v, v + 300), delete=(v, v + 1))
    other.add_vertices(1)
    other.check()
    assert g.digest() == before
    g.apply(insert=(v, v + 300), delete=(v, v + 1))
    g.add_vertices(1)
    assert g.digest() == other.digest()


class Changing:
    """An attribute; while it is copied, another thread changes its graph if it need not wait."""

    def __init__(self, graph):
        self.graph = graph

    def change(self):
        if self.graph.lock.acquire(blocking=False):
            self.graph.apply(delete=(np.arange(200), np.arange(1, 201)))
            self.graph.lock.release()

    def __deepcopy__(self, memo):
        thread = threading.Thread(target=self.change)
        thread.start()
        thread.join()

    def __reduce__(self):
        self.__deepcopy__({})
        return type(None), ()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copy_is_whole_although_another_thread_changes_the_graph(copied):
    g = DynamicGraph(BASE)
    attributes = {"changing": Changing(g), **vars(g)}  # which is copied before the rows are
    vars(g).clear()
    vars(g).update(attributes)
    before, other = g.digest(), copied(g)
    other.check()
    assert (other.digest(), other.epoch) == (before, 0)


class Nowhere:
    """A file that keeps nothing."""

    def write(self, data):
        pass


@pytest.mark.parametrize("store", ["rows", "pages", "csr"])
def test_a_graph_is_pickled_without_a_copy_of_it(store):
    u, v = np.random.default_rng(0).integers(0, 40_000, (2, 400_000))
    g = DynamicGraph(Graph.from_edges(u, v), store=store)
    tracemalloc.start()
    try:
        pickle.dump(g, Nowhere(), protocol=5)
        assert tracemalloc.get_traced_memory()[1] < g.memory.held_bytes  # of one array
    finally:
        tracemalloc.stop()


def test_a_shallow_copy_is_a_graph_of_its_own():
    g = DynamicGraph(BASE)
    before, other = g.digest(), copy.copy(g)
    other.apply(delete=(np.arange(200), np.arange(1, 201)))
    assert g.digest() == before != other.digest()


def test_a_graph_is_not_copied_when_it_changes_after_it_was_pickled():
    g = DynamicGraph(BASE)
    contents = g._contents
    pickle.dumps(g)
    g.add_vertices(1)
    assert g._contents is contents


@pytest.mark.parametrize("store", ["rows", "bump", "ouro-s-p"])
def test_threads_change_a_graph_one_after_another(store):
    g, failures = DynamicGraph(1000, store=store, threads=1), []

    def change(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            try:
                u, v, gone, other = rng.integers(0, 1000, (4, 100))
                g.apply(insert=(u, v), delete=(gone, other))
                g.neighbours(int(u[0]))
            except Exception as error:
                failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=change, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    assert g.epoch == 180
    g.check()


@pytest.mark.parametrize("store", ["rows", "pages"])
@pytest.mark.parametrize(
    "run",
    [
        lambda g, observer: louvain_um.louvain(g, device="cpu", observer=observer).labels,
        lambda g, observer: pagerank(g, device="cpu", observer=observer),
    ],
)
def test_no_thread_changes_rows_that_a_run_reads(run, store):
    g, threads, refusals = DynamicGraph(BASE, store=store), [], []
    v = np.arange(400)
    changes = ({"insert": (v, v + 399)}, {"delete": (v, v + 1)})

    def observe(event):
        if threads:
            return
        for change in changes:
            threads.append(threading.Thread(target=g.apply, kwargs=change))
            threads[-1].start()
            threads[-1].join(0.05)
        for change in (g.compact, lambda: g.apply(insert=([0], [799]))):
            try:
                change()
            except GraphError as error:
                refusals.append(str(error))
        assert g.epoch == 0
        copy.deepcopy(g).apply(insert=([0], [799]))

    expected = run(BASE, None)
    assert np.array_equal(run(g, observe), expected)
    for thread in threads:
        thread.join()
    assert refusals == ["the graph is in use by the run that called this; change it later"] * 2
    assert g.epoch == 2
    g.apply(insert=([0], [799]))
    g.check()


def test_operators_keep_the_rows_that_they_read(monkeypatch):
    g = DynamicGraph(BASE)
    monkeypatch.setattr(operators, "taken", lambda *_: g.apply(insert=([0], [1])))
    calls = (operators.advance, None), (operators.filter, None), (operators.segmented_intersection,)
    for operator, *arguments in calls:
        with pytest.raises(GraphError, match="in use by the run"):
            operator(g, None, *arguments)


@pytest.mark.deep
@pytest.mark.parametrize("store", ["rows", "bump", "pages", "vine", "bal", "ouro-vl-p"])
def test_a_hub_takes_leaves_in_time_proportional_to_their_number(store):
    def seconds(leaves):
        g, began = DynamicGraph(leaves + 1, store=store, threads=1), time.process_time()
        for first in range(1, leaves + 1, 200):
            v = np.arange(first, min(first + 200, leaves + 1))
            g.apply(insert=(np.zeros(len(v), np.int64), v))
        return time.process_time() - began

    seconds(400)  # kernels are loaded
    # Linked blocks of longer rows take as long to read as the rest of a batch.
    few, many = (min(seconds(leaves) for _ in range(3)) for leaves in (6_250, 50_000))
    assert many / few < 8**1.3
