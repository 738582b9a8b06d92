from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from louvain_um import Graph, api
from louvain_um.core import rules
from louvain_um.core.rules import MIN_SWEEPS
from louvain_um.generators import stencil
from tests import oracle


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
