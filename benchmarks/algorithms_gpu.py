"""The algorithms on a device: milliseconds with graph and result there, beside a copy's bandwidth.

    python benchmarks/algorithms_gpu.py rmat22 --runs 7 -o result.json

The graph is generated on the device. Each algorithm runs `--runs` times after a warm-up and is
timed by events of the device, launches included, the copy of results to the host not. Searches
begin at the vertex of highest degree. Floors are the times that targets alone, and targets with
eight bytes per arc, take at the bandwidth of a copy. `--check` compares with the CPU engine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from common import GENERATED, bandwidth, machine, save

from louvain_um.algorithms.pagerank import UNIT
from louvain_um.gpu.algorithms import products, structure, traversal
from louvain_um.gpu.algorithms.launch import DeviceRows
from louvain_um.gpu.generate import generate
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.device import pick
from louvain_um.gpu.runtime.kernel_list import types_of

ITERATIONS = 10
UNITS = ("bfs", "sssp", "components", "spanning_forest", "pagerank", "spmv", "triangles")


def cases(plain: DeviceRows, weighted: DeviceRows, source: int) -> dict[str, Callable[[], Any]]:
    """Return the algorithms' calls by name."""
    n = plain.n_vertices
    x = cupy.asarray(np.random.default_rng(0).random(n))
    rule = 0.85, UNIT // n, int(UNIT * (1.0 - 0.85) / n), -1, ITERATIONS, lambda *_: None
    return {
        "bfs": lambda: traversal.bfs(plain, source),
        "sssp": lambda: traversal.sssp(weighted, source),
        "components": lambda: structure.components(plain),
        "mst": lambda: forest(weighted),
        "spmv": lambda: products.spmv(plain, x, 1.0),
        "spmv weighted": lambda: products.spmv(weighted, x, 1.0),
        "pagerank": lambda: products.pagerank(plain, *rule),
        "pagerank weighted": lambda: products.pagerank(weighted, *rule),
        "triangles": lambda: structure.triangles(plain),
    }


def forest(rows: DeviceRows) -> tuple[Any, Any]:
    """Return the edges of a spanning forest in order, and their weights."""
    edges, weights, count = structure.spanning_forest(rows)
    return structure.in_order(edges[:count], weights[:count])


def milliseconds(call: Callable[[], Any], runs: int) -> list[float]:
    """Return the time of each run after a warm-up."""
    call()
    found = []
    for _ in range(runs):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(begin, end))
    return found


def arrays_of(answer: Any) -> list[Any]:
    """Return the arrays of an answer in host memory."""
    parts = answer if isinstance(answer, tuple) else (answer,)
    return [part.get() for part in parts if isinstance(part, cupy.ndarray)]


def on_cpu(graph: Any, weighted: Any, source: int) -> dict[str, Callable[[], Any]]:
    """Return the CPU engine's calls by name."""
    from louvain_um.core.parallel import default_threads
    from louvain_um.cpu.algorithms import (
        bfs,
        components,
        pagerank,
        spanning_forest,
        spmv,
        sssp,
        triangles,
    )
    from louvain_um.graph.row_view import RowView

    rows, heavy, threads = RowView.of(graph), RowView.of(weighted), default_threads()
    n = graph.n_vertices
    x = np.random.default_rng(0).random(n)
    rule = 0.85, UNIT // n, int(UNIT * (1.0 - 0.85) / n), -1, ITERATIONS, threads, lambda *_: None
    return {
        "bfs": lambda: bfs.bfs(rows, source, threads),
        "sssp": lambda: sssp.sssp(heavy, source, threads),
        "components": lambda: components.components(rows, threads),
        "mst": lambda: spanning_forest.spanning_forest(heavy, threads),
        "spmv": lambda: spmv.spmv(rows, x, 1.0, threads),
        "spmv weighted": lambda: spmv.spmv(heavy, x, 1.0, threads),
        "pagerank": lambda: pagerank.pagerank(rows, *rule),
        "pagerank weighted": lambda: pagerank.pagerank(heavy, *rule),
        "triangles": lambda: triangles.triangles(rows, threads, lambda *_: None),
    }


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", nargs="?", default="rmat22", choices=list(GENERATED))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    with pick("cuda").current():
        kernels.prepare((source, types) for source in UNITS for types in types_of(source))
        kind, size = GENERATED[asked.graph]
        graph = getattr(generate, kind)(size).graph
        heavy = getattr(generate, kind)(size, weights="uniform").graph
        plain, weighted = DeviceRows.of(graph), DeviceRows.of(heavy)
        degrees = graph.offsets[1:] - graph.offsets[:-1]
        source, rate = int(degrees.argmax()), bandwidth()
        print(f"{graph!r}, largest degree {int(degrees.max()):,}, {rate / 1e12:.2f} TB/s")
        host: dict[str, Callable[[], Any]] = {}
        if asked.check:
            host = on_cpu(graph.to_host(), heavy.to_host(), source)
        rows = []
        for name, call in cases(plain, weighted, source).items():
            times = milliseconds(call, asked.runs)
            row: dict[str, Any] = {"algorithm": name, "ms": times}
            row |= {"best_ms": min(times), "median_ms": statistics.median(times)}
            if name.startswith("pagerank"):
                row["best_ms_per_iteration"] = min(times) / ITERATIONS
            if name in host:
                answer = host[name]()
                expected = answer if isinstance(answer, tuple) else (answer,)
                pairs = zip(arrays_of(call()), expected, strict=False)
                row["equal_to_cpu"] = all(np.array_equal(ours, cpu) for ours, cpu in pairs)
            rows.append(row)
            print({key: value for key, value in row.items() if key != "ms"}, flush=True)
        floor = {"rows": 4e3 * graph.n_arcs / rate, "rows_and_values": 12e3 * graph.n_arcs / rate}
    about = {"graph": asked.graph, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
    about |= {"largest_degree": int(degrees.max()), "bytes_per_s": rate, "floor_ms": floor}
    record = {"command": " ".join(sys.argv), **about, "machine": machine(), "results": rows}
    print(save("algorithms_h200", record, asked.output))


if __name__ == "__main__":
    main()
