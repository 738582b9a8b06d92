"""What a profile runs: a detection, or another algorithm, by its name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from louvain_um.algorithms import products, structure, traversal
from louvain_um.algorithms.programs import check_name, program_for, size_of, vertex_of
from louvain_um.errors import DeviceUnavailableError, OptionError
from louvain_um.events import Event, Observer
from louvain_um.gpu.runtime.device import Choice
from louvain_um.options import Options
from louvain_um.placement.layout import MANAGED
from louvain_um.placement.memory.guard import ballast
from louvain_um.placement.program import Program

if TYPE_CHECKING:
    from louvain_um.profiling.sources.source import EventSource

FROM_A_SOURCE: Final = ("bfs", "sssp")
"""Algorithms that begin at a vertex."""


@dataclass(frozen=True, slots=True)
class Detection:
    """Communities of a graph."""

    options: Options

    def facts(self) -> dict[str, Any]:
        """Return what is known before the run."""
        settings = self.options.settings()
        return {"method": self.options.method, "seed": self.options.seed, "options": settings}

    def recorder(self, graph: Any) -> EventSource:
        """Return what records a run on the CPU."""
        from louvain_um.profiling.sources.cpu_recorder import RecorderSource

        return RecorderSource(graph)

    def run(self, graph: Any, chosen: Choice, observer: Observer) -> dict[str, Any]:
        """Run it; return the result's metadata."""
        from louvain_um.api import run

        found: dict[str, Any] = {}
        result = run(graph, self.options, noting_launches(found, observer))
        return {
            **found,
            **result.provenance,
            "seconds": result.timings["total"],
            "timings": dict(result.timings),
            "modularity": result.modularity,
            "communities": result.n_communities,
            "arcs_visited": sum(level.arcs_visited for level in result.levels),
            "peak_bytes": {str(group): int(size) for group, size in result.memory.items()},
        }


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Another algorithm."""

    name: str
    source: Any
    options: Options

    def facts(self) -> dict[str, Any]:
        """Return what is known before the run."""
        return {"method": self.name, "program": self.name}

    def recorder(self, graph: Any) -> EventSource:
        """Return what records a run on the CPU: what the program declares."""
        from louvain_um.profiling.sources.cpu_recorder import DeclaredAccesses

        return DeclaredAccesses(self.name, size_of(graph))

    def run(self, graph: Any, chosen: Choice, observer: Observer) -> dict[str, Any]:
        """Run it; return its metadata. Arrays of the GPU's program are named on the CPU, too."""
        # Refused before anything is recorded, so that no session is left.
        if self.name in FROM_A_SOURCE:
            vertex_of(graph, widest(graph) if self.source is None else self.source)
        asked, program = self.options, program_for(self.name, graph)
        found: dict[str, Any] = {
            "inputs": [array.name for array in program.arrays if array.from_host],
            "budget_bytes": asked.budget.resolve(program.peak_bytes),
            "peak_bytes": {
                group: sum(array.held for array in program.arrays if array.group == group)
                for group in dict.fromkeys(array.group for array in program.arrays)
            },
        }
        since = time.perf_counter()
        on_gpu = chosen.kind == "cuda"
        with held_ballast(program, asked) if on_gpu else _on_cpu(program, observer):
            run_algorithm(
                self.name, graph, source=self.source, device=asked.device, memory=asked.memory,
                device_budget=asked.device_budget, peer_memory=asked.peer_memory,
                threads=asked.threads, observer=noting_launches(found, observer),
            )  # fmt: skip
        return {**found, "seconds": time.perf_counter() - since}


def noting_launches(found: dict[str, Any], observer: Observer) -> Observer:
    """Return an observer that notes a plan's launches: those of copies part by part, and its."""

    def noting(event: Event) -> None:
        if event.kind == "plan" and event.plan is not None:
            plan = event.plan
            found["launches"] = {"before": plan.launches_before, "after": plan.launches}
        observer(event)

    return noting


def job_of(program: str | None, source: Any, options: Options) -> Detection | Algorithm:
    """Return what is to be profiled."""
    if program is None:
        if source is not None:
            check_source("a detection of communities", source)
        return Detection(options)
    check_name(program)
    check_source(program, source)
    usual = Options()
    for field in fields(Options):
        given, default = getattr(options, field.name), getattr(usual, field.name)
        if field.name not in SHARED and _differs(given, default):
            raise OptionError(
                field.name, given, "omit {option}",
                problem=f"{program} does not detect communities",
            )  # fmt: skip
    return Algorithm(program, source, options)


def _differs(given: Any, default: Any) -> bool:
    """Return whether an option was given; arrays, which may be, are not compared with None."""
    return given is not None if default is None else given != default


def refuse_ballast(options: Options, chosen: Choice) -> None:
    """Refuse ballast where there is no GPU."""
    if options.ballast_bytes and chosen.kind == "cpu":
        raise DeviceUnavailableError(f"ballast takes device memory: {chosen.reason}")


def held_ballast(program: Program, options: Options) -> AbstractContextManager[object]:
    """Hold a run's ballast, if it has any; refused where the driver would evict."""
    from louvain_um.gpu.runtime.device import pick
    from louvain_um.planning import plan

    if not options.ballast_bytes:
        return nullcontext()
    budget = options.budget.resolve(program.peak_bytes)
    placed = plan(program, memory=options.memory, device_budget=budget).placements
    managed = sum(a.held for a in program.arrays if placed[a.name].kind in MANAGED)
    return ballast(
        options.ballast_bytes, managed, pick(options.device).index,
        allow_driver_eviction=options.allow_driver_eviction,
    )  # fmt: skip


SHARED: Final = ("device", "memory", "device_budget", "peer_memory", "threads", "budget", "ballast",
          "allow_driver_eviction")  # fmt: skip
"""Options of every algorithm."""


@contextmanager
def _on_cpu(program: Program, observer: Observer) -> Iterator[None]:
    """Announce what a GPU run announces itself: the program's arrays, and one phase."""
    from louvain_um.profiling.sources.cpu_recorder import announced_arrays

    for event in announced_arrays(program, "array"):
        observer(event)
    observer(Event(kind="start", phase="run"))
    try:
        yield
    finally:
        observer(Event(kind="end", phase="run"))
        for event in announced_arrays(program, "freed"):
            observer(event)


def run_algorithm(name: str, graph: Any, *, source: Any = None, **how: Any) -> Any:
    """Run an algorithm."""
    check_name(name)
    if name in FROM_A_SOURCE:
        search: Any = traversal.bfs if name == "bfs" else traversal.sssp
        return search(graph, widest(graph) if source is None else source, **how)
    check_source(name, source)
    if name == "spmv":
        return products.spmv(graph, np.ones(graph.n_vertices), **how)
    call: Any = {
        "components": structure.connected_components,
        "mst": structure.minimum_spanning_forest,
        "pagerank": products.pagerank,
        "triangles": structure.triangles,
    }[name]
    return call(graph, **how)


def check_source(name: str, source: Any, option: str = "source") -> None:
    """Refuse a source, given as this option, of what begins at no vertex."""
    if source is not None and name not in FROM_A_SOURCE:
        raise OptionError(
            option, source, f"omit {{option}}, which only {' and '.join(FROM_A_SOURCE)} take",
            problem=f"{name} begins at no vertex",
        )  # fmt: skip


def widest(graph: Any) -> Any:
    """Return the vertex of most arcs by its name, the first of equal ones; 0 if there is none."""
    if not graph.n_vertices:
        return 0
    number = int((graph.offsets[1:] - graph.offsets[:-1]).argmax())
    return number if graph.names is None else graph.names.tolist()[number]
