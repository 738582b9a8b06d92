"""The overhead of profiling as measured on a device, and as the guide states it."""

from __future__ import annotations

import json
from typing import Any

from tests.paths import ROOT

HOUSE = ROOT
RUNS: list[dict[str, Any]] = json.loads(
    (HOUSE / "benchmarks/results/profile_overhead_h200.json").read_text()
)["runs"]
POINTS: dict[tuple[str, str], dict[str, Any]] = {
    (run["policy"], budget): rows for run in RUNS for budget, rows in run["budgets"].items()
}
SOURCES = {
    "all three sources": "default", "`--light`": "light (--light)", "CUPTI alone": "cupti alone",
    "the tracer": "tracer",
}  # fmt: skip
COLUMNS = (("auto", "none"), ("base", "none"), ("base", "50%"))


def test_the_guide_tells_what_was_measured():
    page = (HOUSE / "docs/howto/profile.md").read_text()
    stated = {
        cells[0]: cells[1:]
        for line in page.splitlines()
        if line.startswith("|")
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
    }
    for name, source in SOURCES.items():
        for text, point in zip(stated[name], COLUMNS, strict=True):
            row = POINTS[point].get(source)
            assert text == ("" if row is None else f"{row['ratio']:.2f} ×"), (name, point)


def test_watching_stays_within_its_limits():
    resident = POINTS["auto", "none"]
    assert all(row["ratio"] <= 1.05 for name, row in resident.items() if name != "tracer")
    for rows in POINTS.values():
        for name, row in rows.items():
            assert row["ratio"] <= (8 if name == "tracer" else 2.5), name


def test_every_byte_belongs_to_a_group_and_to_the_drivers_count():
    for rows in POINTS.values():
        figures, groups = rows["default"]["figures"], rows["default"]["by_group"]
        counted = rows["default"]["about_sources"]["uvm"]["driver_totals"]
        for name in ("bytes_to_device", "bytes_to_host"):
            assert figures[name] == counted[name] == sum(each[name] for each in groups.values())
        assert figures["unattributed"] <= 0.001 * figures["memory_events"]
        assert figures["dropped"] == 0
    assert POINTS["base", "50%"]["default"]["figures"]["bytes_to_host"] > 0
