"""What does less device memory cost, by kind of graph? Times, bytes, predictions; labels compared.

    python benchmarks/graph_kinds.py --arcs 112 -o graph_kinds_h200.json

Graphs are generated on the device (`kinds.py`) and start in host memory. Each is run in core,
then under `auto` with budgets of the bytes that its arrays took in core at once (`touched_bytes`),
as that run found them: 90 % withholds a tenth of what is used, whatever was expected. A budget may
be bytes, too, like 4GiB. `seconds` is the time of the algorithm; the shortest of `--runs` counts,
and of one more in core, so that no kernel is loaded meanwhile.
Constants of the model may be fitted to half of the kinds (`fitted`). With
`shape`, predictions can be made again without the graph.

What `--out` has already is not run again. Processes that share a folder of `--claims` share the
kinds: each takes the next one that no other has taken, and they make graphs and run in turns, so
that times are those of a process alone. A method of a kind begins only if as long as
the longest one so far remains of `--limit`; the first one, which compiles kernels, does not count.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import kinds
from common import digest, machine, save

from louvain_um.api import run
from louvain_um.errors import LouvainUmError
from louvain_um.options import Options
from louvain_um.planning import measure

NAMES = (*kinds.KINDS, *kinds.GENERATED, *kinds.SKEWED)

SHAPE = (
    "weight_bytes", "sum_bytes", "total_weight", "max_degree", "isolated", "hub_arcs",
    "clustering", "skew", "weights16", "structure",
)  # fmt: skip
"""What a plan needs to know of a graph besides its size."""


Turn = Callable[[], AbstractContextManager[None]]
"""Makes what a process holds while it uses the device."""


@contextmanager
def turn_of(folder: Path) -> Iterator[None]:
    """Wait until no other process that shares a folder uses the device, and use it alone."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "device").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def point(graph: Any, runs: int, turn: Turn = nullcontext, **options: Any) -> dict[str, Any]:
    """Return what a run with these options took: the best of some, and the shortest whole run."""
    best: dict[str, Any] = {}
    whole = float("inf")
    for _ in range(runs):
        try:
            with turn():
                since = time.perf_counter()
                found = run(graph, Options(device="cuda", **options))
                took = time.perf_counter() - since
        except LouvainUmError as error:
            return {"feasible": False, "reason": str(error)}
        parts, about = found.timings, found.provenance
        around = parts["load"] + parts["fetch"] + parts.get("compile", 0.0)
        seconds = parts["total"] - around
        whole = min(whole, took)
        if best and seconds >= best["seconds"]:
            best["seconds_wall"] = whole
            continue
        best = {
            "feasible": True,
            "seconds": seconds,
            "seconds_wall": whole,
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
                (
                    level.cycle,
                    level.vertices,
                    level.arcs,
                    round(level.seconds, 6),
                    level.iterations,
                    level.arcs_visited,
                    level.communities,
                )
                for level in found.levels
            ],
        }
    return best


def points(
    graph: Any,
    method: str,
    budgets: list[str],
    policies: list[str],
    runs: int,
    done: list[Any],
    turn: Turn,
) -> Iterator[dict[str, Any]]:
    """Yield those points of one graph and method that are not done; they begin in core."""
    before = {(row["budget"], row["policy"]): row for row in done}
    whole = before.get((None, "auto"))
    if whole is None:
        whole = point(graph, runs + 1, turn, method=method, memory="auto")
        yield {"policy": "auto", "budget": None, **whole}
    for budget in filter(None, budgets):
        for policy in policies:
            if (budget, policy) in before:
                continue
            given: Any = budget
            if budget.endswith("%"):
                given = int(float(budget[:-1]) * whole["touched_bytes"] / 100)
            row = point(graph, runs, turn, method=method, memory=policy, device_budget=given)
            if row["feasible"]:
                row["times"] = row["seconds"] / whole["seconds"]
                row["same_labels"] = row["labels"] == whole["labels"]
            yield {"policy": policy, "budget": budget, **row}


def show(row: dict[str, Any]) -> None:
    """Print a point."""
    if not row["feasible"]:
        text = row["reason"][:90]
    else:
        plan = row["plan"]
        low, _, high = plan["seconds_range"]
        after, cycle = (plan[f"seconds_after_{what}"] or 0 for what in ("level_0", "cycle_0"))
        text = (
            f"{1e3 * row['seconds']:8.1f} ms  x{row.get('times', 1):5.2f}  "
            f"{'in' if low <= row['seconds'] <= high else 'OUT'} {1e3 * low:.0f}…{1e3 * high:.0f}  "
            f"after level 0 {1e3 * after:.0f}, cycle 0 {1e3 * cycle:.0f}  "
            f"same {row.get('same_labels', True)}  "
            f"{row['overflowed'] or ''}"
        )
    print(f"{row['kind']:<15}{row['method']:<8}{row['policy']:<10}{row['budget']!s:<6}{text}")


def claimed(folder: Path | None, kind: str) -> bool:
    """Whether this process is the first to take a kind; without a folder it is alone."""
    if folder is None:
        return True
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / kind).open("x").close()
    except FileExistsError:
        return False
    return True


def is_done(results: list[Any], kind: str, chosen: argparse.Namespace) -> bool:
    """Whether all points of a kind are there."""
    there = {(r["method"], r["budget"], r["policy"]) for r in results if r["kind"] == kind}
    return all(
        (method, budget, policy) in there
        for method in chosen.methods.split(",")
        for budget in (None, *filter(None, chosen.budgets.split(",")))
        for policy in chosen.policies.split(",")
        if budget or policy == "auto"
    )


def made_on_host(kind: str, arcs: int, **options: Any) -> Any:
    """Return a kind's graph in host memory, made on the device, whose memory is free again."""
    import cupy

    graph = kinds.made(cupy, kind, arcs, **options).to_host(check=False)
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    return graph


def main() -> None:
    """Run every kind, method and budget."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=list(NAMES))
    parser.add_argument("--arcs", type=float, default=112, help="millions of arcs, about")
    parser.add_argument("--budgets", default="90%,70%,50%,30%")
    parser.add_argument("--policies", default="auto")
    parser.add_argument("--methods", default="louvain,leiden")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=540, help="seconds for everything")
    parser.add_argument("--claims", type=Path, help="folder in which processes share the kinds")
    parser.add_argument("-o", "--out", type=Path, required=True)
    chosen = parser.parse_args()
    begun, longest, ready = time.perf_counter(), 0.0, False
    results = json.loads(chosen.out.read_text())["results"] if chosen.out.exists() else []
    about = machine()
    turn: Turn = partial(turn_of, chosen.claims) if chosen.claims else nullcontext
    for kind in chosen.kinds:
        # Making a graph and warming up take about as long as a method.
        left = chosen.limit - (time.perf_counter() - begun)
        if left < 2 * longest:
            print("out of time", flush=True)
            break
        if is_done(results, kind, chosen) or not claimed(chosen.claims, kind):
            continue
        since = time.perf_counter()
        with turn():
            graph = made_on_host(kind, int(chosen.arcs * 1e6))
        of = {"kind": kind, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
        of |= {"fitted": kind in kinds.FITTED, "weighted": graph.weighted}
        print(f"{kind}: {graph}, made in {time.perf_counter() - since:.1f} s", flush=True)
        for method in chosen.methods.split(","):
            since = time.perf_counter()
            if chosen.limit - (since - begun) < longest:
                break
            mine = [r for r in results if (r["kind"], r["method"]) == (kind, method)]
            known = asdict(measure(graph, method).shape)
            shape = {name: known[name] for name in SHAPE}
            asked = chosen.budgets.split(","), chosen.policies.split(","), chosen.runs
            for row in points(graph, method, *asked, mine, turn):
                results.append({**of, "method": method, **row, "shape": shape})
                show(results[-1])
                save("graph_kinds", {"machine": about, "results": results}, chosen.out)
            took = time.perf_counter() - since
            longest = max(longest, took) if ready else 0.0
            ready = True
            print(f"{kind} {method}: {took:.1f} s", flush=True)
        del graph


if __name__ == "__main__":
    main()
