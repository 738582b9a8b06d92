"""All policies by oversubscription, as measured, and what the model says of each run today."""

from __future__ import annotations

import importlib
import json

import pytest

import louvain_um as lu
from louvain_um.placement.policy.policy import POLICY_NAMES
from tests.paths import BENCHMARKS

KINDS = ("lfr24", "rmat24")
RATES = (0, 10, 30, 50, 70)
EVERY = json.loads((BENCHMARKS / "results/policies_h200.json").read_text("utf-8"))["results"]
POINTS = {
    (row["graph"], row["oversubscription"], row["policy"]): row
    for row in EVERY if row["graph"] in KINDS
}  # fmt: skip
MEASURED = ("base", *(f"adv{i}" for i in range(1, 10)), "device", "zero_copy", "auto")
"""Policies of the grid. Later ones join once `benchmarks/policies.py` has measured them."""

RUNS = [row for row in POINTS.values() if row["feasible"]]
NAMES = "{0[graph]} {0[policy]} {0[oversubscription]} %".format


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("policies_joined")


def planned(row):
    kind = "community_structured" if row["graph"].startswith("lfr") else "power_law"
    return lu.plan(
        n_vertices=row["vertices"], n_arcs=row["arcs"], kind=kind,
        memory=row["policy"], device_budget=row["budget_bytes"], machine="h200",
    )  # fmt: skip


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


@pytest.mark.parametrize("row", RUNS, ids=NAMES)
def test_runs_take_about_as_long_as_they_did(row):
    assert planned(row).seconds == pytest.approx(row["seconds_best"], rel=0.35)


@pytest.mark.parametrize("row", [r for r in RUNS if r["policy"].startswith("adv")], ids=NAMES)
def test_what_groups_are_said_to_cost_adds_up(row):
    plan = planned(row)
    hosted = [g for g, there in plan.placements.items() if there.kind == "host_mapped"]
    came = sum(took for stage, took in plan.expected.arrival.items() if stage != "load")
    told = sum(plan.reasons[group].phi for group in hosted) + sum(
        plan.expected.out_of_core.values()
    )
    assert plan.seconds_in_core + told + came == pytest.approx(plan.seconds, rel=0.06)


def test_small_scratch_on_the_host_is_slower_and_not_chosen(monkeypatch):
    ran = json.loads((BENCHMARKS / "results/small_scratch_h200.json").read_text())["results"]
    roomy = [POINTS[row["graph"], row["oversubscription"], row["policy"]] for row in ran]
    assert not any(planned(row).low_scratch for row in roomy)
    monkeypatch.setattr("louvain_um.placement.plan.best_of", lambda found, limit: found[0])
    small = [planned(row) for row in ran]
    assert all(plan.low_scratch for plan in small)
    slower = [row["seconds"] / more["seconds_best"] for row, more in zip(ran, roomy, strict=True)]
    expected = [plan.seconds / row["seconds"] for plan, row in zip(small, ran, strict=True)]
    guide = (BENCHMARKS.parent / "docs/guide/why.md").read_text("utf-8")
    assert f"take {min(slower):.1f} to {max(slower):.1f} times as long" in guide
    assert f"predictions are {min(expected):.2f} to {max(expected):.2f} times" in guide


STEP = 64 << 21
"""Bytes of managed memory that the driver reaches for at once: 64 pages of 2 MiB, as far as there
are as many (`uvm_pmm_gpu.c` of the driver)."""


def test_the_driver_sees_what_was_planned_and_managed_memory_otherwise():
    seen = json.loads((BENCHMARKS / "results/driver_bytes_h200.json").read_text())["results"]
    guide = " ".join((BENCHMARKS.parent / "docs/guide/memory.md").read_text("utf-8").split())

    def more(policies, rates):
        rows = [r for r in seen if r["policy"] in policies and r["oversubscription"] in rates]
        assert {row["graph"] for row in rows} == set(KINDS)
        return [(row["bytes_measured"], row["bytes_planned"]) for row in rows]

    plain = [a - b for a, b in more(("auto", "device"), (0, 10, 30)) + more(("zero_copy",), RATES)]
    assert f"took {min(plain) / 1e6:.0f} to {max(plain) / 1e6:.0f} MB more" in guide
    split = more(("auto",), (50, 70))
    assert all(abs(a - b) <= STEP for a, b in split)
    assert f"took up to {100 * max(a / b - 1 for a, b in split):.1f} % more" in guide
    base = [100 * (1 - a / b) for a, b in more(("base",), (0,))]
    assert f"took {min(base):.0f} to {max(base):.0f} % less" in guide
    stays = [r for r in seen if (r["graph"], r["policy"]) == ("lfr24", "base")]
    taken, planned = next(
        (f"{r['bytes_measured'] / 1e9:.1f}", f"{r['bytes_planned'] / 1e9:.1f}")
        for r in stays if r["oversubscription"] == 30
    )  # fmt: skip
    assert f"a budget of {planned} GB was seen to take {taken}" in guide
    events = POINTS["lfr24", 30, "base"]
    gone, came = (f"{events[f'bytes_to_{way}'] / 1e9:.0f}" for way in ("host", "device"))
    assert f"{gone} of the {came} GB that came had gone again" in guide


LOADED = [
    row for row in RUNS
    if row["phases"]["load"] < 2 and (row["policy"] != "auto" or not row["oversubscription"])
]  # fmt: skip
"""Runs of which none compiled kernels while it loaded; `auto` packs arcs in other cases now."""


@pytest.mark.parametrize("row", LOADED, ids=NAMES)
def test_loading_takes_about_as_long_as_it_did(row):
    found = planned(row).stage_seconds["load"]
    assert found == pytest.approx(row["phases"]["load"], rel=0.5)


def test_files_are_joined_point_by_point(benchmark, tmp_path):
    point = {"graph": "lfr24", "vertices": 1 << 24, "arcs": 650_300_606, "policy": "base",
             "oversubscription": 0, "feasible": True, "budget_bytes": None}  # fmt: skip
    timed = {**point, "seconds": 1.0, "runs": [1.0], "labels_hash": 1}
    watched = {**point, "bytes_to_device": 7, "fault_groups": 3}
    again = {**timed, "seconds": 2.0, "runs": [2.0]}
    refused = {**point, "policy": "adv3", "feasible": False, "reason": "no room", "missing": 1}
    files = []
    for at, rows in enumerate(([timed], [watched, refused], [again])):
        files.append(tmp_path / f"{at}.json")
        record = {"machine": {"cores": 1 + at % 2}, "results": rows}
        files[-1].write_text(json.dumps(record), encoding="utf-8")
    machines, (base, adv3) = benchmark.joined(files)
    assert machines == [{"cores": 1}, {"cores": 2}]
    assert (base["seconds"], base["seconds_before"], base["machine"]) == (2.0, 1.0, 0)
    assert (base["bytes_to_device"], base["fault_groups"]) == (7, 3)
    assert base["predicted_by_measured"] == base["predicted_seconds"] / 2.0
    assert not adv3["feasible"]
    assert adv3["machine"] == 1
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps({"machines": machines, "results": [base, adv3]}), encoding="utf-8")
    assert benchmark.joined([whole]) == (machines, [base, adv3])


def test_the_guide_tells_how_far_sizes_alone_are_off():
    guide = (BENCHMARKS.parent / "docs/guide/memory.md").read_text("utf-8")
    guessed, used = [], []
    for row in EVERY:
        if (row["policy"], row["oversubscription"]) == ("auto", 0):
            reserved = row["plan"]["device_bytes"]
            guessed.append(100 * planned(row).device_bytes / reserved - 100)
            used.append(100 * sum(row["peak_bytes"].values()) / reserved)
    assert f"it is {min(guessed):.0f} to {max(guessed):.0f} % more" in guide
    assert f"took {min(used):.0f} to {max(used):.0f} % of what was reserved" in guide


def test_the_guide_tells_how_far_predictions_are_off():
    guide = " ".join((BENCHMARKS.parent / "docs/guide/why.md").read_text("utf-8").split())
    off = [(row["policy"], planned(row).seconds / row["seconds_best"]) for row in RUNS]
    auto = [times for name, times in off if name == "auto"]
    every = [times for _, times in off]
    assert (
        f"are {min(auto):.2f} to {max(auto):.2f} times those measured for `auto`, and "
        f"{min(every):.2f} to {max(every):.2f} times for all {len(every)} runs" in guide
    )


@pytest.mark.parametrize("graph", KINDS)
def test_auto_costs_next_to_nothing_where_all_fits(graph):
    auto, device = (POINTS[graph, 0, name]["seconds_best"] for name in ("auto", "device"))
    assert auto <= 1.03 * device


def test_a_group_in_host_memory_is_read_at_the_rate_of_copies():
    stream = json.loads((BENCHMARKS / "results/placement_stream_h200.json").read_text("utf-8"))
    assert all(share >= 0.85 for share in stream["share_of_pinned_copy"].values())
