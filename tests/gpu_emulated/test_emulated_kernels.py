"""The engine's CUDA kernels, emulated on the CPU, give the results of the CPU engine.

`cuda.h` emulates the device: a few blocks of 256 threads that take turns. The device's memory model
and its speed are tested on a device (`tests/gpu`).
"""

import ctypes
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.gpu.aggregate.limits import rows_expected
from louvain_um.gpu.memory.packed import HEADER, Packer
from louvain_um.gpu.move.hub_tables import BLOCK_MAX
from louvain_um.graph.graph import Graph
from louvain_um.options import Options

pytestmark = pytest.mark.deep

KINDS = {"unweighted": 0, "packed": 1, "weighted": 2, "offsets32": 3, "weighted, packed": 4}
SEED = 3


@dataclass
class Device:
    blocks: int
    kind: int
    graph: Graph
    offsets: Any
    targets: Any
    weights: Any
    degrees: Any
    kept: Any = None
    queued: int = rules.SUB_ROUNDS
    read_again: int = 0

    @property
    def arguments(self):
        numbers = ctypes.c_int(self.blocks), ctypes.c_int(self.kind)
        arrays = self.offsets, self.targets, self.weights, self.degrees
        return *numbers, ctypes.c_int64(self.graph.n_vertices), *map(address, arrays)


def address(array):
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def hubs(weighted):
    """Return a graph with vertices of every degree class, two hubs among them."""
    graph = lfr(2600, max_degree=1500, min_community=40, max_community=400, seed=SEED).graph
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    random = np.random.default_rng(SEED)
    ends = [random.choice(2600, count, replace=False) for count in (2300, 2200, 3, 7)]
    u = np.concatenate([u, *(np.full(len(end), hub * 11) for hub, end in enumerate(ends))])
    v = np.concatenate([graph.targets, *ends])
    apart, pairs = u != v, np.minimum(u, v) * 4000 + np.maximum(u, v)
    pairs = np.unique(pairs[apart])
    weights = random.integers(0, 300, len(pairs)) if weighted else None
    graph = Graph.from_edges(pairs // 4000, pairs % 4000, weights, n_vertices=2605)
    assert (np.diff(graph.offsets) > BLOCK_MAX[4]).sum() == 2
    return graph


@pytest.fixture(scope="module", params=[(kind, b) for kind in KINDS for b in (1, 3)], ids=str)
def device(request):
    name, blocks = request.param
    found = device_of(hubs(weighted=name.startswith("weighted")), KINDS[name], blocks)
    if blocks == 3:
        found.queued = 1
    return found


def device_of(graph, kind, blocks):
    offsets, targets, weights, kept = graph.offsets, graph.targets, None, None
    if kind in (1, 3, 4):
        packed = Packer(graph).pack(sort=kind != 3)
        offsets, targets, weights = packed.offsets, packed.targets, packed.heads[HEADER:]
        kept = packed.heads, packed.weights
        if packed.weights is not None:
            packed.heads[HEADER - 1] = packed.weights.ctypes.data
    if kind == 2:
        weights = graph.weights.astype(np.uint32)
    degrees = None if kind in (1, 3) else graph.degrees.astype(np.uint32)
    return Device(blocks, kind, graph, offsets, targets, weights, degrees, kept)


def on_cpu(graph):
    engine = CpuEngine(Options(method="leiden", seed=SEED), ignore)
    return engine, engine.load(graph)


def test_moving_refining_and_aggregating(emulated, device):
    assert check_a_level(emulated, device) < device.graph.n_vertices // 4


SMALL = {
    "rmat": lambda: rmat(8, edge_factor=12, seed=SEED),
    "sparse": lambda: rmat(9, edge_factor=2, seed=SEED),
    "lfr": lambda: lfr(700, max_degree=200, min_community=20, max_community=200, seed=SEED),
    "stencil": lambda: stencil((6, 7, 8)),
    "weighted": lambda: rmat(8, weights="uniform", seed=SEED),
}


@pytest.mark.parametrize("queued", [rules.SUB_ROUNDS, 2, 1])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in SMALL
        for kind in KINDS
        if (name == "weighted") == kind.startswith("weighted")
    ],
)
def test_small_graphs(emulated, name, kind, queued):
    graph = SMALL[name]().graph
    assert graph.weighted == kind.startswith("weighted")
    device = device_of(graph, KINDS[kind], blocks=2)
    device.queued = queued
    check_a_level(emulated, device)


@pytest.mark.parametrize("kind", ["unweighted", "weighted"])
def test_hubs_of_several_partitions(emulated, kind):
    n, random = 24_000, np.random.default_rng(SEED)
    leaves = [3 + random.choice(n - 3, count, replace=False) for count in (9000, 5000, 2100)]
    u = np.concatenate([np.arange(n - 1), *(np.full(len(x), i) for i, x in enumerate(leaves))])
    v = np.concatenate([np.arange(1, n), *leaves])
    weights = random.integers(1, 4, len(u)) if kind == "weighted" else None
    graph = Graph.from_edges(u, v, weights, n_vertices=n, duplicates="once")
    assert check_a_level(emulated, device_of(graph, KINDS[kind], blocks=3)) > 5000


def check_a_level(emulated, device):
    """Compare what becomes of level 0; return its communities."""
    graph, n = device.graph, device.graph.n_vertices
    engine, level = on_cpu(graph)
    moved = engine.move(level)
    labels, totals, counts = moved_by(emulated["move"], device)
    np.testing.assert_array_equal(labels, level.labels)
    assert counts == [moved.iterations, moved.moves, moved.arcs_visited, moved.gain]

    engine.refine(level)
    parts, salt = np.zeros(n, np.uint32), rules.salt(0, rules.REFINE_SWEEP, SEED)
    loops, found = np.arange(n, dtype=np.uint32) % 5, np.zeros(2, np.uint64)
    emulated["move"].refine_level(
        *device.arguments, address(labels), address(totals), address(parts),
        ctypes.c_double(graph.total_weight), ctypes.c_uint32(SEED),
        address(np.array([salt, 0, rules.SUB_ROUNDS, device.queued], np.uint32)), address(loops),
        address(found),
    )  # fmt: skip
    np.testing.assert_array_equal(parts, level.refined)
    expected = engine.sums(replace(level, start=level.labels))
    loops_of_graph = 2 * int(graph.loops.sum())
    inside = expected.inside - loops_of_graph + 2 * int(loops.sum())
    assert found.tolist() == [inside, expected.squares]

    coarse = engine.aggregate(level)
    arcs = graph.n_arcs
    ways = (0, False), (arcs // 9, False), (arcs // 9, True), (arcs // 3, True), (arcs, True)
    chunks = [
        check_aggregated(emulated["aggregate"], device, parts.copy(), *how, level, coarse)
        for how in ways
    ]
    assert chunks[1] == chunks[2] > chunks[3] > chunks[4] == 1
    return len(np.unique(labels))


def moved_by(library, device, start=None, cycle=0):
    n, counts = device.graph.n_vertices, np.zeros(5, np.uint64)
    labels, totals = (np.zeros(n, np.uint32) for _ in range(2))
    full_sweeps = 0 if cycle else rules.FULL_SWEEPS
    text = [
        rules.seed_salt(SEED), cycle, rules.SUB_ROUNDS, rules.MAX_ITERATIONS, full_sweeps,
        rules.MIN_SWEEPS, device.queued,
    ]  # fmt: skip
    library.move_level(
        *device.arguments, address(start), address(labels), address(totals),
        ctypes.c_double(device.graph.total_weight), ctypes.c_uint32(SEED),
        address(np.array(text, np.uint32)), ctypes.c_int64(rules.tolerance(0)), address(counts),
    )  # fmt: skip
    device.read_again = int(counts[4])
    return labels, totals, counts[:4].tolist()


def check_aggregated(library, device, numbers, chunk, sampled, level, coarse):
    """Check aggregation in chunks of so many arcs; return how many there are."""
    n, arcs = device.graph.n_vertices, device.graph.n_arcs
    offsets, counts = np.zeros(n + 1, np.int64), np.array([arcs, sampled, 0, 0, 0, 0], np.uint64)
    targets, weights = (np.zeros(arcs, np.uint32) for _ in range(2))
    loops, degrees = (np.zeros(n, np.uint32) for _ in range(2))
    library.aggregate_level(
        *device.arguments, address(numbers), ctypes.c_int64(chunk), address(offsets),
        address(targets), address(weights), address(loops), address(degrees), address(counts),
    )  # fmt: skip
    k, kept = coarse.vertices, len(coarse.targets)
    assert counts[:2].tolist() == [k, kept]
    np.testing.assert_array_equal(numbers, level.numbers)
    np.testing.assert_array_equal(offsets[: k + 1], coarse.offsets)
    np.testing.assert_array_equal(loops[:k], coarse.loops)
    np.testing.assert_array_equal(degrees[:k], coarse.degrees)
    rows = np.repeat(np.arange(k), np.diff(coarse.offsets))
    order, other = (np.lexsort((t, rows)) for t in (targets[:kept], coarse.targets))
    np.testing.assert_array_equal(targets[order], coarse.targets[other])
    np.testing.assert_array_equal(weights[order], coarse.weights[other])
    if sampled:
        expected = rows_expected(arcs, int(counts[4]), arcs)
        assert kept <= expected <= 1.6 * kept + arcs // 32  # long rows are sampled in part
    return int(counts[5])


def test_moving_on_from_communities(emulated, device):
    engine, level = on_cpu(device.graph)
    level.cycle = 1
    level.start = (np.arange(device.graph.n_vertices, dtype=np.uint32) // 20) * 20
    moved = engine.move(level)
    labels, totals, counts = moved_by(emulated["move"], device, level.start, cycle=1)
    np.testing.assert_array_equal(labels, level.labels)
    np.testing.assert_array_equal(totals, level.totals)
    assert counts == [moved.iterations, moved.moves, moved.arcs_visited, moved.gain]


@pytest.mark.parametrize("kind", ["packed", "offsets32"])
@pytest.mark.parametrize("members", [256, 257, 258, 513])
def test_sizes_in_bytes_tell_one_vertex_from_one_more_than_256(emulated, kind, members):
    """A vertex alone joins a community of higher number, unless that is one vertex, too."""
    leaves = np.arange(members)
    ring = leaves + members
    graph = Graph.from_edges(np.r_[leaves, ring], np.r_[ring, np.roll(ring, 1)])
    start = np.r_[leaves, np.full(members, ring[-1])].astype(np.uint32)
    engine, level = on_cpu(graph)
    level = replace(level, cycle=1, start=start)
    moved = engine.move(level)
    assert moved.moves >= members
    device = device_of(graph, KINDS[kind], blocks=2)
    labels, _, counts = moved_by(emulated["move"], device, start, cycle=1)
    np.testing.assert_array_equal(labels, level.labels)
    assert counts == [moved.iterations, moved.moves, moved.arcs_visited, moved.gain]


@pytest.mark.parametrize("low", [1, -3, -200, 100])
def test_bytes_that_many_add_to_take_few_accesses(emulated, low):
    """However many threads add to the same bytes: each is done after four at most."""
    random, n = np.random.default_rng(SEED), 20_000
    at = random.integers(0, 8, n, dtype=np.uint32)
    changes = random.integers(low, low + 5, n).astype(np.uint32)
    words = random.integers(0, 2**32, 2, dtype=np.uint32)
    expected = words.view(np.uint8).copy()
    np.add.at(expected, at, changes.astype(np.uint8))
    found = words.copy()
    accesses = emulated["byte_sizes"].add_to_bytes(
        ctypes.c_int64(n), *map(address, (at, changes, found))
    )
    np.testing.assert_array_equal(found.view(np.uint8), expected)
    assert accesses <= 4 * n
    if abs(low) < 10:
        assert accesses <= 1.1 * n


@pytest.mark.parametrize("blocks", [1, 3])
def test_arcs_read_once_more_are_counted(emulated, blocks):
    """Of every vertex that moved, where all sweeps prune: here each has 26 neighbours."""
    graph = stencil((9, 9, 9), periodic=True).graph
    assert set(np.diff(graph.offsets)) == {26}
    device = device_of(graph, KINDS["unweighted"], blocks)
    start = (np.arange(graph.n_vertices, dtype=np.uint32) // 20) * 20
    _, _, (_, moves, visited, _) = moved_by(emulated["move"], device, start, cycle=1)
    assert device.read_again == 26 * moves
    assert 0 < device.read_again < visited


def test_communities_between_levels(emulated, device):
    graph, n = device.graph, device.graph.n_vertices
    engine, level = on_cpu(graph)
    level.start = (np.arange(n, dtype=np.uint32) // 60) * 60
    sums, counts = engine.sums(level), np.zeros(3, np.uint64)
    emulated["relabel"].sum_level(*device.arguments, address(level.start), address(counts))
    assert counts.tolist() == [sums.inside, sums.squares, sums.communities]
    labels = level.start.copy()
    engine.split_disconnected(level)
    before = labels.copy()
    emulated["relabel"].split_level(*device.arguments[:6], None, address(labels))
    np.testing.assert_array_equal(labels, level.start)
    fixed = (np.arange(n) % 5 == 0).astype(np.uint64)
    level.start, level.fixed = before.copy(), fixed.astype(np.uint8)
    engine.split_disconnected(level)
    emulated["relabel"].split_level(*device.arguments[:6], address(fixed), address(before))
    np.testing.assert_array_equal(before, level.start)
    assert len(np.unique(before)) < len(np.unique(labels))
    assert len(np.unique(labels)) > sums.communities


@pytest.mark.parametrize("blocks", [1, 3])
def test_masses_of_communities(emulated, blocks):
    n = 3000
    random = np.random.default_rng(SEED)
    masses = random.integers(-9, 2**40, n)
    numbers = random.integers(0, 7, n).astype(np.uint32)
    sums, expected = np.zeros(7, np.int64), np.zeros(7, np.int64)
    np.add.at(expected, numbers, masses)
    emulated["relabel"].sum_masses(
        blocks, ctypes.c_int64(n), address(masses), address(numbers), address(sums)
    )
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("item_bytes", [4, 12])
def test_blocked_loops_visit_each_element_once_and_each_page_by_one_warp(emulated, item_bytes):
    blocks, threads = 2, 256
    for count in (0, 1, 31, 1024, 1025, 100_003):
        for pages in (1, 3, 10):
            visits, warps, steps = (np.zeros(max(count, 1), np.uint32) for _ in range(3))
            emulated["blocked"].visit(
                blocks, ctypes.c_longlong(count), item_bytes, pages,
                *map(address, (visits, warps, steps)),
            )  # fmt: skip
            case = count, pages
            assert (visits[:count] == 1).all(), case
            assert not visits[count:].any(), case
            sets = np.arange(count) // (4096 * pages // item_bytes)
            assert (warps[:count] == sets % (blocks * threads // 32)).all(), case
            # A warp takes 32 elements of its pages per step.
            inside = np.flatnonzero(sets == 0)
            assert (steps[inside] == inside // 32).all(), case
