from __future__ import annotations

import time

import numpy as np

import louvain_um as lu

VERTICES = 3_000_000


def seconds(graph: lu.Graph, method: str) -> float:
    since = time.process_time()
    result = getattr(lu, method)(graph, device="cpu", threads=1)
    took = time.process_time() - since
    assert result.labels.tolist()[:4] == [0, 0, 0, 1]
    assert np.array_equal(result.labels[3:], np.arange(1, VERTICES - 2))
    assert result.levels[-1].communities == result.n_communities == VERTICES - 2
    return took


def test_leiden_counts_many_communities_about_as_fast_as_louvain() -> None:
    small, large = (lu.Graph.from_edges([0, 1, 2], [1, 2, 0], n_vertices=n) for n in (10, VERTICES))
    for method in (lu.louvain, lu.leiden):
        method(small, device="cpu", threads=1)  # compiles
    assert seconds(large, "leiden") < 4 * seconds(large, "louvain") + 1
