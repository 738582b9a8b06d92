"""Seconds on several GPUs of one host, beside one of them, with the same labels.

    python benchmarks/gpu_devices.py lfr24 rmat24 --devices cuda:0 cuda:0,1 -o devices.json

Graphs are generated on the first device. Seconds are those of the algorithm, as in
`gpu_detect.py`: moving, refining and aggregating, without loading and fetching.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from common import device_graph, machine, save

import louvain_um as lu
from louvain_um.events import Event

PHASES = ("move", "refine", "aggregate")


class Phases:
    """Seconds of each phase by cycle and level; phases end with the device waited for."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.sweeps: list[float] = []
        self.cycle, self.since = -1, 0.0

    def __call__(self, event: Event) -> None:
        if event.kind == "iteration":
            self.sweeps.append(event.seconds_ago)
        if event.kind not in ("start", "end") or event.phase not in PHASES:
            return
        now = time.perf_counter()
        if event.kind == "start":
            self.cycle += event.phase == "move" and event.level == 0
            self.since, self.sweeps = now, []
            return
        row = {"cycle": self.cycle, "level": event.level, "phase": event.phase}
        row["seconds"] = now - self.since
        if self.sweeps:
            ends = [*self.sweeps, 0.0]
            row["sweeps"] = [round(a - b, 6) for a, b in pairwise(ends)][:-1]
        self.rows.append(row)


def measured(graph: Any, method: str, device: str, trials: int) -> tuple[dict[str, Any], Any]:
    """Return the seconds of the algorithm by phase, the median of some runs, and the labels."""
    runs = [getattr(lu, method)(graph, device=device) for _ in range(trials + 1)][1:]
    phases = {
        phase: statistics.median(run.timings.get(phase, 0.0) for run in runs) for phase in PHASES
    }
    every = [sum(run.timings.get(p, 0.0) for p in PHASES) for run in runs]
    levels = [(level.vertices, level.arcs, level.iterations) for level in runs[0].levels]
    found = {"device": device, "seconds": statistics.median(every), "runs": every}
    found |= {"phases": phases, "levels": levels, "modularity": runs[0].modularity}
    watch = Phases()
    last = getattr(lu, method)(graph, device=device, observer=watch)
    found |= {"by_level": watch.rows, "seconds_load": last.timings["load"]}
    found |= {"peak_bytes": sum(last.memory.values())}
    return found, runs[0].labels


def main() -> None:
    """Print, and write, one object per graph, method and choice of devices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=["lfr20", "rmat20"])
    parser.add_argument("--devices", nargs="+", default=["cuda:0", "cuda:0,0"])
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=["louvain"])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    results = []
    for name in options.graphs:
        graph = device_graph(name)
        for method in options.methods:
            reference = None
            for device in options.devices:
                since = time.perf_counter()
                found, labels = measured(graph, method, device, options.trials)
                reference = labels if reference is None else reference
                found |= {"graph": name, "method": method, "took": time.perf_counter() - since}
                found |= {"arcs": graph.n_arcs, "vertices": graph.n_vertices}
                found["equal"] = bool(np.array_equal(labels, reference))
                results.append(found)
                print(json.dumps(found), flush=True)
        del graph
    if options.output:
        save("devices", {"machine": machine(), "results": results}, options.output)


if __name__ == "__main__":
    main()
