"""One point of a sweep, measured on a GPU: timed runs, and a profiled one for traffic."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from louvain_um.errors import MemoryBudgetError
from louvain_um.events import Event
from louvain_um.graph.graph import Graph
from louvain_um.options import Budget, Options
from louvain_um.placement.policy.policy import Policy
from louvain_um.profiling.sweep.replay import FIGURES

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.points import Settings
    from louvain_um.results.communities import Communities

EXCLUDED = ("load", "fetch", "compile", "total")
"""Timings that do not count as seconds of the algorithm."""

LEAST_WORK: Final = 2.0
"""Seconds for which a run is repeated to measure its energy: the GPU's counter moves in steps of a
tenth of a second."""


def options_for(policy: str | Path | Policy, rate: float, settings: Settings) -> Options:
    """Return the options of a run with (100 − rate) percent of its peak as budget."""
    percent = 100 - Decimal(str(rate))
    return Options(
        method=settings.method,
        seed=settings.seed,
        device=settings.device or "cuda",
        memory=policy,
        device_budget=Budget(fraction=float(percent) / 100),
        ballast=settings.ballast,
        allow_driver_eviction=settings.allow_driver_eviction,
    )


def warm_up(graph: Graph, settings: Settings, program: str | None = None) -> None:
    """Run once, so that no point includes compile time."""
    from louvain_um.api import run
    from louvain_um.profiling.record.jobs import run_algorithm

    device = settings.device or "cuda"
    if program is not None:
        run_algorithm(program, graph, device=device, memory="device")
        return
    run(graph, Options(method=settings.method, seed=settings.seed, device=device, memory="device"))


def measure(
    graph: Graph, policy: str | Path | Policy, rate: float, settings: Settings
) -> dict[str, Any]:
    """Return a row of results; a policy that cannot keep to the budget is not run."""
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
        "load_seconds": best.timings.get("load", 0.0),
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
    if settings.energy:
        row |= energy(lambda: run(graph, options), graph.n_arcs, options.device)
    return row | watched(graph, policy, options)


def measure_program(
    name: str, graph: Graph, policy: str | Path | Policy, rate: float, settings: Settings
) -> dict[str, Any]:
    """Return a row of results of another algorithm, as `measure` does for detection."""
    from louvain_um.algorithms.programs import program_for
    from louvain_um.profiling.record.jobs import held_ballast, run_algorithm

    options, timers = options_for(policy, rate, settings), [PhaseTimer() for _ in range(2)]
    program = program_for(name, graph)

    def run(observer: Any = None) -> None:
        with held_ballast(program, options):
            run_algorithm(
                name, graph, device=options.device, memory=policy, observer=observer,
                device_budget=options.device_budget,
            )  # fmt: skip

    try:
        for timer in timers:
            run(timer)
    except MemoryBudgetError as error:
        nothing = dict.fromkeys(FIGURES)
        return {"feasible": False, "reason": str(error), "budget_bytes": error.budget, **nothing}
    row: dict[str, Any] = {
        **dict.fromkeys(FIGURES),
        "feasible": True,
        "reason": None,
        "seconds": min(timer.algorithm for timer in timers),
        "load_seconds": min(timer.seconds.get("load", 0.0) for timer in timers),
        "peak_bytes": program.peak_bytes,
        "budget_bytes": options.budget.resolve(program.peak_bytes),
        "launches": timers[0].launches,
    }
    if settings.energy:
        row |= energy(run, graph.n_arcs, options.device)
    return row | watched(graph, policy, options, program=name)


class PhaseTimer:
    """An observer that adds up the seconds of each phase, and notes the launches of a kernel."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.launches = 1
        self._since: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        """Note when a phase begins and ends."""
        now = time.perf_counter()
        if event.kind == "plan":
            self.launches = event.plan.launches
        if event.kind == "start":
            self._since[event.phase] = now
        elif event.kind == "end":
            took = now - self._since.pop(event.phase, now)
            self.seconds[event.phase] = self.seconds.get(event.phase, 0.0) + took

    @property
    def algorithm(self) -> float:
        """Seconds of the algorithm alone."""
        return sum(value for name, value in self.seconds.items() if name not in EXCLUDED)


def energy(run: Callable[[], object], arcs: int, device: str) -> dict[str, Any]:
    """Return the energy of a run, loading included, which is repeated for `LEAST_WORK` seconds."""
    idle, runs = idle_watts(device), 0

    def repeated() -> None:
        nonlocal runs
        since = time.perf_counter()
        while time.perf_counter() - since < LEAST_WORK:
            run()
            runs += 1

    found = metered(repeated, device)
    if found is None:
        return {}
    joules, seconds = found
    return {
        "joules": joules / runs,
        "watts": joules / seconds,
        "idle_watts": idle,
        "arcs_per_joule": arcs * runs / joules,
    }


@cache
def idle_watts(device: str) -> float | None:
    """Return the power of a device on which nothing runs, over `LEAST_WORK` seconds."""
    found = metered(lambda: time.sleep(LEAST_WORK), device)
    return None if found is None else found[0] / found[1]


def metered(work: Callable[[], object], device: str) -> tuple[float, float] | None:
    """Return the joules and seconds of some work; None where the GPU does not report them."""
    from cupy.cuda import runtime

    from louvain_um.gpu.runtime.device import pick
    from louvain_um.profiling.sources.nvml import Nvml
    from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError

    source = Nvml(runtime.deviceGetPCIBusId(pick(device).index))
    try:
        source.start(SessionClock())
    except SourceUnavailableError:
        return None
    try:
        work()
    finally:
        source.stop()
    found = source.energy()
    return None if found is None else (found["joules"], found["seconds"])


def seconds_of(result: Communities) -> float:
    """Return the seconds of the algorithm alone."""
    return sum(value for name, value in result.timings.items() if name not in EXCLUDED)


def watched(
    graph: Graph, policy: str | Path | Policy, options: Options, program: str | None = None
) -> dict[str, Any]:
    """Return the driver's migrations in a profiled run; empty if no source is available."""
    from louvain_um.profiling.record.profiler import profile

    session = profile(
        graph,
        method=options.method if program is None else "louvain",
        program=program,
        seed=options.seed if program is None else 0,
        device=options.device,
        memory=policy,
        device_budget=options.device_budget,
        ballast=options.ballast,
        allow_driver_eviction=options.allow_driver_eviction,
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
