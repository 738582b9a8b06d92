"""Objectives and constraints: labels and levels are the oracle's, and constraints hold."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um import Graph, api
from louvain_um.cpu import move
from tests import oracle
from tests.graphs import graphs


@st.composite
def constraints(draw: st.DrawFn, n: int) -> dict[str, Any]:
    """Return communities to start from, fixed vertices and a maximum size, or some of them."""
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        width = draw(st.integers(1, max(n, 1)))
        found["initial"] = [v // width for v in range(n)]
    if draw(st.booleans()):
        found["fixed"] = draw(st.lists(st.integers(0, n - 1), max_size=5)) if n else []
    if draw(st.booleans()):
        largest = np.bincount(found["initial"]).max() if n and "initial" in found else 1
        found["max_size"] = int(largest) + draw(st.integers(0, 9))
    return found


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    graph=graphs(),
    objective=st.sampled_from(["modularity", "cpm"]),
    seed=st.integers(0, 2**32 - 1),
    resolution=st.sampled_from([0.05, 0.3, 1.0]),
    threads=st.sampled_from([1, 2, 4]),
    max_level=st.sampled_from([None, None, 1, 2]),
)
def test_labels_and_levels_are_the_oracles(
    method: str, data: st.DataObject, graph: Graph, objective: str, threads: int, **options: Any
) -> None:
    options |= data.draw(constraints(graph.n_vertices)) | {"objective": objective}
    labels, levels = oracle.detect(graph, method, **options)
    with mock.patch.object(move, "SERIAL_ARCS", 0):
        result = getattr(api, method)(graph, device="cpu", threads=threads, **options)
    assert result.labels.tolist() == labels
    assert [
        (x.cycle, x.vertices, x.communities, x.modularity, x.iterations, x.arcs_visited)
        for x in result.levels
    ] == [
        (x.cycle, x.vertices, x.communities, x.modularity, x.iterations, x.arcs_visited)
        for x in levels
    ]
    check_constraints(graph, result, method, options)


def check_constraints(
    graph: Graph, result: lu.Communities, method: str, options: dict[str, Any]
) -> None:
    """Check the value, the size, fixed vertices, and for Leiden that communities are connected."""
    value = lu.modularity(graph, result, options["resolution"], objective=options["objective"])
    assert result.value == value
    if "max_size" in options and graph.n_vertices:
        assert result.sizes.max() <= options["max_size"]
    initial = options.get("initial", range(graph.n_vertices))
    fixed = options.get("fixed", [])
    # Communities of vertices that are the start's, where a start has parts that are apart.
    for u in fixed:
        for v in fixed:
            assert (result.labels[u] == result.labels[v]) == (initial[u] == initial[v])
    if method == "leiden" and not fixed:
        assert result.quality().disconnected == 0
