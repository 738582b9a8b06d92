"""One point of a sweep, measured on a GPU: timed runs, and a profiled one for traffic."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from louvain_um.errors import MemoryBudgetError
from louvain_um.options import Budget, Options
from louvain_um.profiling.sweep.replay import FIGURES

if TYPE_CHECKING:
    from pathlib import Path

    from louvain_um.graph.graph import Graph
    from louvain_um.placement.policy.policy import Policy
    from louvain_um.profiling.sweep.points import Settings
    from louvain_um.results.communities import Communities

EXCLUDED = ("load", "fetch", "compile", "total")
"""Timings that do not count as seconds of the algorithm."""


def options_for(policy: str | Path | Policy, rate: float, settings: Settings) -> Options:
    """Return the options of a run with (100 − rate) percent of its peak as budget."""
    percent = 100 - Decimal(str(rate))
    return Options(
        method=settings.method,
        seed=settings.seed,
        device=settings.device or "cuda",
        memory=policy,
        device_budget=Budget(fraction=float(percent) / 100),
    )


def warm_up(graph: Graph, settings: Settings) -> None:
    """Run once, so that no point includes compile time."""
    from louvain_um.api import run

    device = settings.device or "cuda"
    run(graph, Options(method=settings.method, seed=settings.seed, device=device, memory="device"))


def measure(
    graph: Graph, policy: str | Path | Policy, rate: float, settings: Settings
) -> dict[str, Any]:
    """Return a row of results; a policy that cannot keep to the budget is not run.

    `seconds` are those of move, refine and aggregate phases, the better of two runs without a
    profiler. Migrations come from a third, profiled run, bytes read in place from the engine.
    """
    from louvain_um.api import run

    options = options_for(policy, rate, settings)
    try:
        results = [run(graph, options) for _ in range(2)]
    except MemoryBudgetError as error:
        nothing = dict.fromkeys(FIGURES)
        return {"feasible": False, "reason": str(error), "budget_bytes": error.budget, **nothing}
    best = min(results, key=seconds_of)
    reads = best.provenance.get("read_in_place")
    row: dict[str, Any] = {
        "feasible": True,
        "reason": None,
        "seconds": seconds_of(best),
        "bytes_remote": None if reads is None else sum(read["bytes"] for read in reads),
        "evictions": None,
        "faults": None,
        "fault_groups": None,
        "peak_bytes": sum(int(size) for size in best.memory.values()),
        "budget_bytes": best.provenance.get("budget_bytes"),
        "modularity": best.modularity,
    }
    traffic = best.provenance.get("traffic_bytes") or {}
    row["bytes_to_device"] = traffic.get("to_device", traffic.get("bytes_to_device"))
    row["bytes_to_host"] = traffic.get("to_host", traffic.get("bytes_to_host"))
    return row | watched(graph, policy, options)


def seconds_of(result: Communities) -> float:
    """Return the seconds of the algorithm alone."""
    return sum(value for name, value in result.timings.items() if name not in EXCLUDED)


def watched(graph: Graph, policy: str | Path | Policy, options: Options) -> dict[str, Any]:
    """Return the driver's migrations in a profiled run; empty if no source is available."""
    from louvain_um.profiling.record.profiler import profile

    session = profile(
        graph,
        method=options.method,
        seed=options.seed,
        device=options.device,
        memory=policy,
        device_budget=options.device_budget,
        sources=("uvm", "cupti"),
    )
    figures = session.summary()
    names = {
        "bytes_to_device": "bytes_to_device",
        "bytes_to_host": "bytes_to_host",
        "faults": "gpu_faults",
        "fault_groups": "gpu_fault_groups",
    }
    return {
        ours: figures[theirs] for ours, theirs in names.items() if figures.get(theirs) is not None
    }
