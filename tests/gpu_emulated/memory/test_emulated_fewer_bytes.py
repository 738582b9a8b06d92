"""The engine with arrays in fewer bytes, and short queues, where there is too little memory."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.core.hierarchy import LevelLoop, Stopwatch
from louvain_um.cpu.engine import CpuEngine
from louvain_um.dynamic.tracking.host_steps import RELEASED
from louvain_um.events import ignore
from louvain_um.generators import lfr
from louvain_um.gpu.aggregate import kernel_arguments
from louvain_um.gpu.aggregate.coarse_rows import CoarseRows
from louvain_um.gpu.aggregate.kernel_arguments import EVERY_ARC, Aggregation
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory import packed
from louvain_um.gpu.move import arguments
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.runtime.compile import using
from louvain_um.graph.graph import Graph
from tests.gpu_emulated.emulated_engine import HostArray, emulated_devices
from tests.gpu_emulated.memory.less_memory import GRAPHS, squeezed

pytestmark = pytest.mark.deep


@pytest.mark.parametrize(
    ("name", "method", "budget"),
    [
        ("lfr", "louvain", "18%"),
        ("lfr", "leiden", "13%"),
        ("mesh", "louvain", "18%"),
        ("mesh", "leiden", "21%"),
    ],
)
def test_labels_do_not_depend_on_offsets_of_32_bits_and_short_queues(
    monkeypatch, detected, name, method,
    budget,
):  # fmt: skip
    graph = GRAPHS[name]()
    options = squeezed(monkeypatch, method, budget)
    plan = detected(graph, options, devices=2).run.plan
    assert plan.in_pages
    assert plan.compact
    sizes = {array.name: array.size for array in plan.arrays}
    assert {array.itemsize for array in plan.arrays if array.name == "sizes"} == {1}
    assert "degrees.0" not in sizes
    assert sizes["queue"] == arguments.queue_entries(graph.n_vertices, 1) < graph.n_vertices
    assert any("offsets 4 instead of 8" in note for note in plan.notes)


def cycled(engine, graph, start, **given):
    """Return the labels of a cycle of levels from given communities."""
    run = LevelLoop(engine, engine.options, Stopwatch(ignore))
    run.best = RELEASED
    level = replace(engine.load(graph, **given), cycle=1, start=start)
    if isinstance(engine, GpuEngine):
        engine.from_input.first = level
    return engine.labels(run.cycle(level, 1))


def test_communities_to_start_in_may_hold_256_vertices_without_arcs(monkeypatch, emulated):
    """A byte would count such a community, of one vertex with arcs, as of that one alone."""
    mesh, pairs = GRAPHS["mesh"](), 40
    first, n = mesh.n_vertices, mesh.n_vertices + 2 * pairs
    u = np.repeat(np.arange(first, dtype=np.uint32), np.diff(mesh.offsets))
    once = u < mesh.targets
    ends = np.arange(first, n).reshape(-1, 2).T
    u, v = np.concatenate([u[once], ends[0]]), np.concatenate([mesh.targets[once], ends[1]])
    graph = Graph.from_edges(u, v, n_vertices=n + 256 * 2 * pairs)
    start = np.arange(graph.n_vertices, dtype=np.uint32)
    start[n:] = np.repeat(start[first:n], 256)
    options = squeezed(monkeypatch, "louvain", "18%")
    one = cycled(CpuEngine(options, ignore), graph, start.copy())
    with emulated_devices(monkeypatch, emulated, 2), GpuEngine(options, ignore) as engine:
        found = cycled(engine, graph, start.view(HostArray), starts_joined=True)
        assert engine.plan.compact
        sizes = {array.itemsize for array in engine.plan.arrays if array.name == "sizes"}
    assert sizes == {4}
    assert np.array_equal(found, one)


@pytest.mark.parametrize(
    ("method", "weights", "refined", "most"),
    [
        ("louvain", "", False, 1 << 24),
        ("leiden", "", True, 1 << 24),
        ("leiden", "", False, 1 << 24),
        ("leiden", "heavy", True, 1 << 24),
        ("leiden", "wide", True, 1 << 24),
        ("leiden", "", True, 1 << 8),
    ],
)
def test_labels_do_not_depend_on_coarse_targets_of_24_bits(
    monkeypatch, detected, method, weights,
    refined, most,
):  # fmt: skip
    """A random graph, whose levels keep nearly all arcs; some of them heavy, or their sums wide."""
    # Levels of a smaller graph without weights neither sum up to heavy arcs nor are split.
    size = 10 if most < 1 << 10 else 11 if weights else 12
    random, n, m = np.random.default_rng(1), 1 << size, 8 << size
    if refined:
        monkeypatch.setattr(rules, "MOST_KEPT", 1.0)  # each level
    given = None
    if weights:
        given = np.where(random.random(m) < 0.005, 1000, random.integers(1, 5, m))
    graph = Graph.from_edges(*random.integers(0, n, (2, m)), given, n_vertices=n)
    if weights == "wide":
        graph = replace(graph, weights=graph.weights.astype(np.int64))
    budget = "55%" if weights and method == "leiden" else "45%"
    options = squeezed(monkeypatch, method, budget)
    monkeypatch.setattr(kernel_arguments, "LEAST_ROWS", n)
    monkeypatch.setattr(kernel_arguments, "MOST_VERTICES", most)
    levels, grown = list[tuple[str, int, int, int]](), list[bool]()
    aggregate, grow = GpuEngine.aggregate, CoarseRows.grow
    split, real_split = list[str](), relabel.split

    def aggregating(run, level):
        coarse = aggregate(run, level)
        heavy = 0
        if coarse.weights.dtype == np.uint8:
            heavy = np.count_nonzero(coarse.weights.get() == packed.heavy_bits(1))
        levels.append((coarse.types, coarse.vertices, coarse.arcs, heavy))
        return coarse

    def growing(rows, capacity, used):
        grow(rows, capacity, used)
        grown.append(rows.targets24)

    def splitting(memory, level, labels):
        split.append(level.types)
        real_split(memory, level, labels)

    monkeypatch.setattr(relabel, "split", splitting)
    monkeypatch.setattr(GpuEngine, "aggregate", aggregating)
    monkeypatch.setattr(CoarseRows, "grow", growing)
    run = detected(graph, options, devices=2).run
    assert run.plan.in_pages
    short = [level for level in levels if level[0].startswith("Weights8Targets24, ")]
    assert all(vertices <= most for _, vertices, *_ in short)
    if most < n:
        assert len(short) < len(levels)
        return
    assert max(arcs for _, _, arcs, _ in short) > graph.n_arcs // 2
    assert any(grown)
    assert any(types == short[0][0] for types in split) == (method == "leiden")
    assert any(heavy for *_, heavy in short) or (method == "leiden" and not weights)


@pytest.mark.parametrize("budget", [None, "55%"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_labels_do_not_depend_on_coarse_weights_of_16_bits(
    monkeypatch, detected, method, wide,
    budget,
):  # fmt: skip
    """A random graph of which few arcs are heavy, in core and in pages, by sums of either type."""
    random, n, m = np.random.default_rng(1), 1 << 10, 1 << 13
    weights = np.where(random.random(m) < 0.03, 70_000, random.integers(1, 1000, m))
    graph = Graph.from_edges(*random.integers(0, n, (2, m)), weights, n_vertices=n)
    if wide:
        graph = replace(graph, weights=graph.weights.astype(np.int64))
    monkeypatch.setattr(rules, "MOST_KEPT", 1.0)  # each level
    options = squeezed(monkeypatch, method, budget)
    levels = list[tuple[str, int, int]]()
    aggregate = GpuEngine.aggregate

    def aggregating(run, level):
        coarse = aggregate(run, level)
        heavy = 0
        if coarse.weights.dtype == np.uint16:
            heavy = np.count_nonzero(coarse.weights.get() == packed.heavy_bits(2))
        levels.append((coarse.types, coarse.arcs, heavy))
        return coarse

    monkeypatch.setattr(GpuEngine, "aggregate", aggregating)
    run = detected(graph, options, devices=2).run
    planned = {array.name: array.itemsize for array in run.plan.arrays}
    assert run.plan.in_pages == (budget is not None)
    assert planned["weights.1"] == 2
    short = [level for level in levels if level[0] == f"Weights16, {'u64' if wide else 'u32'}"]
    assert max(arcs for _, arcs, _ in short) > graph.n_arcs // 2
    assert any(heavy for *_, heavy in short)


def test_a_queue_holds_what_any_sub_round_of_a_block_may_bring():
    """Sampled from what was counted for all blocks; a salt permutes the blocks."""
    random = np.random.default_rng(1)
    for block in random.integers(0, (1 << 32) // arguments.QUEUE_BLOCK, 40):
        x = np.arange(arguments.QUEUE_BLOCK, dtype=np.uint32) + np.uint32(
            block * arguments.QUEUE_BLOCK
        )
        assert rules.mix32(int(x[7])) == mixed(x)[7]
        assert np.bincount(mixed(x) & 7).max() <= arguments.MOST_QUEUED


def mixed(x):
    x = x ^ x >> 16
    x = x * np.uint32(0x7FEB352D)
    x = x ^ x >> 15
    x = x * np.uint32(0x846CA68B)
    return x ^ x >> 16


@pytest.mark.parametrize(
    ("method", "budget", "there"),
    [
        ("louvain", "25%", False),
        ("louvain", "22%", False),
        ("leiden", "25%", False),
        ("louvain", "22%", True),
    ],
)
def test_labels_do_not_depend_on_weights_of_16_bits(
    monkeypatch, detected, method, budget,
    there,
):  # fmt: skip
    """Also of a graph that is on a device: kernels sum its degrees from what was packed."""
    graph = lfr(
        2500, max_degree=300, min_community=50, max_community=300, weights="uniform", seed=3
    ).graph
    options = squeezed(monkeypatch, method, budget)
    run = detected(graph, options, devices=2, sent=there).run
    plan, shares = run.plan, run.in_place.nbytes
    assert plan.in_pages
    assert plan.compact
    widths = {array.name: array.itemsize for array in plan.arrays}
    assert (widths["weights.0"], widths["sizes"]) == (2, 4)
    assert "degrees.0" in widths
    assert shares


def test_arcs_that_leave_for_partial_sums_are_read_in_the_hosts_copy(monkeypatch):
    """A kernel of more blocks than those before takes room for more partial sums."""
    left, found = list[str](), list[tuple[int, int]]()
    blocks = {"number_labels": 2, "sum_arcs": 8}

    def empty(name, group, size, dtype):
        if size == 8:
            left.append(name)
        return np.zeros(size, dtype).view(HostArray)

    def unmapped_from(name):
        return (1 << 20, 1 << 30) if left and name == "targets.0" else (0, 0)

    mover = SimpleNamespace(unmapped_from=unmapped_from)
    memory = SimpleNamespace(mover=mover, empty=empty, free=lambda *names: None)

    def get(source, name, types, observer):
        def launch(*_):
            found.append((aggregation.value("near"), aggregation.value("far_targets")))

        wanted[launch] = blocks[name]
        return launch

    wanted = dict[Any, int]()
    kernels = SimpleNamespace(get=get, resident_blocks=lambda kernel, *_: wanted[kernel])
    level = GpuLevel(
        cycle=0, number=0, vertices=1 << 20, arcs=1 << 24, sums=np.uint32, offsets=None,
        targets=None, weights=None, loops=None, degrees=None,
    )  # fmt: skip
    with emulated_devices(monkeypatch, {}, 1), using(kernels):
        aggregation = Aggregation(memory, level)
        for name in blocks:
            aggregation.launch(name)
    assert left == ["aggregate_partials"]
    assert found == [(EVERY_ARC, 0), (1 << 18, 1 << 30)]
