"""Rows given to the constructor: those of an undirected graph, or an error in one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import louvain_um as lu
from louvain_um.errors import GraphError
from louvain_um.graph.graph import Graph
from tests.graphs import graphs


@pytest.mark.parametrize(
    ("offsets", "targets", "weights", "text"),
    [
        ([0, 1, 2], [1, 5], None, "vertex 1 has the target 5, but there are 2 vertices"),
        ([0, 1, 2], [1, 2**32 - 1], None, "has the target 4294967295"),
        ([0, 5, 2], [1, 0], None, "offsets fall after vertex 0"),
        ([0, -1, 2], [1, 0], None, "offsets fall after vertex 0"),
        ([0, 2, 1, 2], [1, 2], None, "offsets fall after vertex 1"),
        ([0, 1, 2], [0, 0], None, "vertex 0 is a target of its own"),
        ([0, 2, 3, 4], [2, 1, 0, 0], None, "targets of vertex 0 do not ascend at 1"),
        ([0, 2, 4], [1, 1, 0, 0], None, "targets of vertex 0 do not ascend at 1"),
        ([0, 1, 1], [1], None, "vertices 0 and 1 disagree"),
        ([0, 1, 2, 3], [1, 2, 0], None, "vertices 0 and 1 disagree"),
        ([0, 1, 2], [1, 0], [3, 4], "the edge of vertices 0 and 1 has two weights"),
    ],
)
def test_faults(
    offsets: list[int], targets: list[int], weights: list[int] | None, text: str
) -> None:
    for dtype in (np.uint32, np.int64):
        rows = (
            np.array(offsets),
            np.array(targets, np.uint32),
            None if weights is None else np.array(weights, dtype),
            np.zeros(len(offsets) - 1, np.int64),
        )
        with pytest.raises(GraphError, match=text) as caught:
            Graph(*rows)
        assert str(caught.value).endswith("or use Graph.from_edges")
        unchecked = Graph(*rows, check=False)
        with pytest.raises(GraphError, match=text):
            unchecked.validate()


def test_negative_loops_are_refused() -> None:
    with pytest.raises(GraphError, match="loop of vertex 1 is negative"):
        Graph(np.zeros(3, np.int64), np.zeros(0, np.uint32), None, np.array([0, -1]))


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_what_is_built_is_valid(graph: Graph) -> None:
    graph.validate()
    lu.louvain(graph, device="cpu").induced_graph().validate()


def test_names_may_be_listed() -> None:
    for names in (["a", "b", "c"], ("a", "b", "c"), [("a", 1), ("b", 2), ("c", 3)]):
        found = lu.louvain(lu.Graph.from_edges([0, 1], [1, 2], names=names))
        assert sorted(found.to_dict()) == sorted(names)
    with pytest.raises(GraphError, match="one entry per vertex, 3 in all"):
        lu.Graph.from_edges([0, 1], [1, 2], names="abc")
