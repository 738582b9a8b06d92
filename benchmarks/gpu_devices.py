"""Seconds on several GPUs of one host, beside one of them, with the same labels.

python benchmarks/gpu_devices.py --devices cuda:0 cuda:0,1 --scale 22 -o devices.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import louvain_um as lu
from louvain_um.gpu import generate

PHASES = ("move", "refine", "aggregate")


def measured(graph: Any, method: str, device: str, trials: int) -> tuple[dict[str, Any], Any]:
    """Return the seconds of the algorithm by phase, the median of some runs, and the labels."""
    runs = [getattr(lu, method)(graph, device=device) for _ in range(trials + 1)][1:]
    phases = {
        phase: statistics.median(run.timings.get(phase, 0.0) for run in runs) for phase in PHASES
    }
    seconds = statistics.median(sum(run.timings.get(p, 0.0) for p in PHASES) for run in runs)
    levels = [(level.vertices, level.arcs, level.iterations) for level in runs[0].levels]
    found = {"device": device, "seconds": seconds, "phases": phases, "levels": levels}
    return found | {"modularity": runs[0].modularity}, runs[0].labels


def main() -> None:
    """Print, and write, one object per graph, method and choice of devices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", nargs="+", default=["cuda:0", "cuda:0,0"])
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=["louvain"])
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    kinds: dict[str, Callable[[], Any]] = {
        "lfr": lambda: generate.lfr(1 << options.scale),
        "rmat": lambda: generate.rmat(options.scale),
    }
    results = []
    for kind, make in kinds.items():
        made = make()
        graph = getattr(made, "graph", made)
        graph = graph.to_host() if hasattr(graph, "to_host") else graph
        for method in options.methods:
            reference = None
            for device in options.devices:
                found, labels = measured(graph, method, device, options.trials)
                reference = labels if reference is None else reference
                found |= {"graph": f"{kind}{options.scale}", "method": method}
                found |= {"arcs": graph.n_arcs, "vertices": graph.n_vertices}
                found["equal"] = bool(np.array_equal(labels, reference))
                results.append(found)
                print(json.dumps(found), flush=True)
    if options.output:
        from cupy.cuda import runtime

        properties = runtime.getDeviceProperties(0)
        machine = {
            "name": properties["name"].decode(),
            "devices": runtime.getDeviceCount(),
            "driver": runtime.driverGetVersion(),
            "runtime": runtime.runtimeGetVersion(),
        }
        with open(options.output, "w") as file:
            json.dump({"machine": machine, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
