"""How much memory do building a graph and detecting communities take on a CPU?

    python benchmarks/memory.py 20_000_000|rmat20 [louvain|leiden] [-o memory.json]

Peak of a new process above that of the interpreter, on a planted graph with about that many arcs
and 16 arcs per vertex, or on a generated one (`common.GENERATED`). Large arrays get separate memory
mappings, as on the command line. Prints one JSON object, and adds it to a record. The limit is 20
bytes per arc and 100 per vertex, without the edge list.
"""

from __future__ import annotations

import argparse
import json
import resource
import threading
import time
from pathlib import Path

import numpy as np
from common import GENERATED, host_graph, machine, save

import louvain_um as lu
from louvain_um import api
from louvain_um.cli import mmap_large_arrays


def resident() -> int:
    """Return the resident bytes of this process."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


class Peak:
    """Tracks the resident bytes in a thread, since `ru_maxrss` cannot be reset."""

    def __enter__(self) -> Peak:
        self.base = self.bytes = resident()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()
        return self

    def follow(self) -> None:
        while not self.done.wait(0.005):
            self.bytes = max(self.bytes, resident())

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    @property
    def above(self) -> int:
        return self.bytes - self.base


def edges(arcs: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return a graph of planted communities of 128, with two of three edges inside."""
    n, count = arcs // 16, arcs // 2
    rng = np.random.default_rng(1)
    u = rng.integers(0, n, count, dtype=np.uint32)
    v = rng.integers(0, n, count, dtype=np.uint32)
    inside = rng.random(count, dtype=np.float32) < 0.67
    v[inside] = np.minimum((u[inside] & ~np.uint32(127)) | (v[inside] & 127), n - 1)
    return n, u, v


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graph", help=f"about so many arcs, or one of {', '.join(GENERATED)}")
    parser.add_argument("method", nargs="?", default="louvain", choices=("louvain", "leiden"))
    parser.add_argument("-o", "--output", type=Path, help="add the result to this record")
    asked = parser.parse_args()
    mmap_large_arrays()
    name, detect = asked.graph, getattr(api, asked.method)
    small = lu.Graph.from_edges([0, 1, 2], [1, 2, 0])
    detect(small, device="cpu", threads=2)
    if name in GENERATED:
        with Peak() as build:
            graph = host_graph(name)
    else:
        n, u, v = edges(int(name))
        with Peak() as build:
            graph = lu.Graph.from_edges(u, v, n_vertices=n)
        del u, v
    n, held, since = graph.n_vertices, graph.nbytes, time.perf_counter()
    with Peak() as run:
        result = detect(graph, device="cpu")
    seconds = time.perf_counter() - since
    # Memory of the generators does not count.
    peak = held + run.above if name in GENERATED else max(build.above, held + run.above)
    row = {
        "graph": name if name in GENERATED else "planted", "method": asked.method,
        "vertices": n, "arcs": graph.n_arcs, "build_bytes": build.above, "graph_bytes": held,
        "detect_bytes": run.above, "peak_bytes": peak,
        "bytes_per_arc_above_100_per_vertex": round((peak - 100 * n) / graph.n_arcs, 2),
        "ru_maxrss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "groups": dict(result.memory), "seconds": round(seconds, 2),
        "modularity": result.modularity,
    }  # fmt: skip
    print(json.dumps(row))
    if asked.output:
        record = json.loads(asked.output.read_text()) if asked.output.exists() else {"results": []}
        record |= {"machine": machine(), "results": [*record["results"], row]}
        save("memory", record, asked.output)


if __name__ == "__main__":
    main()
