"""What does the model say of Figures 6 to 9 of Hope, Nag and Qasem, there and on an H200?

    python benchmarks/paper_figures.py --arcs 19 21 23

Twenty kinds of graph in three sizes. Figure 6: a breadth-first search that pushes, level by level,
is replayed on demand, and its traffic is compared with a copy of the rows; edges are also taken as
arcs of one random direction each, as of the directed graphs in the paper's collection. Figure 7:
rows come in the order of kernel blocking, 1 to 10 pages a warp. Figures 8 and 9: the cost model's
times of four programs, whole and with less memory, where copies come slice by slice, in several
launches. Rows come from other memory of the host, copied by several threads as our loading does, or
the host writes them in place, and one thread copies them, as in the paper's programs. Power is a
line through measured points of an H200, by the share of time that device memory is busy; of a P100
it is scaled by what the card may take. All figures are modelled.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import common
import kinds
import numpy as np
from paper_programs import PUBLISHED

import louvain_um as lu
from louvain_um.algorithms.by_name import widest
from louvain_um.algorithms.programs import WEIGHED, program_of
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program import tune_blocking
from louvain_um.profiling.simulator import Array, Driver, Launch, Touches, Trace, simulate

Row = dict[str, Any]
RATES = (0, 50, 70)
PROGRAMS = ("bfs", "sssp", "mst", "pagerank")
MACHINES = ("p100-nvlink", "h200")
WATTS = {"h200": 700, "p100-nvlink": 300}
"""That a card may take, by data sheets."""

PAGE, MOST_LEVELS, WARPS_A_PAGE = 4096, 500, 32
MEASURED = common.RESULTS / "paper_programs_h200.json"


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
    own = at // factor
    return pages[np.lexsort((own, at % factor, own // warps))]


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
    record = json.loads(MEASURED.read_text(encoding="utf-8"))
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
    weighted = name in WEIGHED and name in ("sssp", "mst")
    made = program_of(name, n_vertices=vertices, n_arcs=arcs, weighted=weighted)
    return replace(made, arrays=[replace(a, given=a.given and not in_place) for a in made.arrays])


def busy(plan: Any) -> float:
    """Return the share of a plan's time that its kernels would take with everything at hand."""
    here = {array.name: Placement("device") for array in plan.program.arrays}
    return min(1.0, sum(plan.cost.phases(here).values()) / plan.seconds)


def gains(graphs: list[Row]) -> Iterator[Row]:
    """Yield speed and energy of demand paging and of `auto` over copies, by program."""
    idle, more = power()
    for gpu, program, rate, in_place in product(MACHINES, PROGRAMS, RATES, (False, True)):
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


def main() -> None:
    """Model, and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arcs", type=int, nargs="+", default=[19, 21, 23], help="powers of 2")
    parser.add_argument("-o", "--output", type=Path)
    asked, since = parser.parse_args(), time.perf_counter()
    record: Row = {"evidence": "modelled", "machine": common.machine(), "published": PUBLISHED,
                   "traffic": [], "blocking": []}  # fmt: skip
    for name in (*kinds.KINDS, *kinds.GENERATED):
        for size in asked.arcs:
            graph = kinds.made(np, name, 1 << size)
            record["traffic"].append(traffic(name, graph))
            if size == max(asked.arcs):
                record["blocking"] += blocking(name, graph)
        print(name, f"{time.perf_counter() - since:.0f} s", flush=True)
    record["gains"] = list(gains(record["traffic"]))
    record["summary"] = [
        {"what": what, **spread(row[what] for row in record["traffic"])}
        for what in ("saved", "saved_one_way", "saved_unprefetched", "reached_one_way")
    ] + [
        {"what": f"{what}, {gpu}", **spread(r[what] for r in record["blocking"] if r["gpu"] == gpu)}
        for what in ("gain", "worst_over_best") for gpu in MACHINES
    ]  # fmt: skip
    record["seconds"] = time.perf_counter() - since
    print(common.save("paper_figures", record, asked.output))


if __name__ == "__main__":
    main()
