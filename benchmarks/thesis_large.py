"""Dinçer's graphs that do not fit 8 GB (Table 4.7, Figure 4.23) from replayed stand-ins.

    python benchmarks/thesis_large.py [--scale 0.004]

Each stand-in runs under every policy at its published oversubscription, on models of the thesis's
two machines. All figures are modelled. Seconds and bytes are also given for the published size: the
model's, divided by the scale, since passes over all arcs take most of the time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from common import machine, save

from louvain_um.placement.machine.machine_files import load_machine
from louvain_um.profiling.access.plans import peak_of
from louvain_um.profiling.sweep.parsing import parse_policies
from louvain_um.profiling.sweep.replay import FinishedReplays, Point, replay
from louvain_um.profiling.thesis.published import NON_FITTING
from louvain_um.profiling.thesis.stand_ins import ABOUT, MACHINES, NON_FITTING_GRAPHS


def main() -> None:
    """Replay, and save seconds by graph, machine and policy."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1 / 256)
    parser.add_argument("--graphs", nargs="+", default=[g.name for g in NON_FITTING_GRAPHS])
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    policies, rows = parse_policies("all"), list[dict[str, Any]]()
    for graph in (g for g in NON_FITTING_GRAPHS if g.name in asked.graphs):
        gigabytes, rate = NON_FITTING[graph.name]
        since, subject = time.perf_counter(), graph.subject(asked.scale)
        trace = subject.record()
        row: dict[str, Any] = {
            "graph": graph.name, "kind": graph.kind, "oversubscription": rate,
            "vertices": subject.graph.n_vertices, "arcs": subject.graph.n_arcs,
            "published": {"vertices": graph.vertices, "arcs": graph.arcs, "peak_gb": gigabytes},
            "peak_bytes": peak_of(trace), "peak_gb_scaled": peak_of(trace) / asked.scale / 1e9,
            "seconds": {},
        }  # fmt: skip
        for gpu in MACHINES:
            known: FinishedReplays = {}
            found = {}
            for policy in policies:
                point = Point(graph=graph.name, policy=policy, oversubscription=rate, gpu=gpu,
                              reserved=subject.reserved)  # fmt: skip
                result, _ = replay(trace, point, load_machine(gpu), known=known)
                found[policy] = result["seconds"] if result["feasible"] else None
            row["seconds"][gpu] = found
            base = found["base"]
            gains = {p: round(base / s, 2) for p, s in found.items() if s and base}
            print(graph.name, gpu, f"{time.perf_counter() - since:.0f} s", gains, flush=True)
        rows.append(row)
    record = {
        "machine": machine(), "evidence": "modelled", "scale": asked.scale,
        "about": list(ABOUT), "results": rows,
    }  # fmt: skip
    print(save("thesis_large_modelled", record, asked.output))


if __name__ == "__main__":
    main()
