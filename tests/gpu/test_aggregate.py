"""Aggregation on a device: ranges of rows, and levels made from the input."""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest

from louvain_um import Graph, api, generators
from louvain_um.core.numbering import number_by_size
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.gpu import engine, preparation
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.aggregate import LIMITS, Limits, aggregate
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.memory.array_specs import SORTING
from louvain_um.gpu.memory.short_weights import widened
from louvain_um.gpu.out_of_core.vertex_blocks import VertexBlocks
from louvain_um.gpu.relabel import relabel
from louvain_um.options import Options

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


CHUNKED = Limits(small=0, chunk=1, chunks=64, arcs_a_slot=1 << 30)
"""Several launches, as many chunks as there may be, hubs one or a few at a time."""

WAYS = {
    "at once": LIMITS,
    "in chunks": CHUNKED,
    "wide": replace(CHUNKED, short_weights=(), kept=1.0),
    "growing": replace(CHUNKED, kept=0.01),
}
"""How a level is aggregated; weights are bytes where that saves, or never."""


def star(weights):
    # A hub, a far larger one than any table, and leaves that know each other.
    n = 60_000
    rng = np.random.default_rng(1)
    ring = np.arange(1, n)
    u = np.concatenate((np.zeros(n - 1, np.int64), ring, np.arange(0, n, 7)))
    v = np.concatenate((ring, np.roll(ring, 1), np.arange(0, n, 7)))
    w = rng.integers(0, 2**34, len(u)) if weights else None
    return Graph.from_edges(u, v, w)


def weighted(graph, top):
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    keep = u <= graph.targets
    rng = np.random.default_rng(2)
    w = rng.integers(0, top, int(keep.sum()))
    return Graph.from_edges(u[keep], graph.targets[keep], w, n_vertices=graph.n_vertices)


def looped(graph):
    return replace(graph, loops=np.arange(graph.n_vertices, dtype=np.int64) % 3)


GRAPHS = {
    "two": lambda: Graph.from_edges([0], [1]),
    "rmat": lambda: generators.rmat(14).graph,
    "rmat u32": lambda: weighted(generators.rmat(13).graph, 50),
    "rmat u64": lambda: weighted(generators.rmat(13).graph, 2**33),
    "rmat loops": lambda: looped(generators.rmat(13).graph),
    "lfr": lambda: generators.lfr(20_000).graph,
    "star": lambda: star(weights=False),
    "star u64": lambda: star(weights=True),
}


def partitions(n):
    rng = np.random.default_rng(3)
    few = rng.integers(0, 3, n) * (n // 3)
    return {
        "alone": np.arange(n),
        "together": np.full(n, n - 1),
        "pairs": np.arange(n) // 2 * 2,
        "random": rng.integers(0, max(n // 20, 1), n),
        "hubs": np.where(rng.random(n) < 0.7, few, np.arange(n)),
    }


def rows(offsets, targets, weights):
    source = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((targets, source))
    return source, targets[order], weights[order].astype(np.int64)


def arcs_of(level):
    short = level.weights.dtype.itemsize < 4
    weights = widened(level.weights) if short else level.weights.get()
    return rows(level.offsets.get(), level.targets.get(), weights)


@pytest.fixture(params=GRAPHS, scope="module")
def graph(request):
    made = GRAPHS[request.param]()
    return made


@pytest.mark.parametrize("limits", WAYS.values(), ids=WAYS)
def test_levels_are_those_of_the_cpu(graph, limits):
    for name, labels in partitions(graph.n_vertices).items():
        cpu = CpuEngine(Options(threads=1), ignore)
        expected_level = cpu.load(graph)
        expected_level.labels = labels.astype(np.uint32)
        with GpuEngine(Options(), ignore) as gpu:
            level = gpu.load(graph)
            memory = gpu.memory
            for step in range(2):
                level.labels = memory.empty(f"labels.0.{step}", "community", level.vertices, "u4")
                level.labels.set(expected_level.labels)
                expected = cpu.aggregate(expected_level)
                live = set(memory.live)
                coarse = aggregate(memory, level, limits)
                where = f"{name}, step {step}"
                assert np.array_equal(level.numbers.get(), expected_level.numbers), where
                assert np.array_equal(coarse.offsets.get(), expected.offsets), where
                found = arcs_of(coarse)
                exact = rows(expected.offsets, expected.targets, expected.weights)
                for a, b in zip(found, exact, strict=True):
                    assert np.array_equal(a, b), where
                assert np.array_equal(coarse.loops.get().astype(np.int64), expected.loops), where
                degrees = coarse.degrees.get().astype(np.int64)
                assert np.array_equal(degrees, expected.degrees), where
                sums = cpu.sums(expected)
                assert (coarse.inside, coarse.squares) == (sums.inside, sums.squares), where
                assert coarse.max_degree == int(np.diff(expected.offsets).max(initial=0)), where
                parts = ("offsets", "targets", "weights", "loops", "degrees")
                new = {name.replace(".small", "") for name in set(memory.live) - live}
                assert new == {f"{part}.{step + 1}" for part in parts}
                level, expected_level = coarse, expected
                rng = np.random.default_rng(step)
                k = level.vertices
                expected_level.labels = rng.integers(0, max(k // 3, 1), k).astype(np.uint32)


def test_communities_are_carried_summed_split_and_numbered(graph):
    import cupy

    n = graph.n_vertices
    for name, labels in partitions(n).items():
        start = labels.astype(np.uint32)
        cpu = CpuEngine(Options(threads=1), ignore)
        expected = cpu.load(graph)
        with GpuEngine(Options(), ignore) as gpu:
            level = gpu.load(graph)
            alone = cpu.sums(expected)
            assert (level.inside, level.squares) == (alone.inside, alone.squares), name
            level.start, expected.start = cupy.asarray(start), start.copy()
            assert relabel.community_sums(gpu.memory, level) == cpu.sums(expected), name
            relabel.split(gpu.memory, level, level.start)
            cpu.split_disconnected(expected)
            assert np.array_equal(level.start.get(), expected.start), name
            numbered = cupy.asarray(start)
            relabel.number_by_size(gpu.memory, numbered)
            assert np.array_equal(numbered.get(), number_by_size(start)), name


@pytest.mark.parametrize("count", [1, 1_000, 1_000_000, 10_000_000])
def test_sorting_takes_no_more_than_is_declared(count):
    import cupy

    pool, taken = cupy.cuda.MemoryPool(), list[int]()

    def take(nbytes):
        taken.append(nbytes)
        return pool.malloc(nbytes)

    keys = np.random.default_rng(1).integers(0, 1 << 63, count, np.uint64)
    there = cupy.asarray(keys)
    with cupy.cuda.using_allocator(take):
        there.sort()
    assert np.array_equal(there.get(), np.sort(keys))
    assert sum(taken) <= 9 * count + SORTING


def test_parts_start_in_the_community_of_their_members(graph):
    import cupy

    n = graph.n_vertices
    for name, labels in partitions(n).items():
        # Parts of every community: its members by parity, named after one of them.
        key = labels.astype(np.int64) * 2 + np.arange(n) % 2
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        parts = first[inverse].astype(np.uint32)
        cpu = CpuEngine(Options(threads=1), ignore)
        expected = cpu.load(graph)
        expected.labels, expected.refined = labels.astype(np.uint32), parts.copy()
        coarse = cpu.aggregate(expected)
        with GpuEngine(Options(), ignore) as gpu:
            level = gpu.load(graph)
            level.labels, level.refined = (
                cupy.asarray(labels.astype(np.uint32)),
                cupy.asarray(parts),
            )
            found = aggregate(gpu.memory, level)
            assert np.array_equal(found.start.get(), coarse.start), name
            out = cupy.empty(n, np.uint32)
            relabel.compose([level, found], out)
            assert np.array_equal(out.get(), coarse.start[expected.numbers]), name


def test_a_heavy_arc_among_light_ones_keeps_its_weight():
    # Two halves of a clique-like graph joined by many edges, between a ring of pairs.
    rng = np.random.default_rng(4)
    n, m = 4_000, 200_000
    u, v = rng.integers(0, n, m), rng.integers(0, n, m)
    graph = Graph.from_edges(u[u != v], v[u != v], n_vertices=n)
    labels = np.where(np.arange(n) < 2 * n // 3, np.arange(n) % 2, np.arange(n))
    cpu = CpuEngine(Options(threads=1), ignore)
    level = cpu.load(graph)
    level.labels = labels.astype(np.uint32)
    expected = cpu.aggregate(level)
    assert 0 < (np.asarray(expected.weights) >= 255).sum() < 10
    with GpuEngine(Options(), ignore) as gpu:
        mine = gpu.load(graph)
        mine.labels = gpu.memory.empty("labels.0.0", "community", n, "u4")
        mine.labels.set(labels.astype(np.uint32))
        coarse = aggregate(gpu.memory, mine, CHUNKED)
        assert coarse.weights.dtype == np.uint8
        exact = rows(expected.offsets, expected.targets, expected.weights)
        for a, b in zip(arcs_of(coarse), exact, strict=True):
            assert np.array_equal(a, b)


PIECES = (1, 2, 13)
KEPT = {"roomy": None, "merging": 0.3, "growing": 0.01}

CASES = [
    (kind, pieces, kept)
    for i, kind in enumerate(GRAPHS)
    for j, pieces in enumerate(PIECES)
    for k, kept in enumerate(KEPT)
    if (i + j + k) % 3 == 0
]
"""Each graph with all numbers of ranges and all ways; each pair of these with some graph."""


@cache
def graph_of(kind):
    return GRAPHS[kind]()


def found_of(level, coarse):
    arrays = [x.get() for x in (coarse.offsets, level.numbers, coarse.loops, coarse.degrees)]
    sums = coarse.inside, coarse.squares, coarse.max_degree, coarse.arcs, coarse.vertices
    return [*arrays, *arcs_of(coarse)], sums


def with_labels(gpu, graph, labels):
    level = gpu.load(graph)
    level.labels = gpu.memory.empty("labels.0.0", "community", level.vertices, "u4")
    level.labels.set(labels.astype(np.uint32))
    return level


@cache
def at_once(kind):
    """Return what a graph is aggregated to, by partition."""
    found = {}
    for name, labels in partitions(graph_of(kind).n_vertices).items():
        with GpuEngine(Options(), ignore) as gpu:
            level = with_labels(gpu, graph_of(kind), labels)
            found[name] = found_of(level, aggregate(gpu.memory, level, LIMITS))
    return found


@pytest.mark.parametrize(("kind", "pieces", "kept"), CASES)
def test_reading_in_ranges_changes_nothing(kind, pieces, kept):
    graph = graph_of(kind)
    n = graph.n_vertices
    bounds = [n * i // pieces for i in range(pieces + 1)]
    limits = replace(CHUNKED, chunks=3, kept=KEPT[kept])
    for name, labels in partitions(n).items():
        with GpuEngine(Options(), ignore) as gpu:
            level = with_labels(gpu, graph, labels)
            live = set(gpu.memory.live)
            asked = list[int]()
            cache = SimpleNamespace(need=asked.append)
            blocks = VertexBlocks(cache, cache, None, bounds)
            coarse = aggregate(gpu.memory, level, limits, blocks)
            where = f"{name}, {pieces} blocks"
            assert asked == sorted(set(asked)), where
            arrays, sums = found_of(level, coarse)
            expected, exact = at_once(kind)[name]
            for a, b in zip(arrays, expected, strict=True):
                assert np.array_equal(a, b), where
            assert sums == exact, where
            gpu.release(coarse)
            assert set(gpu.memory.live) == live, where


def with_limits(limits, *args):
    memory, level, _, *where = args
    return aggregate(memory, level, limits, *where)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", ["rmat", "lfr", "rmat u32", "rmat u64"])
def test_labels_do_not_depend_on_how_levels_are_stored(kind, method, monkeypatch):
    graph = GRAPHS[kind]()
    expected = getattr(api, method)(graph, device="cpu")
    for limits in WAYS.values():
        instead = partial(with_limits, limits)
        monkeypatch.setattr(engine, "aggregate", instead)
        found = getattr(api, method)(graph, device="cuda")
        assert np.array_equal(found.labels, expected.labels)
        visited = [[(x.arcs, x.arcs_visited) for x in y.levels] for y in (found, expected)]
        assert visited[0] == visited[1]


@pytest.fixture(params=[LIMITS, CHUNKED], ids=["chunk", "chunks"])
def always(request, monkeypatch):
    """However small level 1 is, and whatever it keeps, level 2 takes its place."""
    limits = replace(request.param, small=0)
    monkeypatch.setattr(preparation, "LIMITS", limits)
    monkeypatch.setattr(reaggregate, "wanted", lambda first, level, *_: level.number == 1)


def state_of(level):
    offsets = level.offsets.get()
    short = level.weights.dtype.itemsize < 4
    weights = widened(level.weights) if short else level.weights.get()
    source, targets = np.repeat(np.arange(level.vertices), np.diff(offsets)), level.targets.get()
    order = np.lexsort((targets, source))
    found = [offsets, targets[order], weights[order], level.loops.get(), level.degrees.get()]
    return [x.astype(np.int64) for x in found]


@pytest.mark.usefixtures("always")
def test_labels_are_the_same(graph):
    expected = api.leiden(graph, device="cpu")
    found = api.leiden(graph, device="cuda")
    assert np.array_equal(found.labels, expected.labels)
    for a, b in zip(found.maps, expected.maps, strict=True):
        assert np.array_equal(a, b)
    for x, y in zip(found.levels, expected.levels, strict=True):
        assert (x.vertices, x.arcs, x.arcs_visited) == (y.vertices, y.arcs, y.arcs_visited)


@pytest.mark.usefixtures("always")
def test_levels_are_those_of_the_cpu_and_come_back(graph):
    options = Options(method="leiden")
    cpu = CpuEngine(options, ignore)
    with GpuEngine(options, ignore) as gpu:
        level, exact = gpu.load(graph), cpu.load(graph)
        levels = [level]
        for _ in range(2):
            for step in (gpu, cpu):
                step.move(level if step is gpu else exact)
                step.refine(level if step is gpu else exact)
            level, exact = gpu.aggregate(level), cpu.aggregate(exact)
            levels.append(level)
            if level.number == 1:
                before = state_of(level)
        first = levels[1]
        assert first.offsets is None
        assert np.array_equal(level.start.get(), exact.start)
        assert (level.tag, level.max_degree) == ("1.2", int(np.diff(exact.offsets).max()))
        assert gpu.sums(level) == cpu.sums(exact)
        offsets, targets, weights, loops, degrees = state_of(level)
        for a, b in zip(
            (offsets, loops, degrees), (exact.offsets, exact.loops, exact.degrees), strict=True
        ):
            assert np.array_equal(a, b)
        order = np.lexsort((exact.targets, np.repeat(np.arange(level.vertices), np.diff(offsets))))
        assert np.array_equal(targets, exact.targets[order])
        assert np.array_equal(weights, exact.weights[order].astype(np.int64))
        gpu.release(level)
        gpu.split_disconnected(first)
        for a, b in zip(state_of(first), before, strict=True):
            assert np.array_equal(a, b)
