"""Twenty kinds of graph with less and less memory: times, bytes, predictions; labels compared.

    python benchmarks/zoo.py --arcs 128 -o zoo_h200.json

Graphs are generated on the device (`zoo_kinds.py`) and start in host memory. Each is run in core,
then under `auto` with budgets of the bytes that its arrays took in core at once (`touched_bytes`),
as that run found them: 90 % withholds a tenth of what is used, whatever was expected. A budget may
be bytes, too, like 4GiB. `seconds` is the time of the algorithm; the shortest of `--runs` counts.
Constants of the model were fitted to half of the kinds at most (`fitted`); figures about
predictions are of the others.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import zoo_kinds
from common import machine, save

from louvain_um.api import run
from louvain_um.errors import LouvainUmError
from louvain_um.options import Options

KINDS = (*zoo_kinds.KINDS, *zoo_kinds.GENERATED)


def digest(labels: Any) -> str:
    """Return a short digest of labels."""
    return hashlib.blake2b(np.ascontiguousarray(labels), digest_size=8).hexdigest()


def point(graph: Any, runs: int, **options: Any) -> dict[str, Any]:
    """Return what a run with these options took; the best of some."""
    best: dict[str, Any] = {}
    for _ in range(runs):
        since = time.perf_counter()
        try:
            found = run(graph, Options(device="cuda", **options))
        except LouvainUmError as error:
            return {"feasible": False, "reason": str(error)}
        parts, about = found.timings, found.provenance
        apart = parts["load"] + parts["fetch"] + parts.get("compile", 0.0)
        seconds = parts["total"] - apart
        if best and seconds >= best["seconds"]:
            continue
        best = {
            "feasible": True,
            "seconds": seconds,
            "seconds_wall": time.perf_counter() - since,
            "phases": {k: v for k, v in parts.items() if k != "total"},
            "modularity": found.modularity,
            "labels": digest(found.labels),
            "budget_bytes": about["budget_bytes"],
            "peak_bytes": sum(found.memory.values()),
            "touched_bytes": about.get("touched_bytes"),
            "plan": about.get("plan"),
            "overflowed": about.get("overflowed"),
            "traffic_bytes": about.get("traffic_bytes"),
            "read_in_place": about.get("read_in_place"),
            "levels": [
                (level.cycle, level.vertices, level.arcs, round(level.seconds, 5))
                for level in found.levels
            ],
        }
    return best


def points(graph: Any, method: str, budgets: list[str], policies: list[str], runs: int) -> Any:
    """Yield the points of one graph and method."""
    whole = point(graph, runs + 1, method=method, memory="auto")
    yield {"policy": "auto", "budget": None, **whole}
    for budget in budgets:
        for policy in policies:
            given: Any = budget
            if budget.endswith("%"):
                given = int(float(budget[:-1]) * whole["touched_bytes"] / 100)
            row = point(graph, runs, method=method, memory=policy, device_budget=given)
            if row["feasible"]:
                row["times"] = row["seconds"] / whole["seconds"]
                row["same_labels"] = row["labels"] == whole["labels"]
            yield {"policy": policy, "budget": budget, **row}


def show(row: dict[str, Any]) -> None:
    """Print a point."""
    if not row["feasible"]:
        told = row["reason"][:90]
    else:
        plan = row["plan"]
        low, _, high = plan["seconds_range"]
        after, cycle = (plan[f"seconds_after_{what}"] or 0 for what in ("level_0", "cycle_0"))
        told = (
            f"{1e3 * row['seconds']:8.1f} ms  x{row.get('times', 1):5.2f}  "
            f"{'in' if low <= row['seconds'] <= high else 'OUT'} {1e3 * low:.0f}…{1e3 * high:.0f}  "
            f"after level 0 {1e3 * after:.0f}, cycle 0 {1e3 * cycle:.0f}  "
            f"same {row.get('same_labels', True)}  "
            f"{row['overflowed'] or ''}"
        )
    print(f"{row['kind']:<15}{row['method']:<8}{row['policy']:<10}{row['budget']!s:<6}{told}")


def main() -> None:
    """Run the zoo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--arcs", type=float, default=128, help="millions of arcs, about")
    parser.add_argument("--budgets", default="90%,70%,50%,30%")
    parser.add_argument("--policies", default="auto")
    parser.add_argument("--methods", default="louvain,leiden")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=540, help="seconds for everything")
    parser.add_argument("-o", "--out", type=Path)
    chosen = parser.parse_args()
    import cupy

    begun, results = time.perf_counter(), []
    for kind in chosen.kinds:
        if time.perf_counter() - begun > chosen.limit:
            print("out of time", flush=True)
            break
        since = time.perf_counter()
        made = zoo_kinds.made(cupy, kind, int(chosen.arcs * 1e6))
        graph = made.to_host()
        del made
        gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        about = {"kind": kind, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
        about |= {"fitted": kind in zoo_kinds.FITTED, "weighted": graph.weighted}
        print(f"{kind}: {graph}, made in {time.perf_counter() - since:.1f} s", flush=True)
        if not results:
            run(graph, Options(device="cuda", method="leiden"))
        for method in chosen.methods.split(","):
            asked = chosen.budgets.split(","), chosen.policies.split(","), chosen.runs
            for row in points(graph, method, *asked):
                results.append({**about, "method": method, **row})
                show(results[-1])
                record = {"machine": machine(), "results": results}
                save("zoo_h200", record, chosen.out)
        print(flush=True, end="")


if __name__ == "__main__":
    main()
