"""Figures of the guide about runs with less memory, beside what was recorded of them."""

from __future__ import annotations

import itertools
import json
import re
import statistics

import pytest

from tests.paths import ROOT
from tests.recorded.guide_tables import DOCS, close

pytestmark = pytest.mark.records

HOUSE = ROOT


def test_what_less_memory_costs_is_what_was_measured():
    results = json.loads((HOUSE / "benchmarks/results/zoo_h200.json").read_text())["results"]
    rows = [row for row in results if row["policy"] == "auto"]
    points = {(row["kind"], row["method"], row["budget"]): row for row in rows}
    graphs = list(dict.fromkeys((row["kind"], row["method"]) for row in rows))
    page = (DOCS / "guide/memory.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| [^|]+ \| ([\d.]+) \| (Louvain|Leiden) \| (.*) \|$", page, re.MULTILINE)
    budgets = ("90%", "70%", "50%", "30%")
    assert len(table) == len(graphs) == 40
    for (degree, method, cells), (kind, own) in zip(table, graphs, strict=True):
        core = points[kind, own, None]
        assert method.lower() == own
        assert close(degree, core["arcs"] / core["vertices"])
        shown, *times = cells.split(" | ")
        assert close(shown, 1e3 * core["seconds"])
        for text, budget in zip(times, budgets, strict=True):
            assert close(text, points[kind, own, budget]["times"]), (kind, own)
    text = " ".join(page.split())
    for method, name in (("louvain", "Louvain"), ("leiden", "Leiden")):
        mine = [[points[k, m, b]["times"] for k, m in graphs if m == method] for b in budgets]
        medians = [f"{statistics.median(column):.2f}" for column in mine]
        assert f"{', '.join(medians[:3])} and {medians[3]} for {name}" in text
    less = [row for row in rows if row["budget"]]
    assert not any(row["overflowed"] for row in less)
    assert f"in none of the {len(less)} runs with less memory" in text
    longer = [
        (kind, method, more)
        for kind, method in graphs
        for more, fewer in itertools.pairwise((None, *budgets))
        if points[kind, method, more]["seconds"] > 1.05 * points[kind, method, fewer]["seconds"]
    ]
    assert longer == [("small_world", "leiden", "90%"), ("cliques", "louvain", "90%")]
    assert "Two runs took longer with more memory by more than a twentieth: Leiden on" in text
    others = [row for row in rows if not row["fitted"]]

    def inside(some):
        spans = [(row["seconds"], row["plan"]["seconds_range"]) for row in some]
        return sum(low <= seconds <= high for seconds, (low, _, high) in spans)

    def near(some, since):
        found = [row["plan"][f"seconds_after_{since}"] / row["seconds"] for row in some]
        return sum(abs(times - 1) <= 0.25 for times in found)

    assert f"Of {len(rows)} runs, {inside(rows)} took a time in the range" in text
    assert f"{inside(others)} of the {len(others)} runs on kinds" in text
    after = near(rows, "level_0"), near(others, "level_0"), near(rows, "cycle_0")
    assert "in {}, and in {} of these 100; after the first cycle in {}.".format(*after) in text
    bare = [row for row in results if row["policy"] == "zero_copy"]
    ran = [row for row in bare if row["feasible"]]
    slower = [
        row["seconds"] / points[row["kind"], row["method"], row["budget"]]["seconds"] for row in ran
    ]
    low, high, count, lacked = re.search(
        r"took ([\d.]+) to ([\d.]+) times as long as `auto` at (\d+) points, "
        r"and lacked memory at (\d+)",
        text,
    ).groups()
    assert (int(count), int(lacked)) == (len(ran), len(bare) - len(ran))
    assert close(low, min(slower))
    assert close(high, max(slower))


def test_a_graph_in_four_gibibytes_took_what_the_guide_says():
    page = " ".join((DOCS / "guide/memory.md").read_text(encoding="utf-8").split())
    record = json.loads((HOUSE / "benchmarks/results/zoo_4gib_h200.json").read_text())
    core, small = record["results"]
    size = f"{small['vertices'] / 1e6:.0f} million vertices"
    size += f" and {small['arcs'] / 1e6:,.0f} million arcs"
    assert f"{size} took {small['seconds']:.2f} s in 4 GiB, {small['times']:.2f} times" in page
    assert f"it took {core['touched_bytes'] / 1e9:.1f} GB" in page
    low, _, high = small["plan"]["seconds_range"]
    after = small["plan"]["seconds_after_level_0"]
    assert f"{low:.1f} to {high:.1f} s were predicted, and {after:.2f} s after level 0" in page
    assert low <= small["seconds"] <= high
    assert core["labels"] == small["labels"]


def test_packing_and_placement_gain_what_readme_says():
    rows = json.loads((HOUSE / "benchmarks/results/packing_h200.json").read_text())["results"]
    times = {(r["graph"], r["budget"], r["way"]): r["times"] for r in rows if r["budget"]}
    assert all(row["same_labels"] for row in rows if row["budget"])
    names = {"LFR": "lfr24", "R-MAT": "rmat24"}
    page = (HOUSE / "README.md").read_text(encoding="utf-8")
    table = re.findall(
        r"^\| (LFR|R-MAT) \| (\d+) %" + 4 * r" \| ([\d.]+)" + r" \|$",
        page, re.MULTILINE,
    )  # fmt: skip
    ways = [f"{policy}, {bits} bits" for policy in ("auto", "adv2") for bits in (24, 32)]
    assert len(table) == 6
    for name, percent, *cells in table:
        for text, way in zip(cells, ways, strict=True):
            assert close(text, times[names[name], f"{100 - int(percent)}%", way])
    found = {way: [times[key] for key in times if key[2] == way] for way in ways}

    def shares(one, other):
        return [a / b for a, b in zip(found[one], found[other], strict=True)]

    text = " ".join(page.split())
    low, high = re.search(r"`auto` takes (\.\d+) to (\.\d+) of the time of `adv2`", text).groups()
    placed = shares("auto, 32 bits", "adv2, 32 bits")
    assert close(low, min(placed))
    assert close(high, max(placed))
    low, high = re.search(r"takes that to ([\d.]+) to ([\d.]+) of it", text).groups()
    packed = shares("auto, 24 bits", "auto, 32 bits")
    assert close(low, min(packed))
    assert close(high, max(packed))
    low, high = re.search(r"gains `adv2` (\d+) to (\d+) %", text).groups()
    gained = [100 - 100 * share for share in shares("adv2, 24 bits", "adv2, 32 bits")]
    assert close(low, min(gained))
    assert close(high, max(gained))


def test_figures_of_a_neighbours_memory_are_those_measured():
    page = (HOUSE / "docs/guide/cluster.md").read_text(encoding="utf-8")
    inside = " ".join((HOUSE / "docs/internals.md").read_text(encoding="utf-8").split())
    record = json.loads((HOUSE / "benchmarks/results/peer_h200.json").read_text())
    cores, slower = {}, {}
    for graph, name in {"lfr24": "LFR 24", "rmat24": "R-MAT 24"}.items():
        shown = re.search(rf"^\| {name} \| ([\d.]+ \| .* \| .* \| .*) \|$", page, re.MULTILINE)
        alone, *figures = shown.group(1).split(" | ")
        core, *found = (row for row in record["results"] if row["graph"] == graph)
        assert close(alone, 1e3 * core["seconds"])
        times = {row["device_budget"]: row["seconds"] / core["seconds"] for row in found}
        for row in found:
            milliseconds, ratio = figures[:2] if row["device_budget"] == "50%" else figures[2:]
            assert row["equal"]
            assert close(milliseconds, 1e3 * row["seconds"])
            assert close(ratio, times[row["device_budget"]])
        before = [row for row in record["as_beside_the_host"] if row["graph"] == graph]
        slower[graph] = {r["device_budget"]: r["seconds"] / core["seconds"] for r in before}
        cores[graph] = times
    every = [times for by in slower.values() for times in by.values()]
    assert f"took {min(every):.2f} to {max(every):.2f} times as long as in\ncore" in page
    core, *hosted = (row["seconds"] for row in record["earlier"])
    assert "{:.2f} (50 %) and {:.2f} times (30 %)".format(*(s / core for s in hosted)) in page
    (ours, hubs), (was, were) = ([by[g]["30%"] for g in by] for by in (cores, slower))
    assert f"takes {ours:.2f} (LFR 24) and {hubs:.2f} times (R-MAT 24)" in inside
    assert f"the first {was:.2f} and {were:.2f}" in inside


def test_another_host_took_what_the_guide_says():
    page = " ".join((DOCS / "guide/memory.md").read_text(encoding="utf-8").split())
    first, second = (
        {
            (row["kind"], row["method"], row["budget"]): row
            for row in rows
            if row["policy"] == "auto"
        }
        for rows in (
            json.loads((HOUSE / f"benchmarks/results/{name}.json").read_text())["results"]
            for name in ("zoo_h200", "zoo_second_host_h200")
        )
    )
    core = [row["seconds"] / first[key]["seconds"] for key, row in second.items() if not key[2]]
    assert f"runs in core took {statistics.median(core):.2f} times as long" in page
    less = {key: row["times"] for key, row in second.items() if key[2]}
    for method, name in (("louvain", "Louvain"), ("leiden", "Leiden")):
        medians = [
            f"{statistics.median(t for (_, m, b), t in less.items() if (m, b) == (method, at)):.2f}"
            for at in ("90%", "70%", "50%", "30%")
        ]
        assert f"{', '.join(medians[:3])} and {medians[3]} for {name}" in page
    ratios = [times / first[key]["times"] for key, times in less.items()]
    span = f"{min(ratios):.2f} to {max(ratios):.2f}".removeprefix("0")
    assert f"single multiples were {span} times those above" in page
    plans = [(row["seconds"], row["plan"]) for row in second.values()]
    inside = sum(p["seconds_range"][0] <= s <= p["seconds_range"][2] for s, p in plans)
    assert f"Of {len(plans)} runs, {inside} took a time in the range before them" in page

    def near(rows):
        return sum(
            abs(row["plan"]["seconds_after_level_0"] / row["seconds"] - 1) <= 0.25 for row in rows
        )

    others = [row for row in second.values() if not row["fitted"]]
    assert (
        f"was right in {near(second.values())}, and in {near(others)} of the {len(others)}" in page
    )
    assert all(row["labels"] == first[key]["labels"] for key, row in second.items())
