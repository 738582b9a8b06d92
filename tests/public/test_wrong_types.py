"""Options of the wrong type are refused in one line, not taken for something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import GraphError, OptionError

EDGE = [0], [1]
GRAPH = lu.Graph.from_edges(*EDGE)


@pytest.mark.parametrize("kind", ["no", None, 1, ["signed"], np.arange(2)])
def test_a_kind_that_no_graph_has(kind: Any) -> None:
    with pytest.raises(GraphError, match="kind must be one of 'undirected'"):
        lu.Graph.from_edges(*EDGE, kind=kind)
    rows = GRAPH.offsets, GRAPH.targets, GRAPH.weights, GRAPH.loops
    with pytest.raises(GraphError, match="kind must be one of 'undirected'"):
        lu.Graph(*rows, kind=kind)


@pytest.mark.parametrize("fixed", [3, 1.5, "0", b"0", True, object()])
def test_fixed_vertices_are_a_list(fixed: Any) -> None:
    with pytest.raises(OptionError, match="fixed must be a list of vertices"):
        lu.louvain(GRAPH, fixed=fixed, device="cpu")


@pytest.mark.parametrize("value", ["no", "", 2, [], np.arange(2)])
def test_switches_are_true_or_false(value: Any) -> None:
    found = lu.louvain(GRAPH, device="cpu")
    for call in (
        lambda: lu.Graph.from_edges(*EDGE, allow_rounding=value),
        lambda: found.to_frame(levels=value),
        lambda: found.to_frame(hierarchy=value),
        lambda: lu.resolution_profile(GRAPH, warm_starts=value, device="cpu"),
        lambda: lu.Placer(feedback=value),
    ):
        with pytest.raises(OptionError, match="must be True or False"):
            call()
    for switch in (True, np.True_, 1):
        assert len(found.to_frame(levels=switch)) == 2


@pytest.mark.parametrize("value", ["no", "", None, 0.5, [1], np.arange(2), 2**70])
def test_numbers_that_a_result_takes(value: Any) -> None:
    found = lu.louvain(GRAPH, device="cpu")
    with pytest.raises(OptionError, match="this result has levels 0"):
        found.at_level(value)
    with pytest.raises(OptionError, match="hubs must be a whole number"):
        found.table(hubs=value)
    if not isinstance(value, int | float | None):
        with pytest.raises(OptionError, match="resolution must be a number"):
            found.quality(value)


def test_a_change_of_another_graph_is_refused() -> None:
    one, other = (lu.DynamicGraph(GRAPH) for _ in range(2))
    tracker = lu.Tracker(one)
    one.add_vertices(2)
    other.add_vertices(2)
    own, foreign = one.apply(insert=([0], [2])), other.apply(insert=([1], [3]))
    assert own.total_weight == foreign.total_weight
    before = tracker.modularity
    with pytest.raises(GraphError, match="the change is another graph's"):
        tracker.update(foreign)
    assert tracker.modularity == before
    assert tracker.update(own).n_communities
