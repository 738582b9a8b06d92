"""A neighbour's memory for what does not fit, beside the same run in core and with host memory.

    python benchmarks/gpu_peer.py lfr24 rmat24 --budgets 50% 30% -o peer.json

Seconds are those of the algorithm, the median of some runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from common import device_graph, machine, save

import louvain_um as lu

PHASES = ("move", "refine", "aggregate")


def measured(graph: Any, trials: int, **options: Any) -> tuple[dict[str, Any], Any]:
    """Return the seconds of some runs after a first one, and the labels."""
    runs = [lu.louvain(graph, **options) for _ in range(trials + 1)][1:]
    every = [sum(run.timings.get(phase, 0.0) for phase in PHASES) for run in runs]
    about = runs[0].provenance
    found = {"seconds": statistics.median(every), "runs": every, **options}
    found |= {"placements": about["placements"], "overflowed": about["overflowed"]}
    found |= {"peer": about["peer_memory"], "seconds_planned": about["plan"]["seconds"]}
    return found, runs[0].labels


def main() -> None:
    """Print, and write, one object per graph, budget and kind of memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=["lfr22", "rmat22"])
    parser.add_argument("--budgets", nargs="+", default=["50%", "30%"])
    parser.add_argument("--peer", default="cuda:1")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    results = []
    for name in options.graphs:
        graph = device_graph(name).to_host()
        core, labels = measured(graph, options.trials, device="cuda:0")
        found = [core]
        for budget in options.budgets:
            for peer in (options.peer, None):
                given = {"device": "cuda:0", "device_budget": budget, "peer_memory": peer}
                one, others = measured(graph, options.trials, **given)
                one |= {"equal": bool(np.array_equal(labels, others))}
                found.append(one | {"ratio": one["seconds"] / core["seconds"]})
        for one in found:
            one |= {"graph": name, "arcs": graph.n_arcs, "vertices": graph.n_vertices}
            print(json.dumps(one), flush=True)
        results += found
    if options.output:
        save("peer", {"machine": machine(), "results": results}, options.output)


if __name__ == "__main__":
    main()
