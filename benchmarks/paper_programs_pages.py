"""Pages: kernels by how many of them a warp takes, and what demand paging brings.

For `paper_programs.py`.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

import louvain_um as lu
from louvain_um.algorithms.pagerank import UNIT
from louvain_um.algorithms.programs import program_for
from louvain_um.algorithms.running import Run, running
from louvain_um.gpu.algorithms import products, traversal
from louvain_um.placement.policy.policy import Policy
from louvain_um.placement.program.plan import ProgramPlan

BLOCKED_UNDER = (("pinned", 0), ("zero_copy", 0), ("auto", 70))
"""Policies under which targets are in host memory, and what is withheld."""

ROUNDS, ITERATIONS = 3, 3
"""Of all factors, and of PageRank in each run."""

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


@contextmanager
def pages_per_warp(pages: int | None) -> Iterator[None]:
    """Let kernels take so many pages at a time where rows lie in host memory, or as for others: 0.

    For None, what plans say.
    """
    if pages is None:
        yield
        return
    with patch.object(ProgramPlan, "pages_per_warp", lambda plan, *names: pages):
        yield


def blocking(
    bench: Any, factors: list[int], until: float, timer_of: Callable[[], Any]
) -> list[dict[str, Any]]:
    """Return seconds of kernels, an iteration's for PageRank, by pages per warp (Figure 7).

    0 stands for kernels without blocking. The rows are loaded once for each policy; factors run in
    an order drawn for each round.
    """
    found, draw = [], random.Random(0)
    for program, (policy, rate) in product(("pagerank", "spmv", "bfs"), BLOCKED_UNDER):
        timer, took = timer_of(), {factor: list[float]() for factor in factors}
        with running(
            program, bench.plain, device="cuda", memory=policy, threads=None, observer=timer,
            device_budget=f"{100 - rate}%" if rate else None,
        ) as run:  # fmt: skip
            if not run.rows.pages:
                continue
            expected, equal = None, True
            for _ in range(ROUNDS):
                for factor in draw.sample(factors, len(factors)):
                    if time.perf_counter() > until:
                        return found
                    timer.seconds.clear()
                    answer, runs = once(program, bench, run, factor)
                    took[factor].append(
                        timer.seconds["iterate" if program == "pagerank" else "run"] / runs
                    )
                    if expected is None:
                        expected = answer.copy()
                    equal = equal and bool((expected == answer).all())
        found.append({
            "program": program, "policy": policy, "oversubscription": rate, "equal": equal,
            "chosen": run.rows.pages, "each": {str(f): t for f, t in took.items()},
            "seconds": {str(f): statistics.median(t) for f, t in took.items()},
        })  # fmt: skip
        print(found[-1], flush=True)
    return found


def once(program: str, bench: Any, run: Run, pages: int) -> tuple[Any, int]:
    """Run kernels with so many pages per warp; return their answer, and iterations."""
    rows = replace(run.rows, pages=pages)
    if program == "bfs":
        return traversal.bfs(rows, bench.source, run.space)[1], 1
    if program == "spmv":
        return products.spmv(rows, np.ones(rows.n_vertices), 1.0, run.space), 1
    start, teleport = UNIT // rows.n_vertices, int(UNIT * 0.15 / rows.n_vertices)
    rule = 0.85, start, teleport, 0, ITERATIONS
    return products.pagerank(rows, *rule, lambda *_: None, run.space)[0], ITERATIONS


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
