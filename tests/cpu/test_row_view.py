"""The CPU engine on rows that lie apart, in any order, with unused places between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um import Graph
from louvain_um.core.hierarchy import detect
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.graph.row_view import RowView
from louvain_um.options import Options
from tests.graphs import graphs


def scattered(graph: Graph, seed: int) -> RowView:
    """Return a graph's rows in a random order, with other targets in the gaps."""
    rng = np.random.default_rng(seed)
    n, lengths = graph.n_vertices, np.diff(graph.offsets)
    room = lengths + rng.integers(0, 4, n)
    order = rng.permutation(n)
    begins = np.zeros(n, np.int64)
    begins[order] = np.cumsum(room[order]) - room[order]
    targets = rng.integers(0, max(n, 1), int(room.sum())).astype(np.uint32)
    place = np.repeat(begins - graph.offsets[:-1], lengths) + np.arange(graph.n_arcs)
    targets[place] = graph.targets
    weights = None
    if graph.weights is not None:
        weights = np.full(len(targets), 77, graph.weights.dtype)
        weights[place] = graph.weights
    return RowView(
        begins=begins,
        ends=begins + lengths,
        targets=targets,
        weights=weights,
        loops=graph.loops,
        degrees=graph.degrees,
        n_arcs=graph.n_arcs,
        total_weight=graph.total_weight,
    )


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@settings(max_examples=60, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1), threads=st.sampled_from([1, 2]))
def test_labels_do_not_depend_on_where_rows_lie(method, graph, seed, threads):
    options = Options(method=method, seed=seed, threads=threads, device="cpu")
    results = [
        detect(CpuEngine(options, ignore), source, options, ignore)
        for source in (graph, scattered(graph, seed))
    ]
    assert results[0].labels.tolist() == results[1].labels.tolist()
    assert results[0].modularity == results[1].modularity
    assert [level.arcs for level in results[0].levels] == [
        level.arcs for level in results[1].levels
    ]
