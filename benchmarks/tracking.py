"""How good are communities that follow a stream, and what do they cost, compared with static runs?

    python benchmarks/tracking.py --data ../shared/data -o result.json
    python benchmarks/tracking.py --data ../shared/data --modes follow -o result.json

Every stream is cut into `--batches` batches; the trackers of all modes follow the same graph. At
each of `--checks` checkpoints the modularity of each is divided by the mean of static Louvain over
`--seeds` seeds. `arcs` are those of vertices that decided, by those of a static Louvain after each
batch; `ms` is the time of a batch, of static Louvain that of the runs at the checkpoints, timed
next to the others; `relabelled` is the share of vertices whose community's id changes in a batch;
`nmi` is measured against the planted communities, for static Louvain under `static_nmi`. Rows of
the file whose stream or mode is not measured this time stay in it; times compare by `static_ms`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, machine, save

import louvain_um as lu
from louvain_um.dynamic import scenarios
from louvain_um.dynamic.tracking.following import MODES
from louvain_um.dynamic.windows import Step
from louvain_um.results.comparison import compare

Start = tuple[lu.DynamicGraph, Iterator[Step]]

WAYS: dict[str, dict[str, Any]] = {mode: {"mode": mode} for mode in MODES}
WAYS["static-louvain"] = {"mode": "static", "method": "louvain"}
"""The tracker's modes, with Leiden where they run from nothing, and static Louvain."""

BEGIN = 0.3
"""Share of a real stream's edges that the graph begins with."""


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


def generated(make: Callable[[], scenarios.Scenario]) -> Start:
    """Return the graph and the batches of a scenario."""
    scenario = make()
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
        found[f"planted {change}"] = lambda change=change: generated(
            lambda: scenarios.planted(
                20_000,
                communities=200,
                degree_in=8,
                degree_out=5,
                change=change,
                batch=4,
                steps=batches,
                seed=1,
            )
        )
    found["R-MAT churn"] = lambda: generated(
        lambda: scenarios.rmat(14, batch=200, steps=batches, seed=1)
    )
    return found


def follow(name: str, start: Start, modes: list[str], arguments: argparse.Namespace) -> Any:
    """Return one row per mode."""
    graph, steps = start
    trackers = {mode: lu.Tracker(graph, **WAYS[mode]) for mode in modes}
    rows: dict[str, dict[str, list[float]]] = {
        mode: {"ratio": [], "relabelled": [], "nmi": []} for mode in modes
    }
    every = max(1, arguments.batches // arguments.checks)
    static_arcs, static_seconds, static_nmi = [], [], []
    for number, step in enumerate(steps, 1):
        if number > arguments.batches:
            break
        change = step.apply(graph)
        for mode, tracker in trackers.items():
            r = tracker.update(change)
            rows[mode]["relabelled"].append(len(r.changed) / max(1, r.n_vertices))
        if number % every and number != arguments.batches:
            continue
        qualities = []
        for seed in range(arguments.seeds):
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
        found.append(
            {
                "stream": name,
                "mode": mode,
                "batches": len(history),
                "vertices": graph.n_vertices,
                "arcs": graph.n_arcs,
                "mean": float(ratio.mean()),
                "last_tenth": float(ratio[-max(1, len(ratio) // 10) :].mean()),
                "p5": float(np.percentile(ratio, 5)),
                "min": float(ratio.min()),
                "arcs_share": float(history["arcs_visited"].mean() / np.mean(static_arcs)),
                "relabelled": float(np.mean(rows[mode]["relabelled"])),
                "ms": 1e3
                * float(
                    np.mean(static_seconds)
                    if mode == "static-louvain"
                    else history["seconds"].mean()
                ),
                "static_ms": 1e3 * float(np.mean(static_seconds)),
                "renewals": int(history["renewed"].sum()),
                "audits": int(history["audit_lead"].notna().sum()),
                "nmi": float(np.mean(rows[mode]["nmi"])) if rows[mode]["nmi"] else None,
                "static_nmi": float(np.mean(static_nmi)) if static_nmi else None,
            }
        )
        show(found[-1])
    return found


def show(row: dict[str, Any]) -> None:
    """Print one row."""
    nmi = "" if row["nmi"] is None else f"  NMI {row['nmi']:.3f} ({row['static_nmi']:.3f})"
    print(
        f"{row['stream']:<24} {row['mode']:<10} Q/static mean {row['mean']:.4f} last tenth "
        f"{row['last_tenth']:.4f} p5 {row['p5']:.4f} min {row['min']:.4f}  arcs "
        f"{row['arcs_share']:7.2%}  relabelled {row['relabelled']:.4f}  {row['ms']:7.2f} ms "
        f"({row['static_ms']:.2f}){nmi}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of streams; all by default")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--checks", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--modes", default=",".join(WAYS))
    parser.add_argument("-o", "--out", type=Path)
    arguments = parser.parse_args()
    results: dict[tuple[str, str], dict[str, Any]] = {}
    if arguments.out and arguments.out.exists():
        rows = json.loads(arguments.out.read_text())["results"]
        results = {(row["stream"], row["mode"]): row for row in rows}
    for name, make in streams(arguments.data, arguments.batches).items():
        if not arguments.names or any(part in name for part in arguments.names):
            for row in follow(name, make(), arguments.modes.split(","), arguments):
                results[row["stream"], row["mode"]] = row
            found = {"machine": machine(), "results": [*results.values()]}
            save("tracking", found, arguments.out)


if __name__ == "__main__":
    main()
