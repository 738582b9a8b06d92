"""Four programs under placement, as Hope, Nag and Qasem evaluated theirs.

    python benchmarks/paper_programs.py rmat22 --seconds 2 -o result.json

BFS, shortest paths, spanning forest and PageRank, from a graph in ordinary host memory to an answer
there: allocating, moving, running and fetching count. Fixed policies and `auto`, with 0, 30, 50 and
70 % of what the arrays take withheld from the device. A policy that places more there than is left
is not run, and one whose placement does not depend on the budget is measured once. Points of
`--metered` policies and rates are repeated for at least `--seconds`, so that the GPU's own counter
tells their energy; others for .4 s. Every answer is compared with that of plain device memory.
Copies from ordinary memory take a few per cent more or less from minute to minute; hence `auto`
and the best fixed policy of each point run once more, in turns, and are judged by that.

Needs a GPU. `--programs`, `--policies` and `--rates` measure less; `--chart` draws a record.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

import louvain_um as lu
from louvain_um.algorithms.by_name import FROM_A_SOURCE, run_algorithm, widest
from louvain_um.algorithms.programs import WEIGHED, iterations_to, program_for, program_of
from louvain_um.errors import MemoryBudgetError
from louvain_um.events import Event
from louvain_um.placement.policy.policy import Policy, register
from louvain_um.profiling.sources.nvml import Nvml
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError

PROGRAMS = ("bfs", "sssp", "mst", "pagerank")
FIXED = ("device", "base", "zero_copy", "adv1", "adv2", "prefetched", "pinned")
RATES = (0, 30, 50, 70)
UNITS = ("bfs", "sssp", "spanning_forest", "pagerank")
PUBLISHED = {
    "speedup_mean": 2.46,
    "speedup_bfs": 4.59,
    "teps_per_watt_mean": 2.36,
    "bytes_saved_mean": 0.36,
    "bytes_saved_least": 0.08,
}
"""Of demand paging with kernel blocking over copies, on a P100: sections 5.2, 5.4 and 5.5."""

TOLERANCE = 1e-6
"""Of PageRank."""

IN_TURNS = 0.5
"""Seconds in which `auto` and the best fixed policy run in turns."""

LEAST_METERED = 1.9
"""Seconds of work below which no energy is told."""

FACTORS = range(1, 11)
BLOCKED = """
extern "C" __global__ void sum(const unsigned* targets, const double* values,
                               unsigned long long count, unsigned pages, double* out) {
  double mine = 0;
  blocked_for(i, count, 4, pages) mine += values[targets[i]];
  if (mine < 0) *out = mine;
}
"""
"""What SpMV reads of an arc: its target in order, and a value at random."""

register(Policy(name="prefetched", groups={"graph": "prefetched"}, others="prefetched"))
register(Policy(name="pinned", groups={"graph": "pinned"}))


class Timer:
    """An observer that adds up the seconds of each phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.iterations = 0
        self.plan: Any = None
        self._since: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        now = time.perf_counter()
        if event.kind == "start":
            self._since[event.phase] = now
        elif event.kind == "end":
            took = now - self._since[event.phase]
            self.seconds[event.phase] = self.seconds.get(event.phase, 0.0) + took
        elif event.kind == "iteration":
            self.iterations += 1
        elif event.kind == "plan":
            self.plan = event.plan


class Bench:
    """The graph, its programs and their expected answers."""

    def __init__(self, name: str) -> None:
        from louvain_um.gpu.generate import generate

        kind, size = common.GENERATED[name]
        self.on_device = getattr(generate, kind)(size, weights="uniform").graph
        self.graph = self.on_device.to_host()
        self.plain = lu.Graph(self.graph.offsets, self.graph.targets, None, self.graph.loops)
        self.source = widest(self.graph)
        self.expected: dict[str, str] = {}
        self.edges: dict[str, float] = {}

    def graph_of(self, program: str) -> lu.Graph:
        """Return the graph with weights only where they matter to the paper's programs."""
        return self.graph if program in WEIGHED and program != "pagerank" else self.plain

    def call(self, program: str, graph: Any, **how: Any) -> Any:
        source = self.source if program in FROM_A_SOURCE else None
        if program == "pagerank":
            how["tolerance"] = TOLERANCE
        return run_algorithm(program, graph, source=source, device="cuda", **how)

    def learn(self, program: str) -> None:
        """Note the answer in plain device memory, and the edges that were traversed."""
        from louvain_um.gpu.graph import DeviceGraph

        graph, timer = self.graph_of(program), Timer()
        answer = self.call(program, DeviceGraph.from_host(graph), observer=timer)
        self.expected[program] = digest(answer)
        edges = graph.n_arcs / 2
        if program in FROM_A_SOURCE:
            edges = float(np.diff(graph.offsets)[answer.distances >= 0].sum()) / 2
        self.edges[program] = edges * max(1, timer.iterations if program == "pagerank" else 1)


def digest(answer: Any) -> str:
    """Return a hash of the arrays of an answer."""
    found = hashlib.blake2b(digest_size=16)
    for array in answer if isinstance(answer, tuple) else (answer,):
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


class Meter:
    """The energy counter of the device."""

    def __init__(self) -> None:
        from cupy.cuda import runtime

        self.bus = runtime.deviceGetPCIBusId(0)

    def __enter__(self) -> Meter:
        self.source: Nvml | None = Nvml(self.bus)
        try:
            self.source.start(SessionClock())
        except SourceUnavailableError as error:
            print(error)
            self.source = None
        return self

    def __exit__(self, *error: object) -> None:
        if self.source is not None:
            self.source.stop()

    @property
    def joules(self) -> float | None:
        found = None if self.source is None else self.source.energy()
        return None if found is None else float(found["joules"])


def point(
    bench: Bench, program: str, policy: str, rate: int, seconds: float, longest: float
) -> dict[str, Any]:
    """Measure a program under a policy."""
    how = {"memory": policy, "device_budget": f"{100 - rate}%" if rate else None}
    graph = bench.graph_of(program)
    row: dict[str, Any] = {"program": program, "policy": policy, "oversubscription": rate}
    try:
        plan = lu.plan(program_for(program, graph), **how)
        if plan.seconds > longest:
            reason = f"not run: predicted to take {plan.seconds:.1f} s"
            return row | {"feasible": False, "reason": reason, "predicted_seconds": plan.seconds}
        first = Timer()
        answer = bench.call(program, graph, observer=first, **how)
        plan, equal = first.plan, digest(answer) == bench.expected[program]
    except MemoryBudgetError as error:
        return row | {"feasible": False, "reason": str(error)}
    totals, phases = [], []
    with Meter() as meter:
        since = time.perf_counter()
        while len(totals) < 2 or time.perf_counter() - since < seconds:
            timer, begin = Timer(), time.perf_counter()
            bench.call(program, graph, observer=timer, **how)
            totals.append(time.perf_counter() - begin)
            phases.append(timer.seconds)
        span = time.perf_counter() - since
    best = statistics.median(totals)
    row |= {
        "feasible": True,
        "equal": equal,
        "runs": len(totals),
        "seconds": best,
        "least_seconds": min(totals),
        "spread": statistics.pstdev(totals) / statistics.mean(totals),
        "phases": {name: statistics.median(p.get(name, 0.0) for p in phases) for name in phases[0]},
        "predicted_seconds": plan.seconds,
        "predicted_phases": plan.phase_seconds,
        "placements": {name: str(where) for name, where in plan.placements.items()},
        "teps": bench.edges[program] / best,
    }
    if meter.joules is not None and span >= LEAST_METERED:
        watts = meter.joules / span
        row |= {"joules": meter.joules / len(totals), "watts": watts}
        row["teps_per_watt"] = bench.edges[program] * len(totals) / meter.joules
    return row


def in_turns(bench: Bench, program: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run `auto` and the best fixed policy of each of its points in turns."""
    found, graph = [], bench.graph_of(program)
    for row in of_auto(rows, program):
        best = best_fixed(rows, row)
        if best is None:
            continue
        rate, took = row["oversubscription"], {"auto": list[float](), best["policy"]: list[float]()}
        since = time.perf_counter()
        while len(took["auto"]) < 3 or time.perf_counter() - since < IN_TURNS:
            for policy, times in took.items():
                begin = time.perf_counter()
                bench.call(
                    program, graph, memory=policy, device_budget=f"{100 - rate}%" if rate else None
                )
                times.append(time.perf_counter() - begin)
        auto, fixed = (statistics.median(times) for times in took.values())
        found.append({
            "program": program, "oversubscription": rate, "best_policy": best["policy"],
            "auto_seconds": auto, "best_seconds": fixed, "runs": len(took["auto"]),
            "same_placements": row["placements"] == best["placements"],
        })  # fmt: skip
        print(f"in turns: {found[-1]}", flush=True)
    return found


def of_auto(rows: list[dict[str, Any]], program: str) -> list[dict[str, Any]]:
    """Return the points of `auto` that ran."""
    return [r for r in rows if r["feasible"] and (r["program"], r["policy"]) == (program, "auto")]


def fixed_beside(rows: list[dict[str, Any]], auto: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fixed policies that keep to the budget of a point of `auto`."""
    return [r for r in rows if r["feasible"] and r["program"] == auto["program"]
            and r["policy"] != "auto"
            and auto["oversubscription"] in r.get("rates", [r["oversubscription"]])]  # fmt: skip


def best_fixed(rows: list[dict[str, Any]], auto: dict[str, Any]) -> dict[str, Any] | None:
    """Return the fastest of them."""
    return min(fixed_beside(rows, auto), key=lambda r: r["seconds"], default=None)


def moved(name: str, graph: lu.Graph, program: str) -> dict[str, Any]:
    """Return the bytes that demand paging brings, beside those of a full copy."""
    session = lu.profile(graph, program=program, device="cuda", sources=("uvm-light",))
    inputs = set(session.metadata["inputs"])
    full = sum(a.nbytes for a in program_for(program, graph).arrays if a.name in inputs)
    found = session.summary()
    return {
        "graph": name, "program": program, "copied_bytes": full,
        "paged_bytes": found.get("bytes_to_device"), "fault_groups": found.get("gpu_fault_groups"),
        "sources": dict(session.metadata["sources"]),
    }  # fmt: skip


def factor_curves(graph: lu.Graph) -> dict[str, dict[str, float]]:
    """Return seconds of reading all targets with each number of pages per warp (Figure 7)."""
    import cupy

    from louvain_um.placement.memory import cuda_calls
    from louvain_um.placement.program import HEADER, blocked_grid

    options = ("--std=c++17",)
    kernel = cupy.RawModule(code=HEADER + BLOCKED, options=options).get_function("sum")
    curves = {}
    for kind in ("host_mapped", "managed"):
        policy = Policy(name="mine", groups={"graph": kind})
        with lu.Placer(memory=policy) as place:
            targets = place.array(
                "targets", graph.n_arcs, np.uint32, group="graph", source=graph.targets
            )
            values = place.array("values", graph.n_vertices, np.float64)
            place.solve()
            values.fill(1)
            out, curve = cupy.zeros(1), {}
            for pages in FACTORS:
                took = []
                for _ in range(2):
                    if kind == "managed":
                        cuda_calls.prefetch(targets.data.ptr, targets.nbytes, cuda_calls.HOST)
                    cuda_calls.synchronize()
                    begin = time.perf_counter()
                    grid = blocked_grid(graph.n_arcs, 4, pages)
                    count = np.uint64(graph.n_arcs)
                    kernel((grid,), (256,), (targets, values, count, np.uint32(pages), out))
                    cuda_calls.synchronize()
                    took.append(time.perf_counter() - begin)
                curve[str(pages)] = min(took)
            curves[kind] = curve
    return curves


def judged(record: dict[str, Any]) -> dict[str, Any]:
    """Return how `auto` stands beside the best fixed policy of each point, and beside `base`."""
    rows, points, gains, watts = record["results"], [], [], []
    for row in (row for program in PROGRAMS for row in of_auto(rows, program)):
        program, rate = row["program"], row["oversubscription"]
        best = best_fixed(rows, row)
        base = next((r for r in fixed_beside(rows, row) if r["policy"] == "base"), None)
        points.append({
            "program": program, "oversubscription": rate, "auto_seconds": row["seconds"],
            "best_policy": best and best["policy"], "best_seconds": best and best["seconds"],
            "gain_over_base": base and base["seconds"] / row["seconds"],
        })  # fmt: skip
        for pair in record.get("in_turns", []):
            if (pair["program"], pair["oversubscription"]) == (program, rate):
                points[-1]["gain_in_turns"] = pair["best_seconds"] / pair["auto_seconds"]
        if base:
            gains.append(base["seconds"] / row["seconds"])
            if "teps_per_watt" in row and "teps_per_watt" in base:
                watts.append(row["teps_per_watt"] / base["teps_per_watt"])
    return {
        "points": points,
        "gain_over_base_mean": statistics.mean(gains) if gains else None,
        "teps_per_watt_over_base_mean": statistics.mean(watts) if watts else None,
    }


def chosen_now(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what `auto` chooses for the points of a record with the present cost model."""
    found = []
    for program in PROGRAMS:
        weighted = program in WEIGHED and program != "pagerank"
        asked = program_of(
            program, n_vertices=record["vertices"], n_arcs=record["arcs"], weighted=weighted,
            iterations=iterations_to(TOLERANCE, 500),
        )  # fmt: skip
        for rate in RATES:
            plan = lu.plan(asked, device_budget=f"{100 - rate}%" if rate else None, machine="h200")
            found.append({
                "program": program, "oversubscription": rate, "predicted_seconds": plan.seconds,
                "placements": {n: str(w) for n, w in plan.placements.items() if str(w) != "device"},
            })  # fmt: skip
    return found


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", nargs="?", default="rmat22", choices=list(common.GENERATED))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS))
    parser.add_argument("--policies", nargs="+", default=list(FIXED))
    parser.add_argument("--metered", nargs="+", default=["auto", *FIXED])
    parser.add_argument("--metered-rates", nargs="+", type=int, default=list(RATES))
    parser.add_argument("--rates", nargs="+", type=int, default=list(RATES))
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to end")
    parser.add_argument("--longest", type=float, default=5.0, help="of predicted seconds to run")
    parser.add_argument("--chart", type=Path, help="draw --beside as a picture")
    parser.add_argument("--beside", type=Path, help="an earlier record; needs no GPU")
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    if asked.beside:
        record = json.loads(asked.beside.read_text())
        record["judged"], record["now"] = judged(record), chosen_now(record)
        print(json.dumps([record["judged"], record["now"]], indent=1))
        if asked.output:
            print(common.save("paper_programs_h200", record, asked.output))
        if asked.chart:
            chart(record, asked.chart)
        return
    from louvain_um.gpu.runtime.compile import kernels
    from louvain_um.gpu.runtime.device import pick
    from louvain_um.gpu.runtime.kernel_list import ANY_WEIGHTS

    began = time.perf_counter()
    with pick("cuda").current():
        kernels.prepare((source, types) for source in UNITS for types in ("", *ANY_WEIGHTS))
        bench = Bench(asked.graph)
        with Meter() as meter:
            time.sleep(asked.seconds)
        idle = None if meter.joules is None else meter.joules / asked.seconds
        print(f"{bench.graph!r} after {time.perf_counter() - began:.0f} s, idle {idle} W")
        rows: list[dict[str, Any]] = []
        turns: list[dict[str, Any]] = []
        for program in asked.programs:
            bench.learn(program)
            for policy in ("auto", *asked.policies):
                for rate in asked.rates if policy == "auto" else asked.rates[:1]:
                    if time.perf_counter() - began > asked.limit:
                        continue
                    metered = policy in asked.metered and rate in asked.metered_rates
                    seconds = asked.seconds if metered else min(asked.seconds, 0.4)
                    row = point(bench, program, policy, rate, seconds, asked.longest)
                    if policy != "auto" and row["feasible"]:
                        row["rates"] = [r for r in asked.rates if fits(bench, program, policy, r)]
                    rows.append(row)
                    print(shown(row), flush=True)
            if time.perf_counter() - began <= asked.limit:
                turns += in_turns(bench, program, rows)
        paged = [moved(asked.graph, bench.graph_of(p), p) for p in asked.programs]
        curves = factor_curves(bench.plain)
    record = {
        "command": " ".join(sys.argv), "graph": asked.graph,
        "vertices": bench.graph.n_vertices, "arcs": bench.graph.n_arcs,
        "traversed_edges": bench.edges, "seconds_of_work": asked.seconds, "idle_watts": idle,
        "machine": common.machine(), "published": PUBLISHED, "results": rows,
        "in_turns": turns, "moved": paged, "pages_per_warp": curves,
    }  # fmt: skip
    record["judged"] = judged(record)
    print(json.dumps(record["judged"]))
    print(json.dumps([paged, curves]))
    print(common.save("paper_programs_h200", record, asked.output))


def fits(bench: Bench, program: str, policy: str, rate: int) -> bool:
    """Whether a fixed policy keeps to a budget; its placement does not depend on it."""
    try:
        lu.plan(program_for(program, bench.graph_of(program)), memory=policy,
                device_budget=f"{100 - rate}%")  # fmt: skip
    except MemoryBudgetError:
        return False
    return True


def shown(row: dict[str, Any]) -> str:
    """Return a row as a line."""
    name = f"{row['program']} {row['policy']} {row['oversubscription']} %"
    if not row["feasible"]:
        return f"{name}: {row['reason'][:80]}"
    phases = ", ".join(f"{phase} {1e3 * s:.1f}" for phase, s in row["phases"].items())
    return (
        f"{name}: {1e3 * row['seconds']:.1f} ms ({phases}; predicted "
        f"{1e3 * row['predicted_seconds']:.1f}), {row['teps'] / 1e9:.2f} GTEPS, "
        f"{row.get('watts') or 0:.0f} W, equal {row['equal']}, ±{100 * row['spread']:.0f} %, "
        f"{[f'{n} {w}' for n, w in row['placements'].items() if w != 'device'][:6]}"
    )


def chart(record: dict[str, Any], path: Path) -> None:
    """Draw seconds and TEPS by policy, energy if it was metered, bytes paged in, factor curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(2, 2)
    ran = [row for row in record["results"] if row["feasible"]]
    metered = any("teps_per_watt" in row for row in ran)
    shown = [(axes[0, 0], "seconds", "ms", 1e3), (axes[0, 1], "teps", "GTEPS", 1e-9)]
    if metered:
        shown[0] = axes[0, 0], "teps_per_watt", "MTEPS/W", 1e-6
    bars = list(dict.fromkeys((row["policy"], row["oversubscription"]) for row in ran))
    for axis, key, unit, scale in shown:
        for at, (policy, rate) in enumerate(bars):
            heights = [
                next((scale * row.get(key, 0) for row in ran if row["program"] == program
                      and (row["policy"], row["oversubscription"]) == (policy, rate)), 0.0)
                for program in PROGRAMS
            ]  # fmt: skip
            places = np.arange(len(PROGRAMS)) + (at - len(bars) / 2 + 0.5) * 0.8 / len(bars)
            label = policy + (f", {rate} % withheld" if policy == "auto" else "")
            axis.bar(places, heights, 0.8 / len(bars), label=label)
        axis.set_xticks(range(len(PROGRAMS)), PROGRAMS)
        axis.set_ylabel(unit)
    axes[0, 0].legend(fontsize="x-small")
    paged, axis = record["moved"], axes[1, 0]
    shares = [100 * (row["paged_bytes"] or 0) / row["copied_bytes"] for row in paged]
    axis.bar([row["program"] for row in paged], shares)
    axis.axhline(100, color="gray", linewidth=0.8)
    axis.set_ylabel("bytes paged in, % of a full copy")
    axis = axes[1, 1]
    for kind, curve in record["pages_per_warp"].items():
        least = min(curve.values())
        axis.plot([int(k) for k in curve], [s / least for s in curve.values()], "o-", label=kind)
    axis.set_xlabel("pages per warp")
    axis.set_ylabel("time, best = 1")
    axis.legend(fontsize="x-small")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
