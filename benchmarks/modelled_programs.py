"""What does the simulator say of the four programs, also where the driver would have to evict?

    python benchmarks/modelled_programs.py rmat22

The programs of `paper_programs.py` as they declare their accesses, replayed on an H200. Rows that
were also measured, without oversubscription, hold the measured seconds of kernels: without loading,
and without fetching the answer. All other figures are modelled.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from common import GENERATED, machine, save

import louvain_um as lu
from louvain_um import generators
from louvain_um.algorithms.programs import program_for
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.policy import Policy, register
from louvain_um.profiling.access.recorded_plans import trace_of
from louvain_um.profiling.simulator import Launch, Simulation
from louvain_um.profiling.sweep.replay import FinishedReplays, Point, replay

PROGRAMS = ("bfs", "sssp", "mst", "pagerank")
WEIGHTED = ("sssp", "mst")
MACHINES = ("h200",)
RATES = (0, 30, 50, 70)
POLICIES = ("base", "device", "pinned", "zero_copy", "auto")
AROUND = ("load", "fetch", "sort")
"""Measured phases that are no kernels of the program."""

MEASURED = Path(__file__).parent / "results" / "paper_programs_h200.json"

register(Policy(name="pinned", groups={"graph": "pinned"}))


def measured(graph: str) -> dict[tuple[str, str], float]:
    """Return the measured seconds of kernels by program and policy, without oversubscription."""
    record = json.loads(MEASURED.read_text(encoding="utf-8"))
    if record["graph"] != graph:
        return {}
    return {
        (row["program"], row["policy"]): sum(
            seconds for phase, seconds in row["phases"].items() if phase not in AROUND
        )
        for row in record["results"]
        if row["feasible"] and row["oversubscription"] == 0
    }


def rows_of(graph: lu.Graph, name: str) -> Iterator[dict[str, Any]]:
    """Replay every point of every program."""
    known = measured(name)
    plain = lu.Graph(graph.offsets, graph.targets, None, graph.loops)
    for program in PROGRAMS:
        trace = trace_of(program_for(program, graph if program in WEIGHTED else plain))
        for gpu in MACHINES:
            done: FinishedReplays = {}
            for rate in RATES:
                for policy in POLICIES:
                    point = Point(graph=program, policy=policy, oversubscription=rate, gpu=gpu)
                    row, run = replay(trace, point, load_machine(gpu), known=done)
                    kernels = None if run is None else kernel_seconds(run)
                    yield {
                        "program": program, "gpu": gpu, "policy": policy,
                        "oversubscription": rate, "feasible": row["feasible"],
                        **{key: row.get(key) for key in ("seconds", "least_seconds",
                           "most_seconds", "bytes_to_device", "bytes_to_host", "evictions")},
                        "kernel_seconds": kernels,
                        "measured_kernel_seconds": known.get((program, policy))
                        if gpu == "h200" and rate == 0 else None,
                    }  # fmt: skip


def kernel_seconds(run: Simulation) -> float:
    """Return the seconds of the launches: without loading, and the host's reading of the answer."""
    launches = [isinstance(step, Launch) for step in run.trace.steps]
    return float(run.launch_seconds[launches].sum())


def gain(rows: list[dict[str, Any]], gpu: str, rate: int) -> float:
    """Return the mean over programs of how many times faster auto is than base."""
    seconds = {
        (row["program"], row["policy"]): row["seconds"]
        for row in rows
        if row["gpu"] == gpu and row["oversubscription"] == rate
    }
    return fmean(seconds[each, "base"] / seconds[each, "auto"] for each in PROGRAMS)


def main() -> None:
    """Replay, and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("graph", choices=[name for name in GENERATED if name.startswith("rmat")])
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    since = time.perf_counter()
    graph = generators.rmat(GENERATED[asked.graph][1], weights="uniform").graph
    rows = list(rows_of(graph, asked.graph))
    gains = [{"gpu": gpu, **{f"at_{rate}": gain(rows, gpu, rate) for rate in RATES}}
             for gpu in MACHINES]  # fmt: skip
    record = {
        "evidence": "modelled", "machine": machine(), "graph": asked.graph,
        "vertices": graph.n_vertices, "arcs": graph.n_arcs, "results": rows, "gains": gains,
        "seconds": time.perf_counter() - since,
    }  # fmt: skip
    print(save("modelled_programs", record, asked.output))


if __name__ == "__main__":
    main()
