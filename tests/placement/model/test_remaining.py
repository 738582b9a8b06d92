"""What is expected of a run when level 1 is there."""

from __future__ import annotations

import itertools
import json

import pytest

import louvain_um as lu
from louvain_um.gpu.memory.shape import Shape
from louvain_um.options import Budget
from louvain_um.placement.model.remaining import LEVELS, Remaining
from louvain_um.planning import plan_shape
from tests.paths import BENCHMARKS

ZOO = [
    run
    for run in json.loads((BENCHMARKS / "results/zoo_h200.json").read_text("utf-8"))["results"]
    if run["feasible"]
]
ARCS = 100_000_000


def known(
    level_0=0.1, arcs=ARCS // 2, vertices=2_000_000, communities=None, **options
) -> Remaining:
    """Return what is known of a run of this size."""
    plan = lu.plan(n_vertices=4_000_000, n_arcs=ARCS, machine="h200", **options)
    return plan.remaining(level_0, arcs, vertices, communities or vertices)


def test_leiden_works_on_all_levels_again_unless_level_0_leaves_clear_communities():
    weak, clear = (known(vertices=v, method="leiden") for v in (2_000_000, 1_000_000))
    assert weak.after_cycle(0.2) == pytest.approx(0.2 + 2 * 0.4 * 0.2)
    assert clear.after_cycle(0.2) == pytest.approx(0.2 + 0.25 * 0.1)
    assert known().after_cycle(0.2) == pytest.approx(0.2 + 0.25 * 0.1)


def test_levels_keep_no_more_than_the_level_before():
    sizes = known().sizes
    assert len(sizes) == LEVELS
    assert sizes[0] == ARCS // 2
    assert sizes[1] == pytest.approx(ARCS // 2 / 8)
    assert known(arcs=ARCS).sizes == [ARCS] * LEVELS


def test_more_arcs_and_more_vertices_take_longer():
    few, many = known(arcs=ARCS // 10), known()
    assert few.seconds < many.seconds < known(vertices=3_000_000).seconds
    # Twice as much of the input also means more levels.
    assert 2 * many.computing < known(arcs=ARCS).computing


def test_vertices_that_begin_in_communities_are_visited_less_often():
    assert known(communities=20_000).computing < known(communities=1_000_000).computing
    assert known(communities=1_000_000).computing < known().computing


def test_less_memory_takes_no_less():
    # From 40 % on, scratch and the input take fewer bytes.
    budgets = (None, "90%", "70%", "50%")
    for method in ("louvain", "leiden"):
        runs = [known(arcs=9 * ARCS // 10, method=method, device_budget=b) for b in budgets]
        for more, less in itertools.pairwise(runs):
            assert sum(less.away) >= sum(more.away)
            assert less.seconds >= more.seconds
        assert not sum(runs[0].away)
        assert all(runs[-1].away[:2])


@pytest.mark.parametrize(("since", "share"), [("level 0", 0.8), ("cycle 0", 0.9)])
def test_recorded_runs_are_expected_to_within_a_quarter(since, share):
    """From plans of what is recorded of each graph."""
    right = []
    for run in ZOO:
        first = [level for level in run["levels"] if level[0] == 0]
        if run["policy"] != "auto" or len(first) < 2:
            continue
        shape = Shape(
            vertices=run["vertices"], arcs=run["arcs"], method=run["method"], **run["shape"]
        )
        skew = shape.skew * shape.arcs / shape.vertices
        budget = Budget.parse(run["budget_bytes"])
        plan = plan_shape(shape, "auto", budget, "h200", skew=skew)
        _, vertices, arcs, *_ = first[1]
        found = plan.remaining(first[0][3], arcs, vertices, first[0][6])
        spent = sum(level[3] for level in first)
        seconds = found.seconds if since == "level 0" else found.after_cycle(spent)
        right.append(abs(seconds / run["seconds"] - 1) <= 0.25)
    assert len(right) == 200
    assert sum(right) >= share * len(right)
