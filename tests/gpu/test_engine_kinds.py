"""The CUDA engine returns the CPU engine's labels of graphs of every kind, and for many seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from louvain_um import Graph
from louvain_um.generators import geometric, lfr, planted, ring_of_cliques, rmat, stencil
from louvain_um.gpu.runtime.device import Choice
from tests.gpu.test_engine import METHODS, same

pytestmark = pytest.mark.gpu

SEEDS = {"rmat": range(20), "lfr weighted": range(20)}
"""Many of a graph without weights and of one with; of other kinds, four each."""


def heavy(graph: Graph) -> Graph:
    """Return the graph with weights whose sums take eight bytes."""
    ends = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    once = ends < graph.targets
    ends, others = ends[once], graph.targets[once]
    return Graph.from_edges(ends, others, 1 + (ends + others) % 7 * 2**30)


KINDS: dict[str, Callable[[], Graph]] = {
    "rmat": lambda: rmat(13).graph,
    "rmat weighted": lambda: rmat(12, weights="uniform").graph,
    "lfr": lambda: lfr(1 << 13, max_degree=400, max_community=800).graph,
    "lfr weighted": lambda: lfr(1 << 12, max_degree=400, weights="uniform").graph,
    "stencil": lambda: stencil((16, 16, 16)).graph,
    "planted": lambda: planted(5000, blocks=40).graph,
    "geometric": lambda: geometric(8000, degree=10.0).graph,
    "stencil weighted": lambda: stencil((12, 12, 12), weights="uniform").graph,
    "planted weighted": lambda: planted(3000, blocks=30, weights="uniform").graph,
    "geometric weighted": lambda: geometric(5000, degree=10.0, weights="uniform").graph,
    "lfr heavy": lambda: heavy(lfr(1 << 12, max_degree=400).graph),
    "ring": lambda: ring_of_cliques(50, size=8).graph,
    "ring weighted": lambda: ring_of_cliques(40, size=7, weights="uniform").graph,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_every_kind_and_seed(gpu: Choice, kind: str, method: str) -> None:
    graph = KINDS[kind]()
    for seed in SEEDS.get(kind, range(4)):
        same(graph, method, seed=seed)
