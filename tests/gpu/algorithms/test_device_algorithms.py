"""Algorithms on a device, or on emulated kernels: results, policies, and operators of users."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import louvain_um as lu
from louvain_um import Graph
from louvain_um.algorithms.programs import BUILDERS, program_for
from louvain_um.errors import GraphError, MemoryBudgetError
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.gpu.algorithms import launches as kernels
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.policy.policy import Policy
from louvain_um.placement.program import launches_for
from louvain_um.placement.program.program_plan import ProgramPlan
from tests.gpu.algorithms.emulated_algorithms import Launches, Rows, emulate
from tests.graphs import graphs

LARGE: dict[str, Callable[[], Graph]] = {
    "rmat": lambda: rmat(16, edge_factor=16, seed=5).graph,
    "weighted": lambda: rmat(16, edge_factor=16, weights="uniform", seed=5).graph,
    "stencil": lambda: stencil((50, 50, 50)).graph,
    "sparse": lambda: rmat(17, edge_factor=1, seed=5).graph,
    "lfr": lambda: lfr(50_000, weights="uniform", seed=5).graph,
    "path": lambda: Graph.from_edges(np.arange(3000), np.arange(3000) + 1, np.arange(3000) % 7 + 1),
    "star": lambda: Graph.from_edges(np.zeros(500_000, int), np.arange(500_000) + 1),
}
SMALL = {
    "rmat": lambda: rmat(9, edge_factor=8, seed=5).graph,
    "weighted": lambda: rmat(9, edge_factor=8, weights="uniform", seed=5).graph,
    "stencil": lambda: stencil((7, 8, 6)).graph,
    "sparse": lambda: rmat(10, edge_factor=1, seed=5).graph,
    "lfr": lambda: lfr(200, weights="uniform", seed=5).graph,
    "middle": lambda: Graph.from_edges(*np.triu_indices(28, 1)),
    "path": lambda: Graph.from_edges(np.arange(60), np.arange(60) + 1, np.arange(60) % 7 + 1),
    "star": lambda: Graph.from_edges(np.zeros(9000, int), np.arange(9000) + 1),
    "wide": lambda: Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 3], [1 << 40, 3, 4, 9]),
    "loops": lambda: Graph.from_edges([0, 0, 1, 4], [0, 1, 2, 4], [4, 2, 6, 1], n_vertices=6),
    "one": lambda: Graph.from_edges([], [], n_vertices=1),
}


@dataclass(frozen=True)
class Device:
    """What algorithms run on, and graphs for it."""

    graphs: dict[str, Callable[[], Graph]]
    there: Callable[[Graph], Any]
    """Brings a graph's rows to the device."""
    examples: int
    budgets: tuple[Any, ...]
    launches: Launches | None = None


@pytest.fixture(
    params=[
        pytest.param("emulated", marks=pytest.mark.deep),
        pytest.param("gpu", marks=pytest.mark.gpu),
    ]
)
def device(request, monkeypatch):
    if request.param == "gpu":
        request.getfixturevalue("gpu")
        return Device(LARGE, DeviceGraph.from_host, 60, (None, "100%", "70%", "40%", "20%"))
    launches = emulate(monkeypatch, request.getfixturevalue("emulated")["algorithms"])
    return Device(SMALL, Rows, 25, ("100%", "20kB"), launches)


CALLS: dict[str, Any] = {
    "bfs": lu.bfs,
    "sssp": lu.sssp,
    "components": lambda graph, source, **how: [lu.connected_components(graph, **how)],
    "mst": lambda graph, source, **how: lu.minimum_spanning_forest(graph, **how),
    "pagerank": lambda graph, source, **how: [lu.pagerank(graph, **how)],
    "triangles": lambda graph, source, **how: [lu.triangles(graph, **how)],
    "spmv": lambda graph, source, **how: [lu.spmv(graph, vector(graph.n_vertices), **how)],
}


def test_every_algorithm_is_called():
    assert set(CALLS) == set(BUILDERS)


def vector(n):
    return np.random.default_rng(n).standard_normal(n)


def answers(graph, source, **options):
    searches = () if graph.n_vertices else ("bfs", "sssp")
    return {
        name: call(graph, source, **options) for name, call in CALLS.items() if name not in searches
    }


def assert_same(found, expected, name):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype, name
        assert ours.tobytes() == theirs.tobytes(), name


def check(device, graph, source=0):
    expected = answers(graph, source, device="cpu")
    for form in (graph, device.there(graph)):
        found = answers(form, source, device="cuda")
        for name, arrays in expected.items():
            assert_same(found[name], arrays, name)


@pytest.mark.gpu
def test_repeated_calls_leave_no_objects(gpu):
    graph = rmat(8, seed=1).graph
    for name, call in CALLS.items():
        counts = []
        for _ in range(3):  # the first ten may fill caches
            for _ in range(10):
                call(graph, 0, device="cuda")
            gc.collect()
            counts.append(len(gc.get_objects()))
        assert counts[2] - counts[1] < 10, name


def test_small_graphs(device):
    @settings(max_examples=device.examples, database=None)
    @given(graphs())
    def checked(graph):
        check(device, graph)

    checked()


@pytest.mark.parametrize("name", SMALL)
def test_graphs_of_every_kind(device, name):
    graph = device.graphs.get(name, SMALL[name])()
    for source in {int(np.argmax(np.diff(graph.offsets))), graph.n_vertices - 1}:
        check(device, graph, source)


@pytest.mark.parametrize("width", [0, 1, 1 << 40])
def test_paths_do_not_depend_on_the_limit_between_near_and_far(device, monkeypatch, width):
    monkeypatch.setattr(kernels, "WIDTH", width)
    for name in ("weighted", "path"):
        graph = device.graphs[name]()
        assert_same(lu.sssp(graph, 0, device="cuda"), lu.sssp(graph, 0, device="cpu"), name)


@pytest.mark.parametrize("pages", [0, 1, 3])
def test_rows_in_host_memory_are_read_by_pages(device, monkeypatch, pages):
    monkeypatch.setattr(ProgramPlan, "pages_per_warp", lambda plan, *names: pages)
    kernels = {"bfs": {"bfs"}, "pagerank": {"weigh_rows", "iterate"}, "spmv": {"multiply"}}
    for kind in ("rmat", "weighted"):
        graph = device.graphs[kind]()
        for name, expected in kernels.items():
            found = CALLS[name](graph, 0, device="cuda", memory="zero_copy")
            assert_same(found, CALLS[name](graph, 0, device="cpu"), name)
            if device.launches:
                assert {(kernel, pages > 0) for kernel in expected} <= set(device.launches.launched)


def test_rows_that_come_on_demand_are_taken_by_pages_once(device):
    graph = device.graphs["rmat"]()
    policy = Policy(name="three", placements={"graph": "managed"}, pages_per_warp=3)
    for memory in ("base", policy):
        found = CALLS["pagerank"](graph, 0, device="cuda", memory=memory)
        assert_same(found, CALLS["pagerank"](graph, 0, device="cpu"), "pagerank")
        if device.launches:
            assert list(dict.fromkeys(device.launches.launched)) == [
                ("weigh_rows", True), ("iterate", True), ("iterate", False),
            ]  # fmt: skip
            device.launches.launched.clear()
    program = program_for("bfs", graph)
    assert lu.plan(program, memory=policy, machine="h200").pages_per_warp("targets") == 3


SLICED = {"bfs": "pull_level", "pagerank": "iterate", "spmv": "multiply"}


CUT = {
    "rmat": rmat(9, edge_factor=12, seed=5).graph,
    "weighted": lfr(600, weights="uniform", seed=5).graph,
    "loops": lu.Graph.from_edges(np.arange(3000), np.arange(3000) // 2, np.arange(3000) + 1),
}


@pytest.mark.parametrize("graph", CUT)
@pytest.mark.parametrize("name", SLICED)
def test_what_exceeds_the_device_runs_in_several_launches(device, name, graph):
    graph = CUT[graph]
    program = program_for(name, graph)
    cut = sum(array.held for array in program.arrays if array.by_rows)
    budget = program.peak_bytes - cut * 5 // 8
    plan = lu.plan(program, memory="device", device_budget=budget, machine="h200")
    assert plan.launches == 3
    assert plan.launches_before in (2, 3)
    parts = launches_for(plan, graph.n_vertices, offsets=graph.offsets)
    assert len(parts) in (3, 4, 5, 6)
    assert parts[-1].end == graph.n_vertices
    assert plan.seconds > lu.plan(program, memory="device", machine="h200").seconds
    how = {"memory": "device", "device_budget": budget}
    found = CALLS[name](graph, 0, device="cuda", **how)
    assert_same(found, CALLS[name](graph, 0, device="cpu"), name)
    if device.launches:
        calls = [kernel for kernel, _ in device.launches.launched]
        assert calls.count(SLICED[name]) % len(parts) == 0


def test_a_session_holds_the_launches_of_copies_and_of_the_plan(gpu):
    graph = LARGE["weighted"]()
    program = program_for("pagerank", graph)
    cut = sum(array.held for array in program.arrays if array.by_rows)
    budget = program.peak_bytes - cut * 5 // 8
    for memory, after in (("device", 3), ("auto", 1)):
        session = lu.profile(
            graph, program="pagerank", device="cuda", memory=memory, device_budget=budget
        )
        assert session.metadata["launches"] == {"before": 3, "after": after}


def test_a_row_that_exceeds_a_slice_is_refused(device):
    star = lu.Graph.from_edges(np.zeros(5000, int), np.arange(5000) + 1)
    program = program_for("spmv", star)
    budget = program.peak_bytes - 30_000
    with pytest.raises(MemoryBudgetError, match="rows from 0 on are that long; raise the budget"):
        CALLS["spmv"](star, 0, device="cuda", memory="device", device_budget=budget)


def test_phases_and_arrays_are_announced(device):
    events = list[Any]()
    graph = device.graphs["weighted"]()
    lu.pagerank(graph, device="cuda", device_budget="90%", observer=events.append)
    phases = [event.phase for event in events if event.kind == "start" and event.phase != "compile"]
    assert phases == ["load", "weigh", "iterate", "fetch"]
    named = {event.name for event in events if event.kind == "array"}
    assert named == {
        "offsets", "targets", "weights", "ranks", "row_weights", "shares", "next_shares", "control",
    }  # fmt: skip
    assert named == {event.name for event in events if event.kind == "freed"}


def test_a_device_graph_is_copied_where_a_policy_says(gpu):
    graph = LARGE["weighted"]()
    there = DeviceGraph.from_host(graph)
    for memory in ("zero_copy", "base"):
        found = lu.pagerank(there, memory=memory)
        assert found.tobytes() == lu.pagerank(graph, device="cpu").tobytes()


@pytest.mark.parametrize("name", CALLS)
def test_a_budget_below_what_must_be_on_the_device(device, name):
    graph = device.graphs["sparse"]()
    with pytest.raises(MemoryBudgetError, match="needs that much of the device") as refused:
        CALLS[name](graph, 0, device="cuda", device_budget="1kB")
    assert refused.value.needed == 16_384
    assert "\n" not in str(refused.value)
    assert not guard.ranges


def test_a_device_graph_has_numbers_for_names(gpu):
    graph = DeviceGraph.from_host(Graph.from_edges([0, 1], [1, 2]))
    assert lu.bfs(graph, 2).distances.tolist() == [2, 1, 0]
    with pytest.raises(GraphError, match="3 is not a vertex"):
        lu.bfs(graph, 3)


def test_a_changing_graph(gpu):
    graph = lu.DynamicGraph(5)
    graph.apply(insert=([0, 1], [1, 2]))
    assert lu.bfs(graph, 0, device="cuda").distances.tolist() == [0, 1, 2, -1, -1]


MIXED = Policy(
    name="mixed",
    roles={"targets": "split(0.5)", "offsets": "read_mostly", "shares": "pinned"},
    groups={"graph": "prefetched", "result": "host_mapped"},
    others="managed",
)
POLICIES: tuple[Any, ...] = ("auto", "device", "zero_copy", "base", "adv1", "adv2", MIXED)


@pytest.mark.parametrize("memory", POLICIES, ids=str)
def test_results_do_not_depend_on_policy_and_budget(device, memory):
    for turn, budget in enumerate(device.budgets, start=POLICIES.index(memory)):
        for kind in ("weighted",) if turn % 2 else ("rmat", "path"):
            graph, source, expected = on_cpu(device.graphs[kind])
            for name, call in CALLS.items():
                how = {"device": "cuda", "memory": memory, "device_budget": budget}
                try:
                    found = call(graph, source, **how)
                except MemoryBudgetError:
                    # The control block alone exceeds a fifth of a short path's arrays.
                    assert memory != "auto" or kind == "path"
                    assert budget not in (None, "100%")
                    continue
                assert_same(found, expected[name], name)
    gc.collect()
    assert not guard.ranges


@cache
def on_cpu(made):
    """Return a graph, a source, and the CPU's answers."""
    graph = made()
    source = int(np.argmax(np.diff(graph.offsets)))
    return graph, source, answers(graph, source, device="cpu")


GRAPHS = {
    "plain": rmat(12, edge_factor=8, seed=3).graph,
    "weighted": lfr(3000, weights="uniform", seed=3).graph,
}


def test_algorithms_read_a_changing_graph_where_it_lies(gpu):
    graph = lu.DynamicGraph(GRAPHS["weighted"], store="rows", device="cuda")
    graph.apply(insert=([0, 1, 2], [9, 8, 7]))
    still = graph.host_snapshot()
    for call in (lu.pagerank, lu.triangles, lu.connected_components):
        assert call(graph, device="cuda").tobytes() == call(still, device="cpu").tobytes()
