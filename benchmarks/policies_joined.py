"""Join grids of policies with current predictions and verdicts.

    python benchmarks/policies_joined.py grid24.json grid20.json -o policies_h200.json

Reads files of `policies.py`. If a point was measured twice, the later file counts and the earlier
seconds are kept; points with events only are joined with their seconds. Needs no GPU: a prediction
follows from the graph's size and kind, the policy and the budget.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from common import save

import louvain_um as lu
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.policy.policy import POLICY_NAMES

KINDS = {"lfr": "community_structured", "rmat": "power_law", "sten": "mesh"}
"""Kinds of generated graphs, by prefix of their names."""

WITHIN = 0.35
"""Largest error of a prediction."""


def predicted(row: dict[str, Any]) -> dict[str, Any]:
    """Return the prediction for a point."""
    try:
        plan = lu.plan(
            n_vertices=row["vertices"],
            n_arcs=row["arcs"],
            kind=KINDS[row["graph"][:4].rstrip("0123456789")],
            memory=row["policy"],
            device_budget=row["budget_bytes"],
            machine="h200",
        )
    except MemoryBudgetError:
        return {}
    ratio = plan.seconds / row["seconds"]
    return {"predicted_seconds": plan.seconds, "predicted_by_measured": ratio}


def joined(files: list[Path]) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the machines and every point once, in the order of graphs, budgets and policies."""
    machines: list[Any] = []
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    for file in files:
        record = json.loads(file.read_text(encoding="utf-8"))
        known = record["machines"] if "machines" in record else [record["machine"]]
        machines += [machine for machine in known if machine not in machines]
        for row in record["results"]:
            key = row["graph"], row["oversubscription"], row["policy"]
            before = found.get(key, {})
            if "runs" not in row and "missing" not in row:  # events only
                if before:
                    found[key] = before | row
                continue
            moved = {k: v for k, v in before.items() if k.startswith(("bytes_", "fault"))}
            again = {"seconds_before": before["seconds"]} if "seconds" in before else {}
            where = {"machine": machines.index(known[row.get("machine", 0)])}
            found[key] = moved | again | row | where
    order = {name: i for i, name in enumerate(POLICY_NAMES)}
    keys = sorted(found, key=lambda key: (key[0], key[1], order[key[2]]))
    rows = [found[key] for key in keys]
    return machines, [
        row | predicted(row) | {"seconds_best": min(row["runs"])} if row["feasible"] else row
        for row in rows
    ]


def verdicts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return verdicts on policies against `auto`, and on predictions."""
    points: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["feasible"]:
            points.setdefault((row["graph"], row["oversubscription"]), {})[row["policy"]] = row
    found: dict[str, Any] = {}
    for (graph, percent), by_policy in points.items():
        others = {n: r["seconds_best"] for n, r in by_policy.items() if n != "auto"}
        if "auto" not in by_policy or not others:
            continue
        best = min(others, key=others.__getitem__)
        auto = by_policy["auto"]["seconds_best"]
        found[f"{graph} {percent} %"] = {
            "auto": auto,
            "by_in_core": auto / points[graph, 0]["auto"]["seconds_best"],
            "best_other": best,
            "by_best_other": auto / others[best],
            "policies": len(by_policy),
        }
    labels = {
        g: len({r["labels_hash"] for r in rows if r["graph"] == g and r["feasible"]})
        for g in {r["graph"] for r in rows}
    }
    spread = {}
    for graph in sorted(labels):
        ratios = [
            r["predicted_by_measured"]
            for r in rows
            if r["graph"] == graph and "predicted_by_measured" in r
        ]
        spread[graph] = {
            "points": len(ratios),
            "within": sum(1 - WITHIN <= ratio <= 1 + WITHIN for ratio in ratios),
            "least": min(ratios),
            "median": statistics.median(ratios),
            "most": max(ratios),
        }
    return {"auto": found, "labels_per_graph": labels, "predicted_by_measured": spread}


def show(rows: list[dict[str, Any]], told: dict[str, Any]) -> None:
    """Print seconds by policy and oversubscription, and the verdicts."""
    for graph in dict.fromkeys(row["graph"] for row in rows):
        mine = [row for row in rows if row["graph"] == graph]
        rates = sorted({row["oversubscription"] for row in mine})
        print(f"\n{graph:10}" + "".join(f"{rate:>9} %" for rate in rates))
        for policy in POLICY_NAMES:
            at = {r["oversubscription"]: r for r in mine if r["policy"] == policy}
            cells = (
                f"{'':>11}"
                if rate not in at
                else f"{at[rate]['seconds_best']:>11.4f}"
                if at[rate]["feasible"]
                else f"{'no room':>11}"
                for rate in rates
            )
            print(f"{policy:10}" + "".join(cells))
    print(json.dumps(told, indent=1))


def main() -> None:
    """Join, predict, judge, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    machines, rows = joined(chosen.files)
    told = verdicts(rows)
    show(rows, told)
    save("policies", {"machines": machines, "verdicts": told, "results": rows}, chosen.output)


if __name__ == "__main__":
    main()
