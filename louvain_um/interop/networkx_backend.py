"""The networkx backend `louvain_um`.

networkx finds it through entry points and calls it on request::

    nx.community.louvain_communities(G, backend="louvain_um")
    nx.config.backend_priority = ["louvain_um"]

The same call gives the same communities: without a seed, networkx's own functions shuffle,
these take seed 0.

`import networkx` itself loads this module for `get_info`, so nothing costly is imported on top.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from louvain_um.interop import networkx_algorithms
from louvain_um.interop.networkx_algorithms import (
    NAME,
    ConvertedGraph,
    connected_components,
    convert_from_nx,
    convert_to_nx,
    minimum_spanning_edges,
    number_connected_components,
    pagerank,
    single_source_dijkstra_path_length,
    single_source_shortest_path_length,
    triangles,
    unsuitable,
)

if TYPE_CHECKING:
    from louvain_um.results.communities import Communities

__all__ = [
    "ConvertedGraph",
    "can_run",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "get_info",
    "leiden_communities",
    "louvain_communities",
    "louvain_partitions",
    "minimum_spanning_edges",
    "modularity",
    "number_connected_components",
    "on_start_tests",
    "pagerank",
    "should_run",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path_length",
    "triangles",
]

WORTHWHILE_EDGES = 2_000
"""Edges up to which networkx itself is done before the compiled code has started."""

ABOUT = {
    "louvain_communities": "Communities by descending size; no seed is seed 0.",
    "louvain_partitions": "Nested partitions, finest first; no seed is seed 0.",
    "leiden_communities": "Communities by descending size, each connected; no seed is seed 0.",
    "modularity": "Exact sums, rounded once.",
}

SEARCH = dict.fromkeys(
    ("effort", "n_iterations", "best_of", "device"), "As in `louvain_um.louvain`."
)
"""More parameters of functions that detect communities; other options of a run work, too."""

ALGORITHMS = {
    "connected_components": "Components in the order of their first nodes.",
    "number_connected_components": "",
    "single_source_shortest_path_length": "Without cutoff.",
    "single_source_dijkstra_path_length": "Whole weights above 0, without cutoff.",
    "minimum_spanning_edges": "Whole weights above 0, without data; ties by the order of nodes.",
    "triangles": "Of all nodes.",
    "pagerank": "Exact sums; without personalization, nstart and dangling.",
}
"""Functions other than communities, and what is special about them."""

AS_CHEAP_AS_CONVERTING = {
    "connected_components",
    "modularity",
    "number_connected_components",
    "pagerank",
    "single_source_shortest_path_length",
}
"""Functions that run on their own only where the graph is converted already."""

OTHER_SHUFFLES = {
    "test_directed_partition",
    "test_karate_club_partition",
    "test_multigraph",
    "test_none_weight_param",
    "test_undirected_selfloops",
}
"""Tests of networkx that expect the very partition of its own random order of nodes."""


def get_info() -> dict[str, Any]:
    """Return what networkx shows about the backend."""
    return {
        "backend_name": NAME,
        "project": "louvain-um",
        "package": "louvain_um",
        "short_summary": "Community detection in large graphs, on all cores or a GPU.",
        "functions": {
            name: {
                "additional_docs": docs,
                "additional_parameters": SEARCH if name in ABOUT and name != "modularity" else {},
            }
            for name, docs in {**ABOUT, **ALGORITHMS}.items()
        },
    }


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or why a call cannot be served."""
    call = _bound(name, args, kwargs)
    graph: Any = call["G"]
    reason = unsuitable(graph)
    if reason:
        return reason
    if name in ALGORITHMS:
        if graph.is_directed():
            return "directed graphs are not supported; pass G.to_undirected()"
        return networkx_algorithms.declined(name, call) or True
    if name == "modularity":
        return graph.number_of_edges() > 0 or "modularity of a graph without edges is not defined"
    resolution, threshold = call.get("resolution", 1), call.get("threshold", 0)
    if not 0 < resolution < float("inf"):
        return f"resolution must be above 0, not {resolution}"
    if not 0 <= threshold < float("inf"):
        return f"threshold must be at least 0, not {threshold}"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or why networkx would be as fast."""
    graph = _bound(name, args, kwargs)["G"]
    if name == "leiden_communities" or isinstance(graph, ConvertedGraph):
        return True
    if name in AS_CHEAP_AS_CONVERTING:
        cache = getattr(graph, "__networkx_cache__", None) or {}
        return NAME in cache.get("backends", {}) or "converting takes as long as computing"
    return graph.number_of_edges() >= WORTHWHILE_EDGES or "too few edges to be worth converting"


def on_start_tests(items: list[Any]) -> None:
    """Mark the tests of networkx that expect the outcome of its own random numbers."""
    import pytest

    reason = "expects the communities of networkx's own random order of nodes"
    for item in items:
        if item.path.name == "test_louvain.py" and item.name in OTHER_SHUFFLES:
            item.add_marker(pytest.mark.xfail(reason=reason))


def louvain_communities(
    G: ConvertedGraph,  # noqa: N803
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 1e-7,
    max_level: int | None = None,
    seed: Any = None,
    **search: Any,
) -> list[set[Any]]:
    """Return the communities as sets of nodes, largest first.

    With `max_level`, the partition of `louvain_partitions` at that place, as in networkx.
    """
    _check_max_level(max_level)
    result = _detect(G, "louvain", weight, resolution, threshold, None, seed, search)
    if max_level is None:
        return _sets(G, result.labels)
    return _sets(G, result.hierarchy()[:max_level][-1])


def louvain_partitions(
    G: ConvertedGraph,  # noqa: N803
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 1e-7,
    seed: Any = None,
    **search: Any,
) -> Iterator[list[set[Any]]]:
    """Yield nested partitions, finest first: those of `Communities.hierarchy`.

    Each is a union of the ones before, as networkx promises of a dendrogram.
    """
    result = _detect(G, "louvain", weight, resolution, threshold, None, seed, search)
    for labels in result.hierarchy():
        yield _sets(G, labels)


def leiden_communities(
    G: ConvertedGraph,  # noqa: N803
    weight: str | None = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Any = None,
    **search: Any,
) -> list[set[Any]]:
    """Return the communities as sets of nodes, largest first; each is connected."""
    _check_max_level(max_level)
    return _sets(G, _detect(G, "leiden", weight, resolution, 1e-7, max_level, seed, search).labels)


def modularity(
    G: ConvertedGraph,  # noqa: N803
    communities: Any,
    weight: str | None = "weight",
    resolution: float = 1,
) -> float:
    """Return the modularity of a partition given as sets of nodes."""
    import numpy as np
    from networkx.algorithms.community.quality import NotAPartition

    from louvain_um.results import quality

    communities = list(communities)
    index = {node: i for i, node in enumerate(G.nodes)}
    labels = np.full(len(index), -1, np.int64)
    members = 0
    for c, community in enumerate(communities):
        for node in community:
            if node not in index:
                raise NotAPartition(G, communities)
            labels[index[node]] = c
            members += 1
    if members != len(index) or labels.min(initial=0) < 0:
        raise NotAPartition(G, communities)
    graph = G.graph(weight)
    if graph.total_weight == 0:
        raise NotImplementedError("modularity of a graph without weight is not defined")
    objective: Any = "directed" if G.is_directed() else "modularity"
    return quality.modularity(graph, labels, resolution, objective=objective)


def _bound(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments by name."""
    import inspect

    return inspect.signature(globals()[name]).bind_partial(*args, **kwargs).arguments


def _detect(
    converted: ConvertedGraph,
    method: Any,
    weight: str | None,
    resolution: float,
    threshold: float,
    max_level: int | None,
    seed: Any,
    search: Mapping[str, Any],
) -> Communities:
    from louvain_um.api import run
    from louvain_um.options import Options

    options = Options(
        method=method,
        resolution=float(resolution),
        threshold=float(threshold),
        max_level=max_level,
        objective="directed" if converted.is_directed() else "modularity",
        seed=_seed(seed),
        **search,
    )
    return run(converted.graph(weight), options)


def _check_max_level(max_level: int | None) -> None:
    if max_level is not None and max_level <= 0:
        raise ValueError("max_level argument must be a positive integer or None")


def _seed(seed: Any) -> int:
    """Return a seed of 32 bits: networkx passes a generator for any seed."""
    if seed is None or seed is random.random.__self__:  # type: ignore[attr-defined]
        return 0
    if hasattr(seed, "randrange"):  # random.Random, or networkx's wrapper of NumPy's
        return int(seed.randrange(2**32))
    if hasattr(seed, "integers"):  # numpy.random.Generator
        return int(seed.integers(2**32))
    if hasattr(seed, "randint"):  # numpy.random.RandomState
        return int(seed.randint(2**32, dtype="uint64"))
    return int(seed) % 2**32


def _sets(converted: ConvertedGraph, labels: Any) -> list[set[Any]]:
    found: list[set[Any]] = [set() for _ in range(int(labels.max()) + 1 if len(labels) else 0)]
    for node, label in zip(converted.nodes, labels.tolist(), strict=True):
        found[label].add(node)
    return found
