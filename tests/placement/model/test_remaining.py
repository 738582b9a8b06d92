"""What is expected of a run when level 1 is there."""

import itertools
import json
from dataclasses import replace

import pytest

import louvain_um as lu
from louvain_um.gpu.memory.shape import Shape
from louvain_um.options import Budget
from louvain_um.placement.model.remaining import CLEAR, FITTED, LEVELS, Found
from louvain_um.planning import plan_shape
from tests.paths import RESULTS

RECORDED = [
    run
    for run in json.loads((RESULTS / "graph_kinds_h200.json").read_text("utf-8"))["results"]
    if run["feasible"]
]
VERTICES, ARCS = 4_000_000, 100_000_000
CLEARLY = int(VERTICES / (CLEAR * (ARCS / VERTICES + 1)))
"""Most communities that are clear."""


def known(
    seconds=0.1, arcs=ARCS // 2, vertices=2_000_000, communities=None, visited=4.0, **options
):
    shape = {name: options.pop(name) for name in ("isolated", "skew") if name in options}
    plan = lu.plan(n_vertices=VERTICES, n_arcs=ARCS, machine="h200", **options)
    communities = vertices if communities is None else communities
    found = Found(
        seconds=seconds,
        visited=visited,
        arcs=arcs,
        vertices=vertices,
        communities=communities,
        **shape,
    )
    return plan.remaining(found)


def test_leiden_works_on_all_levels_again_unless_level_0_leaves_clear_communities():
    weak = known(communities=CLEARLY + 1, method="leiden")
    clear = known(communities=CLEARLY, method="leiden")
    assert clear.clear
    assert not weak.clear
    assert weak.after_cycle(0.2) > 2 * FITTED.again * weak.coarse(1) + 0.2
    assert 0.2 < clear.after_cycle(0.2) < weak.after_cycle(0.2)
    # Louvain's second cycle moves level 0 once, mostly, and makes few communities of it.
    once = known().visit * ARCS
    assert known().after_cycle(0.2) == pytest.approx(0.2 + (1 + FITTED.aggregate) * once)
    found = known(communities=CLEARLY)
    assert 0.2 + once < found.after_cycle(0.2) < known().after_cycle(0.2)


def test_isolated_vertices_are_no_small_communities():
    alone = VERTICES // 2
    found = known(vertices=alone + 2000, communities=alone + 1000, isolated=alone)
    assert found.clear
    assert not known(vertices=alone + 2000, communities=alone + 1000).clear
    assert found.launches < known(vertices=alone + 2000, communities=alone + 1000).launches
    assert found.seconds > replace(found, rates=replace(FITTED, idle=0.0)).seconds


def test_levels_keep_no_more_than_the_level_before():
    assert 0 < known().shrinks < 1
    assert known(arcs=ARCS).arcs == LEVELS * ARCS
    assert known().arcs < known(arcs=ARCS).arcs / 2
    # Arcs of hubs fall together, and those of vertices that begin in communities.
    assert known(skew=100.0).shrinks < known().shrinks
    assert known(communities=20_000).shrinks < known().shrinks


def test_more_arcs_and_more_vertices_take_longer():
    few, many = known(arcs=ARCS // 10), known()
    assert few.seconds < many.seconds < known(vertices=3_000_000).seconds
    # Twice as much of the input also means more levels.
    assert 2 * many.coarse(many.visits) < known(arcs=ARCS).coarse(many.visits)


def test_what_level_0_took_is_the_measure():
    launch = known().launch
    once, twice = (known(seconds=launch + seconds) for seconds in (0.1, 0.2))
    later = [run.coarse(run.visits) + run.again for run in (once, twice)]
    of_vertices = known(seconds=launch / 2)
    fixed = of_vertices.coarse(of_vertices.visits)
    assert later[1] - fixed == pytest.approx(2 * (later[0] - fixed))
    # More visits in the same time: each takes less.
    assert known(visited=8.0).visit < known().visit


def test_vertices_that_begin_in_communities_are_visited_less_often():
    few, half, all_ = (known(communities=c).visits for c in (20_000, 1_000_000, 2_000_000))
    assert 1 < few < half < all_
    # Where neither arcs nor vertices became fewer, nothing says where they go.
    assert known(arcs=ARCS, vertices=VERTICES, communities=VERTICES).visits > 5 * all_


def test_what_waits_for_the_bus_is_distinguished_from_computing():
    paged = known(seconds=1.0, device_budget="50%")
    assert paged.limit
    here = paged.visit * ARCS * (4 + FITTED.aggregate)
    assert paged.away == pytest.approx(1.0 - paged.launch - here)
    assert 0 < paged.coarse_away < paged.away
    # What fits in addition to the next level waits for little.
    small = known(seconds=1.0, arcs=ARCS // 20, device_budget="50%")
    assert small.coarse_away < paged.coarse_away / 50
    assert not known(seconds=1.0).away
    # A run in pages that takes no longer than one in core waits for nothing.
    assert known(seconds=1e-3, device_budget="50%").away == pytest.approx(0.0)


def test_less_memory_takes_no_less():
    # From 40 % on, scratch and the input take fewer bytes.
    budgets = (None, "90%", "70%", "50%")
    for method in ("louvain", "leiden"):
        runs = [
            known(seconds=0.1 + 0.1 * at, arcs=9 * ARCS // 10, method=method, device_budget=b)
            for at, b in enumerate(budgets)
        ]
        for more, less in itertools.pairwise(runs):
            assert less.away >= more.away
            assert less.seconds >= more.seconds


def test_another_machine_scales_what_was_not_measured():
    run = known(seconds=1.0, device_budget="50%")
    slow = replace(run.work.machine, device_random_rate=run.work.machine.device_random_rate / 2)
    other = replace(run, work=replace(run.work, machine=slow))
    assert other.visit == pytest.approx(2 * run.visit)
    assert other.away < run.away


@pytest.mark.records
def test_recorded_runs_are_expected_to_within_a_quarter():
    """From plans of what is recorded of each graph; skewed ones take up to twice as long."""
    right = {"level 0": [], "level 0, others": [], "cycle 0": []}
    for run in RECORDED:
        if run["kind"].startswith("skewed"):
            continue
        first = [level for level in run["levels"] if level[0] == 0]
        if run["policy"] != "auto" or len(first) < 2:
            continue
        shape = Shape(
            vertices=run["vertices"], arcs=run["arcs"], method=run["method"], **run["shape"]
        )
        skew = shape.skew * shape.arcs / shape.vertices
        budget = Budget.parse(run["budget_bytes"])
        plan = plan_shape(shape, "auto", budget, "h200", skew=skew)
        (_, _, _, seconds, _, visited, communities), (_, vertices, arcs, *_) = first[:2]
        there = Found(
            seconds=seconds,
            visited=visited / shape.arcs,
            arcs=arcs,
            vertices=vertices,
            communities=communities,
            isolated=shape.isolated,
            skew=shape.skew,
            max_degree=shape.max_degree or 0,
        )
        found = plan.remaining(there)
        near = abs(found.seconds / run["seconds"] - 1) <= 0.25
        right["level 0"].append(near)
        if not run["fitted"]:
            right["level 0, others"].append(near)
        spent = sum(level[3] for level in first)
        right["cycle 0"].append(abs(found.after_cycle(spent) / run["seconds"] - 1) <= 0.25)
    assert [len(runs) for runs in right.values()] == [200, 100, 200]
    level_0, others, cycle_0 = map(sum, right.values())
    assert min(level_0 / 2, others, cycle_0 / 2) >= 90
