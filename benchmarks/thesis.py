"""Does the simulator rank policies as Dinçer's thesis measured them?

    python benchmarks/thesis.py [--scale 0.125] [--large-scale 0.03125] [-o thesis.json]

Table 4.6 from replayed stand-ins of its graphs, next to the published numbers (`study`), the
graphs that do not fit 8 GB (Table 4.7, Figure 4.23), each under every policy at its published
oversubscription (`large`), on models of the thesis's two machines, and the gains of two graphs up
to their full size (`sizes`). All figures are modelled. Pages and blocks keep their size although
the graphs are smaller.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from common import machine, save

from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.access.recorded_plans import peak_of
from louvain_um.profiling.sweep.points import parse_policies
from louvain_um.profiling.sweep.replay import FinishedReplays, Point, replay
from louvain_um.profiling.sweep.results import gains
from louvain_um.profiling.sweep.run import Settings, sweep
from louvain_um.profiling.thesis.published import GAINS, NON_FITTING
from louvain_um.profiling.thesis.stand_ins import (
    ABOUT,
    GRAPHS,
    LARGE_SCALE,
    MACHINES,
    NON_FITTING_GRAPHS,
    RATES,
    SCALE,
    stand_in,
)

SIZED = {
    "audikw_1": (1 / 32, 1 / 8, 1 / 2, 1.0),
    "soc-LiveJournal1": (1 / 32, 1 / 16, 1 / 8, 1 / 4),
}
"""Graphs that are replayed at several scales: recordings of full size, where accesses are local."""


def study(scale: float) -> dict[str, Any]:
    """Return the mean gains of each machine and policy, and the published ones."""
    settings = Settings(policies=parse_policies("all"), rates=RATES, gpus=MACHINES)
    since = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = sweep([graph.subject(scale) for graph in GRAPHS], settings, folder)
    rows = found.results
    auto = [row for row in rows if row["policy"] == "auto" and row["feasible"]]
    by_gpu = {gpu: gains([row for row in rows if row["gpu"] == gpu]) for gpu in MACHINES}
    return {
        "scale": scale, "seconds": time.perf_counter() - since, "oversubscription": list(RATES),
        "gains": {gpu: {policy: list(by_rate.values()) for policy, by_rate in found.items()}
                  for gpu, found in by_gpu.items()},
        "published": {policy: list(values) for policy, values in GAINS.items()},
        "auto_is_the_plan_s_choice": sum(row["chosen"] == "plan" for row in auto),
        "auto_runs": len(auto),
        "notes": [note for note in found.notes if note.startswith(("why", "Table"))],
    }  # fmt: skip


def large(scale: float) -> dict[str, Any]:
    """Return seconds by graph, machine and policy."""
    policies, rows = parse_policies("all"), list[dict[str, Any]]()
    for graph in NON_FITTING_GRAPHS:
        gigabytes, rate = NON_FITTING[graph.name]
        since, subject = time.perf_counter(), graph.subject(scale)
        trace = subject.record()
        row: dict[str, Any] = {
            "graph": graph.name, "kind": graph.kind, "oversubscription": rate,
            "vertices": subject.graph.n_vertices, "arcs": subject.graph.n_arcs,
            "published": {"vertices": graph.vertices, "arcs": graph.arcs, "peak_gb": gigabytes},
            "peak_bytes": peak_of(trace), "peak_gb_scaled": peak_of(trace) / scale / 1e9,
            "seconds": {},
        }  # fmt: skip
        for gpu in MACHINES:
            known: FinishedReplays = {}
            seconds = row["seconds"][gpu] = {}
            for policy in policies:
                point = Point(graph=graph.name, policy=policy, oversubscription=rate, gpu=gpu)
                result, _ = replay(trace, point, load_machine(gpu), known=known)
                seconds[policy] = result["seconds"] if result["feasible"] else None
            took = time.perf_counter() - since
            faster = {p: round(seconds["base"] / s, 2) for p, s in seconds.items() if s}
            print(graph.name, gpu, f"{took:.0f} s", faster, flush=True)
        rows.append(row)
    return {"scale": scale, "results": rows}


def sizes() -> list[dict[str, Any]]:
    """Return the gains of graphs at several scales, on the first machine."""
    policies, rows = parse_policies("all"), list[dict[str, Any]]()
    machine = load_machine(MACHINES[0])
    for name, scales in SIZED.items():
        for scale in scales:
            since, subject = time.perf_counter(), stand_in(name).subject(scale)
            trace = subject.record()
            seconds = {
                policy: [
                    replay(trace, Point(graph=name, policy=policy, oversubscription=rate,
                                        gpu=MACHINES[0]), machine)[0]["seconds"]
                    for rate in RATES
                ]
                for policy in policies
            }  # fmt: skip
            found = {p: [b / s if s else None for b, s in zip(seconds["base"], each, strict=True)]
                     for p, each in seconds.items() if p != "base"}  # fmt: skip
            rows.append({"graph": name, "scale": scale, "arcs": subject.graph.n_arcs,
                         "peak_bytes": peak_of(trace), "oversubscription": list(RATES),
                         "gains": found, "seconds": time.perf_counter() - since})  # fmt: skip
            print(name, scale, f"{rows[-1]['seconds']:.0f} s", found["adv7"], flush=True)
    return rows


def main() -> None:
    """Replay, and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--large-scale", type=float, default=SCALE * LARGE_SCALE)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    record = {"machine": machine(), "evidence": "modelled", "about": list(ABOUT)}
    record |= {"study": study(asked.scale), "large": large(asked.large_scale), "sizes": sizes()}
    print(save("thesis", record, asked.output))


if __name__ == "__main__":
    main()
