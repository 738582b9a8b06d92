"""How the engine takes levels on the way to the CPU's labels, without a device."""

import sys
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from louvain_um.analysis import significance
from louvain_um.api import graph_on, run
from louvain_um.core import rules
from louvain_um.core.hierarchy import LevelLoop, Stopwatch, detect
from louvain_um.cpu.dynamic.inherit import release
from louvain_um.cpu.engine import CpuEngine
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking import host_steps
from louvain_um.dynamic.tracking.tracker import Tracker
from louvain_um.events import ignore
from louvain_um.generators import planted, rmat, stencil
from louvain_um.generators.same_degrees import RandomGraphs
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.aggregate import Begun
from louvain_um.gpu.building.build import Builder
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.generate.generate import DeviceRandomGraphs
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.memory import graph_stats, shape
from louvain_um.gpu.move import arguments
from louvain_um.gpu.relabel import relabel
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.policy.find import find_policy
from tests.distributed.runs import assert_equal
from tests.dynamic.random_batches import merging
from tests.gpu_emulated.emulated_device import Emulated, on_device
from tests.gpu_emulated.emulated_engine import HostArray, emulated_devices
from tests.gpu_emulated.memory.less_memory import GRAPHS, as_if_larger, set_limits, squeezed

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_levels_of_few_arcs_take_one_launch_however_many_vertices_have_none(
    monkeypatch, detected, method
):
    graph = rmat(12, edge_factor=4, seed=3).graph
    small = set_limits(monkeypatch, small=1 << 10)
    isolated = np.count_nonzero(np.diff(graph.offsets) == 0)
    assert isolated > small.small
    options = Options(method=method, seed=3, device="cuda:0")
    there = detected(graph, options)
    assert not there.run.memory.overflowed
    few = [level.arcs <= small.small < level.vertices for level in there.found.levels]
    assert any(few)
    assert there.launched.count("aggregate_small") >= sum(few)
    assert there.launched.count("number_labels") >= len(few) - sum(few) > 0


def test_a_level_that_is_made_from_the_input_is_not_launched_early(monkeypatch, detected):
    graph = rmat(12, edge_factor=4, seed=3).graph
    small = set_limits(monkeypatch, small=1 << 10)
    monkeypatch.setattr(shape.Shape, "reaggregates", True)
    for name in ("REAGGREGATE_ABOVE", "REAGGREGATE_LATER"):
        monkeypatch.setattr(reaggregate, name, 0)
    made, real = list[int](), reaggregate.from_input

    def watching(*given):
        made.append(given[2].arcs)
        return real(*given)

    monkeypatch.setattr(reaggregate, "from_input", watching)
    options = Options(method="leiden", seed=3, device="cuda:0")
    detected(graph, options)
    assert min(made) <= small.small


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_small_levels_are_launched_without_waiting_for_what_moved(detected, method):
    graph = rmat(8, seed=3).graph
    options = Options(method=method, seed=3, device="cuda:0")
    there = detected(graph, options)
    assert set(there.run.memory.live) == {"offsets.0", "targets.0", "degrees.0", "labels"}
    steps = ["move", "aggregate_small"]
    if method == "leiden":
        steps = ["move", "refine", "aggregate_small", "relabel_communities"]
    begins = [at for at, kernel in enumerate(there.launched) if kernel == "move"]
    # The last level of a cycle, too, of which nothing comes.
    assert len(begins) > len(there.found.levels)
    assert all(there.launched[at : at + len(steps)] == steps for at in begins)


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_seeds_follow_each_other_on_one_input(monkeypatch, emulated, method, sent):
    ends = np.random.default_rng(2).integers(0, 60, (2, 300))
    weighted = Graph.from_edges(*ends, ends.sum(axis=0) + 1, duplicates="sum")
    options = Options(method=method, device="cuda:0")
    for graph in (rmat(7, edge_factor=4, seed=3).graph, weighted, Graph.from_edges([0], [1])):
        with (
            emulated_devices(monkeypatch, emulated, 1) as kernels,
            GpuEngine(options, ignore) as run,
        ):
            given = DeviceGraph.from_host(graph) if sent else graph
            for seed in range(3):
                another = replace(options, seed=seed)
                assert not seed or run.takes(another)
                found = detect(run, given, another, ignore)
                assert_equal(found, detect(CpuEngine(another, ignore), graph, another, ignore))
                assert found.provenance["seed"] == seed
            assert not run.takes(replace(options, resolution=2.0))
            assert not run.takes(replace(options, initial=found.labels))
        assert [kernel for _, kernel in kernels.launched].count("sum_level") == 1


def test_an_input_of_which_arcs_have_left_the_device_is_loaded_again(monkeypatch, emulated):
    as_if_larger(monkeypatch)
    graph = GRAPHS["lfr"]()
    options = Options(device="cuda:0", device_budget="50%")
    with emulated_devices(monkeypatch, emulated, 1), GpuEngine(options, ignore) as run:
        detect(run, graph, options, ignore)
        assert not run.takes(replace(options, seed=1))


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_may_collect_what_they_add(monkeypatch, detected, method, weighted):
    flags = arguments.COLLECT_SIZES | arguments.COLLECT_TOTALS
    monkeypatch.setattr(arguments, "collected", lambda _: flags)
    rng = np.random.default_rng(2)
    u, v = rng.integers(0, 400, 1800), (400 * rng.random(1800) ** 12).astype(np.int64)
    weights = rng.integers(1, 2**34, 1800) if weighted else None
    graph = Graph.from_edges(u, v, weights, duplicates="sum")
    for options in ({}, {"objective": "cpm", "resolution": 1e-3}):
        detected(graph, Options(method=method, seed=3, device="cuda:0", **options))


@pytest.mark.parametrize("early", [1 << 22, 600])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_larger_levels_are_begun_without_waiting_for_what_moved(
    monkeypatch, emulated, method, early
):
    """Leiden reads nothing for nothing that takes long: the input, or levels of many arcs."""
    graph = stencil((50, 50)).graph
    options = Options(method=method, seed=3, device="cuda:0")
    one = detect(CpuEngine(options, ignore), graph, options, ignore)
    set_limits(monkeypatch, small=1, early=early)
    begun, wanted, real = list[list[str]](), list[bool](), GpuEngine.use_move_time

    def going(run, level):
        before = len(kernels.launched)
        real(run, level)
        begun.append([kernel for _, kernel in kernels.launched[before:]])
        certain, few = level.number == level.cycle == 0, max(level.vertices, level.arcs) <= early
        wanted.append(method == "louvain" or certain or (level.number > 0 and few))

    monkeypatch.setattr(GpuEngine, "use_move_time", going)
    with emulated_devices(monkeypatch, emulated, 1) as kernels, GpuEngine(options, ignore) as run:
        found = detect(run, graph, options, ignore)
        assert set(run.memory.live) == {"offsets.0", "targets.0", "degrees.0", "labels"}
        assert not run.memory.overflowed
    assert np.array_equal(found.labels, one.labels)
    steps = ["refine", "number_labels"] if method == "leiden" else ["number_labels"]
    assert begun == [steps if each else [] for each in wanted]
    assert wanted.count(True) > 2
    assert (False in wanted) == (method == "leiden")
    launched = [kernel for _, kernel in kernels.launched]
    # The last level of a cycle is begun, too, of which nothing comes.
    assert launched.count("number_labels") > launched.count("group_members") == len(found.levels)


def renewed(engine, graph, start, **awake):
    """Return the labels and the levels of a renewal."""
    run = LevelLoop(engine, engine.options, Stopwatch(ignore), renews=True)
    run.best = host_steps.RELEASED
    level = replace(engine.load(graph), cycle=1, start=start, **awake)
    if isinstance(engine, GpuEngine):
        engine.from_input.first = level
    path = run.cycle(level, 1)
    return engine.labels(path), [replace(level, seconds=0.0) for level in run.levels]


def test_a_renewal_takes_components_of_a_level_that_keeps_most_arcs(monkeypatch, emulated):
    monkeypatch.setattr(rules, "MOST_KEPT", 0.5)
    monkeypatch.setattr(rules, "RENEWAL_FACTOR", 1)
    rng = np.random.default_rng(5)
    graph = Graph.from_edges(*rng.integers(0, 600, (2, 6000)), n_vertices=620)
    options = Options(method="leiden", seed=2, device="cuda:0")
    start = detect(CpuEngine(options, ignore), graph, options, ignore).labels
    awake = rng.random(graph.n_vertices) < 0.4
    start = host_steps.named(start)
    release(start, awake, np.empty(len(start), np.uint32))

    one, levels = renewed(CpuEngine(options, ignore), graph, start.copy(), active=awake)
    with (
        emulated_devices(monkeypatch, emulated, 1) as kernels,
        GpuEngine(options, ignore) as engine_there,
    ):
        flags = awake.astype(np.uint8).view(HostArray)
        found, reached = renewed(engine_there, graph, start.view(HostArray), awake=flags)
    assert np.array_equal(found, one)
    assert reached == levels
    assert levels[1].arcs > rules.MOST_KEPT * graph.n_arcs
    launched = [kernel for _, kernel in kernels.launched]
    assert launched.count("split_communities") == 2
    assert launched.count("refine") == launched.count("move") - 1


@pytest.mark.parametrize("small", [1 << 19, 1])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_a_renewal_goes_on_although_no_single_vertex_moves(monkeypatch, emulated, method, small):
    set_limits(monkeypatch, small=small)
    # Four cliques in halves, and no vertex is to move.
    ends = [(u + a, v + a) for a in range(0, 40, 10) for u in range(10) for v in range(u)]
    graph = Graph.from_edges(*np.array([*ends, (0, 10), (20, 30)]).T)
    start, awake = np.arange(40, dtype=np.uint32) // 5 * 5, np.zeros(40, np.bool_)
    options = Options(method=method, device="cuda:0")
    one, levels = renewed(CpuEngine(options, ignore), graph, start.copy(), active=awake)
    with emulated_devices(monkeypatch, emulated, 1), GpuEngine(options, ignore) as run:
        flags = awake.astype(np.uint8).view(HostArray)
        found, reached = renewed(run, graph, start.view(HostArray), awake=flags)
        assert set(run.memory.live) == {"offsets.0", "targets.0", "degrees.0", "labels"}
    assert np.array_equal(found, one)
    assert reached == levels
    assert np.array_equal(one, np.arange(40) // 10)


@pytest.mark.parametrize(
    ("store", "weights", "small"),
    [("bump", None, 1), ("pages:page=32", 9, 1 << 19), ("vine:block=3", 1 << 34, 1),
     ("bal:block=2", None, 1 << 19), ("bal:block=3", 9, 1), ("pages:layout=soa", 9, 1),
     ("pages:layout=aos:edges=semantic:page=256", 1 << 34, 1 << 19)],
)  # fmt: skip
def test_level_0_of_a_changing_graph_is_read_in_its_blocks(
    monkeypatch, emulated, store, weights, small
):
    set_limits(monkeypatch, small=small)
    rng, n = np.random.default_rng(2), 1800
    u, v = rng.integers(0, n, 9000), (n * rng.random(9000) ** 4).astype(np.int64)
    v[:1500], u[:1500] = 7, np.arange(1500)  # more arcs than a block's table takes, and a loop
    g = DynamicGraph(n, weights is not None, store=store, names=False)
    if store.startswith("bal"):
        g._store.device = SimpleNamespace(xp=np)
    else:
        on_device(g, Emulated(emulated, 2), store)
    g.apply(insert=(u, v) if weights is None else (u, v, rng.integers(1, weights, len(u))))
    g.apply(delete=(u[::5], v[::5]))
    monkeypatch.setattr(type(g._store), "compressed", lambda _: pytest.fail("rows are copied"))
    options = Options(device="cuda:0", memory=find_policy("auto"))
    for budget in (None, "8GiB"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DynamicGraph, "snapshot", lambda _: "copy")
            rows, _ = graph_on("cuda", g, replace(options, device_budget=budget))
        assert (rows == "copy") == (budget is not None)
        if budget is None:
            names = ("begins", "ends", "targets", "weights", "loops")
            held = {name: getattr(rows, name) for name in names}
            there = {k: None if a is None else np.array(a).view(HostArray) for k, a in held.items()}
            there = replace(rows, **there)
    monkeypatch.undo()
    set_limits(monkeypatch, small=small)
    with emulated_devices(monkeypatch, emulated, 1) as kernels, GpuEngine(options, ignore) as run:
        for seed in range(2):
            another = replace(options, seed=seed)
            assert not seed or run.takes(another)
            one = detect(CpuEngine(another, ignore), g.host_snapshot(), another, ignore)
            assert_equal(detect(run, there, another, ignore), one)
    assert [kernel for _, kernel in kernels.launched].count("list_blocks") == 1


@pytest.mark.parametrize("small", [1 << 19, 256, 1])
def test_renewals_that_join_whole_communities_find_those_of_the_cpu(monkeypatch, emulated, small):
    """Also where the next level has been made of parts before it was known that they stay."""
    set_limits(monkeypatch, small=small)
    starts = list[tuple[Graph, Any, Any]]()
    real = host_steps.run_cycle

    def noting(view, start, marks, *given, **renews):
        starts.append((dynamic.snapshot(), start.copy(), marks.copy()))
        return real(view, start, marks, *given, **renews)

    monkeypatch.setattr(host_steps, "run_cycle", noting)
    first, *batches = merging(seed=1)
    dynamic = DynamicGraph(120)
    dynamic.apply(**first)
    tracker = Tracker(dynamic, audit=None)
    for batch in batches:
        tracker.update(dynamic.apply(**batch))
    assert len(starts) > 2
    options = replace(tracker.options.run, device="cuda:0")
    joined, discarded, most = list[int](), list[Begun](), 0
    components, discard = relabel.components, Begun.discard

    def joining(memory, level):
        joined.append(level.arcs)
        components(memory, level)

    def discarding(early):
        discarded.append(early)
        discard(early)

    monkeypatch.setattr(relabel, "components", joining)
    monkeypatch.setattr(Begun, "discard", discarding)
    for graph, start, awake in starts:
        discarded.clear()
        one, levels = renewed(CpuEngine(options, ignore), graph, start.copy(), active=awake)
        with emulated_devices(monkeypatch, emulated, 1), GpuEngine(options, ignore) as run:
            flags = awake.astype(np.uint8).view(HostArray)
            found, reached = renewed(run, graph, start.view(HostArray), awake=flags)
            of_input = ("offsets.0", "targets.0", "loops.0", "degrees.0")
            assert set(run.memory.live) == {*of_input, "labels"}
        assert np.array_equal(found, one)
        assert reached == levels
        most = max(most, len(discarded))
    assert joined
    assert most > 1, "the last level of a renewal is discarded, too"


@pytest.mark.parametrize(
    "graph",
    [
        rmat(12, seed=3).graph,
        stencil((12, 12, 12)).graph,
        Graph.from_edges([0], [1], n_vertices=4),
        Graph.from_edges([], [], n_vertices=4),
    ],
    ids=["rmat", "stencil", "edge", "nothing"],
)
def test_a_graph_on_a_device_is_surveyed_as_one_on_the_host(monkeypatch, emulated, graph):
    def there(values):
        return np.array(values).view(HostArray)

    with emulated_devices(monkeypatch, emulated, 1):
        cupy = sys.modules["cupy"]
        cupy.zeros, cupy.asarray = lambda *shape: there(np.zeros(*shape)), there
        cupy.empty = cupy.zeros
        for module in (relabel, graph_stats):
            monkeypatch.setattr(module, "SAMPLED_FROM", 1)
        found = relabel.survey(there(graph.offsets), there(graph.targets))
    assert found == graph_stats.graph_stats(graph)
    assert (found.structure is None) == (graph.n_arcs == 0)


@pytest.mark.parametrize("budget", [None, "22%"])
def test_a_graph_that_was_built_on_a_device_stays_there_if_it_can(monkeypatch, detected, budget):
    options = squeezed(monkeypatch, "louvain", budget)
    found = detected(GRAPHS["lfr"](), options, devices=2, sent="built").found
    assert (found.graph.there is None) == (budget is not None)
    assert ("targets" in vars(found.graph)) == (budget is not None)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_random_graphs_made_and_detected_there_give_the_significance_of_the_cpu(
    monkeypatch, emulated, method
):
    graph = planted(60, blocks=4, degree_in=6, degree_out=2, weights="uniform").graph
    found = run(graph, Options(method=method, device="cpu"))
    here = significance.significance(found, graphs=3, device="cpu")

    @contextmanager
    def made_there(graph, options):
        random = RandomGraphs.like(graph)
        device = DeviceRandomGraphs(random, Builder(Emulated(emulated, 2)), np.asarray)
        yield device, replace(options, device="cuda:0")

    def run_there(made, options):
        arrays = {name: getattr(made, name) for name in ("offsets", "targets", "weights", "loops")}
        arrays = {name: None if a is None else a.view(HostArray) for name, a in arrays.items()}
        with emulated_devices(monkeypatch, emulated, 1), GpuEngine(options, ignore) as engine:
            return detect(engine, replace(made, **arrays), options, ignore)

    monkeypatch.setattr(significance, "_random_graphs", made_there)
    monkeypatch.setattr(significance, "run", run_there)
    assert significance.significance(found, graphs=3).summary() == here.summary()
