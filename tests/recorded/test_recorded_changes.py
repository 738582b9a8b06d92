"""What single changes gained, by two versions in turns, beside what was recorded of them."""

from __future__ import annotations

import json
import re
import statistics

import pytest

from tests.paths import ROOT
from tests.recorded.guide_tables import DOCS, assert_shown, close

pytestmark = pytest.mark.records

HOUSE = ROOT


def test_rows_that_leave_early_took_as_long_as_said():
    file = HOUSE / "benchmarks/results/rows_early_h200.json"
    rows = json.loads(file.read_text())["results"]
    took: dict[tuple[str, str, str], float] = {}
    for row in rows:
        key = row["rows"], row["kind"], row["budget"]
        took[key] = min(took.get(key, row["seconds"]), row["seconds"])
    assert len({(row["kind"], row["labels"]) for row in rows}) == 2
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    shown = re.search(
        r"takes ([\d.]+) and ([\d.]+) of the time with 30 %, ([\d.]+) and ([\d.]+) with 50", page
    ).groups()
    points = [(kind, budget) for budget in ("30%", "50%") for kind in ("rmat", "nested_blocks")]
    for text, point in zip(shown, points, strict=True):
        assert close(text, took["early", *point] / took["late", *point])


def test_rows_in_the_same_order_took_as_long_as_said():
    file = HOUSE / "benchmarks/results/sorted_rows_h200.json"
    rows = json.loads(file.read_text())["results"]
    took = {
        (row["call"], row["kind"], row["method"], row["budget"], row["version"]): row["seconds"]
        for row in rows
    }
    assert len({(row["call"], row["kind"], row["method"], row["labels"]) for row in rows}) == 14
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    shown = re.findall(r"1 : ([\d.]+) : ([\d.]+)", page)
    for cells, budget in zip(shown, ("90%", "50%", "30%"), strict=True):
        runs = [key[:4] for key in took if key[0] == 1 and key[3:] == (budget, "before")]
        for cell, version in zip(cells, ("turns", "after"), strict=True):
            ratios = [took[*run, version] / took[*run, "before"] for run in runs]
            assert close(cell, statistics.geometric_mean(ratios))
    larger = {
        key[2:4]: seconds / took[*key[:4], "turns"]
        for key, seconds in took.items()
        if key[:2] == (2, "lfr_mixing_5") and key[4] == "after" and key[3]
    }
    cells = re.findall(
        r"took ([\d.]+) times as long in the same order with 30 % by Louvain, and ([\d.]+) to "
        r"([\d.]+) times otherwise",
        page,
    )[0]  # fmt: skip
    values = larger.pop(("louvain", "30%")), min(larger.values()), max(larger.values())
    assert_shown(cells, values)


def test_holes_of_pages_cost_what_is_said():
    file = HOUSE / "benchmarks/results/holes_h200.json"
    rows = json.loads(file.read_text())["results"]
    assert len({(row["kind"], row["method"], row["arcs"], row["labels"]) for row in rows}) == 13
    large = {(row["version"], row["budget"]): row for row in rows if row["arcs"] > 3e8}
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    shown = re.search(
        r"read ([\d.]+) GB over the bus instead of ([\d.]+), "
        r"and took ([\d.]+) times as long as in core instead of ([\d.]+)",
        page,
    ).groups()
    runs = [large[version, "90%"] for version in ("one hole", "several")]
    for cell, run in zip(shown[:2], runs, strict=True):
        assert close(cell, run["bytes_read_in_place"] / 1e9)
    for cell, run in zip(shown[2:], runs, strict=True):
        assert close(cell, run["seconds"] / large[run["version"], None]["seconds"])


def test_jumps_in_tables_of_hubs_gained_what_is_said():
    file = HOUSE / "benchmarks/results/hub_tables_h100.json"
    rows = json.loads(file.read_text())["results"]
    assert len({(row["kind"], row["method"], row["labels"]) for row in rows}) == 6
    took = {
        (row["version"], row["method"], row["budget"], row["kind"]): row["seconds"] for row in rows
    }
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    text = page.partition("what is launched ahead, ")[2].partition("hub_tables_h100.json")[0]
    shown = re.findall(r"(?<!\d)\d?\.\d+", text)
    points = [
        (method, budget, kind)
        for method in ("leiden", "louvain")
        for budget in (None, "90%")
        for kind in ("rmat", "kronecker", "hub_and_leaf")
    ]
    for cell, point in zip(shown, points, strict=True):
        assert close(cell, took["after", *point] / took["before", *point])
    entries = (HOUSE / "CHANGELOG.md").read_text(encoding="utf-8").split("\n- ")
    (entry,) = (each for each in entries if "hub_tables_h100.json" in each)
    ratios = {
        budget: [took["after", *p] / took["before", *p] for p in points if p[1] == budget]
        for budget in (None, "90%")
    }
    ends = [end for each in ratios.values() for end in (min(each), max(each))]
    for cell, end in zip(re.findall(r"(?<!\d)\d?\.\d+", entry), ends, strict=True):
        assert close(cell, end)


def test_sums_that_return_nothing_took_as_long_as_said():
    record = json.loads((HOUSE / "benchmarks/results/reductions_h200.json").read_text())
    took: dict[tuple[str, ...], float] = {}
    for row in record["results"]:
        key = row["version"], row["graph"].split(":")[0], row["method"]
        seconds = statistics.median(row["algorithm_seconds"])
        took[key] = min(took.get(key, seconds), seconds)
    for row in record["zoo"]:
        key = row["version"], row["kind"], row["method"], str(row["budget"])
        took[key] = min(took.get(key, row["seconds"]), row["seconds"])
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    text = page.partition("asks for no old value")[2].partition("reductions_h200.json")[0]
    pairs = re.findall(r"([\d.]+\d) \(([\d.]+)\) (?:of the time before )?on", text)
    graphs = ("road", "lfr22", "hub_and_leaf", "stencil150", "rmat22")
    for shown, graph in zip(pairs, graphs, strict=True):
        for cell, method in zip(shown, ("louvain", "leiden"), strict=True):
            assert close(cell, took["after", graph, method] / took["before", graph, method])
    (less,) = re.findall(r"Louvain took ([\d.]+) of the time on", text)
    for kind in ("road", "chains"):
        ran = (kind, "louvain", "30%")
        assert close(less, took["after", *ran] / took["before", *ran])
    guide = " ".join((DOCS / "guide/memory.md").read_text(encoding="utf-8").split())
    ends = re.findall(
        r"unweighted graphs otherwise ([\d.]+) to ([\d.]+) times, and weighted ones, "
        r"whose shares of less memory are smaller, ([\d.]+) to ([\d.]+) times",
        guide,
    )[0]  # fmt: skip
    ratios = {
        key[1:]: took["after", *key[1:]] / seconds
        for key, seconds in took.items()
        if key[0] == "before" and key[-1] == "30%"
    }
    heavy = [ratio for run, ratio in ratios.items() if run[0] in ("nearest", "bipartite")]
    others = [
        ratio for run, ratio in ratios.items()
        if run[0] not in ("nearest", "bipartite")
        and run[:2] not in (("road", "louvain"), ("chains", "louvain"))
    ]  # fmt: skip
    for text, value in zip(ends, (min(others), max(others), min(heavy), max(heavy)), strict=True):
        assert close(text, value)
    labels = {
        (row.get("graph", row.get("kind")), row["method"], row["labels"])
        for row in (*record["results"], *record["zoo"])
        if row["version"] != "tried"
    }
    assert len(labels) == len({key[:2] for key in labels})


def test_chunks_sized_by_a_sample_gained_what_is_said():
    file = HOUSE / "benchmarks/results/chunks_sampled_h200.json"
    rows = json.loads(file.read_text())["results"]
    assert len({(row["kind"], row["labels"]) for row in rows}) == 5
    took = {
        (row["version"], row["budget"], row["kind"], row["round"]): row["seconds"] for row in rows
    }
    times: dict[tuple[str, str], list[float]] = {}
    shortest: dict[tuple[str, str, str], float] = {}
    for (version, budget, kind, turn), seconds in took.items():
        if budget:
            core = took[version, None, kind, turn]
            times.setdefault((version, budget), []).append(seconds / core)
            key = version, budget, kind
            shortest[key] = min(shortest.get(key, seconds), seconds)
    means = {key: statistics.geometric_mean(values) for key, values in times.items()}
    clock = [
        statistics.geometric_mean(
            shortest["after", budget, kind] / shortest["before", budget, kind]
            for kind in {row["kind"] for row in rows}
        )
        for budget in ("90%", "50%")
    ]
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    shown = re.search(
        r"took ([\d.]+) times as long as in core with 90 %, and ([\d.]+) before, ([\d.]+) and "
        r"([\d.]+) with 50 %, each in the mean; by the clock, ([\d.]+) and ([\d.]+) of",
        page,
    ).groups()
    points = [(v, b) for b in ("90%", "50%") for v in ("after", "before")]
    assert_shown(shown, [*(means[point] for point in points), *clock])
    # Of one version, two processes; and of geometric graphs, each with 90 %.
    apart = [
        max(both) / min(both)
        for version, budget, kind, turn in took
        if turn == 1
        for both in [[took[version, budget, kind, each] for each in (1, 2)]]
    ]
    ratios = [
        took[version, "90%", "geometric", turn] / took[version, None, "geometric", turn]
        for version in ("before", "after")
        for turn in (1, 2)
    ]
    guide = " ".join((DOCS / "guide/memory.md").read_text(encoding="utf-8").split())
    ends = re.search(
        r"two processes lay up to ([\d.]+) times apart, and Leiden on geometric graphs took "
        r"([\d.]+) to ([\d.]+) times as long as in core with 90 %",
        guide,
    )
    assert_shown(ends.groups(), (max(apart), min(ratios), max(ratios)))


def test_kernels_asked_for_host_memory_as_often_as_said():
    rows = json.loads((HOUSE / "benchmarks/results/bus_requests_h200.json").read_text())["results"]
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    text = page.partition("By the hardware's counters")[2].partition("bus_requests_h200.json")[0]
    shown = re.findall(r"([\d.]+) million(?: of them)? at ([\d.]+)", text)
    points = ("small_world", "move"), ("road", "refine"), ("random", "sum_arcs")
    for cells, point in zip(shown, points, strict=True):
        # Launches that find all they read on the device ask for next to nothing.
        own = [r for r in rows if (r["kind"], r["kernel"]) == point and r["requests"] > 50_000]
        requests, seconds = (sum(row[key] for row in own) for key in ("requests", "seconds"))
        assert_shown(cells, (requests / 1e6, requests / seconds / 1e6))
        if point[0] == "small_world":
            (cell,) = re.findall(r"of (\d+) bytes each", text)
            assert close(cell, 32 * sum(row["sectors"] for row in own) / requests)


def test_rows_by_sub_rounds_took_as_long_as_said():
    file = HOUSE / "benchmarks/results/rows_by_rounds_h200.json"
    rows = [row for row in json.loads(file.read_text())["results"] if row["budget"]]
    took = {(row["version"], row["kind"], row["method"]): row for row in rows}
    runs = [
        key[1:] for key in took if key[0] == "by sub-rounds" and ("as they are", *key[1:]) in took
    ]
    assert len(runs) == 8

    def ratio(run: tuple[str, str], phase: str = "") -> float:
        after, before = took["by sub-rounds", *run], took["as they are", *run]
        if phase:
            return float(after["phases"][phase] / before["phases"][phase])
        return float(after["seconds"] / before["seconds"])

    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    text = page.partition("a request brings several rows then.")[2].partition("rows_by_rounds")[0]
    shown = re.findall(r"(?<!\d)\d?\.\d+", text)
    for phase in ("move", "aggregate"):
        ratios = [ratio(run, phase) for run in runs]
        assert_shown([shown.pop(0), shown.pop(0)], (min(ratios), max(ratios)))
    for kind in ("small_world", "road", "bipartite", "geometric"):
        ratios = [ratio(run) for run in runs if run[0] == kind]
        assert_shown([shown.pop(0), shown.pop(0)], (min(ratios), max(ratios)))
    assert not shown


def test_whole_runs_on_kept_pages_took_as_long_as_said():
    file = HOUSE / "benchmarks/results/kept_pages_h200.json"
    rows = json.loads(file.read_text())["results"]
    assert all(row["same_labels"] for row in rows)
    assert len({row["kind"] for row in rows}) == 5
    page = " ".join((DOCS / "guide/memory.md").read_text(encoding="utf-8").split())
    text = page.partition("labels included, take")[2].partition("kept_pages_h200")[0]
    shown = re.findall(r"(?<!\d)\.\d+", text)
    for budget in ("90%", "50%"):
        ratios = [row["ratio"] for row in rows if row["budget"] == budget]
        assert_shown([shown.pop(0), shown.pop(0)], (min(ratios), max(ratios)))
    assert not shown


def test_packing_beside_the_driver_took_as_long_as_said():
    file = HOUSE / "benchmarks/results/packing_beside_h200.json"
    ratios = [row["ratio"] for row in json.loads(file.read_text())["results"] if row["budget"]]
    page = " ".join((DOCS / "internals.md").read_text(encoding="utf-8").split())
    text = page.partition("is no way out:")[2].partition("packing_beside_h200")[0]
    shown = re.findall(r"(?<![\d])\d?\.\d+", text)
    assert_shown(shown, (min(ratios), max(ratios), statistics.median(ratios)))
