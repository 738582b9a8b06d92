"""Does the simulator rank policies as Dinçer's thesis measured them?

    python benchmarks/thesis.py [--scale 0.125] [--large-scale 0.03125] [-o thesis.json]
    python benchmarks/thesis.py --parts program accesses [--scale 0.125]    # on a GPU
    python benchmarks/thesis.py --parts model [--scale 0.125] -o benchmarks/results/thesis_h200.json

Table 4.6 from replayed stand-ins of its graphs, next to the published numbers (`study`), the
graphs that do not fit 8 GB (Table 4.7, Figure 4.23), each under every policy at its published
oversubscription (`large`), on models of the thesis's two machines, and the gains of two graphs up
to their full size (`sizes`). These figures are modelled. Pages and blocks keep their size although
the graphs are smaller.

The other parts need no oversubscription. `program` runs the thesis's program, as CUDA in managed
memory, on the stand-ins under every policy, and with all arrays in device memory. Seconds are those
of the fastest of `--repeat` runs in one process, from the loaded graph to the last level; the host
has written the graph, which `base` then migrates. `accesses` counts its accesses by `attach
--trace`, on stand-ins of half the scale. `model` replays these stand-ins on a model of the
GPU.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from attach import ATTACH, compiled, thesis_groups
from common import kept, machine, parser, save

from louvain_um.graph.graph import Graph
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.profiling import load
from louvain_um.profiling.access.recorded_plans import peak_of
from louvain_um.profiling.sweep.points import parse_policies
from louvain_um.profiling.sweep.replay import FinishedReplays, Point, replay
from louvain_um.profiling.sweep.results import gains
from louvain_um.profiling.sweep.run import Settings, sweep
from louvain_um.profiling.thesis.published import (
    ACCESSES,
    GAINS,
    GROUPS,
    IN_CORE_SECONDS,
    MACHINES,
    NON_FITTING,
    PEAK_MB,
)
from louvain_um.profiling.thesis.stand_ins import (
    ABOUT,
    GRAPHS,
    LARGE_SCALE,
    NON_FITTING_GRAPHS,
    SCALE,
    StandIn,
    stand_in,
)
from louvain_um.profiling.views.sweep.cost_breakdown import explanations

RATES = (0.0, 10.0, 30.0, 50.0, 70.0)
"""Oversubscriptions of the thesis, percent."""

SIZED = {
    "audikw_1": (1 / 32, 1 / 8, 1 / 2, 1.0),
    "soc-LiveJournal1": (1 / 32, 1 / 16, 1 / 8, 1 / 4),
}
"""Graphs that are replayed at several scales: recordings of full size, where accesses are local."""


def study(scale: float) -> dict[str, Any]:
    """Return the mean gains of each machine and policy, and the published ones."""
    settings = Settings(policies=parse_policies("all"), rates=RATES, gpus=tuple(MACHINES))
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
        "notes": [*explanations(found), *(n for n in found.notes if n.startswith("Table"))],
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
    machine = load_machine("p4000")
    for name, scales in SIZED.items():
        for scale in scales:
            since, subject = time.perf_counter(), stand_in(name).subject(scale)
            trace = subject.record()
            seconds = {
                policy: [
                    replay(trace, Point(graph=name, policy=policy, oversubscription=rate,
                                        gpu="p4000"), machine)[0]["seconds"]
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


LEVEL = re.compile(r"level .* (\d+) iterations, modularity (.*)")


def host_groups(policy: str) -> str:
    """Return the groups that a policy leaves on the host, as the program takes them."""
    placed = find_policy(policy).placements
    return ",".join(g for g in GROUPS if str(placed[g]) == "host_mapped") or "managed"


def written(graph: Graph, weighted: bool, folder: str) -> str:
    """Write a graph as the program reads it; return the file's path."""
    path = Path(folder, "graph")
    with path.open("wb") as file:
        np.array([graph.n_vertices, graph.n_arcs, weighted], np.int32).tofile(file)
        graph.offsets.astype(np.int32).tofile(file)
        graph.targets.astype(np.int32).tofile(file)
    return str(path)


def measured(
    standing: StandIn, scale: float, repeat: int, program: str, folder: str
) -> dict[str, Any]:
    """Return a graph's row: seconds of the program by policy, peaks by group, and its levels."""
    since, graph = time.perf_counter(), standing.make(scale)
    file = written(graph, standing.weighted, folder)
    made = time.perf_counter() - since
    placements = {"device": "device"} | {name: host_groups(name) for name in ("base", *GAINS)}
    asked = list(placements.values()) * repeat
    # The first run also loads the kernels.
    done = subprocess.run(
        [program, file, "device", *asked], capture_output=True, text=True, check=True
    )
    runs = [json.loads(line) for line in done.stderr.splitlines()][1:]
    by_placement: dict[str, list[float]] = {}
    for run in runs:
        by_placement.setdefault(run["placement"], []).append(run["seconds"])
    *printed, error = done.stdout.splitlines()
    levels = [LEVEL.fullmatch(line) for line in printed]
    n_levels = len(printed) // (len(runs) + 1)
    if error != "no error" or not all(levels):
        raise SystemExit(f"{standing.name}: {done.stdout[-400:]}")
    return {
        "graph": standing.name, "scale": scale, "vertices": graph.n_vertices,
        "arcs": graph.n_arcs, "runs": repeat,
        "seconds": {name: min(by_placement[where]) for name, where in placements.items()},
        "slowest": {name: max(by_placement[where]) for name, where in placements.items()},
        "iterations": [int(level[1]) for level in levels[:n_levels] if level],
        "modularity": float(levels[n_levels - 1][2]) if levels[n_levels - 1] else None,
        "alike": len(set(map(tuple, np.reshape(printed, (-1, n_levels))))) == 1,
        "peak_bytes": {group: runs[0][group] for group in GROUPS},
        "whole_seconds": time.perf_counter() - since, "made_seconds": made,
    }  # fmt: skip


def counted(standing: StandIn, scale: float, program: str, folder: str) -> dict[str, Any]:
    """Return a graph's row of traced accesses by group, and those of small arrays."""
    since, graph = time.perf_counter(), standing.make(scale)
    session = Path(folder, "session.npz")
    file = written(graph, standing.weighted, folder)
    command = [*ATTACH, "--trace", "-o", str(session), "--", program, file]
    subprocess.run(command, check=True, capture_output=True)
    found = load(session)
    about, groups = found.metadata["about_sources"]["tracer"], thesis_groups()
    site = {life.name: life.group for life in found.lifetimes}
    accesses = dict.fromkeys(GROUPS, 0)
    for name, uses in about["accesses"].items():
        if site[name] in groups:
            accesses[groups[site[name]]] += int(sum(uses))
    return {
        "graph": standing.name, "scale": scale, "arcs": graph.n_arcs, "accesses": accesses,
        "elsewhere": sum(about["elsewhere"]), "tracer": found.metadata["sources"]["tracer"],
        "notes": list(found.notes), "whole_seconds": time.perf_counter() - since,
    }  # fmt: skip


def modelled(standing: StandIn, scale: float, gpu: str) -> dict[str, Any]:
    """Return a graph's row of modelled seconds by policy where all fits."""
    trace, profile = standing.subject(scale).record(), load_machine(gpu)
    points = {name: Point(graph=standing.name, policy=name, oversubscription=0, gpu=gpu)
              for name in ("base", *GAINS)}  # fmt: skip
    known: FinishedReplays = {}
    seconds = {name: replay(trace, point, profile, known=known)[0]["seconds"]
               for name, point in points.items()}  # fmt: skip
    return {"graph": standing.name, "scale": scale, "seconds": seconds}


def in_core(part: str, graphs: list[str], scale: float, repeat: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a part, smaller graphs first."""
    with tempfile.TemporaryDirectory() as folder:
        program = "" if part == "model" else compiled("rundemanen", Path(folder))
        for standing in sorted(map(stand_in, graphs), key=lambda each: each.arcs):
            if part == "program":
                row = measured(standing, scale, repeat, program, folder)
            elif part == "accesses":
                row = counted(standing, scale / 2, program, folder)
            else:
                row = modelled(standing, scale, "h200")
            print(json.dumps(row), flush=True)
            yield row


def with_published(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with what the thesis published, and the mean gain of each policy.

    Means are of the graphs that the program ran on.
    """
    ran = {row["graph"] for row in record.get("program", [])}
    parts = {
        part: [row for row in record[part] if row["graph"] in ran]
        for part in ("program", "model") if record.get(part)
    }  # fmt: skip
    gains = [
        {"policy": policy, "published": published[0]}
        | {
            part: float(np.mean([each["seconds"]["base"] / each["seconds"][policy]
                                 for each in rows]))
            for part, rows in parts.items()
        }
        for policy, published in GAINS.items()
    ]  # fmt: skip
    published = {"seconds": IN_CORE_SECONDS, "accesses": ACCESSES, "peak_mb": PEAK_MB}
    return record | {"gains": gains, "published": published}


def main() -> None:
    """Replay or run, and save."""
    given = parser(__doc__)
    given.add_argument("--parts", nargs="+", choices=("program", "accesses", "model"))
    given.add_argument("--graphs", nargs="+", default=[graph.name for graph in GRAPHS])
    given.add_argument("--scale", type=float)
    given.add_argument("--large-scale", type=float, default=SCALE * LARGE_SCALE)
    given.add_argument("--repeat", type=int, default=2)
    asked = given.parse_args()
    if asked.parts:
        record = kept("thesis", asked.output, "cuda")
        if asked.parts != ["model"]:
            record["machine"] = machine()
        for part in asked.parts:
            for row in in_core(part, asked.graphs, asked.scale or SCALE, asked.repeat):
                others = [each for each in record.get(part, []) if each["graph"] != row["graph"]]
                record[part] = [*others, row]
                save("thesis", with_published(record), asked.output, device="cuda")
        return
    record = {"machine": machine(), "evidence": "modelled", "about": list(ABOUT)}
    record |= {"study": study(asked.scale or SCALE), "large": large(asked.large_scale)}
    print(save("thesis", record | {"sizes": sizes()}, asked.output))


if __name__ == "__main__":
    main()
