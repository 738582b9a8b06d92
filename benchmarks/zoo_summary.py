"""What `zoo.py` recorded, by point: times in core beside what is wanted, bytes, predictions.

    python benchmarks/zoo_summary.py zoo_h200.json

`*` is a point that takes longer than wanted, `^` one that takes longer than with less memory (by
more than a twentieth). Of several files, points of the last count.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

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


def main() -> None:
    """Print the summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    rows = [r for f in parser.parse_args().files for r in json.loads(f.read_text())["results"]]
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
