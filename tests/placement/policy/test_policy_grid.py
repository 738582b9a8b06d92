"""All policies by oversubscription, as measured, and what the model says of each run today."""

import functools
import json

import pytest

import louvain_um as lu
from louvain_um.placement.policy.policy import POLICY_NAMES
from tests.paths import RESULTS

pytestmark = pytest.mark.records

KINDS = ("lfr24", "rmat24")
RATES = (0, 10, 30, 50, 70)
EVERY = json.loads((RESULTS / "policies_h200.json").read_text("utf-8"))["results"]
POINTS = {
    (row["graph"], row["oversubscription"], row["policy"]): row
    for row in EVERY if row["graph"] in KINDS
}  # fmt: skip
MEASURED = ("base", *(f"adv{i}" for i in range(1, 10)), "device", "zero_copy", "auto")
"""Policies of the grid. Later ones join once `benchmarks/policies.py` has measured them."""

RUNS = [row for row in POINTS.values() if row["feasible"]]
NAMES = "{0[graph]} {0[policy]} {0[oversubscription]} %".format


@functools.cache
def planned_at(*point):
    row = POINTS[point]
    kind = "community_structured" if row["graph"].startswith("lfr") else "power_law"
    return lu.plan(
        n_vertices=row["vertices"], n_arcs=row["arcs"], kind=kind,
        memory=row["policy"], device_budget=row["budget_bytes"], machine="h200",
    )  # fmt: skip


def planned(row):
    return planned_at(row["graph"], row["oversubscription"], row["policy"])


def test_the_grid_is_whole_and_every_run_found_the_same_communities():
    whole = {(graph, rate, name) for graph in KINDS for rate in RATES for name in MEASURED}
    assert set(MEASURED) <= set(POLICY_NAMES)
    assert {point for point in POINTS if point[2] in MEASURED} == whole
    assert all("fault_groups" in row for row in RUNS if row["policy"] != "device")
    for graph in KINDS:
        assert len({row["labels_hash"] for row in RUNS if row["graph"] == graph}) == 1


def test_what_was_refused_says_how_much_is_missing():
    refused = [row for row in POINTS.values() if not row["feasible"]]
    assert refused
    assert all(f"{row['missing']:,} bytes more" in row["reason"] for row in refused)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("graph", KINDS)
def test_auto_is_the_best_there_is(graph, rate):
    seconds = {
        name: POINTS[graph, rate, name]["seconds_best"]
        for name in MEASURED if POINTS[graph, rate, name]["feasible"]
    }  # fmt: skip
    auto = seconds.pop("auto")
    assert auto <= 1.05 * min(seconds.values())
    assert auto <= seconds.get("base", auto)
    assert auto <= 2 * POINTS[graph, 0, "auto"]["seconds_best"]


def test_runs_take_about_as_long_as_they_did():
    assert not [
        NAMES(row)
        for row in RUNS
        if planned(row).seconds != pytest.approx(row["seconds_best"], rel=0.35)
    ]


def explained(plan):
    """Return the seconds of a plan in core, of groups in host memory and of arriving data."""
    on_host = [g for g, there in plan.placements.items() if there.kind == "host_mapped"]
    came = sum(took for stage, took in plan.expected.arrival.items() if stage != "load")
    groups = sum(plan.reasons[group].phi for group in on_host)
    return plan.seconds_in_core + groups + sum(plan.expected.out_of_core.values()) + came


def test_what_groups_are_said_to_cost_adds_up():
    plans = {NAMES(row): planned(row) for row in RUNS if row["policy"].startswith("adv")}
    assert plans
    assert not [
        name
        for name, plan in plans.items()
        if explained(plan) != pytest.approx(plan.seconds, rel=0.06)
    ]


LOADED = [
    row for row in RUNS
    if row["phases"]["load"] < 2 and (row["policy"] != "auto" or not row["oversubscription"])
]  # fmt: skip
"""Runs of which none compiled kernels while it loaded; `auto` packs arcs in other cases now."""


def test_loading_takes_about_as_long_as_it_did():
    assert LOADED
    assert not [
        NAMES(row)
        for row in LOADED
        if planned(row).stage_seconds["load"] != pytest.approx(row["phases"]["load"], rel=0.5)
    ]


@pytest.mark.parametrize("graph", KINDS)
def test_auto_costs_next_to_nothing_where_all_fits(graph):
    auto, device = (POINTS[graph, 0, name]["seconds_best"] for name in ("auto", "device"))
    assert auto <= 1.03 * device
