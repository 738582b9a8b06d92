"""The CUDA engine returns the CPU engine's labels, bit for bit."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louvain_um import Graph, api, read_graph
from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError
from louvain_um.generators import lfr, ring_of_cliques, rmat
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime import launch
from louvain_um.gpu.runtime.device import Choice
from louvain_um.results.communities import Communities
from tests.graphs import graphs

pytestmark = pytest.mark.gpu

METHODS = ("louvain", "leiden")


def detect(graph: Graph, method: str, device: str, **options: object) -> Communities:
    return getattr(api, method)(graph, device=device, **options)


def same(graph: Graph, method: str, **options: object) -> None:
    cpu = detect(graph, method, "cpu", **options)
    gpu = detect(graph, method, "cuda", **options)
    assert np.array_equal(cpu.labels, gpu.labels)
    assert cpu.modularity == gpu.modularity
    assert [
        (x.cycle, x.vertices, x.arcs, x.communities, x.modularity, x.iterations, x.arcs_visited)
        for x in cpu.levels
    ] == [
        (x.cycle, x.vertices, x.arcs, x.communities, x.modularity, x.iterations, x.arcs_visited)
        for x in gpu.levels
    ]
    for level in range(len(cpu.levels)):
        assert np.array_equal(cpu.at_level(level), gpu.at_level(level))


@pytest.mark.parametrize("method", METHODS)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1), resolution=st.sampled_from([0.3, 1.0, 2.0]))
def test_labels_of_small_graphs(
    gpu: Choice, method: str, graph: Graph, seed: int, resolution: float
) -> None:
    same(graph, method, seed=seed, resolution=resolution)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["karate.mtx", "cond-mat-2005.npz", "email-Enron.txt.gz"])
def test_labels_of_real_graphs(gpu: Choice, shared_data: Path, name: str, method: str) -> None:
    same(read_graph(shared_data / name), method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weight", [1, 7, 2**33])
def test_a_star_wider_than_any_shared_table(gpu: Choice, method: str, weight: int) -> None:
    leaves = np.arange(1, 20_001)
    same(Graph.from_edges(np.zeros_like(leaves), leaves, np.full(20_000, weight)), method)


@pytest.mark.parametrize("method", METHODS)
def test_many_hubs_in_small_batches(
    gpu: Choice, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    hubs = np.repeat(np.arange(300), 3000)
    graph = Graph.from_edges(hubs, rng.integers(300, 30_000, len(hubs)))
    monkeypatch.setattr(launch, "SMALL_LEVEL_SLOTS", 1)
    monkeypatch.setattr(launch, "ARCS_A_SLOT", 1 << 40)
    same(graph, method)


def test_ten_repetitions(gpu: Choice) -> None:
    graph = rmat(14).graph
    first = detect(graph, "louvain", "cuda").labels
    for _ in range(9):
        assert np.array_equal(first, detect(graph, "louvain", "cuda").labels)


@pytest.mark.alone
def test_peak_memory_is_reported_and_given_back(gpu: Choice) -> None:
    import cupy

    graph = lfr(1 << 14, max_degree=400).graph
    detect(graph, "louvain", "cuda")
    before = cupy.cuda.runtime.memGetInfo()[0]
    result = detect(graph, "louvain", "cuda")
    assert cupy.cuda.runtime.memGetInfo()[0] == before
    assert set(result.memory) == {"graph", "hash", "community", "scratch"}
    assert result.memory["graph"] >= graph.targets.nbytes


@pytest.mark.parametrize("weights", ["none", "uniform"])
def test_a_graph_on_the_device_gives_the_same_labels(gpu: Choice, weights: str) -> None:
    plain = lfr(1 << 12, max_degree=400, weights=weights).graph
    loops = np.arange(plain.n_vertices) % 3
    for graph in (plain, dataclasses.replace(plain, loops=loops)):
        there = DeviceGraph.from_host(graph)
        labels = api.louvain(there, device="cuda").labels
        assert np.array_equal(labels, api.louvain(graph, device="cpu").labels)
        assert np.array_equal(labels, api.louvain(there, device="cpu").labels)


def test_a_budget_too_small_is_refused_by_name_and_leaves_the_device_usable(gpu: Choice) -> None:
    graph = lfr(1 << 13, max_degree=400).graph
    with pytest.raises(MemoryBudgetError, match=r"needs .* MiB .*largest: .*targets\.0"):
        api.louvain(graph, device="cuda", memory="device", device_budget=graph.nbytes + 100_000)
    assert api.louvain(graph, device="cuda").n_communities > 1


def test_the_current_device_is_restored(gpu: Choice) -> None:
    import cupy

    before = cupy.cuda.runtime.getDevice()
    api.louvain(ring_of_cliques(5, size=4).graph, device=f"cuda:{gpu.index}")
    assert cupy.cuda.runtime.getDevice() == before
    with pytest.raises(DeviceUnavailableError, match="there is no cuda:99"):
        api.louvain(ring_of_cliques(5, size=4).graph, device="cuda:99")
