"""The algorithms as they run on a device under policies and budgets, kernels emulated on the CPU.

Arrays come from a Placer without a device: names, sizes and types are those that programs declare.
"""

import ctypes
import itertools
from contextlib import nullcontext
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.algorithms import running
from louvain_um.algorithms.programs import BUILDERS, program_for
from louvain_um.errors import MemoryBudgetError
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.algorithms import products, structure, traversal
from louvain_um.gpu.runtime import structs
from louvain_um.placement.policy.policy import Policy
from louvain_um.placement.program import launches_for

pytestmark = pytest.mark.deep

GRAPHS = {
    "rmat": rmat(7, edge_factor=6, seed=5).graph,
    "weighted": lfr(200, weights="uniform", seed=5).graph,
    "wide": lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 3], [1 << 40, 3, 4, 9]),
    "loops": lu.Graph.from_edges([0, 0, 1, 4], [0, 1, 2, 4], [4, 2, 6, 1], n_vertices=6),
    "one": lu.Graph.from_edges([], [], n_vertices=1),
}

POLICIES = ("auto", "device", "zero_copy", "base", "adv1", "adv2")

CALLS = {
    "bfs": lambda graph, **how: lu.bfs(graph, 0, **how),
    "sssp": lambda graph, **how: lu.sssp(graph, 0, **how),
    "components": lambda graph, **how: [lu.connected_components(graph, **how)],
    "mst": lu.minimum_spanning_forest,
    "pagerank": lambda graph, **how: [lu.pagerank(graph, tolerance=1e-3, **how)],
    "triangles": lambda graph, **how: [lu.triangles(graph, **how)],
    "spmv": lambda graph, **how: [lu.spmv(graph, np.arange(1.0, graph.n_vertices + 1), **how)],
}


class EmulatedLaunch:
    library: ctypes.CDLL
    launched: ClassVar[list[tuple[str, bool]]] = []
    calls: ClassVar[list[str]] = []

    def __init__(self, source, name, types=""):
        self.name, self.kernel = name, getattr(self.library, f"call_{name}")
        self.bytes = 4 * types.startswith("u32") or 8 * types.startswith("u64")
        self.hosted = types.endswith("HostRows")
        self.launched.append((name, self.hosted))

    def __call__(self, view, *arguments):
        self.calls.append(self.name)
        how = 2, self.bytes, self.hosted
        self.kernel(*how, view.ctypes.data_as(ctypes.c_void_p), *map(passed, arguments))


def passed(argument):
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return np.ctypeslib.as_ctypes_type(argument.dtype)(argument.item())


class NoDevice:
    """Stands for a GPU; its Placer places nothing."""

    kind = "cuda"

    def current(self):
        return nullcontext()

    def __str__(self):
        return "cpu"


@pytest.fixture
def on_gpu(emulated, monkeypatch):
    monkeypatch.setattr(EmulatedLaunch, "library", emulated["algorithms"], raising=False)
    for module in (products, structure, traversal):
        monkeypatch.setattr(module, "Launch", EmulatedLaunch)
    monkeypatch.setattr(structs, "address", lambda array: 0 if array is None else array.ctypes.data)
    monkeypatch.setattr(running, "device_errors", lambda chosen: nullcontext())
    monkeypatch.setattr(running, "pick", lambda device: NoDevice() if device == "cuda" else CPU)


CPU = SimpleNamespace(kind="cpu")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_policy_and_budget(on_gpu, name, graph):
    expected = CALLS[name](GRAPHS[graph], device="cpu")
    for memory, budget in itertools.product(POLICIES, ("100%", "20kB")):
        how = {"device": "cuda", "memory": memory, "device_budget": budget}
        try:
            found = CALLS[name](GRAPHS[graph], **how)
        except MemoryBudgetError:
            assert (memory, budget) != ("auto", "20kB")
            assert budget == "20kB"
            continue
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", CALLS)
def test_what_must_be_on_the_device_exceeds_the_budget(on_gpu, name):
    with pytest.raises(MemoryBudgetError, match="needs that much of the device") as refused:
        CALLS[name](GRAPHS["rmat"], device="cuda", device_budget="1kB")
    assert refused.value.needed == 16_384
    assert "\n" not in str(refused.value)


def test_phases_and_arrays_are_announced(on_gpu):
    events = []
    graph = GRAPHS["weighted"]
    lu.pagerank(graph, device="cuda", device_budget="90%", observer=events.append)
    phases = [event.phase for event in events if event.kind == "start"]
    assert phases == ["load", "weigh", "iterate", "fetch"]
    named = {event.name for event in events if event.kind == "array"}
    assert named == {
        "offsets", "targets", "weights", "ranks", "row_weights", "shares", "next_shares", "control",
    }  # fmt: skip
    assert named == {event.name for event in events if event.kind == "freed"}


@pytest.mark.parametrize(("memory", "hosted"), [("zero_copy", True), ("device", False)])
def test_rows_in_host_memory_are_read_by_pages(on_gpu, memory, hosted):
    kernels = {"bfs": {"bfs"}, "pagerank": {"weigh_rows", "iterate"}, "spmv": {"multiply"}}
    for name, expected in kernels.items():
        EmulatedLaunch.launched.clear()
        CALLS[name](GRAPHS["rmat"], device="cuda", memory=memory)
        assert set(EmulatedLaunch.launched) == {(kernel, hosted) for kernel in expected}


def test_rows_that_come_on_demand_are_taken_by_pages_once(on_gpu):
    policy = Policy(name="three", placements={"graph": "managed"}, pages_per_warp=3)
    for memory in ("base", policy):
        EmulatedLaunch.launched.clear()
        CALLS["pagerank"](GRAPHS["rmat"], device="cuda", memory=memory)
        assert EmulatedLaunch.launched == [
            ("weigh_rows", True), ("iterate", True), ("iterate", False),
        ]  # fmt: skip
    program = program_for("bfs", GRAPHS["rmat"])
    assert lu.plan(program, memory=policy, machine="h200").pages_per_warp("targets") == 3


SLICED = {"bfs": "pull_level", "pagerank": "iterate", "spmv": "multiply"}


LARGER = {
    "rmat": rmat(9, edge_factor=12, seed=5).graph,
    "weighted": lfr(600, weights="uniform", seed=5).graph,
    "loops": lu.Graph.from_edges(np.arange(3000), np.arange(3000) // 2, np.arange(3000) + 1),
}


@pytest.mark.parametrize("graph", LARGER)
@pytest.mark.parametrize("name", SLICED)
def test_what_exceeds_the_device_runs_in_several_launches(on_gpu, name, graph):
    graph = LARGER[graph]
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
    EmulatedLaunch.calls.clear()
    how = {"memory": "device", "device_budget": budget}
    found = CALLS[name](graph, device="cuda", **how)
    for ours, theirs in zip(found, CALLS[name](graph, device="cpu"), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert EmulatedLaunch.calls.count(SLICED[name]) % len(parts) == 0


def test_a_row_that_exceeds_a_slice_is_refused(on_gpu):
    star = lu.Graph.from_edges(np.zeros(5000, int), np.arange(5000) + 1)
    program = program_for("spmv", star)
    budget = program.peak_bytes - 30_000
    with pytest.raises(MemoryBudgetError, match="rows from 0 on are that long; raise the budget"):
        CALLS["spmv"](star, device="cuda", memory="device", device_budget=budget)


def test_every_algorithm_is_a_program():
    assert set(CALLS) == set(BUILDERS)
