"""Communities that follow a graph on a device, beside static runs on the same device.

    python benchmarks/following_gpu.py [--graphs rmat22,lfr22] [--batch 10000] [--runs 20]
        [--renewals 8] [--stream 300]

Batches of random edges, arrays on the device, are inserted and deleted, so that the graph stays as
it is. Medians in milliseconds, the host's part included: each call is synchronised. Insertions that
turn over a fortieth of the weight are followed by a renewal; the first one loads kernels, and is
told apart. Sustained: batches as they come, with the renewals that they cause. Then as many batches
as `--stream` says are synchronised each, for renewals of a stream of small batches.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import numpy as np
from common import device_graph, machine, save

import louvain_um as lu
from louvain_um.events import Event, observing


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    cupy.cuda.Device().synchronize()
    since = time.perf_counter()
    result = call()
    cupy.cuda.Device().synchronize()
    return 1e3 * (time.perf_counter() - since), result


class Phases:
    """Milliseconds of each phase, the device's part included."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.taken: dict[str, list[float]] = defaultdict(list)

    def __call__(self, event: Event) -> None:
        cupy.cuda.Device().synchronize()
        now = time.perf_counter()
        if event.kind == "start":
            self.began[event.phase] = now
        elif event.kind == "end" and event.phase in self.began:
            self.taken[event.phase].append(1e3 * (now - self.began[event.phase]))

    def medians(self) -> dict[str, float]:
        return {f"{name}_ms": median(values) for name, values in self.taken.items()}


def follow(name: str, args: argparse.Namespace) -> dict[str, Any]:
    cupy.random.seed(1)  # the same batches for each version
    base = device_graph(name).to_host()
    graph = lu.DynamicGraph(base, device="cuda")
    n = graph.n_vertices
    static = [timed(lambda: lu.leiden(graph.snapshot()))[0] for _ in range(4)][1:]
    began, tracker = timed(lambda: lu.Tracker(graph, audit=None))

    def pairs(count: int) -> tuple[Any, Any]:
        u, v = (cupy.random.randint(0, n, count).astype(np.uint32) for _ in range(2))
        return u, v

    def step(**batch: Any) -> tuple[float, float, float]:
        applied, change = timed(lambda: graph.apply(**batch))
        followed, found = timed(lambda: tracker.update(change))
        asked, _ = timed(lambda: found.changed)
        return applied, followed, asked

    times: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for _ in range(args.runs):
        edges = pairs(args.batch)
        for kind in ("insert", "delete"):
            taken = step(**{kind: edges})
            times["renewal" if tracker.rows[-1]["renewed"] else "frontier"].append(taken)
    phases = {kind: Phases() for kind in ("insert", "delete")}
    for _ in range(5):
        edges = pairs(args.batch)
        for kind, observer in phases.items():
            with observing(observer):
                tracker.update(graph.apply(**{kind: edges}))
    for _ in range(args.renewals):
        edges = pairs(graph.n_arcs // 80)
        for kind in ("insert", "delete"):
            taken = step(**{kind: edges})
            times["renewal" if tracker.rows[-1]["renewed"] else "large"].append(taken)
    batches = [pairs(args.batch) for _ in range(args.sustained)]

    def run() -> None:
        for edges in batches:
            tracker.update(graph.apply(insert=edges))

    before = len(tracker.rows)
    seconds = timed(run)[0] / 1e3
    rows = tracker.rows[before:]
    for _ in range(args.stream):
        taken = step(insert=pairs(args.batch))
        times["stream_renewal" if tracker.rows[-1]["renewed"] else "stream"].append(taken)
    found: dict[str, Any] = {
        "vertices": n,
        "arcs": base.n_arcs,
        "static_leiden_ms": median(static),
        "first_run_ms": began,
        "following_bytes": tracker.following_bytes,
        "phases": {kind: observer.medians() for kind, observer in phases.items()},
        "sustained_edges_per_second": args.batch * len(batches) / seconds,
        "sustained_renewals": sum(row["renewed"] for row in rows),
        "modularity": tracker.modularity,
        "static_modularity": lu.leiden(graph.snapshot()).modularity,
    }
    for kind, values in times.items():
        first = values.pop(0) if kind == "renewal" and len(values) > 1 else None
        applied, followed, asked = (median(column) for column in zip(*values, strict=True))
        found[kind] = {
            "batches": len(values),
            "apply_ms": applied,
            "follow_ms": followed,
            "ids_ms": asked,
        }
        if first:
            found[kind] |= {"first_follow_ms": first[1], "first_ids_ms": first[2]}
    print(name, found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default="rmat22,lfr22")
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--renewals", type=int, default=8)
    parser.add_argument("--sustained", type=int, default=100)
    parser.add_argument("--stream", type=int, default=300)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for name in args.graphs.split(","):
        results[name] = follow(name, args)
        save("following_h200", {"machine": machine(), "results": results}, args.out)


if __name__ == "__main__":
    main()
