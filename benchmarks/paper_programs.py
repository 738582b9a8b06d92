"""How does placement serve four programs, as Hope, Nag and Qasem evaluated theirs?

    python benchmarks/paper_programs.py rmat22 --limit 300 -o result.json     # on a GPU
    python benchmarks/paper_programs.py rmat22 --modelled
    python benchmarks/paper_programs.py --figures [--arcs 19 21 23]

BFS, shortest paths, spanning forest and PageRank, from a graph in ordinary host memory to an answer
there: allocating, moving, running and fetching count. Fixed policies and `auto`, with 0, 30, 50 and
70 % of what the arrays take withheld from the device. A policy that places more there than is left
is not run, and one whose placement does not depend on the budget is measured once. All points of a
program run round after round, in an order drawn for each: copies from ordinary memory take a few
per cent more or less from second to second and by what was freed before, and `auto` is judged by
its quotients with the best fixed policy, round by round. Where a fixed policy has the same
placements, both run again in `--pairs`, now one and now the other first. `--metered` points are
then repeated for `--seconds`, so that the GPU's counter gives their energy. Every point's
answer is compared with that of plain device memory, once. What `--limit` leaves no time for is left
out.

`--modelled` replays the programs as they declare their accesses, also where the driver would have
to evict. Rows that were also measured, without oversubscription, hold the measured seconds of
kernels: without loading, and without fetching the answer.

`--figures`: what the model says of the paper's Figures 6 to 9, there and on an H200, on twenty
kinds of graph in three sizes. Figure 6: a breadth-first search that pushes, level by level, is
replayed on demand, and its traffic is compared with a copy of the rows; edges are also taken as
arcs of one random direction each, as of the directed graphs in the paper's collection. Figure 7:
rows come in the order of kernel blocking, 1 to 10 pages a warp. Figures 8 and 9: the cost model's
times of four programs, whole and with less memory, where copies come slice by slice, in several
launches. Rows come from other memory of the host, copied by several threads as our loading does, or
the host writes them in place, and one thread copies them, as in the paper's programs. Power is a
line through measured points of an H200, by the share of time that device memory is busy; of a P100
it is scaled by what the card may take.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import common
import kinds
import numpy as np
from common import GENERATED, digest

import louvain_um as lu
from louvain_um import generators
from louvain_um.algorithms.programs import program_for, program_of
from louvain_um.errors import MemoryBudgetError
from louvain_um.events import Event
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Placement, Policy, register
from louvain_um.placement.program import tune_blocking
from louvain_um.profiling.access.recorded_plans import trace_of
from louvain_um.profiling.record.jobs import FROM_A_SOURCE, run_algorithm, widest
from louvain_um.profiling.simulator import (
    Array,
    Driver,
    Launch,
    Simulation,
    Touches,
    Trace,
    simulate,
)
from louvain_um.profiling.sources.nvml import Nvml
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError
from louvain_um.profiling.sweep.replay import FinishedReplays, Point, replay

PROGRAMS = ("bfs", "sssp", "mst", "pagerank")
WEIGHTED = ("sssp", "mst")
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

MEASURED = "paper_programs_h200"
REPLAYED = ("base", "device", "pinned", "zero_copy", "auto")
AROUND = ("load", "fetch", "sort")
"""Measured phases that are no kernels of the program."""

MACHINES = ("p100-nvlink", "h200")
WATTS = {"h200": 700, "p100-nvlink": 300}
"""That a card may take, by data sheets."""

PAGE, MOST_LEVELS, WARPS_A_PAGE = 4096, 500, 32

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

        kind, size = GENERATED[name]
        self.on_device = getattr(generate, kind)(size, weights="uniform").graph
        self.graph = self.on_device.to_host()
        self.plain = lu.Graph(self.graph.offsets, self.graph.targets, None, self.graph.loops)
        self.source = widest(self.graph)
        self.expected: dict[str, str] = {}
        self.edges: dict[str, float] = {}

    def graph_of(self, program: str) -> lu.Graph:
        """Return the graph with weights only where they matter to the paper's programs."""
        return self.graph if program in WEIGHTED else self.plain

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
        self.expected[program] = digest_of(answer)
        edges = graph.n_arcs / 2
        if program in FROM_A_SOURCE:
            edges = float(np.diff(graph.offsets)[answer.distances >= 0].sum()) / 2
        self.edges[program] = edges * max(1, timer.iterations if program == "pagerank" else 1)


def digest_of(answer: Any) -> str:
    """Return a digest of the arrays of an answer."""
    return digest(*(answer if isinstance(answer, tuple) else (answer,)))


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
            "equal": digest_of(answer) == bench.expected[program], "rounds": [], "each_phase": [],
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
    auto["paired"] = {"policy": row["policy"], "gains": gains}
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
        if best and "paired" in row and point["same_placements"]:
            point |= by_pairs(row["paired"]["gains"])
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


def measured(graph: str) -> dict[tuple[str, str], float]:
    """Return the measured seconds of kernels by program and policy, without oversubscription."""
    record = common.kept(MEASURED, None)
    if record["graph"] != graph:
        return {}
    return {
        (row["program"], row["policy"]): sum(
            seconds for phase, seconds in row["phases"].items() if phase not in AROUND
        )
        for row in record["results"]
        if row["feasible"] and row["oversubscription"] == 0
    }


def rows_of(graph: lu.Graph, name: str) -> Iterator[Row]:
    """Replay every point of every program."""
    known = measured(name)
    plain = lu.Graph(graph.offsets, graph.targets, None, graph.loops)
    for program in PROGRAMS:
        trace = trace_of(program_for(program, graph if program in WEIGHTED else plain))
        done: FinishedReplays = {}
        for rate, policy in product(RATES, REPLAYED):
            point = Point(graph=program, policy=policy, oversubscription=rate, gpu="h200")
            row, run = replay(trace, point, load_machine("h200"), known=done)
            yield {
                "program": program, "gpu": "h200", "policy": policy,
                "oversubscription": rate, "feasible": row["feasible"],
                **{key: row.get(key) for key in ("seconds", "least_seconds", "most_seconds",
                   "bytes_to_device", "bytes_to_host", "evictions")},
                "kernel_seconds": None if run is None else kernel_seconds(run),
                "measured_kernel_seconds": None if rate else known.get((program, policy)),
            }  # fmt: skip


def kernel_seconds(run: Simulation) -> float:
    """Return the seconds of the launches: without loading, and the host's reading of the answer."""
    launches = [isinstance(step, Launch) for step in run.trace.steps]
    return float(run.launch_seconds[launches].sum())


def gain(rows: list[Row], rate: int) -> float:
    """Return the mean over programs of how many times faster auto is than base."""
    seconds = {
        (r["program"], r["policy"]): r["seconds"] for r in rows if r["oversubscription"] == rate
    }
    return statistics.fmean(seconds[each, "base"] / seconds[each, "auto"] for each in PROGRAMS)


def modelled(name: str) -> Row:
    """Return the record of replays."""
    graph = generators.rmat(GENERATED[name][1], weights="uniform").graph
    rows = list(rows_of(graph, name))
    return {
        "graph": name, "vertices": graph.n_vertices, "arcs": graph.n_arcs, "results": rows,
        "gains": [{"gpu": "h200", **{f"at_{rate}": gain(rows, rate) for rate in RATES}}],
    }  # fmt: skip


def distances(offsets: Any, targets: Any, source: int) -> Any:
    """Return the levels of a search along arcs of one direction, −1 where it does not come."""
    found, front, level = np.full(len(offsets) - 1, -1), np.array([source]), 0
    while len(front):
        found[front] = level
        degrees = offsets[front + 1] - offsets[front]
        at = np.repeat(offsets[front] - degrees.cumsum() + degrees, degrees)
        reached = np.unique(targets[at + np.arange(len(at))])
        front, level = reached[found[reached] < 0].astype(np.int64), level + 1
    return found


def one_way(graph: lu.Graph) -> tuple[Any, Any]:
    """Return offsets and targets with a random one of the two arcs of each edge."""
    sources = np.repeat(np.arange(graph.n_vertices, dtype=np.uint64), np.diff(graph.offsets))
    targets = graph.targets.astype(np.uint64)
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xC2B2AE3D27D4EB4F))
    kept = ((mixed >> np.uint64(40)) & np.uint64(1)).astype(bool) == (sources < targets)
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[graph.offsets], graph.targets[kept]


def pages_of(begins: Any, ends: Any, itemsize: int) -> Any:
    """Return the pages that hold some items, ascending."""
    some = ends > begins
    low, high = begins[some] * itemsize // PAGE, (ends[some] * itemsize - 1) // PAGE
    marks = np.zeros(int(high.max(initial=-1)) + 2, np.int64)
    np.add.at(marks, low, 1)
    np.add.at(marks, high + 1, -1)
    return np.flatnonzero(marks.cumsum())


def search(offsets: Any, n_arcs: int, found: Any, pages: int = 0, warps: int = 1) -> Trace:
    """Return the trace of a search: all rows of a level's vertices, by so many pages a warp."""
    arrays = [
        Array(name=name, group="graph", nbytes=max(1, nbytes), starts="host", itemsize=size)
        for name, nbytes, size in (("offsets", 8 * len(offsets), 8), ("targets", 4 * n_arcs, 4))
    ]
    group = found * MOST_LEVELS // max(MOST_LEVELS, int(found.max()) + 1)
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
    steps = []
    for begin, end in pairwise(cuts):
        front = np.sort(order[begin:end])
        if not len(front):
            continue
        touched = (
            pages_of(front, front + 2, 8),
            blocked(pages_of(offsets[front], offsets[front + 1], 4), pages, warps),
        )
        numbers = np.repeat([0, 1], [len(each) for each in touched])
        touches = Touches.of(numbers, np.concatenate(touched))
        steps.append(Launch(touches=touches, kernel="push", phase="run"))
    return Trace(tuple(arrays), tuple(steps))


def blocked(pages: Any, factor: int, warps: int) -> Any:
    """Return pages in the order in which warps with so many consecutive ones each touch them."""
    if not factor:
        return pages
    at = np.arange(len(pages))
    warp = at // factor
    return pages[np.lexsort((warp, at % factor, warp // warps))]


def traffic(name: str, graph: lu.Graph) -> Row:
    """Return how much less demand paging moves than a copy of the rows."""
    whole = lu.bfs(graph, widest(graph), device="cpu").distances
    offsets, targets = one_way(graph)
    part = distances(offsets, targets, int(np.argmax(np.diff(offsets))))
    row = {"kind": name, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
    for what, (rows, arcs, found, prefetcher) in {
        "saved": (graph.offsets, graph.n_arcs, whole, True),
        "saved_one_way": (offsets, len(targets), part, True),
        "saved_unprefetched": (offsets, len(targets), part, False),
    }.items():
        run = simulate(search(rows, arcs, found), "h200", policy="base", record=False,
                       driver=Driver(prefetcher=prefetcher))  # fmt: skip
        row[what] = 1 - run.bytes_to_device / (8 * len(rows) + 4 * arcs)
    return row | {
        "reached": float((whole >= 0).mean()),
        "reached_one_way": float((part >= 0).mean()),
    }


def blocking(name: str, graph: lu.Graph) -> Iterator[Row]:
    """Yield the seconds of a search on demand by pages per warp, and without blocking."""
    found = lu.bfs(graph, widest(graph), device="cpu").distances

    def seconds(machine: Machine, pages: int) -> float:
        warps = WARPS_A_PAGE * machine.faults_in_flight
        if pages:  # each warp waits for a page of its own
            machine = replace(machine, faults_in_flight=warps)
        trace = search(graph.offsets, graph.n_arcs, found, pages, warps)
        return simulate(trace, machine, policy="base", record=False).seconds

    for gpu in MACHINES:
        machine = load_machine(gpu)
        curve = tune_blocking(lambda pages, machine=machine: seconds(machine, pages))
        plain, times = seconds(machine, 0), curve.seconds
        yield {
            "kind": name, "arcs": graph.n_arcs, "gpu": gpu, "best": curve.best,
            "gain": plain / times[curve.best],
            "worst_over_best": max(times.values()) / times[curve.best],
            "seconds_unblocked": plain, "seconds": list(times.values()),
        }  # fmt: skip


def power() -> tuple[float, float]:
    """Return watts when idle, and those that busy device memory adds, of a measured H200."""
    record = common.kept(MEASURED, None)
    idle, points = record["idle_watts"], []
    for row in record["results"]:
        if row.get("watts"):
            rate = row["oversubscription"]
            program = paper_program(row["program"], record["vertices"], record["arcs"])
            how = {"memory": row["policy"], "device_budget": f"{100 - rate}%" if rate else None}
            points.append((busy(lu.plan(program, machine="h200", **how)), row["watts"] - idle))
    shares, watts = np.array(points).T
    return idle, float(shares @ watts / (shares @ shares))


def paper_program(name: str, vertices: int, arcs: int, *, in_place: bool = False) -> Any:
    """Return a program with weights where the paper's has them; the host may write the rows."""
    made = program_of(name, n_vertices=vertices, n_arcs=arcs, weighted=name in WEIGHTED)
    return replace(made, arrays=[replace(a, given=a.given and not in_place) for a in made.arrays])


def busy(plan: Any) -> float:
    """Return the share of a plan's time that its kernels would take with everything at hand."""
    here = {array.name: Placement("device") for array in plan.program.arrays}
    return min(1.0, sum(plan.cost.phases(here).values()) / plan.seconds)


def gains(graphs: list[Row]) -> Iterator[Row]:
    """Yield speed and energy of demand paging and of `auto` over copies, by program."""
    idle, more = power()
    for gpu, program, rate, in_place in product(MACHINES, PROGRAMS, (0, 50, 70), (False, True)):
        scale, found = WATTS[gpu] / WATTS["h200"], defaultdict[str, list[float]](list)
        for graph in graphs:
            size = graph["vertices"], graph["arcs"]
            whole = paper_program(program, *size, in_place=in_place)
            copies, *others = (planned(whole, way, rate, gpu) for way in ("device", "base", "auto"))
            if not copies:
                continue
            found["launches"].append(copies.launches)
            for plan in filter(None, others):
                gain, way = copies.seconds / plan.seconds, plan.policy
                watts = [scale * (idle + more * busy(each)) for each in (copies, plan)]
                found[f"{way} speed"].append(gain)
                found[f"{way} energy"].append(gain * watts[0] / watts[1])
                found[f"{way} teps"].append(graph["arcs"] / 2 / plan.seconds)
        for name, values in found.items():
            yield {"gpu": gpu, "program": program, "oversubscription": rate, "in_place": in_place,
                   "what": name, "graphs": len(values), **spread(values)}  # fmt: skip


def planned(program: Any, memory: str, rate: int, gpu: str) -> Any:
    """Return a plan; None if it does not fit."""
    try:
        return lu.plan(program, memory=memory, machine=gpu,
                       device_budget=f"{100 - rate}%" if rate else None)  # fmt: skip
    except MemoryBudgetError:
        return None


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return the least, median, mean and largest value."""
    order = sorted(values)
    return {"least": order[0], "median": statistics.median(order),
            "mean": statistics.fmean(order), "most": order[-1]}  # fmt: skip


def figures(sizes: list[int]) -> Row:
    """Return the record of the paper's figures."""
    record: Row = {"published": PUBLISHED, "traffic": [], "blocking": []}
    for name, size in product((*kinds.KINDS, *kinds.GENERATED), sizes):
        graph = kinds.made(np, name, 1 << size)
        record["traffic"].append(traffic(name, graph))
        if size == max(sizes):
            record["blocking"] += blocking(name, graph)
        print(name, size, flush=True)
    record["gains"] = list(gains(record["traffic"]))
    record["summary"] = [
        {"what": what, **spread(row[what] for row in record["traffic"])}
        for what in ("saved", "saved_one_way", "saved_unprefetched", "reached_one_way")
    ] + [
        {"what": f"{what}, {gpu}", **spread(r[what] for r in record["blocking"] if r["gpu"] == gpu)}
        for what in ("gain", "worst_over_best") for gpu in MACHINES
    ]  # fmt: skip
    return record


def main() -> None:
    """Measure or model, and save."""
    options = common.parser(__doc__)
    options.add_argument("graph", nargs="?", default="rmat22", choices=list(GENERATED))
    options.add_argument("--programs", nargs="*", default=list(PROGRAMS),
                        help="none: only what else is asked for")  # fmt: skip
    options.add_argument("--policies", nargs="*", default=list(FIXED),
                        help="of all programs, or of one as in bfs:pinned")  # fmt: skip
    options.add_argument("--rounds", type=int, default=9, help="of a program, at most")
    options.add_argument("--each", type=float, default=30.0, help="seconds for a program's rounds")
    options.add_argument("--pairs", type=int, default=30,
                        help="of runs where auto has the placements of a fixed policy")  # fmt: skip
    options.add_argument("--metered", nargs="*", default=["pagerank:auto:50", "pagerank:pinned:0"],
                        help="points whose energy is measured")  # fmt: skip
    options.add_argument("--seconds", type=float, default=2.0, help="of a metered point")
    options.add_argument("--blocking", action="store_true", help="measure 1 to 10 pages per warp")
    options.add_argument("--limit", type=float, default=1e9, help="seconds after which to end")
    options.add_argument("--longest", type=float, default=1.2, help="of predicted seconds to run")
    options.add_argument("--modelled", action="store_true", help="replay; an R-MAT graph")
    options.add_argument("--figures", action="store_true", help="model the paper's figures")
    options.add_argument("--arcs", type=int, nargs="+", default=[19, 21, 23], help="powers of 2")
    asked = options.parse_args()
    if not (asked.modelled or asked.figures):
        measure(asked)
        return
    since = time.perf_counter()
    name = "paper_figures" if asked.figures else "modelled_programs"
    found = figures(asked.arcs) if asked.figures else modelled(asked.graph)
    about = {"evidence": "modelled", "machine": common.machine()}
    found = about | found | {"seconds": time.perf_counter() - since}
    print(common.save(name, found, asked.output))


def measure(asked: argparse.Namespace) -> None:
    """Measure on a GPU, and save after each part."""
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
                "graph": asked.graph, "vertices": bench.graph.n_vertices,
                "arcs": bench.graph.n_arcs, "traversed_edges": bench.edges,
                "seconds_of_work": asked.seconds, "machine": common.machine(),
                "published": PUBLISHED, "results": [],
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
        save()
    print(f"done after {time.perf_counter() - began:.1f} s")
    for point in record["judged"]["points"] if asked.programs else ():
        print(point)


if __name__ == "__main__":
    main()
