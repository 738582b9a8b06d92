"""What does a batch cost on a changing graph, and what do communities that follow it cost?

    python benchmarks/dynamic.py [--vertices N] [--arcs N] [--stores rows,csr] [-o FILE]
    python benchmarks/dynamic.py --device cuda --vertices 4194304 --arcs 156000000 [--churn 10000]
    python benchmarks/dynamic.py --device cuda --follow rmat22,lfr22 [--batch 10000]

A random graph; batches of random edges are inserted, searched for and deleted again, compared with
`compact()`, which rebuilds all rows, and with a copy of the targets, the floor of any rebuild.
Medians, the host's part included: on a GPU, batches are there, and each call is synchronised. The
store `csr` rebuilds for every batch: it has fewer runs. `--churn N` adds N batches that each insert
10,000 edges and delete what another one inserted ten batches before, and samples the memory.

`--follow` measures trackers instead: of batches that are inserted and deleted, so that the graph
stays as it is; of large insertions, each followed by a renewal, whose first loads kernels and is
listed separately; sustained, with the renewals that batches cause; and as many small batches as
`--stream` says, each synchronised. Static Leiden on the same device is there to compare with.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import PhaseTimer, device_graph, host_graph, machine, save, saved, synchronize

import louvain_um as lu
from louvain_um.events import observing

BATCHES = {"cpu": (1_000, 10_000, 100_000, 1_000_000)}
BATCHES["cuda"] = (*BATCHES["cpu"], 10_000_000)

Pair = tuple[Any, Any]


class Bench:
    """The array library, random edges and a clock, of a CPU or a GPU."""

    def __init__(self, device: str) -> None:
        self.device = device
        if device == "cuda":
            import cupy

            self.xp: Any = cupy
        else:
            self.xp = np
        self.rng = self.xp.random.default_rng(1)

    def pairs(self, n: int, count: int) -> Pair:
        """Return both ends of random edges."""
        u, v = (self.rng.integers(0, n, count).astype(np.uint32) for _ in "uv")
        return u, v

    def wait(self) -> None:
        """Wait for the GPU, if there is one."""
        if self.device == "cuda":
            synchronize()

    def timed(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Return the milliseconds of a call, and its result."""
        self.wait()
        since = time.perf_counter()
        result = call()
        self.wait()
        return 1e3 * (time.perf_counter() - since), result


def batches(bench: Bench, store: str, n: int, arcs: int, runs: int) -> dict[str, Any]:
    """Return milliseconds of each operation."""
    graph = lu.DynamicGraph(n, store=store, device=bench.device)
    first = bench.pairs(n, arcs // 2)
    found: dict[str, Any] = {"store": store}
    found["build_ms"] = bench.timed(lambda: graph.apply(insert=first))[0]
    first = ()  # type: ignore[assignment]
    found |= {"arcs": graph.n_arcs, "bytes_per_arc": graph.memory.bytes_per_arc}
    there = graph.device_store
    find: Callable[..., Any] = graph.has_edges if there is None else there.find_there
    for batch in BATCHES[bench.device]:
        times: dict[str, list[float]] = defaultdict(list)
        for run in range(runs + 1):  # the first one warms up
            edges = bench.pairs(n, batch)
            calls: dict[str, Callable[[], Any]] = {
                "insert": lambda edges=edges: graph.apply(insert=edges),
                "find": lambda edges=edges: find(*edges),
                "delete": lambda edges=edges: graph.apply(delete=edges),
            }
            for name, call in calls.items():
                taken, _ = bench.timed(call)
                times[name] += [taken] * (run > 0)
        found[str(batch)] = {f"{name}_ms": median(values) for name, values in times.items()}
        print(store, batch, found[str(batch)], flush=True)
    rebuild = graph.compact if store != "csr" else graph.snapshot
    found["rebuild_ms"] = median(bench.timed(rebuild)[0] for _ in range(runs))
    targets = graph.view().targets if there is None else there.device_rows()[1]
    copies = (bench.timed(lambda: targets[: graph.n_arcs].copy())[0] for _ in range(runs))
    found["copy_ms"] = median(copies)
    found["bytes_per_arc_after"] = graph.memory.bytes_per_arc
    return found


def churn(bench: Bench, n: int, arcs: int, count: int, edges: int = 10_000) -> list[Any]:
    """Replace edges in `count` batches; return samples of the memory taken on the way."""
    graph = lu.DynamicGraph(n, device=bench.device)
    graph.apply(insert=bench.pairs(n, arcs // 2))
    inserted: deque[Pair] = deque()
    samples, since = [], time.perf_counter()
    for number in range(1, count + 1):
        inserted.append(bench.pairs(n, edges))
        old = inserted.popleft() if len(inserted) > 10 else None
        graph.apply(insert=inserted[-1], delete=old)
        if number == 1 or number % max(1, count // 10) == 0:
            bench.wait()
            held = {"batch": number, "seconds": time.perf_counter() - since, "arcs": graph.n_arcs}
            samples.append(held | {"bytes_per_arc": graph.memory.bytes_per_arc})
    return samples


def follow(bench: Bench, name: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Return what a tracker takes on one graph."""
    base = device_graph(name).to_host() if bench.device == "cuda" else host_graph(name)
    graph = lu.DynamicGraph(base, device=bench.device)
    n = graph.n_vertices

    def leiden() -> Any:
        return lu.leiden(graph.snapshot(), device=bench.device)

    static = [bench.timed(leiden)[0] for _ in range(4)][1:]
    began, tracker = bench.timed(lambda: lu.Tracker(graph, audit=None))
    times: dict[str, list[tuple[float, float, float]]] = defaultdict(list)

    def step(usual: str, renewal: str, **batch: Any) -> None:
        applied, change = bench.timed(lambda: graph.apply(**batch))
        followed, found = bench.timed(lambda: tracker.update(change))
        ids, _ = bench.timed(lambda: found.changed)
        kind = renewal if tracker.rows[-1]["renewed"] else usual
        times[kind].append((applied, followed, ids))

    for usual, size, count in (
        ("frontier", asked.batch, asked.runs), ("large", graph.n_arcs // 80, asked.renewals),
    ):  # fmt: skip
        for _ in range(count):
            edges = bench.pairs(n, size)
            step(usual, "renewal", insert=edges)
            step(usual, "renewal", delete=edges)
    phases = PhaseTimer()
    edges = bench.pairs(n, asked.batch)
    if bench.device == "cuda":
        for batch in ({"insert": edges}, {"delete": edges}):
            with observing(phases):
                tracker.update(graph.apply(**batch))
    many = [bench.pairs(n, asked.batch) for _ in range(asked.sustained)]

    def sustained() -> None:
        for edges in many:
            tracker.update(graph.apply(insert=edges))

    before, seconds = len(tracker.rows), bench.timed(sustained)[0] / 1e3
    renewed = sum(row["renewed"] for row in tracker.rows[before:])
    for _ in range(asked.stream):
        step("stream", "stream_renewal", insert=bench.pairs(n, asked.batch))
    found: dict[str, Any] = {
        "vertices": n, "arcs": base.n_arcs, "static_leiden_ms": median(static),
        "first_run_ms": began, "following_bytes": tracker.following_bytes,
        "phases": phases.rows, "sustained_edges_per_second": asked.batch * len(many) / seconds,
        "sustained_renewals": renewed, "modularity": tracker.modularity,
        "static_modularity": leiden().modularity,
    }  # fmt: skip
    for kind, values in times.items():
        first = values.pop(0) if kind == "renewal" and len(values) > 1 else None
        applied, followed, asked_ids = (median(column) for column in zip(*values, strict=True))
        found[kind] = {"batches": len(values), "apply_ms": applied}
        found[kind] |= {"follow_ms": followed, "ids_ms": asked_ids}
        if first:
            found[kind] |= {"first_follow_ms": first[1], "first_ids_ms": first[2]}
    print(name, found, flush=True)
    return found


def main() -> None:
    """Measure batches, or trackers, and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=tuple(BATCHES), default="cpu")
    parser.add_argument("--vertices", type=int, default=1 << 20)
    parser.add_argument("--arcs", type=int, default=42_000_000)
    parser.add_argument("--stores", default="rows")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--churn", type=int, default=0)
    parser.add_argument("--follow", help="graphs on which trackers are measured, by commas")
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--renewals", type=int, default=8)
    parser.add_argument("--sustained", type=int, default=100)
    parser.add_argument("--stream", type=int, default=300)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    bench = Bench(asked.device)
    file = saved("dynamic", asked.device, asked.output)
    record = json.loads(file.read_text()) if file.exists() else {}
    if asked.follow:
        found = {name: follow(bench, name, asked) for name in asked.follow.split(",")}
        record["following"] = {"machine": machine(), "graphs": found}
    else:
        size = asked.vertices, asked.arcs
        rows = [
            batches(bench, store, *size, asked.runs if store != "csr" else min(asked.runs, 3))
            for store in asked.stores.split(",")
        ]
        record |= {"machine": machine(), "vertices": asked.vertices, "results": rows}
        if asked.churn:
            record["churn"] = churn(bench, *size, asked.churn)
    print(save("dynamic", record, asked.output, asked.device))


if __name__ == "__main__":
    main()
