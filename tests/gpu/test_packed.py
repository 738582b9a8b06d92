"""Labels are the same with packed targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.memory.packed import sorts
from louvain_um.gpu.runtime.device import Choice
from louvain_um.graph.graph import Graph

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


def stars(leaves: int) -> Graph:
    """Return a graph of vertices of every degree class whose leaves are tied to each other."""
    hubs = [3, 6, 12, 24, 90, 700, 5000, leaves]
    n = len(hubs) + leaves
    u = np.concatenate([np.full(count, hub) for hub, count in enumerate(hubs)])
    v = np.concatenate([len(hubs) + np.arange(count) for count in hubs])
    ring = len(hubs) + np.arange(leaves)
    return Graph.from_edges(
        np.concatenate([u, ring]), np.concatenate([v, np.roll(ring, 1)]), n_vertices=n
    )


def weighted(largest: int) -> Graph:
    """Return a graph whose weights are between 1 and a largest one, which some arc has."""
    plain = lfr(20_000, seed=5).graph
    u = np.repeat(np.arange(plain.n_vertices), np.diff(plain.offsets))
    once = u < plain.targets
    weights = np.random.default_rng(5).integers(1, largest + 1, np.count_nonzero(once))
    weights[0] = largest
    return Graph.from_edges(
        u[once], plain.targets[once], weights=weights, n_vertices=plain.n_vertices
    )


GRAPHS = {
    "rmat": lambda: rmat(14, seed=5).graph,
    "lfr": lambda: lfr(20_000, seed=5).graph,
    "stencil": lambda: stencil((30, 30, 30)).graph,
    "stars": lambda: stars(9000),
    "weighted": lambda: weighted(65_535),
}


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("name", GRAPHS)
def test_labels_with_packed_targets(gpu: Choice, name: str, method: str) -> None:
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


def test_rows_are_sorted_by_length_or_keep_their_order(gpu: Choice) -> None:
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
def test_weights_take_16_bits_up_to_the_largest(gpu: Choice, wide: bool) -> None:
    for largest, packs in ((65_535, True), (65_536, False)):
        graph = weighted(largest)
        assert graph.weights is not None
        if wide:
            graph = replace(graph, weights=graph.weights.astype(np.int64))
        want = lu.leiden(graph, device="cpu")
        for given in (graph, DeviceGraph.from_host(graph)):
            found = lu.leiden(given, device="cuda", device_budget="50%")
            assert found.provenance["plan"]["packed"] == packs
            np.testing.assert_array_equal(found.labels, want.labels)
