"""Trackers of graphs that change on a device find what those on the host do."""

from __future__ import annotations

import numpy as np
import pytest

import louvain_um as lu
from louvain_um import DynamicGraph
from louvain_um.errors import MemoryBudgetError
from louvain_um.generators import rmat

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


@pytest.mark.parametrize("connected", ["renewal", "always"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tracker_follows_a_graph_on_a_device(weighted, connected):
    base = rmat(12, edge_factor=8, seed=3).graph
    kind = {"weighted": weighted or None}
    graphs = DynamicGraph(base, **kind), DynamicGraph(base, device="cuda", **kind)
    options = {"renew": 0.05, "audit": 0.001, "connected": connected}
    trackers = [lu.Tracker(graph, **options) for graph in graphs]
    rng = np.random.default_rng(4)
    for k in range(40):
        u, v = rng.integers(0, 4096, (2, 600))
        w = (rng.integers(1, 50, 400),) if weighted else ()
        results = [
            tracker.update(
                tracker.graph.apply(insert=(u[:400], v[:400], *w), delete=(u[400:], v[400:]))
            )
            for tracker in trackers
        ]
        assert results[0].modularity == results[1].modularity
        if k % 4 == 0:
            assert np.array_equal(results[0].labels, results[1].labels)
            assert np.array_equal(results[0].ids, results[1].ids)
            assert np.array_equal(results[0].changed, results[1].changed)
            assert results[0].events.tolist() == results[1].events.tolist()
    frames = [tracker.to_frame() for tracker in trackers]
    assert frames[0]["renewed"].sum() > 1
    for column in ("changed", "communities", "marked", "split", "moves", "renewed", "audit_lead"):
        assert frames[0][column].equals(frames[1][column]), column


def test_a_tracker_keeps_to_a_budget():
    ends = np.arange(1000), np.arange(1000, 2000)
    base = lu.Graph.from_edges(*ends, n_vertices=200_000)
    held = DynamicGraph(base, device="cuda").memory.total_bytes
    tight = DynamicGraph(base, device="cuda", device_budget=held + 5_000_000)
    with pytest.raises(MemoryBudgetError, match="follow the graph on the CPU"):
        lu.Tracker(tight)
    wide = DynamicGraph(base, device="cuda", device_budget=held + (64 << 20))
    tracker = lu.Tracker(wide)
    found = tracker.update(wide.apply(insert=(np.arange(1000), np.arange(1, 1001))))
    assert found.n_communities < 200_000
    assert tracker.following_bytes + wide.memory.total_bytes < wide.device_budget
