"""How fast is detection on a GPU? Time, arcs and bytes by level and phase.

    python benchmarks/gpu_detect.py lfr22 rmat22 --method louvain,leiden -o result.json

Each graph is generated on the device or copied there. After a warm-up there are `--runs` timed
runs, and one more that synchronises around each phase, to separate the phases. The floor of a
phase is the time to move the bytes it needs at least, at the bandwidth measured in the same
process:

* move, refine: target, weight and target's community for every arc visited;
* aggregate: the same for every arc of the level, and target and weight of every new arc.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from common import (
    DATA,
    GENERATED,
    STANDARD,
    bandwidth,
    device_graph,
    digest,
    machine,
    parser,
    real_names,
    save,
    synchronize,
)

import louvain_um as lu
from louvain_um.core.hierarchy import detect
from louvain_um.events import Event, ignore
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.runtime.device import pick
from louvain_um.options import Options

try:
    import cupy
except ImportError:
    cupy = None  # `pick` raises with the reason

LEVEL = (
    "cycle", "vertices", "arcs", "communities", "modularity", "iterations", "arcs_visited",
    "seconds",
)  # fmt: skip


class PhaseTimer:
    """An observer that lists the seconds of every phase, the device's part included."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.cycle, self.since = -1, 0.0

    def __call__(self, event: Event) -> None:
        if event.kind not in ("start", "end"):
            return
        synchronize()
        now = time.perf_counter()
        if event.kind == "start":
            self.cycle += event.phase == "move" and event.level == 0
            self.since = now
            return
        where = {"phase": event.phase, "cycle": self.cycle, "level": event.level}
        sizes = {"vertices": event.vertices, "arcs": event.arcs}
        self.rows.append(where | sizes | {"seconds": now - self.since})


def run(graph: Any, options: Options, observer: Any = ignore) -> tuple[Any, float, int]:
    """Return communities, seconds and device bytes, without those of the graph."""
    cupy.cuda.get_current_stream().synchronize()
    since = time.perf_counter()
    with GpuEngine(options, observer) as engine:
        found = detect(engine, graph, options, observer)
        seconds = time.perf_counter() - since
        pool = engine.memory.arenas.resident_bytes
    return found, seconds, pool


def phases(graph: Any, options: Options, speed: float) -> list[dict[str, Any]]:
    """Return one row per phase: arcs visited, their rate, and the share of the floor."""
    watch = PhaseTimer()
    found, _, _ = run(graph, options, watch)
    visited = {}
    position: dict[int, int] = {}
    for level in found.levels:
        number = position.get(level.cycle, 0)
        position[level.cycle] = number + 1
        visited[level.cycle, number] = level.arcs_visited
    sizes = {(r["cycle"], r["level"]): r["arcs"] for r in watch.rows if r["phase"] == "move"}
    sums = 4 if graph.total_weight < 2**32 else 8
    first = 0 if graph.weights is None else graph.weights.dtype.itemsize
    for row in watch.rows:
        key = row["cycle"], row["level"]
        weight = first if row["level"] == 0 else sums
        arcs = {"move": visited.get(key), "refine": row["arcs"], "aggregate": row["arcs"]}.get(
            row["phase"]
        )
        if arcs is None:
            continue
        floor = arcs * (4 + weight + 4)
        if row["phase"] == "aggregate":
            floor += sizes.get((row["cycle"], row["level"] + 1), 0) * (4 + sums)
        row["arcs_visited"] = arcs
        row["arcs_per_second"] = arcs / row["seconds"]
        row["floor_share"] = floor / speed / row["seconds"]
    return watch.rows


def measure(
    name: str, graph: Any, method: str, arguments: argparse.Namespace, speed: float
) -> dict[str, Any]:
    """Return the record of one graph and method."""
    options = Options(method=method, seed=arguments.seed, device="cuda")
    warm = run(graph, options)[1]
    found, seconds, algorithm, pool = None, [], [], 0
    for _ in range(arguments.runs):
        found = None
        found, total, pool = run(graph, options)
        seconds.append(total)
        times = found.timings
        algorithm.append(times["total"] - times["load"] - times["fetch"])
    n, arcs = graph.n_vertices, graph.n_arcs
    peak = {group: int(size) for group, size in found.memory.items()}
    median = statistics.median(algorithm)
    return {
        "graph": name, "method": method, "vertices": n, "arcs": arcs, "weighted": graph.weighted,
        "seconds_first": warm, "seconds": seconds, "seconds_median": statistics.median(seconds),
        "algorithm_seconds": algorithm, "algorithm_median": median,
        "arcs_per_second": arcs / median, "modularity": found.modularity,
        "labels": digest(found.labels), "communities": int(found.n_communities),
        "peak_bytes": peak, "bytes_per_arc": sum(peak.values()) / max(arcs, 1),
        "bytes_taken": pool + graph.nbytes,
        "bytes_planned": found.provenance["plan"]["device_bytes"],
        "levels": [{field: getattr(level, field) for field in LEVEL} for level in found.levels],
        "phases": phases(graph, options, speed),
    }  # fmt: skip


def show(record: dict[str, Any]) -> None:
    """Print one graph's figures."""
    print(
        f"{record['graph']:<24} {record['method']:<8} {record['arcs'] / 1e6:9.2f} M arcs  "
        f"{record['algorithm_median'] * 1e3:9.2f} ms of {record['seconds_median'] * 1e3:.2f}  "
        f"{record['arcs_per_second'] / 1e9:6.2f} G arcs/s  Q {record['modularity']:.4f}  "
        f"{record['bytes_per_arc']:.1f} B/arc",
        flush=True,
    )
    for row in record["phases"]:
        rate = ""
        if "arcs_visited" in row:
            rate = (
                f"{row['arcs_visited'] / 1e6:10.2f} M visited "
                f"{row['arcs_per_second'] / 1e9:7.2f} G/s  {row['floor_share']:6.1%} of the floor"
            )
        print(
            f"  {row['cycle']}.{row['level']:<3} {row['phase']:<10} {row['vertices']:>10} vertices "
            f"{row['seconds'] * 1e3:9.3f} ms {rate}",
            flush=True,
        )


def main() -> None:
    given = parser(__doc__)
    known = f"of {', '.join(GENERATED)}, kinds of graph (road:68 has 68 M arcs), or real files"
    given.add_argument("graphs", nargs="*", help=known)
    given.add_argument("--method", default="louvain,leiden", help="one or both, by commas")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--runs", type=int, default=5)
    given.add_argument("--data", type=Path, default=DATA, help="folder of real graphs")
    arguments = given.parse_args()
    names = arguments.graphs or [*STANDARD, *real_names(arguments.data)]
    with pick("cuda").current():
        speed = bandwidth()
        print(f"{speed / 1e12:.2f} TB/s", flush=True)
        record = {"machine": machine(), "bandwidth": speed, "results": list[dict[str, Any]]()}
        for name in names:
            graph = device_graph(name, arguments.data)
            for method in arguments.method.split(","):
                record["results"].append(measure(name, graph, method, arguments, speed))
                show(record["results"][-1])
                # After every run, so that an interrupted call keeps its results.
                file = save("gpu_detect", record, arguments.output, "cuda")
            del graph
            cupy.get_default_memory_pool().free_all_blocks()
        print(file)


if __name__ == "__main__":
    try:
        main()
    except lu.LouvainUmError as error:
        sys.exit(str(error))
