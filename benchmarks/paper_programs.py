"""How does placement serve four programs, as Hope, Nag and Qasem evaluated theirs?

    python benchmarks/paper_programs.py rmat22 --limit 300 -o result.json

BFS, shortest paths, spanning forest and PageRank, from a graph in ordinary host memory to an answer
there: allocating, moving, running and fetching count. Fixed policies and `auto`, with 0, 30, 50 and
70 % of what the arrays take withheld from the device. A policy that places more there than is left
is not run, and one whose placement does not depend on the budget is measured once. All points of a
program run round after round, in an order drawn for each: copies from ordinary memory take a few
per cent more or less from second to second and by what was freed before, and `auto` is judged by
its quotients with the best fixed policy, round by round. Where a fixed policy has the same
placements, both run again in `--pairs`, now one and now the other first. `--metered` points are
then repeated for `--seconds`, so that the GPU's counter gives their energy. Every point's
answer is compared with that of plain device memory, once.

`--paged` records the bytes that demand paging brings, and those of a full copy. Needs a GPU.
What `--limit` leaves no time for is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import common
import numpy as np

import louvain_um as lu
from louvain_um.algorithms.by_name import FROM_A_SOURCE, run_algorithm, widest
from louvain_um.algorithms.programs import WEIGHED, program_for
from louvain_um.errors import MemoryBudgetError
from louvain_um.events import Event
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Policy, register
from louvain_um.placement.program import tune_blocking
from louvain_um.profiling.sources.nvml import Nvml
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError

PROGRAMS = ("bfs", "sssp", "mst", "pagerank")
RATES = (0, 30, 50, 70)
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

Row = dict[str, Any]

FIXED = ("device", "pinned", "zero_copy", "prefetched", "base")
UNITS = (
    ("generate", ""), ("bfs", "RowView"), ("bfs", "HostRows"), ("sssp", "u32"),
    ("spanning_forest", "u32"), ("pagerank", "Unweighted, RowView"),
    ("pagerank", "Unweighted, HostRows"), ("spmv", "Unweighted, RowView"),
    ("spmv", "Unweighted, HostRows"),
)  # fmt: skip

BLOCKED = ("bfs", "pagerank", "spmv")
"""Programs whose kernels take rows in host or managed memory by pages."""

KERNELS = ("run", "weigh", "iterate")
"""Their phases."""

LEAST_METERED = 1.9
"""Seconds of work below which no energy is reported."""

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
        return self.graph if program in WEIGHED and program in ("sssp", "mst") else self.plain

    def call(self, program: str, graph: Any, **how: Any) -> Any:
        source = self.source if program in FROM_A_SOURCE else None
        if program == "pagerank":
            how = {"tolerance": TOLERANCE} | how
        return run_algorithm(program, graph, source=source, device="cuda", **how)

    def timed(
        self, program: str, policy: str | Policy, rate: int, **how: Any
    ) -> tuple[float, Timer, Any]:
        """Return the seconds of a run, its phases, and its answer."""
        timer, graph = Timer(), self.graph_of(program)
        how |= {"memory": policy, "device_budget": f"{100 - rate}%" if rate else None}
        begin = time.perf_counter()
        answer = self.call(program, graph, observer=timer, **how)
        return time.perf_counter() - begin, timer, answer

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

    def __enter__(self) -> Meter:
        from cupy.cuda import runtime

        self.source: Nvml | None = Nvml(runtime.deviceGetPCIBusId(0))
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


def points(bench: Bench, program: str, policies: list[str], longest: float) -> list[Row]:
    """Return the points of a program, each after a first run that is not timed."""
    rows = []
    fixed = [name.removeprefix(f"{program}:") for name in policies]
    asked = [("auto", rate) for rate in RATES] + [(name, 0) for name in fixed if ":" not in name]
    for policy, rate in asked:
        try:
            plan = lu.plan(
                program_for(program, bench.graph_of(program)), memory=policy,
                device_budget=f"{100 - rate}%" if rate else None,
            )  # fmt: skip
            if plan.seconds > longest:
                continue
            _, timer, answer = bench.timed(program, policy, rate)
        except MemoryBudgetError as error:
            print(f"{program} {policy} {rate} %: {error}", flush=True)
            continue
        plan = timer.plan
        row = {
            "program": program, "policy": policy, "oversubscription": rate, "feasible": True,
            "equal": digest(answer) == bench.expected[program], "rounds": [], "each_phase": [],
            "launches": {"before": plan.launches_before, "after": plan.launches},
            "predicted_seconds": plan.seconds, "predicted_phases": plan.phase_seconds,
            "placements": {name: str(where) for name, where in plan.placements.items()},
        }  # fmt: skip
        if policy != "auto":
            row["rates"] = [r for r in RATES if fits(bench, program, policy, r)]
        rows.append(row)
    return rows


def in_rounds(bench: Bench, rows: list[Row], until: float, most: int) -> None:
    """Run all points of a program round after round, and note each time."""
    program, draw = rows[0]["program"], random.Random(0)
    while len(rows[0]["rounds"]) < most:
        begin = time.perf_counter()
        for row in draw.sample(rows, len(rows)):
            seconds, timer, _ = bench.timed(program, row["policy"], row["oversubscription"])
            row["rounds"].append(seconds)
            row["each_phase"].append(timer.seconds)
        if 2 * time.perf_counter() - begin > until:
            break
    for row in rows:
        phases, rounds = row.pop("each_phase"), row["rounds"]
        row |= {
            "runs": len(rounds), "seconds": statistics.median(rounds),
            "least_seconds": min(rounds), "spread": statistics.pstdev(rounds) / np.mean(rounds),
            "phases": {name: statistics.median(p.get(name, 0.0) for p in phases)
                       for name in phases[0]},
            "teps": bench.edges[program] / statistics.median(rounds),
        }  # fmt: skip
        print(shown(row), flush=True)


def in_pairs(bench: Bench, rows: list[Row], pairs: int, until: float) -> None:
    """Note the quotients of `auto` and a fixed policy with the same placements, run alternately."""
    auto = next(row for row in rows if row["policy"] == "auto")
    same = [r for r in rows if r["policy"] != "auto" and r["placements"] == auto["placements"]]
    if not same or not pairs:
        return
    row = min(same, key=lambda row: row["seconds"])
    gains = list[float]()
    while len(gains) < pairs and time.perf_counter() < until:
        took = {}
        for each in (auto, row) if len(gains) % 2 else (row, auto):
            took[each["policy"]], _, _ = bench.timed(
                each["program"], each["policy"], each["oversubscription"]
            )
        gains.append(took[row["policy"]] / took["auto"])
    auto["beside"] = {"policy": row["policy"], "gains": gains}
    print(f"{auto['program']} {row['policy']} / auto: {statistics.median(gains):.4f}", flush=True)


def meter(bench: Bench, row: Row, seconds: float) -> None:
    """Repeat a point, and note the energy of a run."""
    runs, since = 0, time.perf_counter()
    with Meter() as found:
        while (span := time.perf_counter() - since) < seconds:
            bench.timed(row["program"], row["policy"], row["oversubscription"])
            runs += 1
        joules = found.joules
    if joules is not None and span >= LEAST_METERED:
        row |= {"joules": joules / runs, "watts": joules / span, "metered_runs": runs}
        row["teps_per_watt"] = bench.edges[row["program"]] * runs / joules
    print(shown(row), flush=True)


def fits(bench: Bench, program: str, policy: str, rate: int) -> bool:
    """Whether a fixed policy keeps to a budget; its placement does not depend on it."""
    try:
        lu.plan(program_for(program, bench.graph_of(program)), memory=policy,
                device_budget=f"{100 - rate}%")  # fmt: skip
    except MemoryBudgetError:
        return False
    return True


def moved(name: str, graph: lu.Graph, program: str) -> Row:
    """Return the bytes that demand paging brings, and those of a full copy."""
    session = lu.profile(graph, program=program, device="cuda", sources=("uvm-light",))
    inputs = set(session.metadata["inputs"])
    full = sum(a.nbytes for a in program_for(program, graph).arrays if a.name in inputs)
    found = session.summary()
    return {
        "graph": name, "program": program, "copied_bytes": full,
        "paged_bytes": found.get("bytes_to_device"), "fault_groups": found.get("gpu_fault_groups"),
        "sources": dict(session.metadata["sources"]),
    }  # fmt: skip


def curve(bench: Bench, program: str, memory: str, most: int = 3) -> Row:
    """Return the seconds of a program's kernels by pages per warp, and without blocking."""
    policy = find_policy(memory)

    def seconds(pages: int) -> float:
        each = replace(policy, name=f"{memory}-{pages}", pages_per_warp=pages)
        rounds = [bench.timed(program, each, 0)[1].seconds for _ in range(most)]
        return min(sum(s for phase, s in r.items() if phase in KERNELS) for r in rounds)

    found = tune_blocking(seconds)
    return {"program": program, "policy": memory, "best": found.best, "seconds": found.seconds}


def judged(record: Row) -> Row:
    """Return how `auto` compares with the best fixed policy of each point, and with `base`."""
    rows, points, gains, watts = record["results"], [], [], []
    for row in (row for row in rows if row["policy"] == "auto"):
        fixed = [
            other for other in rows
            if other["program"] == row["program"] and other["policy"] != "auto"
            and row["oversubscription"] in other.get("rates", [other["oversubscription"]])
        ]  # fmt: skip
        best = min(fixed, key=lambda other: other["seconds"], default=None)
        base = next((other for other in fixed if other["policy"] == "base"), None)
        point = {
            "program": row["program"], "oversubscription": row["oversubscription"],
            "auto_seconds": row["seconds"], "best_policy": best and best["policy"],
            "best_seconds": best and best["seconds"],
            "same_placements": best and best["placements"] == row["placements"],
            "gain_over_base": base and base["seconds"] / row["seconds"],
        }  # fmt: skip
        if best and "beside" in row and point["same_placements"]:
            point |= by_pairs(row["beside"]["gains"])
        elif best and len(best["rounds"]) == len(row["rounds"]):
            quotients = np.divide(best["rounds"], row["rounds"]).tolist()
            point |= {"gain_in_turns": statistics.median(quotients)}
            point |= {"least_gain": min(quotients), "most_gain": max(quotients)}
        points.append(point)
        if base:
            gains.append(point["gain_over_base"])
        if base and "joules" in row and "joules" in base:
            watts.append(row["teps_per_watt"] / base["teps_per_watt"])
    return {
        "points": points,
        "gain_over_base_mean": statistics.mean(gains) if gains else None,
        "teps_per_watt_over_base_mean": statistics.mean(watts) if watts else None,
    }


def by_pairs(gains: list[float]) -> Row:
    """Return the median of the quotients of pairs of runs, and its range at 95 %."""
    order, n = sorted(gains), len(gains)
    # So many of n fall below the median, but for one in twenty times.
    low = max(0, int(n / 2 - 0.98 * n**0.5 - 0.5))
    return {
        "gain_in_turns": statistics.median(order), "pairs": n,
        "least_gain": order[low], "most_gain": order[n - 1 - low],
    }  # fmt: skip


def shown(row: Row) -> str:
    """Return a row as a line."""
    phases = ", ".join(f"{phase} {1e3 * s:.1f}" for phase, s in row["phases"].items())
    return (
        f"{row['program']} {row['policy']} {row['oversubscription']} %: "
        f"{1e3 * row['seconds']:.1f} ms ({phases}; "
        f"predicted {1e3 * row['predicted_seconds']:.1f}), {row['teps'] / 1e9:.2f} GTEPS, "
        f"{row.get('watts') or 0:.0f} W, equal {row['equal']}, "
        f"{row['runs']} runs ±{100 * row['spread']:.0f} %, "
        f"{[f'{n} {w}' for n, w in row['placements'].items() if w != 'device'][:6]}"
    )


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", nargs="?", default="rmat22", choices=list(common.GENERATED))
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS),
                        help="none: only what else is asked for")  # fmt: skip
    parser.add_argument("--policies", nargs="*", default=list(FIXED),
                        help="of all programs, or of one as in bfs:pinned")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=9, help="of a program, at most")
    parser.add_argument("--each", type=float, default=30.0, help="seconds for a program's rounds")
    parser.add_argument("--pairs", type=int, default=30,
                        help="of runs where auto has the placements of a fixed policy")  # fmt: skip
    parser.add_argument("--metered", nargs="*", default=["pagerank:auto:50", "pagerank:pinned:0"],
                        help="points whose energy is measured")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=2.0, help="of a metered point")
    parser.add_argument("--paged", action="store_true", help="measure demand paging, too")
    parser.add_argument("--blocking", action="store_true", help="measure 1 to 10 pages per warp")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to end")
    parser.add_argument("--longest", type=float, default=1.2, help="of predicted seconds to run")
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    from louvain_um.gpu.runtime.compile import kernels
    from louvain_um.gpu.runtime.device import pick

    began = time.perf_counter()
    with pick("cuda").current():
        kernels.prepare(UNITS)
        print(f"compiled after {time.perf_counter() - began:.1f} s", flush=True)
        bench = Bench(asked.graph)
        print(f"{bench.graph!r} after {time.perf_counter() - began:.1f} s", flush=True)
        record: Row = common.kept("paper_programs", asked.output, "cuda")
        if asked.programs:
            record |= {
                "command": " ".join(sys.argv), "graph": asked.graph,
                "vertices": bench.graph.n_vertices, "arcs": bench.graph.n_arcs,
                "traversed_edges": bench.edges, "seconds_of_work": asked.seconds,
                "machine": common.machine(), "published": PUBLISHED, "results": [],
            }  # fmt: skip

        def save() -> None:
            if "results" in record:
                record["judged"] = judged(record)
            common.save("paper_programs", record, asked.output, "cuda")

        def left() -> float:
            return began + asked.limit - time.perf_counter()

        for program in asked.programs:
            if left() > 2:
                begin = time.perf_counter()
                bench.learn(program)
                rows = points(bench, program, asked.policies, asked.longest)
                print(f"{program} ready in {time.perf_counter() - begin:.1f} s", flush=True)
                until = begin + min(asked.each, left())
                in_rounds(bench, rows, until, asked.rounds)
                in_pairs(bench, rows, asked.pairs, time.perf_counter() + min(asked.each, left()))
                record["results"] += rows
                save()
        for name in asked.metered if asked.programs else ():
            program, policy, rate = name.split(":")
            for row in record["results"]:
                at = row["program"], row["policy"], str(row["oversubscription"])
                if at == (program, policy, rate) and left() > asked.seconds + 0.5:
                    meter(bench, row, asked.seconds)
                    save()
        if asked.programs and left() > asked.seconds:
            with Meter() as idle:
                time.sleep(asked.seconds)
                record["idle_watts"] = idle.joules and idle.joules / asked.seconds
        if asked.blocking:
            record["blocking"] = []
            for program, memory in product(BLOCKED, ("base", "pinned")):
                if left() > 10:
                    record["blocking"].append(curve(bench, program, memory))
                    print(record["blocking"][-1], flush=True)
                    save()
        if asked.paged:
            record["moved"] = [moved(asked.graph, bench.graph_of(p), p) for p in asked.programs]
        save()
    print(f"done after {time.perf_counter() - began:.1f} s")
    for point in record["judged"]["points"] if asked.programs else ():
        print(point)


if __name__ == "__main__":
    main()
