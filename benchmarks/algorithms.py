"""The algorithms beside SciPy's, in one process, by turns.

    python benchmarks/algorithms.py rmat18 --runs 5 -o result.json

Each algorithm runs `--runs` times after a warm-up, SciPy's in between, so that both see the same
load of the machine. Weights are whole numbers, 1 … 16 by the seeded hash of the generators; bfs,
components, triangles and one row of pagerank and spmv leave them out. Searches begin at the vertex
of highest degree. SciPy has no PageRank and no triangles.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import GENERATED, machine, save, timed
from scipy.sparse import csgraph

import louvain_um as lu
from louvain_um.events import Event
from louvain_um.generators import GENERATORS

Timed = tuple[str, Callable[[], Any], Callable[[], Any] | None]


class Iterations:
    """An observer that counts iterations of PageRank."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: Event) -> None:
        self.count += event.kind == "iteration"


def cases(plain: lu.Graph, weighted: lu.Graph, options: dict[str, Any]) -> list[Timed]:
    """Return each algorithm's name, its call, and SciPy's call."""
    source = int(np.argmax(np.diff(plain.offsets)))
    ones, lengths = matrix(plain), matrix(weighted)
    x = np.random.default_rng(0).random(plain.n_vertices)
    return [
        (
            "bfs",
            lambda: lu.bfs(plain, source, **options),
            lambda: csgraph.breadth_first_order(ones, source),
        ),
        (
            "sssp",
            lambda: lu.sssp(weighted, source, **options),
            lambda: csgraph.dijkstra(lengths, indices=source, return_predecessors=True),
        ),
        (
            "components",
            lambda: lu.connected_components(plain, **options),
            lambda: csgraph.connected_components(ones, directed=False),
        ),
        (
            "mst",
            lambda: lu.minimum_spanning_forest(weighted, **options),
            lambda: csgraph.minimum_spanning_tree(lengths),
        ),
        ("spmv", lambda: lu.spmv(plain, x, **options), lambda: ones @ x),
        ("spmv weighted", lambda: lu.spmv(weighted, x, **options), lambda: lengths @ x),
        ("pagerank", lambda: lu.pagerank(plain, **options), None),
        ("pagerank weighted", lambda: lu.pagerank(weighted, **options), None),
        ("triangles", lambda: lu.triangles(plain, **options), None),
    ]


def matrix(graph: lu.Graph) -> sp.csr_matrix:
    """Return the matrix of a graph without loops, in the types that SciPy works in."""
    weights = np.ones(graph.n_arcs) if graph.weights is None else graph.weights.astype(float)
    n = graph.n_vertices
    indices = graph.targets.astype(np.int32)
    return sp.csr_matrix((weights, indices, graph.offsets.astype(np.int32)), shape=(n, n))


def measure(case: Timed, runs: int) -> dict[str, Any]:
    """Time a call, and SciPy's beside it."""
    name, ours, peer = case
    ours()
    seconds, peer_seconds = [], []
    for _ in range(runs):
        seconds += timed(ours, 1)[1]
        if peer is not None:
            peer_seconds += timed(peer, 1)[1]
    row: dict[str, Any] = {"algorithm": name, "seconds": seconds, "best": min(seconds)}
    row["median"] = statistics.median(seconds)
    if peer is not None:
        row |= {"scipy_seconds": peer_seconds, "scipy_best": min(peer_seconds)}
    return row


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", nargs="?", default="rmat18", choices=list(GENERATED))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    kind, size = GENERATED[asked.graph]
    plain = GENERATORS[kind](size).graph
    weighted = GENERATORS[kind](size, weights="uniform").graph
    options: dict[str, Any] = {"device": "cpu", "threads": asked.threads}
    rows = []
    for case in cases(plain, weighted, options):
        row = measure(case, asked.runs)
        if case[0].startswith("pagerank"):
            seen = Iterations()
            lu.pagerank(plain if case[0] == "pagerank" else weighted, observer=seen, **options)
            row |= {"iterations": seen.count, "best_per_iteration": row["best"] / seen.count}
        rows.append(row)
        peer = f" SciPy {1e3 * row['scipy_best']:9.1f} ms" if "scipy_best" in row else ""
        each = row.get("best_per_iteration")
        more = f" {1e3 * each:9.1f} ms an iteration" if each else ""
        print(f"{row['algorithm']:18} {1e3 * row['best']:9.1f} ms{peer}{more}", flush=True)
    about = {"vertices": plain.n_vertices, "arcs": plain.n_arcs, "graph": asked.graph}
    record = {"command": " ".join(sys.argv), **about, "machine": machine(), "results": rows}
    print(save("algorithms_cpu", record, asked.output))


if __name__ == "__main__":
    main()
