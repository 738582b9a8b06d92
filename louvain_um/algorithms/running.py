"""Where an algorithm runs and on what: its device, the rows of its graph, its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from louvain_um.algorithms.programs import program_of, size_of
from louvain_um.core import parallel
from louvain_um.cpu.compiling import announced
from louvain_um.errors import GraphError
from louvain_um.events import Event, Observer, ignore, observing
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime.device import Choice, pick
from louvain_um.gpu.runtime.preflight import device_errors, device_of
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds
from louvain_um.graph.row_view import RowView
from louvain_um.options import Budget, Options
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of an algorithm.

    Parameters
    ----------
    graph : Graph, DeviceGraph or a store of rows
        As the user gave it, converted where it was no graph.
    rows : RowView or DeviceRows
        Its rows in host memory, or on the device.
    on_gpu : bool
        Which of the two.
    space : Workspace
        Of a run on a GPU: where its other arrays come from.
    threads : int
        Of a run on the CPU.
    observer : callable
    """

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
    *,
    device: str,
    memory: str | Path | Policy,
    device_budget: int | str | None,
    peer_memory: str | None = None,
    threads: int | None,
    observer: Observer | None,
    iterations: int | None = None,
) -> Iterator[Run]:
    """Yield a run of an algorithm on a device; kernels that are compiled meanwhile are announced.

    Parameters
    ----------
    name : str
        As `louvain_um.algorithms.programs.program_of` knows the algorithm.
    graph, device, memory, device_budget, peer_memory, threads, observer
        As the algorithms take them.
    iterations : int, optional
        Of PageRank, as expected.

    Raises
    ------
    OptionError
        No such device, policy or budget, or threads out of range.
    MemoryBudgetError
        What must be on the device, or what the policy places there, exceeds the budget.
    GraphError
        The object is no undirected graph.
    DeviceUnavailableError
        The device is not available.
    """
    observer = observer or ignore
    options = Options(
        device=device, threads=threads, device_budget=device_budget, peer_memory=peer_memory
    )
    policy = find_policy(memory)
    chosen = pick(device_of(graph, device))
    if not isinstance(graph, Graph | DeviceGraph) and not has_rows(graph):
        from louvain_um.formats.reading import graph_of

        graph = graph_of(graph)
    if chosen.kind == "cuda":
        with (
            observing(observer),
            on_device(name, chosen, graph, policy, options, iterations) as (rows, space),
        ):
            yield Run(
                graph=graph, rows=rows, space=space, on_gpu=True, threads=1, observer=observer
            )
        return
    refuse_kinds(graph, "these algorithms take")
    graph = graph.to_host() if isinstance(graph, DeviceGraph) else graph
    with announced(observer):
        yield Run(
            graph=graph,
            rows=RowView.of(graph) if isinstance(graph, Graph) else graph.view(),
            on_gpu=False,
            threads=options.threads or parallel.default_threads(),
            observer=observer,
        )


@contextmanager
def on_device(
    name: str,
    chosen: Choice,
    graph: Any,
    policy: Policy,
    options: Options,
    iterations: int | None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of a graph where a policy puts them, and where other arrays come from.

    A graph that is on the device stays as it is, unless a policy or a budget is given.
    """
    from louvain_um.gpu.algorithms.workspace import PLAIN, placed

    with device_errors(chosen), chosen.current():
        rows = rows_there(graph)
        if rows is not None and policy.name == AUTO.name and options.budget == Budget():
            yield rows, PLAIN
            return
        if not isinstance(graph, Graph | DeviceGraph):
            graph = graph.snapshot()
        if isinstance(graph, Graph):
            refuse_kinds(graph, "these algorithms take")
        program = program_of(name, **size_of(graph), iterations=iterations)
        with placed(program, graph, str(chosen), policy, options) as found:
            yield found


def rows_of(graph: Any) -> RowView:
    """Return the rows of a graph in host memory, converted where it was no graph."""
    if isinstance(graph, DeviceGraph):
        graph = graph.to_host()
    elif not isinstance(graph, Graph) and not has_rows(graph):
        from louvain_um.formats.reading import graph_of

        graph = graph_of(graph)
    if isinstance(graph, Graph):
        return RowView.of(graph)
    view: RowView = graph.view()
    return view


def rows_there(graph: Any) -> Any:
    """Return the rows of a graph where they lie in a device's memory; None if they do not.

    Those of a changing graph have gaps between them.
    """
    if isinstance(graph, DeviceGraph):
        from louvain_um.gpu.algorithms.launch import DeviceRows

        return DeviceRows.of(graph)
    return graph.device_view() if hasattr(graph, "device_view") else None


def device_rows_of(graph: Any) -> Any:
    """Return the rows of a graph in the current device's memory, copied if they are not there."""
    if has_rows(graph):
        found = rows_there(graph)
        return rows_there(DeviceGraph.from_host(graph.snapshot())) if found is None else found
    if not isinstance(graph, Graph | DeviceGraph):
        from louvain_um.formats.reading import graph_of

        graph = graph_of(graph)
    return rows_there(DeviceGraph.from_host(graph) if isinstance(graph, Graph) else graph)


def has_rows(graph: Any) -> bool:
    """Tell whether an object is a store that shows its rows, such as a changing graph."""
    return hasattr(graph, "view") and hasattr(graph, "snapshot")


def vertex_of(graph: Any, name: Any) -> int:
    """Return the number of a vertex, given by its name where the graph has names.

    Raises
    ------
    GraphError
        There is no such vertex.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.algorithms.running import vertex_of
    >>> vertex_of(lu.as_graph((["ann", "bob"], ["bob", "cid"])), "cid")
    2
    """
    n, names = graph.n_vertices, getattr(graph, "names", None)
    name = name.item() if isinstance(name, np.generic) else name
    if names is None:
        if type(name) is int and 0 <= name < n:
            return name
        known = f"0 … {n - 1}" if n else "of which there are none"
    else:
        for number, other in enumerate(names.tolist()):
            if type(other) is type(name) and other == name:
                return number
        known = f"such as {names.tolist()[0]!r}" if n else "of which there are none"
    raise GraphError(f"{name!r} is no vertex of the graph; use one of its vertices, {known}")
