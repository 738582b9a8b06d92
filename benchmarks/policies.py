"""Which memory policy is fastest, by oversubscription, with real budgets?

    python benchmarks/policies.py lfr24 rmat24 -o policies_h200.json
    python benchmarks/policies.py lfr20 rmat20 --replay

Oversubscription r gives a run 1 − r of its in-core memory. Graphs start in host memory. `seconds`
is the algorithm time, from the graph in its placement to the communities on the device;
`seconds_load` and `seconds_fetch` are separate. Each graph has one warm-up and each point `--runs`
runs: `seconds` is their median, `seconds_best` the shortest. `--measure` selects further or other
runs: `events` records the driver's events, for bytes and faults. Managed memory stays below the
free device memory: nothing here makes the driver evict.

`--replay`, which needs no GPU, compares the simulator with the record: seconds, managed bytes
migrated and fault groups. The CPU engine's run of each graph is recorded, and replayed under
every policy with the budget of the measured run. With a budget, a run moves vertex blocks itself,
and the driver never has to evict; this is what is replayed (`eviction="program"`): the same plan,
arenas and block management. Copies that the program makes before its first kernel are excluded.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, device_graph, host_graph, kept, machine, parser, save

from louvain_um.api import run
from louvain_um.errors import MemoryBudgetError
from louvain_um.options import Options
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import POLICY_NAMES
from louvain_um.profiling.access.recorded_plans import peak_of
from louvain_um.profiling.access.recorder import record
from louvain_um.profiling.simulator import Driver, Trace
from louvain_um.profiling.sweep import replay
from louvain_um.profiling.sweep.measure import watched
from louvain_um.profiling.views.sweep.validation import LIMITS, misses, ratios

Row = dict[str, Any]


def options_of(policy: str, percent: int) -> Options:
    """Return the options of a point of the grid."""
    budget = None if percent == 0 else f"{100 - percent}%"
    return Options(device="cuda", memory=find_policy(policy), device_budget=budget)


def point(graph: Any, policy: str, percent: int, runs: int, longest: float) -> Row:
    """Return the times of a point of the grid."""
    options = options_of(policy, percent)
    row: Row = {"policy": policy, "oversubscription": percent, "feasible": True}
    seconds: list[float] = []
    since = time.perf_counter()
    for _ in range(runs):
        try:
            found = run(graph, options)
        except MemoryBudgetError as error:
            missing = error.needed - error.budget
            return row | {"feasible": False, "reason": str(error), "missing": missing}
        parts = found.timings
        around = parts["load"] + parts["fetch"] + parts.get("compile", 0.0)
        seconds.append(parts["total"] - around)
        if seconds[-1] > longest:
            break
    wall = (time.perf_counter() - since) / len(seconds)
    about = found.provenance
    places = np.arange(1, len(found.labels) + 1, dtype=np.uint64)
    return {
        **row, "seconds": statistics.median(seconds), "seconds_best": min(seconds),
        "runs": seconds, "seconds_wall": wall, "seconds_load": parts["load"],
        "seconds_fetch": parts["fetch"], "modularity": found.modularity,
        "labels_hash": int(np.bitwise_xor.reduce(found.labels.astype(np.uint64) * places)),
        "peak_bytes": dict(found.memory), "budget_bytes": about["budget_bytes"],
        **{name: about.get(name) for name in ("placements", "plan", "traffic_bytes", "overflowed")},
        "phases": {k: v for k, v in parts.items() if k != "total"},
        "levels": [(level.cycle, level.vertices, level.seconds) for level in found.levels],
    }  # fmt: skip


def watched_point(graph: Any, policy: str, percent: int) -> Row:
    """Return the bytes and faults of a point, from the driver's events."""
    row = {"policy": policy, "oversubscription": percent}
    since = time.perf_counter()
    try:
        moved = watched(graph, policy, options_of(policy, percent))
    except MemoryBudgetError as error:  # recording takes memory, too
        return {**row, "refused": str(error)}
    return {**row, **moved, "seconds_watching": time.perf_counter() - since}


def show(row: Row) -> None:
    """Print a point."""
    names = ("seconds", "bytes_to_device", "bytes_to_host", "fault_groups")
    known = {name: row[name] for name in names if name in row}
    text = known or row.get("refused") or row["reason"]
    print(row["graph"], row["oversubscription"], row["policy"], text, flush=True)


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
        near = sum(name not in row["misses"] for row in known)
        found[name] = f"{near} of {len(known)}"
    return found


def replayed(points: Sequence[Row], name: str, profile: Machine) -> list[Row]:
    """Return measured and modelled figures of one graph's points."""
    measured = ("graph", "policy", "oversubscription", "seconds")
    trace = record(host_graph(name))
    peak, found = peak_of(trace), list[Row]()
    for point in points:
        if point["graph"] != name or not point["feasible"]:
            continue
        modelled = model(trace, point["policy"], point["budget_bytes"] or peak, profile)
        row = {key: point[key] for key in measured} | compare(point, modelled)
        if modelled["feasible"]:
            row |= {"seconds_modelled": modelled["seconds"] - modelled["load_seconds"]}
            row |= {"terms": modelled["terms"]}
        found.append(row)
        print({key: row[key] for key in (*measured, "ratio")}, flush=True)
    return found


def summary(rows: Sequence[Row]) -> Row:
    """Return the number of points within limits, and the errors in seconds."""
    seconds = [row["ratio"]["seconds"] for row in rows if row["ratio"]]
    return {
        "within": within(rows), "least": min(seconds), "median": statistics.median(seconds),
        "most": max(seconds),
    }  # fmt: skip


def replay_all(graphs: Sequence[str], output: Path | None) -> Path:
    """Replay the points of the record, and save how close they come."""
    measured = kept("policies_h200", None)
    profile = load_machine("h200")
    rows = [row for name in graphs for row in replayed(measured["results"], name, profile)]
    by_graph = {
        name: summary([row for row in rows if row["graph"] == name])
        for name in dict.fromkeys(row["graph"] for row in rows)
    }
    where = {"machine": machine(), "measured_on": measured.get("machines", measured.get("machine"))}
    about = {**where, "profile": "h200", "limits": LIMITS, "summary": by_graph}
    return save("validation_h200", {**about, "results": rows}, output)


def main() -> None:
    """Run the grid."""
    options = parser(__doc__)
    options.add_argument("graphs", nargs="+")
    options.add_argument("--policies", default=",".join(POLICY_NAMES))
    options.add_argument("--oversubscription", default="0,10,30,50,70")
    options.add_argument("--measure", default="seconds", help="seconds, events or both")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--longest", type=float, default=2.0, help="seconds: one run is enough")
    options.add_argument("--limit", type=float, default=540, help="seconds for everything")
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--replay", action="store_true", help="by the simulator, no GPU needed")
    chosen = options.parse_args()
    if chosen.replay:
        print(replay_all(chosen.graphs, chosen.output))
        return
    wanted = set(chosen.measure.split(","))
    if not wanted <= {"seconds", "events"}:
        options.error("--measure takes seconds, events or both")
    since = time.perf_counter()
    results: list[Row] = []
    for name in chosen.graphs:
        on_device = device_graph(name, chosen.data)
        graph = on_device.to_host()
        del on_device
        gc.collect()
        run(graph, Options(device="cuda", memory=find_policy("device")))
        for percent in map(int, chosen.oversubscription.split(",")):
            for policy in chosen.policies.split(","):
                if time.perf_counter() - since > chosen.limit:
                    print("out of time", flush=True)
                    break
                row = {"graph": name, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
                if "seconds" in wanted:
                    row |= point(graph, policy, percent, chosen.runs, chosen.longest)
                if "events" in wanted and row.get("feasible", True):
                    row |= watched_point(graph, policy, percent)
                results.append(row)
                show(row)
                found = {"machine": machine(), "results": results}
                save("policies", found, chosen.output, "cuda")


if __name__ == "__main__":
    main()
