"""The recorded sweep, the chart made from it, and what the guide says of both."""

from __future__ import annotations

import importlib
import json
import re
import statistics

import pytest

import louvain_um as lu
from louvain_um.generators import lfr
from louvain_um.profiling.sweep.replay_tables import fitting
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.views.sweep.validation import (
    LIMITS,
    by_policy,
    misses,
    pairs,
    ratios,
    validation,
)
from tests.paths import ROOT

HOUSE = ROOT
RECORD = json.loads((HOUSE / "benchmarks/results/sweep_h200.json").read_text("utf-8"))
GUIDE = (HOUSE / "docs/howto/policies.md").read_text("utf-8")


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HOUSE / "benchmarks")
        return importlib.import_module("sweep_recorded")


@pytest.fixture(scope="module")
def sweep():
    return Sweep.of(RECORD["results"])


def test_the_record_is_whole(sweep):
    kinds = [(row["graph"], row["evidence"]) for row in sweep.results]
    for graph in ("lfr", "rmat"):
        for evidence in ("measured", "modelled"):
            assert kinds.count((graph, evidence)) == 55
    assert not any("missing" in text for text in RECORD["about"])
    assert RECORD["machine"]["device"]["name"] == "NVIDIA H200"
    assert RECORD["verdict"] == validation(sweep).title


def test_the_guide_tells_how_much_less_the_plan_of_today_lays_out(sweep):
    then = max(row.get("peak_bytes", 0) for row in sweep.results if row["graph"] == "lfr")
    plan = lu.plan(lfr(1 << 18, seed=1).graph, memory="base", device_budget="100%", machine="h200")
    less = 100 - 100 * plan.limit / then
    assert f"the plan of today lays out {less:.0f} % less for LFR" in " ".join(GUIDE.split())


def test_the_guide_tells_how_far_the_model_is_off(sweep):
    rows = {row["policy"]: row for row in by_policy(sweep).rows}
    told = re.findall(r"^\| `?(\w+)`? \| (\d+)((?: \| \d\.\d\d){5}) \|$", GUIDE, re.MULTILINE)
    assert [policy for policy, *_ in told] == list(rows)
    for policy, runs, cells in told:
        row = rows[policy]
        assert int(runs) == row["runs"]
        keys = ("median seconds", "least seconds", "most seconds", "median bytes", "least bytes")
        assert cells.split(" | ")[1:] == [f"{row[key]:.2f}" for key in keys], policy


def told(pattern):
    """Return the numbers that the guide tells in a sentence."""
    found = re.search(pattern, " ".join(GUIDE.split()))
    assert found is not None, pattern
    return [float(number) for number in found.groups()]


@pytest.fixture(scope="module")
def seconds(sweep):
    return {
        (row["graph"], row["policy"], row["oversubscription"], row["evidence"]): row["seconds"]
        - (row.get("load_seconds") or 0.0)
        for row in sweep.results
        if row["feasible"]
    }


def off(seconds, *, graphs=("lfr", "rmat"), policies=None, rates=(0, 10, 30, 50, 70)):
    """Return modelled by measured seconds of some runs."""
    return [
        seconds[graph, policy, rate, "modelled"] / value
        for (graph, policy, rate, evidence), value in seconds.items()
        if evidence == "measured" and graph in graphs and rate in rates
        and (policies is None or policy in policies)
    ]  # fmt: skip


def test_the_guide_tells_how_many_runs_are_within_limits(sweep, seconds):
    pattern = r"within 40 % in (\d+) of (\d+) runs, on R-MAT, .* in (\d+) of (\d+); "
    ours, rmat = off(seconds), off(seconds, graphs=("rmat",))
    within = [sum(abs(ratio - 1) <= 0.4 for ratio in some) for some in (ours, rmat)]
    assert told(pattern) == [within[0], len(ours), within[1], len(rmat)]
    runs = [ratios(mine, theirs) for mine, theirs in pairs(sweep.results)]
    kept = [sum(name not in misses(run) for run in runs) for name in ("bytes", "fault_groups")]
    assert told(r"bytes are within 5 % in (\d+), fault groups within 30 % in (\d+)") == kept


def test_the_guide_tells_what_scratch_on_the_host_costs(seconds):
    away = (("adv5", "base"), ("adv7", "adv2"), ("adv8", "adv4"), ("adv9", "adv6"))

    def more(graph, evidence):
        return [
            round(1e3 * (seconds[graph, policy, rate, evidence] - beside))
            for policy, other in away
            for rate in (0, 10, 30)
            if (beside := seconds.get((graph, other, rate, evidence))) is not None
        ]

    pattern = r"take (\d+) to (\d+) ms more on LFR .*, modelled (\d+); on R-MAT, .* hubs, "
    pattern += r"(\d+) to (\d+) ms, modelled (\d+)"
    lfr, rmat = more("lfr", "measured"), more("rmat", "measured")
    assert {len({*more(graph, "modelled")}) for graph in ("lfr", "rmat")} == {1}
    there = [more(graph, "modelled")[0] for graph in ("lfr", "rmat")]
    assert told(pattern) == [min(lfr), max(lfr), there[0], min(rmat), max(rmat), there[1]]


def test_the_guide_tells_where_the_model_still_misses(sweep, seconds):
    few, rates = ("base", "adv3"), (0, 10, 30)
    took = {
        evidence: [1e3 * seconds["lfr", p, rate, evidence] for p in few for rate in rates]
        for evidence in ("measured", "modelled")
    }
    ends = [round(f(took[how])) for how in ("measured", "modelled") for f in (min, max)]
    pattern = r"take (\d+) to (\d+) ms where nothing leaves, modelled (\d+) to (\d+)"
    assert told(pattern) == ends
    assert statistics.median(off(seconds)) == pytest.approx(0.9, abs=0.01)
    outside = [ratio for ratio in off(seconds) if abs(ratio - 1) > 0.4]
    assert outside == [min(off(seconds, graphs=("lfr",), policies=["base"]))]
    longer = off(seconds, policies=["adv4"], rates=rates) + off(seconds, policies=["adv6"])
    assert told(r"take (\d+) to (\d+) % longer in the model") == [
        round(100 * (f(longer) - 1)) for f in (min, max)
    ]
    same = [seconds["rmat", "adv7", rate, "measured"] for rate in (0, 10, 30, 50, 70)]
    assert [round(f(same), 2) for f in (min, max)] == told(
        r"took (\.\d+) s at one oversubscription and (\d\.\d+) at another"
    )
    assert seconds["rmat", "adv7", 0, "modelled"] == pytest.approx(0.91, abs=0.005)
    short: dict[bool, list[float]] = {True: [], False: []}
    for mine, theirs in pairs(sweep.results):
        paged = bool(mine["bytes_to_host"])
        short[paged].append(100 * (1 - ratios(mine, theirs)["bytes"]))
    assert [round(f(short[True])) for f in (min, max)] == told(r"blocks\*: (\d+) to (\d+) % are")
    assert sum(share > 5 for share in short[True]) == 2
    assert round(max(short[False])) <= 2
    assert min(short[False]) >= 0
    groups = {
        how: [row["fault_groups"] for row in sweep.results
              if (row["policy"], row["evidence"], row["feasible"]) == ("adv9", how, True)]
        for how in ("measured", "modelled")
    }  # fmt: skip
    modelled, measured = told(r"(\d+) modelled for about (\d+) measured where the hash tables")
    assert {*groups["modelled"]} == {modelled}
    assert statistics.median(groups["measured"]) == measured


def test_the_same_policies_are_first(sweep, seconds):
    for graph in ("lfr", "rmat"):
        for rate in (0, 10, 30, 50, 70):
            for how in ("measured", "modelled"):
                here = {
                    p: s
                    for (g, p, at, by), s in seconds.items()
                    if (g, at, by) == (graph, rate, how)
                }
                order = sorted(here, key=lambda policy: here[policy])
                assert here["auto"] <= 1.01 * here[order[0]]
                if (graph, rate) == ("lfr", 50):
                    assert order[:2] == ["auto", "adv2"]
    first = fitting(sweep.results)[0]
    assert "lfr at 10 to 30 %: modelled and measured, base evicts nothing" in first
    assert "147.4 MiB" in first
    assert "79.4 MiB" in fitting(sweep.results)[1]


def test_the_guide_tells_of_the_grid_of_larger_graphs():
    grid = json.loads((HOUSE / "benchmarks/results/validation_grid_h200.json").read_text("utf-8"))
    known = [row for row in grid["results"] if row["ratio"]]
    kept = {name: sum(name not in row["misses"] for row in known) for name in LIMITS}
    within = [each["within"] for each in grid["kept"].values()]
    for name, count in kept.items():
        assert sum(int(each[name].split()[0]) for each in within) == count
    seconds = [row["ratio"]["seconds"] for row in known]
    pattern = (
        r"within 5 % in (\d+) of (\d+) runs, fault groups within 30 % in (\d+), seconds within "
    )
    pattern += r"40 % in (\d+) and within 25 % in (\d+), (\d\.\d+) of the measured"
    closer = sum(abs(ratio - 1) <= 0.25 for ratio in seconds)
    median = round(statistics.median(seconds), 2)
    expected = [kept["bytes"], len(known), kept["fault_groups"], kept["seconds"], closer, median]
    assert told(pattern) == expected
    outside = {row["policy"] for row in known if "seconds" in row["misses"]}
    assert outside == {"adv4", "adv6", "adv8"}


def test_the_guide_tells_of_the_older_validation():
    record = json.loads((HOUSE / "benchmarks/results/validation_h200.json").read_text("utf-8"))
    known = [row["ratio"] for row in record["results"] if row["ratio"]]
    ends = {
        name: [abs(round(100 * (f(run[name] for run in known) - 1))) for f in (min, max)]
        for name in LIMITS
    }
    assert record["within"] == dict.fromkeys(LIMITS, "11 of 11") | {"bytes": "10 of 11"}
    groups, seconds = ends["fault_groups"], ends["seconds"]
    pattern = r"in 11 of 11 for fault groups \(−(\d+) to \+(\d+) %\) and seconds "
    assert told(pattern + r"\(−(\d+) to \+(\d+) %\)") == [*groups, *seconds]
    assert told(r"half of the memory moves (\d+) % less than then") == [ends["bytes"][0]]


def test_the_chart_is_that_of_the_record(benchmark, tmp_path):
    benchmark.chart(RECORD, "lfr", tmp_path / "chart.svg")
    names = [
        set(re.findall(r">([^<>]*(?:measured|modelled)[^<>]*)<", path.read_text("utf-8")))
        for path in (tmp_path / "chart.svg", HOUSE / "docs/howto/sweep_h200.svg")
    ]
    assert names[0] == names[1]
    assert len(names[0]) >= 23  # eleven policies twice, and an axis
