"""What the CUDA engine does beyond the contract suite (`tests/test_contract.py`)."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um import Graph, api, read_graph
from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError
from louvain_um.generators import lfr, ring_of_cliques, rmat, stencil
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.memory.packed import sorts
from louvain_um.gpu.move import hub_tables
from tests.distributed.runs import assert_equal
from tests.graphs import of_kind, weighted

METHODS = ("louvain", "leiden")


def same(graph, method, **options):
    """Return what the GPU finds, which is what the CPU finds."""
    cpu, gpu = (getattr(api, method)(graph, device=device, **options) for device in ("cpu", "cuda"))
    assert_equal(gpu, cpu)
    assert gpu.value == cpu.value
    return gpu


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["karate.mtx", "cond-mat-2005.npz", "email-Enron.txt.gz"])
def test_labels_of_real_graphs(gpu, shared_data, name, method):
    same(read_graph(shared_data / name), method)


@pytest.mark.parametrize("method", METHODS)
def test_many_hubs_in_small_batches(gpu, method, monkeypatch):
    rng = np.random.default_rng(0)
    hubs = np.repeat(np.arange(300), 3000)
    graph = Graph.from_edges(hubs, rng.integers(300, 30_000, len(hubs)))
    monkeypatch.setattr(hub_tables, "SMALL_LEVEL_SLOTS", 1)
    monkeypatch.setattr(hub_tables, "ARCS_A_SLOT", 1 << 40)
    same(graph, method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("objective", ["cpm", "directed", "bipartite", "signed"])
def test_objectives_with_arrays_in_host_memory(gpu, method, objective):
    graph = of_kind("undirected" if objective == "cpm" else objective, 12)
    resolution = 0.02 if objective == "cpm" else 1.0
    same(graph, method, objective=objective, resolution=resolution, memory="zero_copy")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weights", ["none", "uniform"])
def test_constraints_of_larger_graphs(gpu, method, weights):
    graph = lfr(1 << 13, max_degree=400, max_community=800, weights=weights).graph
    initial = np.arange(graph.n_vertices) // 16
    same(graph, method, max_size=60)
    same(graph, method, initial=initial)
    same(graph, method, initial=initial, fixed=np.arange(0, 8000, 40), max_size=200)
    same(graph, method, objective="cpm", resolution=0.05, initial=initial, max_size=40)


def test_large_levels_with_other_objectives_take_more_than_one_launch(gpu):
    same(lfr(1 << 17).graph, "leiden", objective="cpm", resolution=0.01)
    same(of_kind("signed", 16), "louvain", objective="signed")


def test_a_graph_on_the_device_takes_other_objectives(gpu):
    graph = lfr(1 << 12).graph
    found = api.leiden(DeviceGraph.from_host(graph), objective="cpm", resolution=0.02)
    here = api.leiden(graph, device="cpu", objective="cpm", resolution=0.02)
    assert np.array_equal(found.labels, here.labels)
    assert found.modularity == here.modularity


@pytest.mark.alone
def test_peak_memory_is_reported_and_given_back(gpu):
    import cupy

    graph = lfr(1 << 14, max_degree=400).graph
    api.louvain(graph, device="cuda")
    before = cupy.cuda.runtime.memGetInfo()[0]
    result = api.louvain(graph, device="cuda")
    assert cupy.cuda.runtime.memGetInfo()[0] >= before
    assert set(result.memory) == {"graph", "hash", "community", "scratch"}
    assert result.memory["graph"] >= graph.targets.nbytes


@pytest.mark.parametrize("weights", ["none", "uniform"])
def test_a_graph_on_the_device_gives_the_same_labels(gpu, weights):
    plain = lfr(1 << 12, max_degree=400, weights=weights).graph
    loops = np.arange(plain.n_vertices) % 3
    for graph in (plain, dataclasses.replace(plain, loops=loops)):
        there = DeviceGraph.from_host(graph)
        labels = api.louvain(there, device="cuda").labels
        assert np.array_equal(labels, api.louvain(graph, device="cpu").labels)
        assert np.array_equal(labels, api.louvain(there, device="cpu").labels)


def test_a_budget_too_small_is_refused_by_name_and_leaves_the_device_usable(gpu):
    graph = lfr(1 << 13, max_degree=400).graph
    with pytest.raises(MemoryBudgetError, match=r"needs .* MiB .*largest: .*targets\.0"):
        api.louvain(graph, device="cuda", memory="device", device_budget=graph.nbytes + 100_000)
    assert api.louvain(graph, device="cuda").n_communities > 1


def test_the_current_device_is_restored(gpu):
    import cupy

    before = cupy.cuda.runtime.getDevice()
    api.louvain(ring_of_cliques(5, size=4).graph, device=f"cuda:{gpu.index}")
    assert cupy.cuda.runtime.getDevice() == before
    with pytest.raises(DeviceUnavailableError, match="there is no cuda:99"):
        api.louvain(ring_of_cliques(5, size=4).graph, device="cuda:99")


def stars(leaves):
    """Return a graph of vertices of every degree class whose leaves are tied to each other."""
    hubs = [3, 6, 12, 24, 90, 700, 5000, leaves]
    n = len(hubs) + leaves
    u = np.concatenate([np.full(count, hub) for hub, count in enumerate(hubs)])
    v = np.concatenate([len(hubs) + np.arange(count) for count in hubs])
    ring = len(hubs) + np.arange(leaves)
    return Graph.from_edges(
        np.concatenate([u, ring]), np.concatenate([v, np.roll(ring, 1)]), n_vertices=n
    )


def up_to(largest):
    """Return a graph whose largest weight is that."""
    return weighted(lfr(20_000, seed=5).graph, 1, largest)


GRAPHS = {
    "rmat": lambda: rmat(14, seed=5).graph,
    "lfr": lambda: lfr(20_000, seed=5).graph,
    "stencil": lambda: stencil((30, 30, 30)).graph,
    "stars": lambda: stars(9000),
    "weighted": lambda: up_to(65_535),
}


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("name", GRAPHS)
def test_labels_with_packed_targets(gpu, name, method):
    graph = GRAPHS[name]()
    detect = getattr(lu, method)
    want = detect(graph, device="cpu")
    used = 0
    there = DeviceGraph.from_host(graph)
    for budget, both in (("92%", False), ("75%", True), ("60%", False), ("45%", True)):
        for given in (graph, there) if both else (graph,):
            found = detect(given, device="cuda", device_budget=budget)
            used += found.provenance["plan"]["packed"]
            np.testing.assert_array_equal(found.labels, want.labels)
            assert found.modularity == want.modularity
    assert used


def test_rows_are_sorted_by_length_or_keep_their_order(gpu):
    for reach, n in ((20, 60_000), (20, 1 << 24), (1, (1 << 24) + 1)):
        # Numbers of vertices take up to four bytes, packed ones but where the ring closes one.
        ring = n - 1 - np.arange(60_000)
        ends = [np.roll(ring, step) for step in range(1, reach + 1)]
        graph = Graph.from_edges(np.tile(ring, reach), np.concatenate(ends), n_vertices=n)
        assert sorts(n, graph.n_arcs) == (reach == 20 and n == 60_000)
        found = lu.louvain(graph, device="cuda", device_budget="50%")
        assert found.provenance["plan"]["packed"]
        assert found.provenance["plan"]["target_bytes"] < 1.1
        want = lu.louvain(graph, device="cuda", memory="device")
        np.testing.assert_array_equal(found.labels, want.labels)
        assert found.modularity > 0.9


@pytest.mark.parametrize("wide", [False, True])
def test_weights_take_16_bits_up_to_the_largest(gpu, wide):
    for largest, packs in ((65_535, True), (65_536, False)):
        graph = up_to(largest)
        if wide:
            graph = replace(graph, weights=graph.weights.astype(np.int64))
        want = lu.leiden(graph, device="cpu")
        for given in (graph, DeviceGraph.from_host(graph)):
            found = lu.leiden(given, device="cuda", device_budget="50%")
            assert found.provenance["plan"]["packed"] == packs
            np.testing.assert_array_equal(found.labels, want.labels)
