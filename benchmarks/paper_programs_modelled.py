"""The four programs of Hope, Nag and Qasem where managed memory is oversubscribed, modelled.

    python benchmarks/paper_programs_modelled.py -o result.json

`paper_programs.py` measures them, but managed memory only where all of it fits: beyond, the driver
evicts, which can hang a GPU. Here the accesses that the programs declare on a graph of the size of
R-MAT 22 are replayed by the simulated driver, which does evict, on an H200 and on the paper's P100
with NVLink. Copies before and after the kernels are not in these seconds.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from common import machine, save

from louvain_um.algorithms.programs import WEIGHED, iterations_to, program_of
from louvain_um.placement.machine.machine_files import load_machine
from louvain_um.profiling.access.declared_trace import trace_of
from louvain_um.profiling.sweep.replay import FinishedReplays, Point, replay

PROGRAMS = ("bfs", "sssp", "mst", "pagerank")
POLICIES = ("base", "device", "zero_copy", "adv1", "auto")
RATES = (0.0, 30.0, 50.0, 70.0)
GPUS = ("h200", "p100-nvlink")
VERTICES, ARCS = 1 << 22, 128_304_860
"""Of R-MAT 22, with weights for shortest paths and spanning forests."""

TOLERANCE = 1e-6
"""Of PageRank."""


def main() -> None:
    """Replay, and save seconds by program, machine, policy and rate."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path)
    output = parser.parse_args().output
    rows, gains = list[dict[str, Any]](), dict[str, dict[str, list[float]]]()
    for name in PROGRAMS:
        weighted = name in WEIGHED and name != "pagerank"
        program = program_of(name, n_vertices=VERTICES, n_arcs=ARCS, weighted=weighted,
                             iterations=iterations_to(TOLERANCE, 500))  # fmt: skip
        trace = trace_of(program)
        for gpu in GPUS:
            known: FinishedReplays = {}
            for rate in RATES:
                seconds: dict[str, float | None] = {}
                for policy in POLICIES:
                    point = Point(graph=name, policy=policy, oversubscription=rate, gpu=gpu)
                    row, _ = replay(trace, point, load_machine(gpu), known=known)
                    seconds[policy] = row["seconds"] if row["feasible"] else None
                rows.append({"program": name, "gpu": gpu, "oversubscription": rate, **seconds})
                base, auto = seconds["base"], seconds["auto"]
                if base and auto:
                    gains.setdefault(gpu, {}).setdefault(name, []).append(base / auto)
                print(rows[-1])
    record = {
        "machine": machine(), "evidence": "modelled", "vertices": VERTICES, "arcs": ARCS,
        "rates": list(RATES), "gains_over_base": gains,
        "geometric_mean_gain": {
            gpu: statistics.geometric_mean([gain for each in found.values() for gain in each])
            for gpu, found in gains.items()
        },
        "results": rows,
    }  # fmt: skip
    print(record["geometric_mean_gain"], save("paper_programs_modelled", record, output))


if __name__ == "__main__":
    main()
