"""Levels on a device, or on an emulated one: those of the CPU, however they are made."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from louvain_um import Graph
from louvain_um.core import rules
from louvain_um.core.hierarchy import detect
from louvain_um.core.numbering import number_by_size
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.gpu import engine, preparation
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.aggregate import aggregate
from louvain_um.gpu.aggregate.limits import LIMITS, AggregationLimits
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.memory.array_specs import SORTING
from louvain_um.gpu.memory.level_room import LevelRoom
from louvain_um.gpu.memory.packed import ENTRY
from louvain_um.gpu.move.hub_tables import BLOCK_MAX
from louvain_um.gpu.out_of_core.vertex_blocks import VertexBlocks
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.runtime.kernel_list import PACKED, PACKED_OFFSETS32, PACKED_WEIGHTS16
from louvain_um.options import Options
from tests.distributed.runs import assert_equal
from tests.gpu_emulated import emulated_engine
from tests.gpu_emulated.emulated_engine import emulated_devices
from tests.graphs import weighted

CHUNKED = AggregationLimits(small=0, chunk=1, chunks=64, arcs_a_slot=1 << 30)
"""Several launches, as many chunks as there may be, hubs one or a few at a time."""

WAYS = {
    "at once": LIMITS,
    "in chunks": CHUNKED,
    "wide": replace(CHUNKED, short_weights=(), kept=1.0),
    "growing": replace(CHUNKED, kept=0.01),
}
"""How a level is aggregated; weights are bytes where that saves, or never."""


def star(n, *, weights):
    """Return a hub, far larger than any table, and leaves that know each other."""
    rng = np.random.default_rng(1)
    ring = np.arange(1, n)
    u = np.concatenate((np.zeros(n - 1, np.int64), ring, np.arange(0, n, 7)))
    v = np.concatenate((ring, np.roll(ring, 1), np.arange(0, n, 7)))
    w = rng.integers(0, 2**34, len(u)) if weights else None
    return Graph.from_edges(u, v, w)


def widened(weights):
    """Return a level's weights of 8 or 16 bits as they are, on the host."""
    import cupy

    def before(entries, back):
        at = weights.data - ENTRY * back
        return cupy.ndarray((2 * entries,), np.uint64, at).get().reshape(entries, 2)

    wide = weights.get().astype(np.uint64)
    slots = int(before(1, 1)[0, 1])
    table = before(slots, slots + 1)
    arcs, heavy = table[table[:, 0] != np.uint64(2**64 - 1)].T
    wide[arcs] = heavy
    return wide


def looped(graph):
    return replace(graph, loops=np.arange(graph.n_vertices, dtype=np.int64) % 3)


def hubs():
    """Return a graph with vertices of every degree class, two hubs among them."""
    random = np.random.default_rng(3)
    graph = lfr(2600, max_degree=1500, min_community=40, max_community=400, seed=3).graph
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    ends = [random.choice(2600, count, replace=False) for count in (2300, 2200, 3, 7)]
    u = np.concatenate([u, *(np.full(len(end), hub * 11) for hub, end in enumerate(ends))])
    v = np.concatenate([graph.targets, *ends])
    graph = Graph.from_edges(u[u != v], v[u != v], n_vertices=2605, duplicates="once")
    assert (np.diff(graph.offsets) > BLOCK_MAX[4]).sum() == 2
    return graph


LARGE = {
    "two": lambda: Graph.from_edges([0], [1]),
    "rmat": lambda: rmat(14).graph,
    "rmat u32": lambda: weighted(rmat(13).graph, 0, 50),
    "rmat u64": lambda: weighted(rmat(13).graph, 0, 2**33),
    "rmat loops": lambda: looped(rmat(13).graph),
    "lfr": lambda: lfr(20_000).graph,
    "hubs": hubs,
    "hubs u32": lambda: weighted(hubs(), 0, 300),
    "star": lambda: star(60_000, weights=False),
    "star u64": lambda: star(60_000, weights=True),
}
SMALL = {
    "two": LARGE["two"],
    "rmat": lambda: rmat(8, edge_factor=12, seed=3).graph,
    "rmat u32": lambda: weighted(rmat(8, seed=3).graph, 0, 50),
    "rmat u64": lambda: weighted(rmat(7, seed=3).graph, 0, 2**33),
    "rmat loops": lambda: looped(rmat(8, edge_factor=2, seed=3).graph),
    "lfr": lambda: lfr(700, max_degree=200, min_community=20, max_community=200, seed=3).graph,
    "hubs": hubs,
    "hubs u32": LARGE["hubs u32"],
    "star": lambda: star(9000, weights=False),
    "star u64": lambda: star(3000, weights=True),
}


@dataclass(frozen=True)
class Device:
    """What an engine runs on, and graphs and partitions for it."""

    graphs: dict[str, Callable[[], Graph]]
    engine: Callable[..., Any]
    partitions: tuple[str, ...] = ("alone", "together", "pairs", "random", "hubs")


GPU = Device(LARGE, lambda options, observer=ignore: GpuEngine(options, observer))


@pytest.fixture(
    params=[
        pytest.param("emulated", marks=pytest.mark.deep),
        pytest.param("gpu", marks=pytest.mark.gpu),
    ]
)
def device(request, monkeypatch):
    if request.param == "gpu":
        request.getfixturevalue("gpu")
        return GPU
    libraries = request.getfixturevalue("emulated")
    monkeypatch.setattr(emulated_engine, "BLOCKS", 3)

    @contextmanager
    def emulated(options, observer=ignore):
        options = replace(options, device="cuda:0")
        with emulated_devices(monkeypatch, libraries, 1), GpuEngine(options, observer) as run:
            yield run

    return Device(SMALL, emulated, ("pairs", "hubs"))


@pytest.fixture(params=LARGE)
def graph(request, device):
    return graph_of(device.graphs[request.param])


@cache
def graph_of(made):
    return made()


def put(run, name, values):
    """Return an array of a run's memory with these values."""
    array = run.memory.empty(name, "community", len(values), values.dtype)
    array.set(values)
    return array


FORMS = {"": ("", 8), "packed": (PACKED, 8), "offsets32": (PACKED_OFFSETS32, 1),
         "weights16": (PACKED_WEIGHTS16[0], 2)}  # fmt: skip
"""Inputs in fewer bytes, and sub-rounds that are queued at a time."""


@pytest.mark.parametrize("form", FORMS)
def test_vertices_move_and_refine_as_on_the_cpu(device, monkeypatch, form):
    types, queued = FORMS[form]
    if types:
        monkeypatch.setattr(preparation, "compact_types", lambda plan, shape: types)
    for turn, (kind, made) in enumerate(device.graphs.items()):
        queue = (rules.SUB_ROUNDS, 2, 1)[turn % 3] if not types else queued
        monkeypatch.setattr(LevelRoom, "queued", lambda *_, queue=queue: queue)
        monkeypatch.setattr(emulated_engine, "BLOCKS", (1, 3)[turn % 2])
        graph = graph_of(made)
        if types and not packs(graph, weighted=form == "weights16"):
            continue
        for start in (None, (np.arange(graph.n_vertices, dtype=np.uint32) // 20) * 20):
            check_levels(device, graph, start, f"{kind}, {form}, from {start}")


def packs(graph, *, weighted):
    """Return whether a graph may be an input in fewer bytes, with weights or without."""
    if graph.loops.any() or weighted != (graph.weights is not None):
        return False
    return not weighted or graph.weights.max(initial=0) < 1 << 16


def check_levels(device, graph, start, where):
    """Compare moving, refining and aggregating of two levels, the first from some communities."""
    options = Options(method="leiden", seed=3)
    cpu = CpuEngine(options, ignore)
    exact = cpu.load(graph)
    with device.engine(options, lambda event: None) as run:  # which starts no step early
        level = run.load(graph)
        if start is not None:
            exact.cycle, exact.start = 1, start.copy()
            level = run.from_input.first = replace(
                level, cycle=1, start=put(run, "start.1.0", start)
            )
        for _ in range(2):
            moved = cpu.move(exact)
            assert run.move(level) == moved, where
            assert np.array_equal(level.labels.get(), exact.labels), where
            if not moved.moves:
                break
            cpu.refine(exact)
            run.refine(level)
            assert np.array_equal(level.refined.get(), exact.refined), where
            level, exact = run.aggregate(level), cpu.aggregate(exact)
            assert np.array_equal(level.start.get(), exact.start), where
            assert run.sums(level) == cpu.sums(exact), where
            for a, b in zip(arcs_of(level), rows_of(exact), strict=True):
                assert np.array_equal(a, b), where


@pytest.mark.parametrize("types", [PACKED, PACKED_OFFSETS32])
def test_sizes_in_bytes_tell_one_vertex_from_one_more_than_256(device, monkeypatch, types):
    """A vertex alone joins a community of higher number, unless that is one vertex, too."""
    monkeypatch.setattr(preparation, "compact_types", lambda plan, shape: types)
    for members in (1, 256, 257, 258, 513):
        for more, named in ((0, 0), (300, 0), (300, 1)):  # arcs of a hub; whether named after it
            leaves = np.arange(members + more)
            line = np.arange(members + 2) + len(leaves)  # the community, and one of two vertices
            path, name = line[:-2], line[0] if named else line[-2]
            ends = np.r_[path, np.full(more, path[0])]
            graph = Graph.from_edges(np.r_[leaves, line[:-1]], np.r_[ends, line[1:]])
            start = np.r_[leaves, np.full(members, name), line[-1], line[-1]].astype(np.uint32)
            check_levels(device, graph, start, (members, more, named))


def test_arcs_read_once_more_are_counted(device):
    """Of every vertex that moved, where all sweeps prune: here each has 26 neighbours."""
    graph = stencil((9, 9, 9), periodic=True).graph
    assert set(np.diff(graph.offsets)) == {26}
    with device.engine(Options()) as run:
        start = (np.arange(graph.n_vertices, dtype=np.uint32) // 20) * 20
        level = run.from_input.first = replace(
            run.load(graph), cycle=1, start=put(run, "start.1.0", start)
        )
        moved = run.move(level)
    assert level.read_again == 26 * moved.moves
    assert 0 < level.read_again < moved.arcs_visited


def partitions(n, device):
    rng = np.random.default_rng(3)
    few = rng.integers(0, 3, n) * (n // 3)
    found = {
        "alone": np.arange(n),
        "together": np.full(n, n - 1),
        "pairs": np.arange(n) // 2 * 2,
        "random": rng.integers(0, max(n // 20, 1), n),
        "hubs": np.where(rng.random(n) < 0.7, few, np.arange(n)),
    }
    return {name: found[name] for name in device.partitions}


def rows(offsets, targets, weights):
    source = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((targets, source))
    return source, targets[order], weights[order].astype(np.int64)


def rows_of(level):
    return rows(level.offsets, level.targets, level.weights)


def arcs_of(level):
    short = level.weights.dtype.itemsize < 4
    weights = widened(level.weights) if short else level.weights.get()
    return rows(level.offsets.get(), level.targets.get(), weights)


def assert_aggregated(found, exact, where):
    """Compare a level and the next one, on the device and on the CPU."""
    (level, coarse), (expected_level, expected, sums) = found, exact
    assert np.array_equal(level.numbers.get(), expected_level.numbers), where
    assert np.array_equal(coarse.offsets.get(), expected.offsets), where
    for a, b in zip(arcs_of(coarse), rows_of(expected), strict=True):
        assert np.array_equal(a, b), where
    assert np.array_equal(coarse.loops.get().astype(np.int64), expected.loops), where
    assert np.array_equal(coarse.degrees.get().astype(np.int64), expected.degrees), where
    assert (coarse.inside, coarse.squares) == (sums.inside, sums.squares), where
    assert coarse.max_degree == int(np.diff(expected.offsets).max(initial=0)), where


@pytest.mark.parametrize("limits", WAYS.values(), ids=WAYS)
def test_levels_are_those_of_the_cpu(device, graph, limits):
    for name, labels in partitions(graph.n_vertices, device).items():
        cpu = CpuEngine(Options(threads=1), ignore)
        expected_level = cpu.load(graph)
        expected_level.labels = labels.astype(np.uint32)
        with device.engine(Options()) as gpu:
            level = gpu.load(graph)
            for step in range(2):
                level.labels = put(gpu, f"labels.0.{step}", expected_level.labels)
                expected = cpu.aggregate(expected_level)
                live = set(gpu.memory.live)
                coarse = aggregate(gpu.memory, level, limits)
                exact = expected_level, expected, cpu.sums(expected)
                assert_aggregated((level, coarse), exact, f"{name}, step {step}")
                parts = ("offsets", "targets", "weights", "loops", "degrees")
                new = {name.replace(".small", "") for name in set(gpu.memory.live) - live}
                assert new == {f"{part}.{step + 1}" for part in parts}
                level, expected_level = coarse, expected
                rng = np.random.default_rng(step)
                k = level.vertices
                expected_level.labels = rng.integers(0, max(k // 3, 1), k).astype(np.uint32)


def test_communities_are_carried_summed_split_and_numbered(device, graph):
    n = graph.n_vertices
    for name, labels in partitions(n, device).items():
        start = labels.astype(np.uint32)
        cpu = CpuEngine(Options(threads=1), ignore)
        expected = cpu.load(graph)
        with device.engine(Options()) as gpu:
            level = gpu.load(graph)
            alone = cpu.sums(expected)
            assert (level.inside, level.squares) == (alone.inside, alone.squares), name
            level.start, expected.start = put(gpu, "start.0.0", start), start.copy()
            assert relabel.community_sums(gpu.memory, level) == cpu.sums(expected), name
            relabel.split(gpu.memory, level, level.start)
            cpu.split_disconnected(expected)
            assert np.array_equal(level.start.get(), expected.start), name
            numbered = put(gpu, "numbered", start)
            relabel.number_by_size(gpu.memory, numbered, n)
            assert np.array_equal(numbered.get(), number_by_size(start)), name


@pytest.mark.parametrize("count", [1, 1_000, 1_000_000, 10_000_000])
def test_sorting_takes_no_more_than_is_declared(gpu, count):
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


def test_parts_start_in_the_community_of_their_members(device, graph):
    n = graph.n_vertices
    for name, labels in partitions(n, device).items():
        # Parts of every community: its members by parity, named after one of them.
        key = labels.astype(np.int64) * 2 + np.arange(n) % 2
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        parts = first[inverse].astype(np.uint32)
        cpu = CpuEngine(Options(threads=1), ignore)
        expected = cpu.load(graph)
        expected.labels, expected.refined = labels.astype(np.uint32), parts.copy()
        coarse = cpu.aggregate(expected)
        with device.engine(Options()) as gpu:
            level = gpu.load(graph)
            level.labels = put(gpu, "labels.0.0", labels.astype(np.uint32))
            level.refined = put(gpu, "refined.0.0", parts)
            found = aggregate(gpu.memory, level)
            assert np.array_equal(found.start.get(), coarse.start), name
            out = put(gpu, "out", np.empty(n, np.uint32))
            relabel.compose([level, found], out)
            assert np.array_equal(out.get(), coarse.start[expected.numbers]), name


def test_a_heavy_arc_among_light_ones_keeps_its_weight(gpu):
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
    with GPU.engine(Options()) as engine:
        mine = with_labels(engine, graph, labels)
        coarse = aggregate(engine.memory, mine, CHUNKED)
        assert coarse.weights.dtype == np.uint8
        for a, b in zip(arcs_of(coarse), rows_of(expected), strict=True):
            assert np.array_equal(a, b)


PIECES = (1, 2, 13)
KEPT = {"roomy": None, "merging": 0.3, "growing": 0.01}

CASES = [
    (kind, pieces, kept)
    for i, kind in enumerate(LARGE)
    for j, pieces in enumerate(PIECES)
    for k, kept in enumerate(KEPT)
    if (i + j + k) % 3 == 0
]
"""Each graph with all numbers of ranges and all ways; each pair of these with some graph."""


def with_labels(gpu, graph, labels):
    level = gpu.load(graph)
    level.labels = put(gpu, "labels.0.0", labels.astype(np.uint32))
    return level


@pytest.mark.parametrize(("kind", "pieces", "kept"), CASES)
def test_reading_in_ranges_changes_nothing(gpu, kind, pieces, kept):
    graph = graph_of(LARGE[kind])
    n = graph.n_vertices
    bounds = [n * i // pieces for i in range(pieces + 1)]
    limits = replace(CHUNKED, chunks=3, kept=KEPT[kept])
    for name, labels in partitions(n, GPU).items():
        cpu = CpuEngine(Options(threads=1), ignore)
        exact = cpu.load(graph)
        exact.labels = labels.astype(np.uint32)
        expected = cpu.aggregate(exact)
        with GPU.engine(Options()) as engine:
            level = with_labels(engine, graph, labels)
            live = set(engine.memory.live)
            asked = list[int]()
            cache = SimpleNamespace(need=asked.append)
            blocks = VertexBlocks(cache, cache, None, bounds)
            coarse = aggregate(engine.memory, level, limits, blocks)
            where = f"{name}, {pieces} blocks"
            assert asked == sorted(set(asked)), where
            assert_aggregated((level, coarse), (exact, expected, cpu.sums(expected)), where)
            engine.release(coarse)
            assert set(engine.memory.live) == live, where


def assert_same_run(graph, method):
    """Compare labels and levels of a whole run with the CPU's."""
    options = Options(method=method)
    expected = detect(CpuEngine(options, ignore), graph, options, ignore)
    with GPU.engine(options) as gpu:
        found = detect(gpu, graph, options, ignore)
    assert_equal(found, expected)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", ["rmat", "lfr", "rmat u32", "rmat u64"])
def test_labels_do_not_depend_on_how_levels_are_stored(gpu, kind, method, monkeypatch):
    for limits in WAYS.values():

        def limited(memory, level, _, *where, limits=limits):
            return aggregate(memory, level, limits, *where)

        monkeypatch.setattr(engine, "aggregate", limited)
        assert_same_run(graph_of(LARGE[kind]), method)


@pytest.fixture(params=[LIMITS, CHUNKED], ids=["chunk", "chunks"])
def always(request, monkeypatch):
    """However small level 1 is, and whatever it keeps, level 2 takes its place."""
    limits = replace(request.param, small=0)
    monkeypatch.setattr(preparation, "LIMITS", limits)
    monkeypatch.setattr(reaggregate.FromInput, "outgrows", lambda _, level: level.number == 1)


def state_of(level):
    offsets = level.offsets.get()
    short = level.weights.dtype.itemsize < 4
    weights = widened(level.weights) if short else level.weights.get()
    source, targets = np.repeat(np.arange(level.vertices), np.diff(offsets)), level.targets.get()
    order = np.lexsort((targets, source))
    found = [offsets, targets[order], weights[order], level.loops.get(), level.degrees.get()]
    return [x.astype(np.int64) for x in found]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", LARGE)
def test_labels_are_the_same(gpu, kind):
    assert_same_run(graph_of(LARGE[kind]), "leiden")


@pytest.mark.usefixtures("always")
def test_levels_are_those_of_the_cpu_and_come_back(device, graph):
    options = Options(method="leiden")
    cpu = CpuEngine(options, ignore)
    with device.engine(options) as gpu:
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
