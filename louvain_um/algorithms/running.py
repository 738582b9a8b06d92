"""Options of one run of an algorithm, and where it runs: on the CPU, or placed on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Unpack

from louvain_um.algorithms.programs import converted, program_of, rows_of, rows_there, size_of
from louvain_um.core import parallel
from louvain_um.core.compiled import announced
from louvain_um.events import Event, Observer, ignore, observing
from louvain_um.gpu.graph import DeviceGraph, there_of
from louvain_um.gpu.runtime.device import Choice, device_errors, device_of, pick
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds
from louvain_um.graph.row_view import unchanged
from louvain_um.options import Budget, Options, RunValues
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRun:
    """One run of an algorithm."""

    graph: Any
    rows: Any
    on_gpu: bool
    threads: int
    observer: Observer
    space: Any = None

    def progress(self, iteration: int, left: int, total: int) -> None:
        """Announce that an iteration has ended, with so much of the work left."""
        self.observer(
            Event(kind="iteration", phase="run", iteration=iteration, vertices=total, moved=left)
        )

    def real(self, weights: Any) -> Any:
        """Return sums of weights in units of the input."""
        scale = self.graph.scale
        return weights if scale == 1.0 else weights / scale


@contextmanager
def running(
    name: str,
    graph: Any,
    observer: Observer | None,
    *,
    iterations: int | None = None,
    **given: Unpack[RunValues],
) -> Iterator[AlgorithmRun]:
    """Yield a run of an algorithm on a device."""
    observer = observer or ignore
    options = Options(**given)
    policy = find_policy(options.memory)
    chosen = pick(device_of(graph, options.device))
    graph = converted(graph)
    if name != "spmv" and getattr(graph, "directed", False):
        graph.refuse_directed()
    if chosen.kind == "cuda":
        with (
            unchanged(graph),
            observing(observer),
            on_device(name, chosen, graph, policy, options, iterations) as (rows, space),
        ):
            yield AlgorithmRun(
                graph=graph, rows=rows, space=space, on_gpu=True, threads=1, observer=observer
            )
        return
    refuse_kinds(graph, "these algorithms take")
    graph = graph.to_host() if isinstance(graph, DeviceGraph) else graph
    with unchanged(graph), announced(observer):
        yield AlgorithmRun(
            graph=graph,
            rows=rows_of(graph),
            on_gpu=False,
            threads=options.threads or parallel.default_threads(),
            observer=observer,
        )


@contextmanager
def on_device(
    name: str, chosen: Choice, graph: Any, policy: Policy, options: Options, iterations: int | None
) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of a graph where a policy puts them, and where other arrays come from."""
    from louvain_um.gpu.algorithms.workspace import PLAIN, placed

    with device_errors(chosen), chosen.current():
        if isinstance(graph, Graph):
            refuse_kinds(graph, "these algorithms take")
            graph = there_of(graph) or graph
        rows = rows_there(graph)
        if rows is not None and policy.name == AUTO.name and options.budget == Budget():
            yield rows, PLAIN
            return
        if not isinstance(graph, Graph | DeviceGraph):
            graph = graph.snapshot()
        program = program_of(name, **size_of(graph), iterations=iterations)
        with placed(program, graph, str(chosen), policy, options) as found:
            yield found
