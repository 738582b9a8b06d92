"""What every engine promises, whatever the hardware."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um import Graph, api, modularity
from louvain_um.cpu import move
from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime.device import pick
from louvain_um.results.communities import Communities
from tests import oracle
from tests.graphs import edge_lists, graphs

METHODS = ("louvain", "leiden")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], scope="module")
def backend(request: pytest.FixtureRequest) -> str:
    """Name a device; skip where it is not there."""
    device: str = request.param
    if device != "cpu":
        try:
            pick(device)
        except DeviceUnavailableError as error:
            pytest.skip(error.reason)
    return device


def detect(graph: Graph, method: str, backend: str, **options: Any) -> Communities:
    result = getattr(api, method)(graph, device=backend, **options)
    assert isinstance(result, Communities)
    return result


def pieces(graph: Graph, labels: np.ndarray) -> int:
    """Count communities that fall apart."""
    found = oracle.split(oracle.net_of(graph), labels.tolist())
    return len(set(found)) - len(set(labels.tolist()))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=100, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1), resolution=st.sampled_from([0.5, 1.0, 2.0]))
def test_labels_are_the_oracles(
    backend: str, method: str, graph: Graph, seed: int, resolution: float
) -> None:
    labels, _ = oracle.detect(graph, method, seed=seed, resolution=resolution)
    result = detect(graph, method, backend, seed=seed, resolution=resolution)
    assert result.labels.tolist() == labels


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(graph=graphs(), resolution=st.sampled_from([0.5, 1.0, 2.0]))
def test_levels_tell_the_truth(backend: str, method: str, graph: Graph, resolution: float) -> None:
    result = detect(graph, method, backend, resolution=resolution)
    values = [level.modularity for level in result.levels]
    assert values == sorted(values)
    for k, level in enumerate(result.levels):
        labels = result.at_level(k)
        assert len(np.unique(labels)) == level.communities
        assert modularity(graph, labels, resolution) == level.modularity
    assert modularity(graph, result.labels, resolution) == result.modularity
    if result.levels:
        assert np.array_equal(result.at_level(-1), result.labels)
        assert result.modularity == values[-1]


@settings(max_examples=100, deadline=None)
@given(graph=graphs(), resolution=st.sampled_from([0.3, 1.0, 2.0]))
def test_leiden_communities_hold_together(backend: str, graph: Graph, resolution: float) -> None:
    labels = detect(graph, "leiden", backend, resolution=resolution).labels
    assert pieces(graph, labels) == 0


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=50, deadline=None)
@given(edges=edge_lists(), shuffle=st.randoms(use_true_random=False))
def test_order_and_direction_of_edges_do_not_matter(
    backend: str, method: str, edges: tuple[int, Any, Any, Any], shuffle: Any
) -> None:
    n, u, v, w = edges
    order = list(range(len(u)))
    shuffle.shuffle(order)
    turned = Graph.from_edges(v[order], u[order], None if w is None else w[order], n_vertices=n)
    straight = Graph.from_edges(u, v, w, n_vertices=n)
    assert np.array_equal(
        detect(straight, method, backend).labels, detect(turned, method, backend).labels
    )


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=50, deadline=None)
@given(graph=graphs(), factor=st.sampled_from([2, 64]))
def test_a_power_of_two_in_the_weights_changes_nothing(
    backend: str, method: str, graph: Graph, factor: int
) -> None:
    weights = np.ones(graph.n_arcs, np.int64) if graph.weights is None else graph.weights
    if graph.total_weight * factor >= 2**53:
        return
    scaled = Graph(
        graph.offsets, graph.targets, weights.astype(np.int64) * factor, graph.loops * factor
    )
    one, other = detect(graph, method, backend), detect(scaled, method, backend)
    assert np.array_equal(one.labels, other.labels)
    assert one.modularity == other.modularity


@settings(max_examples=50, deadline=None)
@given(graph=graphs(), shuffle=st.randoms(use_true_random=False))
def test_relabelling_keeps_the_modularity_of_a_partition(
    backend: str, graph: Graph, shuffle: Any
) -> None:
    labels = detect(graph, "louvain", backend).labels
    order = list(range(graph.n_vertices))
    shuffle.shuffle(order)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    half = u < graph.targets
    loop = np.flatnonzero(graph.loops)
    weights = np.ones(graph.n_arcs, np.int64) if graph.weights is None else graph.weights
    moved = Graph.from_edges(
        np.concatenate((place[u[half]], place[loop])),
        np.concatenate((place[graph.targets[half]], place[loop])),
        np.concatenate((weights[half].astype(np.int64), graph.loops[loop])),
        n_vertices=graph.n_vertices,
    )
    assert modularity(moved, labels[order]) == modularity(graph, labels)
    assert detect(moved, "louvain", backend).modularity > -1


@pytest.fixture(scope="module")
def blocks() -> Graph:
    """A graph large enough that sub-rounds hold many vertices and hubs many arcs."""
    rng = np.random.default_rng(7)
    n = 4000
    u = rng.integers(0, n, 30_000)
    v = np.where(rng.random(30_000) < 0.7, u // 100 * 100 + rng.integers(0, 100, 30_000), 0)
    v = np.where(v == 0, rng.zipf(1.6, 30_000) % n, v)
    return Graph.from_edges(u, v)


@pytest.mark.parametrize("method", METHODS)
def test_repeating_changes_nothing(backend: str, method: str, blocks: Graph) -> None:
    first = detect(blocks, method, backend, seed=5)
    assert first.modularity > 0.3
    for _ in range(9):
        assert np.array_equal(detect(blocks, method, backend, seed=5).labels, first.labels)


@pytest.mark.parametrize("method", METHODS)
def test_threads_do_not_matter(method: str, blocks: Graph) -> None:
    one = detect(blocks, method, "cpu", threads=1)
    with mock.patch.object(move, "SERIAL_ARCS", 0):
        for threads in (2, 4):
            other = detect(blocks, method, "cpu", threads=threads)
            assert np.array_equal(other.labels, one.labels)
            assert [x.arcs_visited for x in other.levels] == [x.arcs_visited for x in one.levels]


@pytest.mark.parametrize("method", METHODS)
def test_engines_agree(backend: str, method: str, blocks: Graph) -> None:
    one = detect(blocks, method, "cpu", seed=3)
    other = detect(blocks, method, backend, seed=3)
    assert np.array_equal(other.labels, one.labels)
    assert [x.modularity for x in other.levels] == [x.modularity for x in one.levels]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("graph", "labels"),
    [
        pytest.param(Graph.from_edges([], []), [], id="no vertices"),
        pytest.param(Graph.from_edges([], [], n_vertices=1), [0], id="one vertex"),
        pytest.param(Graph.from_edges([], [], n_vertices=3), [0, 1, 2], id="no edges"),
        pytest.param(Graph.from_edges([0, 1], [0, 1]), [0, 1], id="only loops"),
        pytest.param(Graph.from_edges([0], [1]), [0, 0], id="one edge"),
        pytest.param(Graph.from_edges([0], [1], [0]), [0, 1], id="one edge of weight 0"),
        pytest.param(Graph.from_edges([0], [1], [1e-12]), [0, 0], id="one light edge"),
        pytest.param(
            Graph.from_edges([0, 1, 0, 3, 4, 3], [1, 2, 2, 4, 5, 5]),
            [0, 0, 0, 1, 1, 1],
            id="two triangles apart",
        ),
        pytest.param(
            Graph.from_edges([0, 1, 0, 3, 2, 5], [1, 2, 2, 4, 3, 5], n_vertices=7),
            [0, 0, 0, 1, 1, 2, 3],
            id="loops and an isolated vertex",
        ),
    ],
)
def test_small_cases(backend: str, method: str, graph: Graph, labels: list[int]) -> None:
    result = detect(graph, method, backend)
    assert result.labels.tolist() == labels
    assert result.modularity == modularity(graph, result.labels)


@pytest.mark.parametrize("method", METHODS)
def test_two_cliques_apart(backend: str, method: str) -> None:
    u, v = np.triu_indices(50, 1)
    graph = Graph.from_edges(np.concatenate((u, u + 50)), np.concatenate((v, v + 50)))
    result = detect(graph, method, backend)
    assert result.labels.tolist() == [0] * 50 + [1] * 50
    assert result.modularity == 0.5


@pytest.mark.parametrize("method", METHODS)
def test_a_star_is_one_community(backend: str, method: str) -> None:
    leaves = 1_000_000
    graph = Graph.from_edges(np.zeros(leaves, np.uint32), np.arange(1, leaves + 1))
    result = detect(graph, method, backend)
    assert result.n_communities == 1
    assert result.modularity == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_weights_from_tiny_to_huge(backend: str, method: str) -> None:
    u, v = np.triu_indices(6, 1)
    ends = np.concatenate((u, u + 6, [0])), np.concatenate((v, v + 6, [6]))
    weights = np.concatenate((np.full(15, 1e12), np.full(15, 1e11), [1e-12]))
    result = detect(Graph.from_edges(*ends, weights), method, backend)
    assert result.labels.tolist() == [0] * 6 + [1] * 6


@pytest.mark.parametrize("method", METHODS)
def test_a_higher_resolution_gives_more_communities(
    backend: str, method: str, blocks: Graph
) -> None:
    counts = [detect(blocks, method, backend, resolution=r).n_communities for r in (0.2, 1.0, 5.0)]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("method", METHODS)
def test_max_level_ends_the_run(backend: str, method: str, blocks: Graph) -> None:
    assert len(detect(blocks, method, backend, max_level=1).levels) == 1
