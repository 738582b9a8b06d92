"""Rates of one core that plans of ranks take: arcs visited while moving, and moves carried out.

python benchmarks/rank_rates.py --scale 20 -o benchmarks/results/rank_rates.json

Processor time, so that other programs on the machine matter little.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from louvain_um.cpu import move
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.options import Options

Run = Callable[[], Any]


def seconds_of(run: Run) -> tuple[float, Any]:
    since = time.process_time()
    result = run()
    return time.process_time() - since, result


def rates(graph: Any) -> dict[str, float]:
    engine = CpuEngine(Options(device="cpu", threads=1), ignore)
    level = engine.load(graph)
    engine.move(level)  # compiles
    engine = CpuEngine(Options(device="cpu", threads=1), ignore)
    level = engine.load(graph)
    moving, moved = seconds_of(lambda: engine.move(level))
    n = graph.n_vertices
    vertices = np.random.default_rng(0).permutation(n).astype(np.uint32)
    targets = level.labels[vertices].copy()
    applying = []
    for _ in range(3):
        labels, sizes = np.arange(n, dtype=np.uint32), np.ones(n, np.uint32)
        state = (labels, graph.degrees.copy(), sizes, np.zeros(n, np.uint8), targets)
        arguments = graph.degrees, state, vertices, 0, n, None
        applying.append(seconds_of(lambda given=arguments: move.apply(*given))[0])
    return {"arcs_per_second": moved.arcs_visited / moving, "move_seconds": min(applying[1:]) / n}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    side = round(2 ** (options.scale / 3))
    kinds: dict[str, Callable[[], Any]] = {
        "community_structured": lambda: lfr(1 << options.scale).graph,
        "power_law": lambda: rmat(options.scale).graph,
        "mesh": lambda: stencil((side, side, side)).graph,
    }
    found = {}
    for kind, make in kinds.items():
        graph = make()
        found[kind] = {"vertices": graph.n_vertices, "arcs": graph.n_arcs, **rates(graph)}
        print(kind, found[kind], flush=True)
    names = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in names if "model name" in line), "")
    machine = {"processor": model, "system": platform.platform()}
    if options.output:
        Path(options.output).write_text(json.dumps({"machine": machine, "rates": found}, indent=1))


if __name__ == "__main__":
    main()
