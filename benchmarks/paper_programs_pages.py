"""Pages: kernels by how many of them a warp takes, and what demand paging brings.

For `paper_programs.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import louvain_um as lu
from louvain_um.algorithms.programs import program_for
from louvain_um.placement.policy.policy import Policy
from louvain_um.placement.program.plan import ProgramPlan

ROUGH = 1e-2
"""Tolerance of PageRank where only the seconds of an iteration matter."""

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


def blocking(bench: Any, factors: list[int], until: float) -> list[dict[str, Any]]:
    """Return seconds of kernels, an iteration's for PageRank, by pages per warp (Figure 7).

    0 stands for kernels without blocking. Factors run in turns.
    """
    found = []
    for program, policy, rate in (
        ("pagerank", "pinned", 0), ("pagerank", "base", 0), ("pagerank", "zero_copy", 0),
        ("pagerank", "auto", 50), ("spmv", "pinned", 0), ("bfs", "pinned", 0),
        ("bfs", "auto", 50), ("bfs", "base", 0),
    ):  # fmt: skip
        took: dict[int, list[float]] = {factor: [] for factor in factors}
        how = {"tolerance": ROUGH} if program == "pagerank" else {}
        answers = set()
        for _ in range(2):
            for factor, times in took.items():
                if time.perf_counter() > until:
                    continue
                with pages_per_warp(factor):
                    _, timer, answer = bench.timed(program, policy, rate, **how)
                answers.add(answer)
                runs = max(1, timer.iterations if program == "pagerank" else 1)
                times.append(timer.seconds["iterate" if program == "pagerank" else "run"] / runs)
        if not all(took.values()):
            break
        found.append({
            "program": program, "policy": policy, "oversubscription": rate,
            "equal": len(answers) == 1, "seconds": {str(f): min(t) for f, t in took.items()},
            "each": {str(f): t for f, t in took.items()},
        })  # fmt: skip
        print(found[-1], flush=True)
    return found


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
