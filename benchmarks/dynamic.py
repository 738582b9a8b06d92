"""Batches on a changing graph, beside rebuilding it and beside copying its memory.

    python benchmarks/dynamic.py [--vertices N] [--arcs N] [--stores rows,csr] [--out FILE]

A random graph; batches of 1 k to 1 M random edges are inserted, and deleted again, in turns with
`compact()`, which rebuilds all rows in the same process, and with a copy of the pool, the floor of
any rebuild. Medians. The store `csr` rebuilds for every batch: it has fewer runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import machine, save

import louvain_um as lu

BATCHES = (1_000, 10_000, 100_000, 1_000_000)


def timed(call: Callable[[], Any]) -> float:
    since = time.perf_counter()
    call()
    return time.perf_counter() - since


def measure(graph: lu.Graph, store: str, runs: int) -> dict[str, Any]:
    """Return milliseconds of each operation."""
    rng = np.random.default_rng(1)
    g = lu.DynamicGraph(graph, store=store)
    rows = g.view()
    found: dict[str, Any] = {"store": store, "bytes_per_arc": g.memory.bytes_per_arc}
    for batch in BATCHES:
        times: dict[str, list[float]] = {
            name: [] for name in ("insert", "delete", "has_edges", "rebuild", "copy")
        }
        for _ in range(runs):
            edges = tuple(rng.integers(0, graph.n_vertices, batch) for _ in range(2))
            times["insert"].append(timed(lambda edges=edges: g.apply(insert=edges)))
            times["has_edges"].append(timed(lambda edges=edges: g.has_edges(*edges)))
            times["delete"].append(timed(lambda edges=edges: g.apply(delete=edges)))
            rows = g.view()
            times["rebuild"].append(timed(g.compact if store != "csr" else g.snapshot))
            times["copy"].append(timed(lambda rows=rows: rows.targets[: graph.n_arcs].copy()))
        found[str(batch)] = {f"{k}_ms": 1e3 * median(v) for k, v in times.items()}
        found[str(batch)]["insert_over_rebuild"] = median(times["insert"]) / median(
            times["rebuild"]
        )
    found["bytes_per_arc_after"] = g.memory.bytes_per_arc
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=1 << 20)
    parser.add_argument("--arcs", type=int, default=42_000_000)
    parser.add_argument("--stores", default="rows,csr")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    u, v = (rng.integers(0, args.vertices, args.arcs // 2, np.uint32) for _ in range(2))
    graph = lu.Graph.from_edges(u, v, n_vertices=args.vertices)
    records = []
    for store in args.stores.split(","):
        runs = args.runs if store != "csr" else min(args.runs, 3)
        records.append(measure(graph, store, runs))
        for batch in BATCHES:
            print(store, batch, {k: round(x, 2) for k, x in records[-1][str(batch)].items()})
    about = {"vertices": graph.n_vertices, "arcs": graph.n_arcs}
    save("dynamic", {"machine": machine(), "graph": about, "results": records}, args.out)


if __name__ == "__main__":
    main()
