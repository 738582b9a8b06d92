"""What the CUDA engine does beyond the contract suite (`tests/test_contract.py`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from louvain_um import Graph, api, read_graph
from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError
from louvain_um.generators import lfr, ring_of_cliques
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime import launch
from louvain_um.gpu.runtime.device import Choice
from louvain_um.results.communities import Communities
from tests.distributed.runs import assert_equal
from tests.graphs import of_kind

pytestmark = pytest.mark.gpu

METHODS = ("louvain", "leiden")


def same(graph: Graph, method: str, **options: Any) -> Communities:
    """Return what the GPU finds, which is what the CPU finds."""
    cpu, gpu = (getattr(api, method)(graph, device=device, **options) for device in ("cpu", "cuda"))
    assert_equal(gpu, cpu)
    assert gpu.value == cpu.value
    return gpu


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["karate.mtx", "cond-mat-2005.npz", "email-Enron.txt.gz"])
def test_labels_of_real_graphs(gpu: Choice, shared_data: Path, name: str, method: str) -> None:
    same(read_graph(shared_data / name), method)


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("objective", ["cpm", "directed", "bipartite", "signed"])
def test_objectives_with_arrays_in_host_memory(gpu: Choice, method: str, objective: Any) -> None:
    graph = of_kind("undirected" if objective == "cpm" else objective, 12)
    resolution = 0.02 if objective == "cpm" else 1.0
    same(graph, method, objective=objective, resolution=resolution, memory="zero_copy")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weights", ["none", "uniform"])
def test_constraints_of_larger_graphs(gpu: Choice, method: str, weights: Any) -> None:
    graph = lfr(1 << 13, max_degree=400, max_community=800, weights=weights).graph
    initial = np.arange(graph.n_vertices) // 16
    same(graph, method, max_size=60)
    same(graph, method, initial=initial)
    same(graph, method, initial=initial, fixed=np.arange(0, 8000, 40), max_size=200)
    same(graph, method, objective="cpm", resolution=0.05, initial=initial, max_size=40)


def test_large_levels_with_other_objectives_take_more_than_one_launch(gpu: Choice) -> None:
    same(lfr(1 << 17).graph, "leiden", objective="cpm", resolution=0.01)
    same(of_kind("signed", 16), "louvain", objective="signed")


def test_a_graph_on_the_device_takes_other_objectives(gpu: Choice) -> None:
    graph = lfr(1 << 12).graph
    found = api.leiden(DeviceGraph.from_host(graph), objective="cpm", resolution=0.02)
    here = api.leiden(graph, device="cpu", objective="cpm", resolution=0.02)
    assert np.array_equal(found.labels, here.labels)
    assert found.modularity == here.modularity


@pytest.mark.alone
def test_peak_memory_is_reported_and_given_back(gpu: Choice) -> None:
    import cupy

    graph = lfr(1 << 14, max_degree=400).graph
    api.louvain(graph, device="cuda")
    before = cupy.cuda.runtime.memGetInfo()[0]
    result = api.louvain(graph, device="cuda")
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
