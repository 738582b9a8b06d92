"""Batches on a changing graph on a device, beside rebuilding it and beside a copy of its memory.

    python benchmarks/dynamic_gpu.py [--scale 22] [--edges 78000000] [--runs 7] [--louvain]
                                     [--churn 10000]

A random graph of 2^scale vertices, built by one batch. Batches of random edges, arrays on the
device, are inserted and deleted. Medians in milliseconds, the host's part included: each call is
synchronised. `--churn N` adds N batches that each insert 10,000 edges and delete what another one
inserted ten batches before, and samples the memory.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import bandwidth, machine, save

import louvain_um as lu

BATCHES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def timed(call: Callable[[], Any]) -> float:
    import cupy

    cupy.cuda.Device().synchronize()
    since = time.perf_counter()
    call()
    cupy.cuda.Device().synchronize()
    return 1e3 * (time.perf_counter() - since)


def churn(g: lu.DynamicGraph, batches: int, edges: int = 10_000) -> list[dict[str, float]]:
    """Replace edges in `batches` batches; return samples of the memory taken on the way."""
    import cupy

    inserted: deque[tuple[Any, ...]] = deque()
    samples = []
    since = time.perf_counter()
    for number in range(1, batches + 1):
        pair = tuple(cupy.random.randint(0, g.n_vertices, edges).astype(np.uint32) for _ in "uv")
        inserted.append(pair)
        old = inserted.popleft() if len(inserted) > 10 else None
        g.apply(insert=pair, delete=old)
        if number == 1 or number % max(1, batches // 10) == 0:
            cupy.cuda.Device().synchronize()
            free, total = cupy.cuda.runtime.memGetInfo()
            samples.append(
                {
                    "batch": number,
                    "seconds": time.perf_counter() - since,
                    "arcs": g.n_arcs,
                    "bytes_per_arc": g.memory.bytes_per_arc,
                    "device_bytes": total - free,
                }
            )
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--edges", type=int, default=78_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--louvain", action="store_true")
    parser.add_argument("--churn", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    import cupy

    n = 1 << args.scale
    g = lu.DynamicGraph(n, device="cuda")
    first = tuple(cupy.random.randint(0, n, args.edges).astype(np.uint32) for _ in range(2))
    found: dict[str, Any] = {"build_ms": timed(lambda: g.apply(insert=first))}
    first = ()
    cupy.get_default_memory_pool().free_all_blocks()
    about = {"vertices": n, "arcs": g.n_arcs}
    found["bytes_per_arc"] = g.memory.bytes_per_arc
    print(about, found, flush=True)
    for batch in BATCHES:
        times: dict[str, list[float]] = {}
        for run in range(args.runs + 1):
            edges = tuple(cupy.random.randint(0, n, batch).astype(np.uint32) for _ in range(2))
            keys = edges[0].astype(np.uint64) << np.uint64(32) | edges[1]
            both = cupy.concatenate([keys, keys])
            store = g._store
            calls: dict[str, Callable[[], Any]] = {
                "insert": lambda edges=edges: g.apply(insert=edges),
                "find": lambda edges=edges, store=store: store.find_there(*edges),
                "delete": lambda edges=edges: g.apply(delete=edges),
                "sort": lambda both=both: cupy.sort(both),
            }
            for name, call in calls.items():
                taken = timed(call)
                if run:
                    times.setdefault(name, []).append(taken)
        found[str(batch)] = {f"{name}_ms": median(values) for name, values in times.items()}
        print(batch, found[str(batch)], flush=True)
    found["compact_ms"] = median(timed(g.compact) for _ in range(args.runs))
    targets = g._store.targets
    found["copy_ms"] = median(timed(lambda: targets[: g.n_arcs].copy()) for _ in range(args.runs))
    for name, graph in {"store": g, "csr": g.snapshot()}.items() if args.louvain else ():
        for _ in range(2):
            lu.louvain(graph, device="cuda")
        found[f"louvain_{name}_ms"] = median(
            timed(lambda graph=graph: lu.louvain(graph, device="cuda")) for _ in range(args.runs)
        )
    found["bytes_per_arc_after"] = g.memory.bytes_per_arc
    if args.churn:
        found["churn"] = churn(g, args.churn)
    print({k: v for k, v in found.items() if not isinstance(v, dict)})
    record = {"machine": machine(), "bandwidth": bandwidth(), "graph": about, "results": found}
    save("dynamic_h200", record, args.out)


if __name__ == "__main__":
    main()
