"""Other objectives and constraints: the CUDA engine returns the CPU engine's labels."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import louvain_um as lu
from louvain_um import Graph, api
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.graph import DeviceGraph

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

GAMMA = {"cpm": 0.02}


@cache
def of_kind(kind: Any, scale: int = 12) -> Graph:
    """Return a graph with hubs, of a kind."""
    graph = rmat(scale, seed=1).graph
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    once = u < graph.targets
    u, v = u[once], graph.targets[once].astype(np.int64)
    weights = None
    if kind == "signed":
        random = np.random.default_rng(1)
        weights = random.integers(1, 9, len(u)) * random.choice([1, 1, -1], len(u))
    if kind == "bipartite":
        v += graph.n_vertices
    return Graph.from_edges(u, v, weights, kind=kind)


def same(graph: Graph, method: str, **options: Any) -> lu.Communities:
    cpu = getattr(api, method)(graph, device="cpu", **options)
    gpu = getattr(api, method)(graph, device="cuda", **options)
    np.testing.assert_array_equal(gpu.labels, cpu.labels)
    assert [level.modularity for level in gpu.levels] == [level.modularity for level in cpu.levels]
    assert (gpu.value, gpu.modularity) == (cpu.value, cpu.modularity)
    return gpu


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("objective", ["cpm", "directed", "bipartite", "signed"])
@pytest.mark.parametrize("memory", ["auto", "zero_copy"])
def test_objectives(method: str, objective: Any, memory: str) -> None:
    kind = "undirected" if objective == "cpm" else objective
    resolution = GAMMA.get(objective, 1.0)
    for seed in range(3 if memory == "auto" else 1):
        same(
            of_kind(kind), method, objective=objective, resolution=resolution, memory=memory,
            seed=seed,
        )  # fmt: skip


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("weights", ["none", "uniform"])
def test_constraints(method: str, weights: Any) -> None:
    graph = lfr(1 << 13, max_degree=400, max_community=800, weights=weights).graph
    initial = np.arange(graph.n_vertices) // 16
    assert same(graph, method, max_size=60).sizes.max() <= 60
    same(graph, method, initial=initial)
    kept = same(graph, method, initial=initial, fixed=np.arange(0, 8000, 40), max_size=200)
    assert kept.sizes.max() <= 200
    same(graph, method, objective="cpm", resolution=0.05, initial=initial, max_size=40)


def test_large_levels_take_more_than_one_launch() -> None:
    graph = lfr(1 << 17).graph
    same(graph, "leiden", objective="cpm", resolution=0.01)
    same(of_kind("signed", 16), "louvain", objective="signed")


def test_graphs_on_the_device() -> None:
    graph = lfr(1 << 12).graph
    there = DeviceGraph.from_host(graph)
    found = api.leiden(there, objective="cpm", resolution=0.02)
    here = api.leiden(graph, device="cpu", objective="cpm", resolution=0.02)
    np.testing.assert_array_equal(found.labels, here.labels)
    assert found.modularity == here.modularity
