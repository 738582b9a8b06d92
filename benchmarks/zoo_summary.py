"""What `zoo.py` recorded, by point: times in core beside what is wanted, bytes, predictions.

    python benchmarks/zoo_summary.py zoo_h200.json
    python benchmarks/zoo_summary.py after.json --before before.json

`*` is a point that takes longer than wanted, `^` one that takes longer than with less memory (by
more than a twentieth). Of several files, points of the last count. With `--before`, what whole runs
took, loading and labels included, before and after a change.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from common import save

BUDGETS = ("90%", "70%", "50%", "30%")
WANTED = {True: (1.2, 2.0, 3.0, 4.0), False: (1.1, 1.3, 1.7, 2.5)}
"""Times in core, by budget: where arcs per vertex are few, and elsewhere."""

FEW = 6
NEAR = 0.25
SLOWER = 1.05

Row = dict[str, Any]
Points = dict[tuple[str, str], dict[str | None, Row]]


def points(rows: list[Row]) -> Points:
    """Return the points of `auto` by kind and method, and by budget."""
    found: Points = defaultdict(dict)
    for row in rows:
        if row["policy"] == "auto":
            found[row["kind"], row["method"]][row["budget"]] = row
    return found


def wanted(row: Row) -> dict[str, float]:
    """Return the times in core that are wanted of a graph, by budget."""
    return dict(zip(BUDGETS, WANTED[row["arcs"] < FEW * row["vertices"]], strict=True))


def line(by_budget: dict[str | None, Row], met: Counter[str | tuple[str, str]]) -> str:
    """Return the line of a graph and method, and count what it met."""
    core = by_budget[None]
    text = f"{core['kind']:<15}{core['method']:<8}{1e3 * core['seconds']:8.1f} ms"
    there = [None, *(b for b in BUDGETS if b in by_budget and by_budget[b]["feasible"])]
    slower = {
        more
        for more, less in itertools.pairwise(there)
        if by_budget[more]["seconds"] > SLOWER * by_budget[less]["seconds"]
    }
    met["slower"] += len(slower)
    for budget in BUDGETS:
        row = by_budget.get(budget)
        if row is None or not row["feasible"]:
            text += "      -   " if row is None else "  refused "
            continue
        times, most = row["seconds"] / core["seconds"], wanted(core)[budget]
        met["met", budget] += times <= most
        met["points", budget] += 1
        met["overflow"] += bool(row["overflowed"])
        met["other labels"] += row["labels"] != core["labels"]
        text += f"{times:7.2f}{'*' if times > most else ' '}{'^' if budget in slower else ' '} "
    for budget, row in by_budget.items():
        if budget and budget not in BUDGETS and row["feasible"]:
            text += f" {budget}: {row['seconds'] / core['seconds']:.2f}"
    spilled = {
        name: side for r in by_budget.values() for name, side in (r.get("overflowed") or {}).items()
    }
    return f"{text} {spilled or ''}"


def told(rows: list[Row], text: str) -> str:
    """Return how many runs took what was predicted."""
    seconds = [(row["seconds"], row["plan"]) for row in rows]
    inside = sum(plan["seconds_range"][0] <= s <= plan["seconds_range"][2] for s, plan in seconds)
    parts = [f"{text}: of {len(rows)} runs {inside} in the range before"]
    for since in ("level_0", "cycle_0"):
        after = [
            plan[f"seconds_after_{since}"] / s
            for s, plan in seconds
            if plan.get(f"seconds_after_{since}")
        ]
        near = sum(abs(times - 1) <= NEAR for times in after)
        parts.append(f"{near} of {len(after)} within a quarter after {since.replace('_', ' ')}")
    return ", ".join(parts)


def whole_runs(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what whole runs took, loading and labels included, before and after a change."""
    rows = list[Row]()
    earlier = points(before["results"])
    for point, by_budget in points(after["results"]).items():
        for budget, row in by_budget.items():
            if budget not in earlier[point]:
                continue
            pair = earlier[point][budget], row
            rows.append(
                {
                    **{key: row[key] for key in ("kind", "method", "arcs", "weighted", "budget")},
                    "seconds_wall": [each["seconds_wall"] for each in pair],
                    "phases": [each["phases"] for each in pair],
                    "ratio": row["seconds_wall"] / pair[0]["seconds_wall"],
                    "ratio_without_loading": row["seconds"] / pair[0]["seconds"],
                    "same_labels": pair[0]["labels"] == row["labels"],
                }
            )
            print(
                f"{row['kind']:<15}{row['method']:<8}{budget or 'in core':<8}"
                f"{1e3 * pair[0]['seconds_wall']:8.0f} ms before {1e3 * row['seconds_wall']:8.0f} "
                f"after  ratio {rows[-1]['ratio']:.2f}, without loading "
                f"{rows[-1]['ratio_without_loading']:.2f}  same labels {rows[-1]['same_labels']}"
            )
    return {"machine": after["machine"], "before": before["machine"], "results": rows}


def main() -> None:
    """Print the summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--before", type=Path, help="compare whole runs with this record's")
    parser.add_argument("-o", "--out", type=Path, help="where the comparison is kept")
    chosen = parser.parse_args()
    if chosen.before:
        records = [json.loads(file.read_text()) for file in (chosen.before, *chosen.files[:1])]
        save("whole_runs_h200", whole_runs(*records), chosen.out)
        return
    rows = [r for f in chosen.files for r in json.loads(f.read_text())["results"]]
    found = points(rows)
    met: Counter[str | tuple[str, str]] = Counter()
    print(f"{'':<23}{'in core':>11}" + "".join(f"{budget:>9} " for budget in BUDGETS))
    for by_budget in found.values():
        if None in by_budget:
            print(line(by_budget, met))
    for budget in BUDGETS:
        print(f"{budget}: {met['met', budget]} of {met['points', budget]} within what is wanted")
    for what in ("slower", "overflow", "other labels"):
        print(f"{what}: {met[what]}")
    ran = [r for by_budget in found.values() for r in by_budget.values() if r["feasible"]]
    for fitted in (True, False):
        half = [row for row in ran if row["fitted"] == fitted]
        print(told(half, "kinds fitted to" if fitted else "other kinds"))


if __name__ == "__main__":
    main()
