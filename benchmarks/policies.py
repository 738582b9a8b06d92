"""Which memory policy is fastest, by oversubscription, with real budgets?

    python benchmarks/policies.py lfr24 rmat24 -o policies_h200.json

Oversubscription r gives a run 1 − r of its in-core memory. Graphs start in host memory. `seconds`
is the algorithm time, from the graph in its placement to the communities on the device;
`seconds_load` and `seconds_fetch` are separate. Each graph has one warm-up and each point `--runs`
runs: `seconds` is their median, `seconds_best` the shortest. `--measure` selects further or other
runs: `events` records the driver's events, for bytes and faults; `taken` records the device memory
in use. Managed memory stays below the free device memory: nothing here makes the driver evict.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, Taken, device_graph, machine, save

from louvain_um.api import run
from louvain_um.errors import MemoryBudgetError
from louvain_um.options import Options
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import POLICY_NAMES
from louvain_um.profiling.sweep.measure import watched


def options_of(policy: str, percent: int) -> Options:
    """Return the options of a point of the grid."""
    budget = None if percent == 0 else f"{100 - percent}%"
    return Options(device="cuda", memory=find_policy(policy), device_budget=budget)


def point(graph: Any, policy: str, percent: int, runs: int, longest: float) -> dict[str, Any]:
    """Return the times of a point of the grid."""
    options = options_of(policy, percent)
    row: dict[str, Any] = {"policy": policy, "oversubscription": percent, "feasible": True}
    seconds: list[float] = []
    since = time.perf_counter()
    for _ in range(runs):
        try:
            found = run(graph, options)
        except MemoryBudgetError as error:
            return {
                **row,
                "feasible": False,
                "reason": str(error),
                "missing": error.needed - error.budget,
            }
        parts = found.timings
        around = parts["load"] + parts["fetch"] + parts.get("compile", 0.0)
        seconds.append(parts["total"] - around)
        if seconds[-1] > longest:
            break
    wall = (time.perf_counter() - since) / len(seconds)
    about = found.provenance
    return {
        **row,
        "seconds": statistics.median(seconds),
        "seconds_best": min(seconds),
        "runs": seconds,
        "seconds_wall": wall,
        "seconds_load": parts["load"],
        "seconds_fetch": parts["fetch"],
        "modularity": found.modularity,
        "labels_hash": int(
            np.bitwise_xor.reduce(
                found.labels.astype(np.uint64)
                * np.arange(1, len(found.labels) + 1, dtype=np.uint64)
            )
        ),
        "peak_bytes": dict(found.memory),
        "budget_bytes": about["budget_bytes"],
        "placements": about.get("placements"),
        "plan": about.get("plan"),
        "traffic_bytes": about.get("traffic_bytes"),
        "overflowed": about.get("overflowed"),
        "phases": {k: v for k, v in parts.items() if k != "total"},
        "levels": [(level.cycle, level.vertices, level.seconds) for level in found.levels],
    }


def watched_point(graph: Any, policy: str, percent: int) -> dict[str, Any]:
    """Return the bytes and faults of a point, from the driver's events."""
    row = {"policy": policy, "oversubscription": percent}
    since = time.perf_counter()
    try:
        moved = watched(graph, policy, options_of(policy, percent))
    except MemoryBudgetError as error:  # recording takes memory, too
        return {**row, "refused": str(error)}
    return {**row, **moved, "seconds_watching": time.perf_counter() - since}


def taken_point(graph: Any, policy: str, percent: int) -> dict[str, Any]:
    """Return a point's peak of device memory, as reported by the driver."""
    row = {"policy": policy, "oversubscription": percent}
    taken = Taken()
    try:
        found = run(graph, options_of(policy, percent), taken)
    except MemoryBudgetError as error:
        return {**row, "refused": str(error)}
    return {
        **row,
        "bytes_measured": taken.nbytes,
        "bytes_planned": found.provenance["plan"]["device_bytes"],
        "bytes_seen": taken.seen,
    }


def show(row: dict[str, Any]) -> None:
    """Print a point."""
    names = ("seconds", "bytes_to_device", "bytes_to_host", "fault_groups", "bytes_measured")
    known = {name: row[name] for name in names if name in row}
    text = known or row.get("refused") or row["reason"]
    print(row["graph"], row["oversubscription"], row["policy"], text, flush=True)


def main() -> None:
    """Run the grid."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--policies", default=",".join(POLICY_NAMES))
    parser.add_argument("--oversubscription", default="0,10,30,50,70")
    parser.add_argument("--measure", default="seconds", help="some of seconds, events, taken")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--longest", type=float, default=2.0, help="seconds after which one run is enough"
    )
    parser.add_argument("--limit", type=float, default=540, help="seconds for everything")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    wanted = set(chosen.measure.split(","))
    if not wanted <= {"seconds", "events", "taken"}:
        parser.error("--measure takes some of seconds, events and taken")
    since = time.perf_counter()
    results: list[dict[str, Any]] = []
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
                if "taken" in wanted and row.get("feasible", True):
                    row |= taken_point(graph, policy, percent)
                results.append(row)
                show(row)
                record = {"machine": machine(), "results": results}
                save("policies", record, chosen.output, "cuda")


if __name__ == "__main__":
    main()
