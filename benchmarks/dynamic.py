"""What do batches cost on a changing graph; what do communities that follow cost, and how good?

    python benchmarks/dynamic.py [--vertices N] [--arcs N] [--stores rows,csr] [-o FILE]
    python benchmarks/dynamic.py --device cuda --vertices 4194304 --arcs 156000000
    python benchmarks/dynamic.py --device cuda --follow rmat22,lfr22 [--batch 10000]
    python benchmarks/dynamic.py --streams [planted] [--modes follow] [--data ../shared/data]

A random graph; batches of random edges are inserted, searched for and deleted again, compared with
`compact()`, which rebuilds all rows, and with a copy of the targets, the floor of any rebuild.
Medians, the host's part included: on a GPU, batches are there, and each call is synchronised. The
store `csr` rebuilds for every batch: it has fewer runs.

`--follow` measures trackers instead: of batches that are inserted and deleted, so that the graph
stays as it is; of large insertions, each followed by a renewal, whose first loads kernels and is
listed separately; and sustained, with the renewals that batches cause. Static Leiden on the same
device is there to compare with.

`--streams` compares trackers of all modes with static runs, on a CPU. Every stream is cut into
`--batches` batches; the trackers follow the same graph. At each of `--checks` checkpoints the
modularity of each is divided by the mean of static Louvain over `--seeds` seeds. `arcs` are those
of vertices that decided, by those of a static Louvain after each batch; `ms` is the time of a
batch, of static Louvain that of the runs at the checkpoints, timed next to the others;
`relabelled` is the share of vertices whose community's id changes in a batch; `nmi` is measured
against the planted communities, for static Louvain under `static_nmi`. Rows of the record whose
stream or mode is not measured this time stay in it; times compare by `static_ms`.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import (
    DATA,
    device_graph,
    host_graph,
    kept,
    machine,
    parser,
    replaced,
    save,
    synchronize,
)

import louvain_um as lu
from louvain_um.dynamic import scenarios
from louvain_um.dynamic.tracking.following import MODES
from louvain_um.dynamic.windows import Step
from louvain_um.results.comparison import compare

BATCHES = {"cpu": (1_000, 10_000, 100_000, 1_000_000)}
BATCHES["cuda"] = (*BATCHES["cpu"], 10_000_000)

Pair = tuple[Any, Any]
Start = tuple[lu.DynamicGraph, Iterator[Step]]

WAYS: dict[str, dict[str, Any]] = {mode: {"mode": mode} for mode in MODES}
WAYS["static-louvain"] = {"mode": "static", "method": "louvain"}
"""The tracker's modes, with Leiden where they run from nothing, and static Louvain."""

BEGIN = 0.3
"""Share of a real stream's edges that the graph begins with."""


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

    def step(usual: str, **batch: Any) -> None:
        applied, change = bench.timed(lambda: graph.apply(**batch))
        followed, found = bench.timed(lambda: tracker.update(change))
        ids, _ = bench.timed(lambda: found.changed)
        kind = "renewal" if tracker.rows[-1]["renewed"] else usual
        times[kind].append((applied, followed, ids))

    for usual, size, count in (
        ("frontier", asked.batch, asked.runs), ("large", graph.n_arcs // 80, asked.renewals),
    ):  # fmt: skip
        for _ in range(count):
            edges = bench.pairs(n, size)
            step(usual, insert=edges)
            step(usual, delete=edges)
    many = [bench.pairs(n, asked.batch) for _ in range(asked.sustained)]

    def sustained() -> None:
        for edges in many:
            tracker.update(graph.apply(insert=edges))

    before, seconds = len(tracker.rows), bench.timed(sustained)[0] / 1e3
    renewed = sum(row["renewed"] for row in tracker.rows[before:])
    found: dict[str, Any] = {
        "vertices": n, "arcs": base.n_arcs, "static_leiden_ms": median(static),
        "first_run_ms": began, "following_bytes": tracker.following_bytes,
        "sustained_edges_per_second": asked.batch * len(many) / seconds,
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


def real(path: Path, batches: int, *, window: bool) -> Start:
    """Return a graph of the stream's first edges and its later batches."""
    stream = lu.read_stream(path, sort=True)
    size = int(len(stream) * (1 - BEGIN) / batches) or 1
    held = int(len(stream) * BEGIN / size) * size
    steps = stream.steps(every=size, window=held if window else None)
    graph = stream.graph()
    for _ in range(held // size):
        next(steps).apply(graph)
    return graph, steps


def generated(scenario: scenarios.Scenario) -> Start:
    """Return the graph and the batches of a scenario."""
    return lu.DynamicGraph(scenario.initial), scenario.steps()


def streams(data: Path, batches: int) -> dict[str, Callable[[], Start]]:
    """Return the streams by name."""
    found: dict[str, Callable[[], Start]] = {}
    for name in ("CollegeMsg", "sx-mathoverflow"):
        path = data / f"{name}.txt.gz"
        if path.exists():
            found[f"{name} growing"] = lambda p=path: real(p, batches, window=False)
            found[f"{name} window"] = lambda p=path: real(p, batches, window=True)
    for change in scenarios.PLANTED:
        size = {"communities": 200, "degree_in": 8, "degree_out": 5, "change": change, "batch": 4}
        found[f"planted {change}"] = lambda size=size: generated(
            scenarios.planted(20_000, steps=batches, seed=1, **size)
        )
    found["R-MAT churn"] = lambda: generated(scenarios.rmat(14, batch=200, steps=batches, seed=1))
    return found


def quality(name: str, start: Start, modes: list[str], asked: argparse.Namespace) -> Any:
    """Return one row per mode."""
    graph, steps = start
    trackers = {mode: lu.Tracker(graph, **WAYS[mode]) for mode in modes}
    rows: dict[str, dict[str, list[float]]] = {
        mode: {"ratio": [], "relabelled": [], "nmi": []} for mode in modes
    }
    every = max(1, asked.batches // asked.checks)
    static_arcs, static_seconds, static_nmi = [], [], []
    for number, step in enumerate(steps, 1):
        if number > asked.batches:
            break
        change = step.apply(graph)
        for mode, tracker in trackers.items():
            r = tracker.update(change)
            rows[mode]["relabelled"].append(len(r.changed) / max(1, r.n_vertices))
        if number % every and number != asked.batches:
            continue
        qualities = []
        for seed in range(asked.seeds):
            since = time.perf_counter()
            static = lu.louvain(graph, device="cpu", seed=seed)
            static_seconds.append(time.perf_counter() - since)
            qualities.append(static.modularity)
            static_arcs.append(sum(level.arcs_visited for level in static.levels))
            if step.labels is not None:
                static_nmi.append(compare(static.labels, step.labels).nmi)
        for mode, tracker in trackers.items():
            rows[mode]["ratio"].append(tracker.modularity / float(np.mean(qualities)))
            if step.labels is not None:
                nmi = compare(tracker.communities.labels, step.labels).nmi
                rows[mode]["nmi"].append(nmi)
    found = []
    for mode, tracker in trackers.items():
        history = tracker.to_frame()
        ratio = np.array(rows[mode]["ratio"])
        ms = static_seconds if mode == "static-louvain" else history["seconds"]
        row = {
            "stream": name, "mode": mode, "batches": len(history),
            "vertices": graph.n_vertices, "arcs": graph.n_arcs, "mean": float(ratio.mean()),
            "last_tenth": float(ratio[-max(1, len(ratio) // 10) :].mean()),
            "p5": float(np.percentile(ratio, 5)), "min": float(ratio.min()),
            "arcs_share": float(history["arcs_visited"].mean() / np.mean(static_arcs)),
            "relabelled": float(np.mean(rows[mode]["relabelled"])),
            "ms": 1e3 * float(np.mean(ms)), "static_ms": 1e3 * float(np.mean(static_seconds)),
            "renewals": int(history["renewed"].sum()),
            "audits": int(history["audit_lead"].notna().sum()),
            "nmi": float(np.mean(rows[mode]["nmi"])) if rows[mode]["nmi"] else None,
            "static_nmi": float(np.mean(static_nmi)) if static_nmi else None,
        }  # fmt: skip
        print(*(f"{k} {v:.4g}" if isinstance(v, float) else v for k, v in row.items()), flush=True)
        found.append(row)
    return found


def main() -> None:
    """Measure batches, or trackers on graphs or streams, and save."""
    options = parser(__doc__)
    options.add_argument("--device", choices=tuple(BATCHES), default="cpu")
    options.add_argument("--vertices", type=int, default=1 << 20)
    options.add_argument("--arcs", type=int, default=42_000_000)
    options.add_argument("--stores", default="rows")
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--follow", help="graphs on which trackers are measured, by commas")
    options.add_argument("--batch", type=int, default=10_000)
    options.add_argument("--renewals", type=int, default=8)
    options.add_argument("--sustained", type=int, default=100)
    options.add_argument("--streams", nargs="*", help="parts of the names of streams; none: all")
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--batches", type=int, default=1000)
    options.add_argument("--checks", type=int, default=50)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--modes", default=",".join(WAYS))
    asked = options.parse_args()
    if asked.streams is not None:
        rows = kept("tracking", asked.output).get("results", [])
        for name, make in streams(asked.data, asked.batches).items():
            if not asked.streams or any(part in name for part in asked.streams):
                for row in quality(name, make(), asked.modes.split(","), asked):
                    rows = replaced(rows, row, "stream", "mode")
                save("tracking", {"machine": machine(), "results": rows}, asked.output)
        return
    bench = Bench(asked.device)
    record = kept("dynamic", asked.output, asked.device)
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
    print(save("dynamic", record, asked.output, asked.device))


if __name__ == "__main__":
    main()
