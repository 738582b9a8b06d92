"""The recorded sweep, the chart made from it, and what the guide says of both."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from louvain_um.profiling.replay_tables import fitting
from louvain_um.profiling.views.sweep import Sweep
from louvain_um.profiling.views.validation import by_policy, pairs, ratios, validation

HOUSE = Path(__file__).parents[2]
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


def test_the_record_says_what_was_cut(sweep):
    kinds = [(row["graph"], row["evidence"]) for row in sweep.results]
    assert kinds.count(("lfr", "measured")) == kinds.count(("lfr", "modelled")) == 55
    assert kinds.count(("rmat", "modelled")) == 55
    assert kinds.count(("rmat", "measured")) == 5
    assert any("5 measured points of rmat" in text for text in RECORD["about"])
    assert any("missing are 50 of rmat measured" in text for text in RECORD["about"])
    assert RECORD["machine"]["device"]["name"] == "NVIDIA H200"
    assert RECORD["verdict"] == validation(sweep).title


def test_the_guide_tells_how_far_the_model_is_off(sweep):
    rows = {row["policy"]: row for row in by_policy(sweep).rows}
    told = re.findall(r"^\| `?(\w+)`? \| (\d+)((?: \| \d\.\d\d){5}) \|$", GUIDE, re.MULTILINE)
    assert [policy for policy, *_ in told] == list(rows)
    for policy, runs, cells in told:
        row = rows[policy]
        assert int(runs) == row["runs"]
        keys = ("median seconds", "least seconds", "most seconds", "median bytes", "least bytes")
        assert cells.split(" | ")[1:] == [f"{row[key]:.2f}" for key in keys], policy


def test_the_guide_tells_why(sweep):
    seconds = {
        (row["policy"], row["oversubscription"], row["evidence"]): row["seconds"]
        - (row.get("load_seconds") or 0.0)
        for row in sweep.results
        if row["graph"] == "lfr" and row["feasible"]
    }
    away = (("adv5", "base"), ("adv7", "adv2"), ("adv8", "adv4"), ("adv9", "adv6"))
    more = [
        1e3 * (seconds[policy, rate, "measured"] - seconds[other, rate, "measured"])
        for policy, other in away
        for rate in (0, 10, 30)
    ]
    assert f"take {min(more):.0f} to {max(more):.0f} ms more" in " ".join(GUIDE.split())
    for policy, other in away:
        modelled = seconds[policy, 0, "modelled"] - seconds[other, 0, "modelled"]
        assert 0.5e-3 < modelled < 1.5e-3
    grid = json.loads((HOUSE / "benchmarks/results/policies_h200.json").read_text("utf-8"))
    large = {
        row["policy"]: row["seconds"]
        for row in grid["results"]
        if (row["graph"], row["oversubscription"], row["feasible"]) == ("lfr20", 0, True)
    }
    for policy, other in away:
        here = seconds[policy, 0, "measured"] - seconds[other, 0, "measured"]
        assert (large[policy] - large[other]) / here == pytest.approx(2, abs=0.3)
    few = ("base", "adv2", "adv3", "auto")
    missing = [
        1e3 * (seconds[policy, rate, "measured"] - seconds[policy, rate, "modelled"])
        for policy in few
        for rate in (0, 10, 30)
    ]
    took = [1e3 * seconds[policy, rate, "measured"] for policy in few for rate in (0, 10, 30)]
    told = re.search(
        r"(\d+) to (\d+) ms are missing .* take (\d+) to (\d+) ms:", " ".join(GUIDE.split())
    )
    assert [*map(int, told.groups())] == [round(f(v)) for v in (missing, took) for f in (min, max)]
    for policy in ("base", "adv3"):
        at = seconds[policy, 50, "measured"] / seconds[policy, 50, "modelled"]
        assert at == pytest.approx(2.5, abs=0.1)

    def order(evidence):
        there = [policy for policy, rate, how in seconds if (rate, how) == (50, evidence)]
        return sorted(there, key=lambda policy: seconds[policy, 50, evidence])

    assert [order(how)[:2] for how in ("measured", "modelled")] == [["auto", "adv2"]] * 2
    assert order("modelled")[2] == order("measured")[4] == "adv7"
    for rate in (0, 10, 30):
        for how in ("measured", "modelled"):
            fastest = min((s, p) for (p, at, by), s in seconds.items() if (at, by) == (rate, how))
            assert fastest[1] == "auto"
    first = fitting(sweep.results)[0]
    assert "lfr at 10 to 30 %: modelled and measured, base sends nothing" in first
    assert "147.4 MiB" in first
    least = {True: 1.0, False: 1.0}
    for mine, theirs in pairs(sweep.results):
        paged = bool(mine["bytes_to_host"])
        least[paged] = min(least[paged], ratios(mine, theirs)["bytes"])
    assert [round(100 * (1 - least[paged])) for paged in (False, True)] == [6, 15]


def test_the_chart_is_that_of_the_record(benchmark, tmp_path):
    benchmark.chart(RECORD, "lfr", tmp_path / "chart.svg")
    names = [
        set(re.findall(r">([^<>]*(?:measured|modelled)[^<>]*)<", path.read_text("utf-8")))
        for path in (tmp_path / "chart.svg", HOUSE / "docs/howto/sweep_h200.svg")
    ]
    assert names[0] == names[1]
    assert len(names[0]) >= 23  # eleven policies twice, and an axis
