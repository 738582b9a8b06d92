"""Figures of the guide about runs with less memory, beside what was recorded of them."""

from __future__ import annotations

import itertools
import json
import re
import statistics

from tests.paths import ROOT
from tests.recorded.guide_tables import DOCS, close

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
    assert longer == [
        (kind, "leiden", "70%" if kind == "cliques" else "90%")
        for kind in ("lattice", "geometric", "nearest", "cliques")
    ]
    assert "Four runs took longer with more memory by more than a twentieth: Leiden on" in text
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
    for cell, value in zip(cells, values, strict=True):
        assert close(cell, value)


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
    for cell, value in zip(shown, [*(means[point] for point in points), *clock], strict=True):
        assert close(cell, value)
    guide = " ".join((DOCS / "guide/memory.md").read_text(encoding="utf-8").split())
    ends = re.search(r"took ([\d.]+) to ([\d.]+) times as long as in core with 90 %", guide)
    ratios = [
        took[v, "90%", kind, turn] / took[v, None, kind, turn]
        for v, budget, kind, turn in took
        if (budget, kind) == ("90%", "geometric")
    ]
    for cell, value in zip(ends.groups(), (min(ratios), max(ratios)), strict=True):
        assert close(cell, value)
