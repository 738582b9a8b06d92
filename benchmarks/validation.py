"""Validate the simulator against an H200: the same graphs, policies and budgets.

    python benchmarks/validation.py                              # both, on a machine with a GPU
    python benchmarks/validation.py --measure -o measured.json   # on a machine with a GPU
    python benchmarks/validation.py --against measured.json      # then on any machine
    python benchmarks/validation.py --grid results/policies_h200.json -o grid.json

Each point is timed twice without profiling, of which the better counts, and recorded once with the
driver's events. The CPU engine's run of the graph is then replayed with the budget of the measured
run. Compared are managed bytes migrated, fault groups and seconds. Copies that the program makes
before its first kernel are excluded from all of them.

With a budget, a run moves vertex blocks itself, and the driver never has to evict. This is what is
replayed (`eviction="program"`): the same plan, arenas and block management. Constants of the model
were measured on other graphs (LFR 18, 22 and 24, R-MAT 22 and 24), except for atomics on one
address in host memory (R-MAT 20).

The last command replays the points of `benchmarks/policies.py`: all policies, more
oversubscriptions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import device_graph, host_graph, machine, save

import louvain_um as lu
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.machine_files import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.profiling.access.plans import peak_of
from louvain_um.profiling.simulator import Driver, Trace
from louvain_um.profiling.sweep import replay
from louvain_um.profiling.views.sweep.validation import LIMITS, misses, ratios

GRAPHS = ("lfr20", "rmat20")
POLICIES = ("base", "adv2", "auto")
BUDGETS = (100, 50)


def measure(graph: lu.Graph, policy: str, percent: int) -> dict[str, Any]:
    """Return time and traffic of a run with this percentage of its peak."""
    from louvain_um.api import run
    from louvain_um.options import Options
    from louvain_um.profiling.record.profiler import profile
    from louvain_um.profiling.sweep.measure import seconds_of

    options = Options(device="cuda", memory=policy, device_budget=f"{percent}%")
    try:
        runs = [run(graph, options) for _ in range(2)]
    except MemoryBudgetError as error:
        return {"feasible": False, "reason": str(error), "budget_bytes": error.budget}
    best = min(runs, key=seconds_of)
    session = profile(
        graph, device="cuda", memory=policy, device_budget=f"{percent}%", sources=("uvm",)
    )
    seen = session.summary()
    return {
        "feasible": True,
        "seconds": seconds_of(best),
        "seconds_runs": [seconds_of(each) for each in runs],
        "bytes_to_device": seen["bytes_to_device"],
        "bytes_to_host": seen["bytes_to_host"],
        "bytes_evicted": seen["bytes_evicted"],
        "fault_groups": seen["gpu_fault_groups"],
        "faults": seen["gpu_faults"],
        "remote_maps": seen["remote_maps"],
        "budget_bytes": best.provenance["budget_bytes"],
        "peak_bytes": sum(int(size) for size in best.memory.values()),
        "placements": best.provenance.get("placements"),
        "plan": best.provenance.get("plan"),
        "traffic_bytes": best.provenance.get("traffic_bytes"),
        "by_group": seen["by_group"],
        "sources": seen["sources"],
        "dropped": seen["dropped"],
        "modularity": best.modularity,
    }


def model(trace: Trace, policy: str, capacity: int, profile: Machine) -> dict[str, Any]:
    """Return time and traffic of a replay with this much device memory."""
    try:
        found = replay.run(
            trace, find_policy(policy), profile, capacity, Driver(eviction="program")
        )
    except MemoryBudgetError as error:
        return {"feasible": False, "reason": str(error)}
    terms = {name: value for name, value in found.costs.items() if value}
    groups = {
        group: {name: value for name, value in totals.items() if value}
        for group, totals in found.by_group().items()
    }
    about = {"terms": terms, "by_group": groups, "recorded_peak_bytes": trace.peak_bytes}
    return {**found.summary(), **about}


def compare(measured: dict[str, Any], modelled: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios modelled ÷ measured and the limits they miss; none if one of them failed.

    A ratio to a measured 0 is None, and a miss.
    """
    if not (measured["feasible"] and modelled["feasible"]):
        same = measured["feasible"] == modelled["feasible"]
        return {"ratio": None, "misses": [] if same else ["feasible"]}
    found = ratios(measured, modelled)
    told = {name: None if value == float("inf") else value for name, value in found.items()}
    return {"ratio": told, "misses": list(misses(found))}


def held(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
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


def measured_rows(names: Sequence[str]) -> list[dict[str, Any]]:
    """Measure every point of some graphs."""
    from louvain_um.api import run
    from louvain_um.options import Options

    rows = []
    for name in names:
        graph = device_graph(name).to_host()
        run(graph, Options(device="cuda", memory=find_policy("device")))
        for policy in POLICIES:
            for percent in BUDGETS:
                row = {"graph": name, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
                row |= {"policy": policy, "budget_percent": percent}
                row["measured"] = measure(graph, policy, percent)
                rows.append(row)
                print(name, policy, percent, row["measured"], flush=True)
    return rows


def with_model(rows: Sequence[dict[str, Any]], profile: Machine) -> list[dict[str, Any]]:
    """Return measured points with their replays."""
    from louvain_um.profiling.access.recorder import record

    found = []
    for name in dict.fromkeys(row["graph"] for row in rows):
        graph = host_graph(name)
        trace = record(graph)
        for row in (each for each in rows if each["graph"] == name):
            if (row["vertices"], row["arcs"]) != (graph.n_vertices, graph.n_arcs):
                raise SystemExit(f"{name}: the measured graph differs; measure it again")
            measured = row["measured"]
            modelled = model(trace, row["policy"], measured["budget_bytes"], profile)
            compared = compare(measured, modelled)
            found.append({**row, "modelled": modelled, **compared})
            print(name, row["policy"], row["budget_percent"], compared, flush=True)
    return found


def grid(
    points: Sequence[dict[str, Any]], names: Sequence[str], profile: Machine
) -> list[dict[str, Any]]:
    """Return measured and modelled figures of the points of `benchmarks/policies.py`."""
    from louvain_um.profiling.access.recorder import record

    kept = ("graph", "policy", "oversubscription", "seconds")
    found = []
    for name in names:
        trace = record(host_graph(name))
        peak = peak_of(trace)
        for point in points:
            if point["graph"] != name or not point["feasible"]:
                continue
            capacity = point["budget_bytes"] or peak
            modelled = model(trace, point["policy"], capacity, profile)
            row = {key: point[key] for key in kept} | compare(point, modelled)
            if modelled["feasible"]:
                row |= {"seconds_modelled": modelled["seconds"] - modelled["load_seconds"]}
                row |= {"terms": modelled["terms"]}
            found.append(row)
            print({key: row[key] for key in (*kept, "ratio")}, flush=True)
    return found


def told(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the number of points within limits, and the errors in seconds."""
    seconds = [row["ratio"]["seconds"] for row in rows if row["ratio"]]
    return {
        "within": held(rows),
        "least": min(seconds),
        "median": statistics.median(seconds),
        "most": max(seconds),
    }


def main() -> None:
    """Measure, model, or both; save all points."""
    options = argparse.ArgumentParser(description="Validate the simulator against an H200.")
    options.add_argument("graphs", nargs="*", default=GRAPHS)
    options.add_argument("--measure", action="store_true", help="measure alone")
    options.add_argument("--against", type=Path, help="results of --measure, JSON")
    options.add_argument("--grid", type=Path, help="results of benchmarks/policies.py, JSON")
    options.add_argument("--machine", default="h200", help="profile to replay on")
    options.add_argument("-o", "--output", type=Path)
    chosen = options.parse_args()
    since = time.perf_counter()
    if chosen.grid:
        record = json.loads(chosen.grid.read_text())
        rows = grid(record["results"], chosen.graphs, load_machine(chosen.machine))
        found = {
            name: told([row for row in rows if row["graph"] == name]) for name in chosen.graphs
        }
        where = {name: record[name] for name in ("machine", "machines") if name in record}
        about = {**where, "profile": chosen.machine, "limits": LIMITS}
        save("validation_grid_h200", {**about, "kept": found, "results": rows}, chosen.output)
        print(found)
        return
    if chosen.against:
        record = json.loads(chosen.against.read_text())
    else:
        record = {"machine": machine(), "results": measured_rows(chosen.graphs)}
        record["seconds_measuring"] = time.perf_counter() - since
    if not chosen.measure:
        rows = with_model(record["results"], load_machine(chosen.machine))
        record |= {
            "profile": chosen.machine,
            "eviction": "program",
            "limits": LIMITS,
            "within": held(rows),
        }
        record["results"] = rows
        print(record["within"])
    save("validation_h200", record, chosen.output)


if __name__ == "__main__":
    main()
