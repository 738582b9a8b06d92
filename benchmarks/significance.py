"""What comparing communities with a hundred random graphs of the same degrees takes.

    python benchmarks/significance.py [--graphs 100] [--arcs 1000000] [--out FILE]

Louvain's communities of an LFR graph and of a random graph (edges with uniform ends), each of about
so many arcs. The time includes making and detecting in all random graphs; a first call with two of
them compiles. On a GPU the z-scores are compared with those of the CPU, of a few of the graphs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save
from end_to_end import on_gpu

import louvain_um as lu
from louvain_um import generators

COMPARED = 5
"""Random graphs that the CPU is to detect the same in."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--arcs", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = "cuda" if on_gpu() else "cpu"
    rows = []
    for name, graph in graphs_of(given.arcs).items():
        rows.append({"graph": name} | measure(graph, given.graphs, device))
        print(*(f"{key} {value}" for key, value in rows[-1].items()), sep="  ", flush=True)
    save("significance", {"machine": machine(), "rows": rows}, given.out, device)


def measure(graph: lu.Graph, graphs: int, device: str) -> dict[str, Any]:
    """Return seconds and z-score of a graph."""
    found = lu.louvain(graph, device=device)
    first = found.significance(graphs=2, device=device)
    begin = time.perf_counter()
    tested = found.significance(graphs=graphs, device=device)
    seconds = time.perf_counter() - begin
    assert np.array_equal(first.null, tested.null[:2])
    if device == "cuda":
        here, there = (found.significance(graphs=COMPARED, device=each) for each in ("cpu", device))
        assert here.summary() == there.summary()
    size = {"vertices": graph.n_vertices, "arcs": graph.n_arcs, "graphs": graphs}
    return size | {"seconds": round(seconds, 3), "z": round(tested.z, 1)}


def graphs_of(arcs: int) -> dict[str, lu.Graph]:
    """Return graphs of about so many arcs."""
    random = np.random.default_rng(1)
    n = arcs // 10
    ends = random.integers(0, n, (2, arcs // 2), np.uint32)
    return {
        "LFR": generators.lfr(arcs // 39).graph,
        "random": lu.Graph.from_edges(*ends, n_vertices=n),
    }


if __name__ == "__main__":
    main()
