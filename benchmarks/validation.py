"""How close is the simulator to an H200? Measured policies, replayed with the same budgets.

    python benchmarks/validation.py [lfr20 rmat20] [--against results/policies_h200.json]

Takes the points that `policies.py` measured: seconds, managed bytes migrated and fault groups. The
CPU engine's run of each graph is recorded, and replayed under every policy with the budget of the
measured run. With a budget, a run moves vertex blocks itself, and the driver never has to evict;
this is what is replayed (`eviction="program"`): the same plan, arenas and block management. Copies
that the program makes before its first kernel are excluded. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import RESULTS, host_graph, machine, save

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.profiling.access.recorded_plans import peak_of
from louvain_um.profiling.access.recorder import record
from louvain_um.profiling.simulator import Driver, Trace
from louvain_um.profiling.sweep import replay
from louvain_um.profiling.views.sweep.validation import LIMITS, misses, ratios

Row = dict[str, Any]


def model(trace: Trace, policy: str, capacity: int, profile: Machine) -> Row:
    """Return time and traffic of a replay with this much device memory."""
    try:
        found = replay.run(
            trace, find_policy(policy), profile, capacity, Driver(eviction="program")
        )
    except MemoryBudgetError as error:
        return {"feasible": False, "reason": str(error)}
    terms = {name: value for name, value in found.costs.items() if value}
    return {**found.summary(), "terms": terms}


def compare(measured: Row, modelled: Row) -> Row:
    """Return the ratios modelled ÷ measured and the limits they miss; none if one of them failed.

    A ratio to a measured 0 is None, and a miss.
    """
    if not (measured["feasible"] and modelled["feasible"]):
        same = measured["feasible"] == modelled["feasible"]
        return {"ratio": None, "misses": [] if same else ["feasible"]}
    found = ratios(measured, modelled)
    finite = {name: None if value == float("inf") else value for name, value in found.items()}
    return {"ratio": finite, "misses": list(misses(found))}


def within(rows: Sequence[Row]) -> dict[str, str]:
    """Return, for each figure, the number of points within its limit."""
    found = {}
    for name in LIMITS:
        known = [
            row for row in rows
            if row["ratio"] and (row["ratio"][name] is not None or name in row["misses"])
        ]  # fmt: skip
        kept = sum(name not in row["misses"] for row in known)
        found[name] = f"{kept} of {len(known)}"
    return found


def replayed(points: Sequence[Row], name: str, profile: Machine) -> list[Row]:
    """Return measured and modelled figures of one graph's points."""
    kept = ("graph", "policy", "oversubscription", "seconds")
    trace = record(host_graph(name))
    peak, found = peak_of(trace), list[Row]()
    for point in points:
        if point["graph"] != name or not point["feasible"]:
            continue
        modelled = model(trace, point["policy"], point["budget_bytes"] or peak, profile)
        row = {key: point[key] for key in kept} | compare(point, modelled)
        if modelled["feasible"]:
            row |= {"seconds_modelled": modelled["seconds"] - modelled["load_seconds"]}
            row |= {"terms": modelled["terms"]}
        found.append(row)
        print({key: row[key] for key in (*kept, "ratio")}, flush=True)
    return found


def summary(rows: Sequence[Row]) -> Row:
    """Return the number of points within limits, and the errors in seconds."""
    seconds = [row["ratio"]["seconds"] for row in rows if row["ratio"]]
    return {
        "within": within(rows), "least": min(seconds), "median": statistics.median(seconds),
        "most": max(seconds),
    }  # fmt: skip


def main() -> None:
    """Replay every point, and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graphs", nargs="*", default=["lfr20", "rmat20"])
    parser.add_argument("--against", type=Path, default=RESULTS / "policies_h200.json")
    parser.add_argument("--machine", default="h200", help="profile to replay on")
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    measured = json.loads(asked.against.read_text())
    profile = load_machine(asked.machine)
    rows = [row for name in asked.graphs for row in replayed(measured["results"], name, profile)]
    by_graph = {
        name: summary([row for row in rows if row["graph"] == name])
        for name in dict.fromkeys(row["graph"] for row in rows)
    }
    where = {"machine": machine(), "measured_on": measured.get("machines", measured.get("machine"))}
    about = {**where, "profile": asked.machine, "limits": LIMITS, "summary": by_graph}
    print(by_graph, save("validation_h200", {**about, "results": rows}, asked.output))


if __name__ == "__main__":
    main()
