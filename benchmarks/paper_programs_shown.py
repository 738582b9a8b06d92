"""What a record of `paper_programs.py` says: how `auto` stands, a chart, and several as one.

    python benchmarks/paper_programs_shown.py record.json [older.json ...] -o joined.json

Of older records, points are taken that the newer ones lack; energy is all of the newest that has
any. With `--chart FILE` the joined record is drawn. Needs no GPU; prints what `auto` chooses now.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import common
import numpy as np

import louvain_um as lu
from louvain_um.algorithms.programs import WEIGHED, iterations_to, program_of

PROGRAMS = ("bfs", "sssp", "mst", "pagerank")
RATES = (0, 30, 50, 70)
PUBLISHED = {
    "speedup_mean": 2.46,
    "speedup_bfs": 4.59,
    "teps_per_watt_mean": 2.36,
    "bytes_saved_mean": 0.36,
    "bytes_saved_least": 0.08,
}
"""Of demand paging with kernel blocking over copies, on a P100: sections 5.2, 5.4 and 5.5."""

TOLERANCE = 1e-6
"""Of PageRank."""

Row = dict[str, Any]


def of_auto(rows: list[Row], program: str) -> list[Row]:
    """Return the points of `auto` that ran."""
    return [r for r in rows if r["feasible"] and (r["program"], r["policy"]) == (program, "auto")]


def fixed_beside(rows: list[Row], auto: Row) -> list[Row]:
    """Return the fixed policies that keep to the budget of a point of `auto`."""
    return [r for r in rows if r["feasible"] and r["program"] == auto["program"]
            and r["policy"] != "auto"
            and auto["oversubscription"] in r.get("rates", [r["oversubscription"]])]  # fmt: skip


def best_fixed(rows: list[Row], auto: Row) -> Row | None:
    """Return the fastest of them."""
    return min(fixed_beside(rows, auto), key=lambda r: r["seconds"], default=None)


def judged(record: Row) -> Row:
    """Return how `auto` stands beside the best fixed policy of each point, and beside `base`."""
    rows, points, gains, watts = record["results"], [], [], []
    for row in (row for program in PROGRAMS for row in of_auto(rows, program)):
        best = best_fixed(rows, row)
        managed = next((r for r in fixed_beside(rows, row) if r["policy"] == "base"), None)
        base = managed if managed and same_run(managed, row, "seconds") else None
        points.append({
            "program": row["program"], "oversubscription": row["oversubscription"],
            "auto_seconds": row["seconds"],
            "best_policy": best and best["policy"], "best_seconds": best and best["seconds"],
            "same_placements": best and best["placements"] == row["placements"],
            "gain_over_base": base and base["seconds"] / row["seconds"],
        })  # fmt: skip
        if best and "beside" in row and points[-1]["same_placements"]:
            points[-1] |= by_pairs(row["beside"]["gains"])
        elif best and "rounds" in row and len(best.get("rounds", ())) == len(row["rounds"]):
            gains_by_round = np.divide(best["rounds"], row["rounds"]).tolist()
            points[-1] |= {
                "gain_in_turns": statistics.median(gains_by_round),
                "least_gain": min(gains_by_round), "most_gain": max(gains_by_round),
            }  # fmt: skip
        if base:
            gains.append(base["seconds"] / row["seconds"])
        if managed and same_run(managed, row, "energy") and "joules" in row and "joules" in managed:
            watts.append(row["teps_per_watt"] / managed["teps_per_watt"])
    return {
        "points": points,
        "gain_over_base_mean": statistics.mean(gains) if gains else None,
        "teps_per_watt_over_base_mean": statistics.mean(watts) if watts else None,
    }


def by_pairs(gains: list[float]) -> Row:
    """Return the median of the quotients of pairs of runs, and between what it lies at 95 %."""
    order, n = sorted(gains), len(gains)
    # So many of n fall below the median, but for one in twenty times.
    low = max(0, int(n / 2 - 0.98 * n**0.5 - 0.5))
    return {
        "gain_in_turns": statistics.median(order), "pairs": n,
        "least_gain": order[low], "most_gain": order[n - 1 - low],
    }  # fmt: skip


def same_run(a: Row, b: Row, what: str) -> bool:
    """Whether seconds or energy of two rows are both of the newer run, or both of the earlier."""
    return (what in a.get("earlier", ())) == (what in b.get("earlier", ()))


def chosen_now(record: Row) -> list[Row]:
    """Return what `auto` chooses for the points of a record with the present cost model."""
    found = []
    for program in PROGRAMS:
        weighted = program in WEIGHED and program != "pagerank"
        asked = program_of(
            program, n_vertices=record["vertices"], n_arcs=record["arcs"], weighted=weighted,
            iterations=iterations_to(TOLERANCE, 500),
        )  # fmt: skip
        for rate in RATES:
            plan = lu.plan(asked, device_budget=f"{100 - rate}%" if rate else None, machine="h200")
            found.append({
                "program": program, "oversubscription": rate, "predicted_seconds": plan.seconds,
                "placements": {n: str(w) for n, w in plan.placements.items() if str(w) != "device"},
            })  # fmt: skip
    return found


def joined(newer: Row, older: Row) -> Row:
    """Return a record with what the newer one lacks of the older one's points and energy."""
    metered = any("joules" in row for row in newer["results"])
    rows = {key(row): row | {"earlier": ["seconds", "energy"]} for row in older["results"]}
    for row in newer["results"]:
        old = rows.get(key(row), {})
        same = old.get("placements") == row["placements"]
        rows[key(row)] = row
        if same and "joules" in old and not metered:
            row |= {name: old[name] for name in ("joules", "watts", "teps_per_watt")}
            row["earlier"] = ["energy"]
    order = sorted(rows.values(), key=lambda r: PROGRAMS.index(r["program"]))
    found = {**older, **newer, "results": order}
    found["traversed_edges"] = older["traversed_edges"] | newer["traversed_edges"]
    told = {name: older[name] for name in ("command", "machine", "idle_watts", "judged")}
    found["earlier"] = [*newer.get("earlier", []), told]
    for name in ("in_turns", "notes"):
        found.pop(name, None)
    return found


def key(row: Row) -> tuple[str, str, int]:
    """Return what a row is of."""
    return row["program"], row["policy"], row["oversubscription"]


def chart(record: Row, path: Path) -> None:
    """Draw seconds and TEPS by policy, bytes paged in, and times by pages per warp."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 7), layout="constrained")
    axes = figure.subplots(2, 3)
    ran = [row for row in record["results"] if row["feasible"]]
    bars = list(dict.fromkeys((row["policy"], row["oversubscription"]) for row in ran))
    for axis, name, unit, scale in (
        (axes[0, 0], "seconds", "ms", 1e3), (axes[0, 1], "teps", "GTEPS", 1e-9),
        (axes[0, 2], "teps_per_watt", "MTEPS/W", 1e-6),
    ):  # fmt: skip
        for at, (policy, rate) in enumerate(bars):
            found = {row["program"]: row for row in ran if key(row)[1:] == (policy, rate)}
            heights = [scale * found.get(program, {}).get(name, 0.0) for program in PROGRAMS]
            places = np.arange(len(PROGRAMS)) + (at - len(bars) / 2 + 0.5) * 0.8 / len(bars)
            label = policy + (f", {rate} % withheld" if policy == "auto" else "")
            axis.bar(places, heights, 0.8 / len(bars), label=label)
        axis.set_xticks(range(len(PROGRAMS)), PROGRAMS)
        axis.set_ylabel(unit)
    axes[0, 0].legend(fontsize="x-small")
    paged, axis = record["moved"], axes[1, 0]
    shares = [100 * (row["paged_bytes"] or 0) / row["copied_bytes"] for row in paged]
    axis.bar([row["program"] for row in paged], shares)
    axis.axhline(100, color="gray", linewidth=0.8)
    axis.set_ylabel("bytes paged in, % of a full copy")
    for row in record["blocking"]:
        curve = dict(sorted((int(pages), s) for pages, s in row["seconds"].items()))
        plain = curve.pop(0)
        label = row["program"] + " under " + row["policy"]
        axes[1, 1].plot(list(curve), [s / plain for s in curve.values()], "o-", label=label)
    axes[1, 1].set_ylabel("time, without blocking = 1")
    for kind, curve in record["pages_per_warp"].items():
        least = min(curve.values())
        times = [s / least for s in curve.values()]
        axes[1, 2].plot([int(k) for k in curve], times, "o-", label=f"blocked_for, {kind}")
    axes[1, 2].set_ylabel("time, best = 1")
    for axis in axes[1, 1:]:
        axis.set_xlabel("pages per warp")
        axis.legend(fontsize="x-small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Join, judge and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", nargs="+", type=Path, help="the newest first")
    parser.add_argument("--chart", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    record, *others = (json.loads(path.read_text()) for path in asked.records)
    for other in others:
        record = joined(record, other)
    record["judged"], record["now"] = judged(record), chosen_now(record)
    print(json.dumps([record["judged"], record["now"]], indent=1))
    if asked.output:
        print(common.save("paper_programs_h200", record, asked.output))
    if asked.chart:
        chart(record, asked.chart)


if __name__ == "__main__":
    main()
