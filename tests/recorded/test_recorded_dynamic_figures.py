"""Figures of changing graphs in the guide are those of the records."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.paths import ROOT
from tests.recorded.guide_tables import DOCS, close, rows_of

pytestmark = pytest.mark.records


def stores_in(name: str) -> tuple[dict[str, Any], dict[tuple[str, str, int], dict[str, float]]]:
    """Return a record of stores, and its batches by graph, store and size."""
    found = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())
    return found, {(row["graph"], row["store"], row["batch"]): row for row in found["results"]}


def test_following_is_as_good_as_was_measured():
    found = json.loads((ROOT / "benchmarks/results/tracking.json").read_text())["results"]
    page = (DOCS / "howto/follow.md").read_text(encoding="utf-8")
    rows, stream = dict[tuple[str, str], list[str]](), ""
    for line in re.findall(r"^\|(.* % \|.* % )\|$", page, re.MULTILINE):
        name, way, *cells = (cell.strip() for cell in line.split("|"))
        stream = name or stream
        rows[stream, {"`static` (Louvain)": "static-louvain"}.get(way, way.split("`")[1])] = cells
    assert set(rows) == {(row["stream"], row["mode"]) for row in found}
    for row in found:
        *quality, arcs, time, relabelled = rows[row["stream"], row["mode"]]
        for text, key in zip(quality, ("mean", "last_tenth", "min"), strict=True):
            assert close(text, row[key]), (row["stream"], row["mode"], key)
        assert close(arcs.removesuffix(" %"), 100 * row["arcs_share"])
        assert close(time, row["ms"] / row["static_ms"])
        assert close(relabelled.removesuffix(" %"), 100 * row["relabelled"])


def test_the_chart_of_following_is_of_what_was_measured(tmp_path):
    path = tmp_path / "follow.svg"
    script = ROOT / "benchmarks/tracking_chart.py"
    subprocess.run([sys.executable, script, path], check=True)
    assert path.read_text() == (DOCS / "howto/follow.svg").read_text()


def test_following_on_a_gpu_takes_what_was_measured():
    path = ROOT / "benchmarks/results/following_h200.json"
    found = json.loads(path.read_text())["results"]
    rows, page = rows_of("guide/changing.md"), (DOCS / "guide/changing.md").read_text()
    for label, kind, key in (
        ("apply", "frontier", "apply_ms"),
        ("update` without a renewal", "frontier", "follow_ms"),
        ("ids`, `changed` and `events`, if asked for", "frontier", "ids_ms"),
        ("update` with a renewal", "renewal", "follow_ms"),
    ):
        for text, graph in zip(rows[label], ("rmat22", "lfr22"), strict=True):
            assert close(text, found[graph][kind][key]), (label, graph)
    for text, graph in zip(rows["Leiden from single vertices"], ("rmat22", "lfr22"), strict=True):
        assert close(text, found[graph]["static_leiden_ms"])
    rates = [found[graph]["sustained_edges_per_second"] for graph in ("rmat22", "lfr22")]
    assert f"{round(rates[0], -4):,.0f} edges per\nsecond" in page
    assert f"{rates[1] / 1e6:.1f} million into LFR 22" in page


def test_stores_compared_are_those_measured():
    found, by = stores_in("stores")
    rows = rows_of("guide/stores.md")
    for graph, store, _ in by:
        cells = rows[f"{graph}, {store}"]
        expected = [
            by[graph, store, batch][f"{what}_ms"] / by[graph, "csr", batch][f"{what}_ms"]
            for what in ("insert", "delete")
            for batch in (1000, 100_000, 1_000_000)
        ]
        assert [float(cell) for cell in cells[:6]] == [float(f"{x:.2g}") for x in expected]
        assert cells[6] == f"{by[graph, store, 100_000]['bytes_per_arc']:.1f}"
    trials = {(r["graph"], r["store"]): r for r in found["trials"]}
    for (graph, store), record in trials.items():
        plain = trials[graph, "csr"]
        named = ("skewed_insert", "skewed_delete", "pagerank", "triangles", "remove_vertices")
        expected = [record[f"{what}_ms"] / plain[f"{what}_ms"] for what in named]
        expected.insert(2, record["sorted_insert_ms"] / record["shuffled_insert_ms"])
        cells = rows[f"{store} on {graph}"]
        assert [float(cell) for cell in cells] == [float(f"{x:.2g}") for x in expected]
        assert record["add_vertices_ms"] <= 0.15
        assert record["triangles"] == plain["triangles"]


def test_stores_on_stand_ins_for_graphs_of_papers_are_those_measured():
    script = ROOT / "benchmarks/stores_papers_shown.py"
    shown = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    page = (DOCS / "guide/stores.md").read_text()
    for table in shown.stdout.strip().split("\n\n"):
        assert f"\n\n{table}\n\n" in page
    record, _ = stores_in("stores_papers_h200")
    assert len(record["graphs"]) == 23


def test_stores_on_a_gpu_take_what_was_measured():
    found, by = stores_in("stores_h200")
    rows = rows_of("guide/stores.md")
    for graph, store, _ in by:
        cells = rows[f"H200: {graph}, {store}"]
        expected = [
            by[graph, store, batch][f"{what}_ms"]
            for what in ("insert", "delete")
            for batch in (1000, 100_000, 1_000_000)
        ]
        expected.append(by[graph, store, 1_000_000]["query_ms"])
        assert [float(cell) for cell in cells[:7]] == [float(f"{x:.2g}") for x in expected]
        assert cells[7] == f"{by[graph, store, 100_000]['bytes_per_arc']:.1f}"
    text = " ".join((DOCS / "guide/stores.md").read_text().split())
    waited = {(r["graph"], r["batch"]): r["insert_ms"] for r in found["pages_by_compare_and_swap"]}
    roads, power, communities = (
        waited[graph, 1_000_000] for graph in ("roads", "power law", "communities")
    )
    told = f"took {roads:.0f} ms on roads, {power:.0f} on power law and {communities:.0f} on"
    assert told in text


def test_batches_on_a_gpu_take_what_was_measured():
    path = ROOT / "benchmarks/results/dynamic_h200.json"
    found = json.loads(path.read_text())["results"]
    rows, page = rows_of("guide/changing.md"), (DOCS / "guide/changing.md").read_text()
    for batch in (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        for text, what in zip(rows[f"{batch:,}"], ("insert", "delete", "find"), strict=True):
            assert close(text, found[str(batch)][f"{what}_ms"]), (batch, what)
    for text in (
        f"{found['compact_ms']:.2f} ms, Louvain on the store {found['louvain_store_ms']:.0f} ms",
        f"compressed rows {found['louvain_csr_ms']:.0f}",
        f"arcs take {found['bytes_per_arc']:.2f} bytes",
        f"take {found['churn'][-1]['seconds']:.2f} s with the drawing",
        f"Arcs then take {found['churn'][-1]['bytes_per_arc']:.2f} bytes",
    ):
        assert text in page
    assert found["churn"][-1]["batch"] == 10_000
    assert len({sample["device_bytes"] for sample in found["churn"]}) == 1
    stores = (DOCS / "guide/stores.md").read_text()
    assert f"rebuilding them takes {found['compact_ms']:.2f} ms" in stores
    assert f"10,000 edges by `rows` {found['10000']['insert_ms']:.2f} in all" in stores


def test_allocations_by_ouroboros_take_what_was_measured():
    from louvain_um.dynamic.ouroboros import VARIANTS

    path = ROOT / "benchmarks/results/ouroboros_h200.json"
    found = json.loads(path.read_text())["allocators"]
    rows, page = rows_of("guide/stores.md"), (DOCS / "guide/stores.md").read_text()
    for variant, record in found.items():
        expected = [
            record["sizes"][size][what]
            for what in ("first", "again", "free")
            for size in ("16", "1024", "8192")
        ]
        cells = rows[f"malloc by {variant}"]
        assert [float(cell) for cell in cells] == [float(f"{x:.2g}") for x in expected]
        if "usable" in record:
            share = min(x for each in record["usable"].values() for x in each.values())
            assert f"{share:.1%}".replace("%", " %") + f" (`{variant}`)" in page
        if variant.endswith("-p"):
            assert max(each["again"] for each in record["sizes"].values()) < 0.1
    assert set(found) == {*VARIANTS, "cuda"}
    small = {variant: record["threads_16"]["1048576"] for variant, record in found.items()}
    for variant in ("s-p", "va-p", "vl-p"):
        assert 19.5 < small[variant]["first"] < 43.5
        assert 0.05 < small[variant]["again"] < 0.65
    for variant in ("s-c", "va-c", "vl-c"):
        assert all(6.5 < small[variant][what] < 9.55 for what in ("first", "again"))
    assert all(0.25 < small["cuda"][what] / 1e3 < 0.35 for what in ("first", "again"))
    assert 16.45 < found["cuda"]["threads_512"]["1048576"]["first"] / 1e3 < 16.6
    assert 4.15 < found["cuda"]["threads_8192"]["1048576"]["first"] / 1e3 < 4.25
    for variant in VARIANTS:
        assert 0.065 < found[variant]["threads_512"]["1048576"]["first"] / 1e3 < 0.195
        assert 0.95 < found[variant]["threads_8192"]["1048576"]["first"] / 1e3 < 3
    for size, times in found["cuda"]["sizes"].items():
        for variant in ("va-p", "vl-p"):
            mine = found[variant]["sizes"][size]
            assert all(mine[what] < times[what] for what in times), (variant, size)
