from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from louvain_um import Graph, api
from louvain_um.core import rules
from louvain_um.core.rules import MIN_SWEEPS
from louvain_um.cpu import move
from louvain_um.generators import stencil
from tests import oracle
from tests.graphs import graphs


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@settings(max_examples=300, deadline=None)
@given(
    graph=graphs(),
    seed=st.integers(0, 2**32 - 1),
    resolution=st.sampled_from([0.3, 1.0, 1.7]),
    threads=st.sampled_from([1, 2, 4]),
    max_level=st.sampled_from([None, None, 1, 2]),
    threshold=st.sampled_from([1e-7, 1e-7, 0.0, 1e-3, 1.0]),
    most_kept=st.sampled_from([rules.MOST_KEPT, 0.3]),
)
def test_labels_and_levels_are_the_oracles(
    method: str,
    graph: Graph,
    seed: int,
    resolution: float,
    threads: int,
    max_level: int | None,
    threshold: float,
    most_kept: float,
) -> None:
    options = {
        "resolution": resolution,
        "seed": seed,
        "max_level": max_level,
        "threshold": threshold,
    }
    # Graphs this small would never see a second thread.
    with (
        mock.patch.object(rules, "MOST_KEPT", most_kept),
        mock.patch.object(move, "SERIAL_ARCS", 0),
    ):
        labels, levels = oracle.detect(graph, method, **options)
        result = getattr(api, method)(graph, device="cpu", threads=threads, **options)
    assert result.labels.tolist() == labels
    assert [
        (x.cycle, x.vertices, x.communities, x.modularity, x.iterations, x.arcs_visited)
        for x in result.levels
    ] == [
        (x.cycle, x.vertices, x.communities, x.modularity, x.iterations, x.arcs_visited)
        for x in levels
    ]


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_levels_of_many_sweeps_end_as_the_oracles_do(method: str) -> None:
    graph = stencil((9, 9, 9)).graph
    labels, levels = oracle.detect(graph, method)
    result = getattr(api, method)(graph, device="cpu")
    assert result.labels.tolist() == labels
    assert [x.iterations for x in result.levels] == [x.iterations for x in levels]
    assert levels[0].iterations > MIN_SWEEPS


@pytest.mark.parametrize(
    ("objective", "resolution", "threshold", "given", "cycles"),
    [
        ("modularity", 1.0, 1e-7, False, 2), ("modularity", 1.0, 5e-8, False, 3),
        ("cpm", 0.05, 2e-7, False, 2), ("cpm", 0.05, 1e-7, False, 3),
        ("modularity", 1.0, 2e-7, True, 3),
    ],
)  # fmt: skip
def test_a_third_cycle_follows_only_a_second_that_gained_enough(
    objective: str, resolution: float, threshold: float, given: bool, cycles: int
) -> None:
    near = (12 / np.pi / 1000) ** 0.5
    points = np.random.default_rng(3).random((1000, 2))
    graph = Graph.from_edges(*cKDTree(points).query_pairs(near, output_type="ndarray").T)
    options = {"objective": objective, "resolution": resolution, "threshold": threshold}
    if given:
        options["initial"] = ((points * 9).astype(int) @ (9, 1)).tolist()  # cells of a grid
    labels, levels = oracle.detect(graph, "leiden", **options)
    result = api.leiden(graph, device="cpu", **options)
    assert result.labels.tolist() == labels
    reached = {level.cycle: level.modularity for level in result.levels}
    assert list(reached) == sorted({level.cycle for level in levels}) == list(range(cycles))
    unit = graph.n_arcs / 2 if objective == "cpm" else 1.0
    gained = (reached[1] - reached[0]) / unit
    assert (gained > threshold * rules.LATER_CYCLE_FACTOR) == (cycles == 3 and not given)
