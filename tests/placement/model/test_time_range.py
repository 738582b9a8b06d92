"""The range of seconds before a run, and what it depends on."""

import itertools
import json

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.generators import lfr
from louvain_um.gpu.memory.coarse_memory import arcs_range, expected_arcs
from louvain_um.gpu.memory.shape import Shape
from louvain_um.options import Budget
from louvain_um.placement.model.remaining import Found
from louvain_um.planning import plan_shape
from tests.paths import RESULTS

RECORDED = json.loads((RESULTS / "graph_kinds_h200.json").read_text("utf-8"))["results"]


@pytest.fixture(scope="module")
def graph():
    return lfr(1 << 15, seed=1).graph


@pytest.mark.parametrize("budget", [None, "70%", "30%"])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_a_range_holds_its_expectation(graph, method, budget):
    found = lu.plan(graph, method=method, device_budget=budget, machine="h200")
    span = found.seconds_range
    assert 0 < span.low < span.expected < span.high
    assert span.expected in span
    assert found.to_dict()["seconds_range"] == [span.low, span.expected, span.high]
    assert "triangles" in found.range_note


@pytest.mark.parametrize("n", [1, 3, 40, 3000])
def test_the_range_of_a_small_graph_holds_what_is_planned(n):
    path = lu.Graph.from_edges(np.arange(n - 1), np.arange(1, n), n_vertices=n)
    plan = lu.plan(path, machine="h200")
    assert plan.seconds in plan.seconds_range


def test_a_run_that_lacks_what_it_needs_in_core_is_not_said_to_be_in_core():
    shape = Shape(vertices=11_429_480, arcs=464_322_560, method="louvain")
    for budget, text in (("3.1GiB", "Would fit in core at its smallest"), ("8GiB", "Runs in core")):
        plan = plan_shape(shape, "auto", Budget.parse(budget), "h200")
        assert plan.verdict.startswith(text)


def test_less_memory_takes_no_less(graph):
    spans = [
        lu.plan(graph, device_budget=b, machine="h200").seconds_range
        for b in (None, "90%", "50%", "30%")
    ]
    for more, less in itertools.pairwise(spans):
        assert less.low >= 0.999 * more.low
        assert less.high >= 0.999 * more.high


def test_a_size_alone_tells_little_and_says_so():
    found = lu.plan(n_vertices=1 << 20, n_arcs=1 << 25, machine="h200")
    assert found.seconds_range.high > 5 * found.seconds_range.low
    assert "cannot be estimated from a size alone" in found.range_note


def test_the_range_narrows_when_level_1_is_known(graph):
    found = lu.plan(graph, machine="h200")
    level_0 = found.seconds_range.expected / 2
    few, many = (
        found.remaining(
            Found(seconds=level_0, visited=4.0, arcs=arcs, vertices=1000, communities=1000)
        ).seconds
        for arcs in (10_000, graph.n_arcs)
    )
    assert level_0 < few < many
    assert many - few < found.seconds_range.high - found.seconds_range.low


def test_triangles_and_hubs_bound_what_level_1_keeps():
    for method in ("louvain", "leiden"):
        for clustering in np.linspace(0, 1, 11):
            for skew in (1, 5, 80):
                low, expected, high = arcs_range(method, clustering, skew, 30)
                assert 0 <= low <= expected <= high <= 1
        assert expected_arcs(method, 0.0, 1, 30) > expected_arcs(method, 0.6, 1, 30)
    assert expected_arcs("leiden", 0.15, 80, 30) > expected_arcs("leiden", 0.15, 1, 30)


def test_labels_of_all_kinds_depend_on_no_budget():
    assert all(row.get("same_labels", True) for row in RECORDED if row["feasible"])


@pytest.mark.records
def test_kinds_that_nothing_was_fitted_to_took_as_long_as_said():
    rows = [row for row in RECORDED if row["policy"] == "auto"]
    inside = {True: 0, False: 0}
    for row in rows:
        shape = Shape(
            vertices=row["vertices"], arcs=row["arcs"], method=row["method"], **row["shape"]
        )
        skew = shape.skew * shape.arcs / shape.vertices
        plan = plan_shape(shape, "auto", Budget.parse(row["budget_bytes"]), "h200", skew=skew)
        inside[row["fitted"]] += row["seconds"] in plan.seconds_range
    assert len(rows) == 220
    assert (sum(inside.values()), inside[False]) == (205, 110)
