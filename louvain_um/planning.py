"""Plans for users: from a graph or from its size alone, on machines with or without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from louvain_um.core import hierarchy
from louvain_um.errors import OptionError, among, is_switch
from louvain_um.gpu.memory.shape import Shape, sums_of_ones
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_VERTICES
from louvain_um.options import Budget, Effort, Method, Options
from louvain_um.placement.detection_plan import Plan, make_plan
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine, machine_for
from louvain_um.placement.model.workload import (
    UNTIL_NOTHING,
    Facts,
    SearchCourse,
    Source,
    kind_of,
    named_kind,
)
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Placement, Policy
from louvain_um.placement.program import Program, ProgramPlan, plan_program

if TYPE_CHECKING:
    from louvain_um.dynamic.declared import DynamicSize
    from louvain_um.gpu.graph import DeviceGraph


@overload
def plan(
    graph: Program,
    *,
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    machine: str | Machine | None = None,
) -> ProgramPlan: ...


@overload
def plan(
    *,
    dynamic: DynamicSize,
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    machine: str | Machine | None = None,
) -> ProgramPlan: ...


@overload
def plan(
    graph: Any = None,
    *,
    n_vertices: int | None = None,
    n_arcs: int | None = None,
    weighted: bool | Literal["integer", "real"] = False,
    method: Method = "louvain",
    effort: Effort = "default",
    n_iterations: int | None = None,
    best_of: int = 1,
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    machine: str | Machine | None = None,
    kind: str | None = None,
) -> Plan: ...


def plan(
    graph: Any = None,
    *,
    n_vertices: int | None = None,
    n_arcs: int | None = None,
    weighted: bool | Literal["integer", "real"] = False,
    method: Method = "louvain",
    effort: Effort = "default",
    n_iterations: int | None = None,
    best_of: int = 1,
    memory: str | Path | Policy = "auto",
    device_budget: int | str | None = None,
    peer_memory: str | None = None,
    machine: str | Machine | None = None,
    kind: str | None = None,
    dynamic: DynamicSize | None = None,
) -> Plan | ProgramPlan:
    """Predict memory and time of a run on a GPU before anything is allocated; needs no GPU.

    Parameters
    ----------
    graph : Graph, DeviceGraph, Program or anything `as_graph` takes, optional
        The graph; its kind follows from its degrees. Or a program of one's own
        (`louvain_um.placement.program.Program`), for which the arguments about graphs have no
        meaning.
    n_vertices, n_arcs : int, optional
        Its size, instead. An undirected edge is two arcs.
    weighted : bool or {"integer", "real"}
        With a size alone: whether arcs have weights. Real ones take eight bytes each, integers
        four; True stands for "real".
    method : {"louvain", "leiden"}
    effort, n_iterations, best_of
        As in `louvain`. Several runs follow each other: their seconds add up, their memory does
        not.
    memory : str, path or Policy
        Memory policy; see `louvain`.
    device_budget : int or str, optional
        As in `louvain`; by default all of the device.
    peer_memory : str, optional
        As in `louvain`: what does not fit lies in the memory of another GPU of this kind.
    machine : str or Machine, optional
        "h200", "p4000", "rtx3060ti", "p100", "p100-nvlink", "gh200", or a file that ``louvain-um
        calibrate`` wrote. By default the GPU of this machine, or an H200 if it has none.
    kind : {"mesh", "community_structured", "power_law", "unknown"}, optional
        Kind of graph; by default it follows from the degrees.
    dynamic : DynamicSize, optional
        The size of a `DynamicGraph` in any store instead: what it holds, and on a device what
        batches, rebuilds and following take (`louvain_um.dynamic.declared`).

    Returns
    -------
    Plan or ProgramPlan
        Its `seconds`, `peak_bytes`, `placements`, `fits`, `cliff_arcs`, `reasons`, `verdict`;
        `to_dict()` returns plain data. Of a program a `ProgramPlan`.

    Raises
    ------
    OptionError
        Neither a graph nor a size, or a value outside its range.
    MemoryBudgetError
        The policy needs more device memory than is available; the error gives the bytes.

    Examples
    --------
    >>> import louvain_um as lu
    >>> result = lu.plan(n_vertices=10_000_000, n_arcs=400_000_000, machine="h200")
    >>> result.fits, result.policy
    (True, 'auto')
    >>> lu.plan(n_vertices=10_000_000, n_arcs=400_000_000, machine="h200",
    ...         device_budget="30%").placements["graph"].kind
    'split'
    """
    budget = Budget.parse(device_budget)
    machine = machine_of(machine, peer_memory)
    if dynamic is not None:
        from louvain_um.dynamic.declared import DynamicSize
        from louvain_um.dynamic.declared import declare as declare_dynamic

        if not isinstance(dynamic, DynamicSize):
            raise OptionError(
                remedy="dynamic must be a DynamicSize of louvain_um.dynamic.declared, not "
                f"{type(dynamic).__name__}; pass DynamicSize.of(graph), or DynamicSize with the "
                "number of vertices and arcs"
            )
        if graph is not None or n_vertices is not None or n_arcs is not None:
            raise OptionError(remedy="give dynamic alone, or a graph or a size without it")
        if not dynamic.on_device:
            if memory != "auto" or device_budget is not None:
                raise OptionError(
                    remedy="memory and device_budget are of a device; leave them out for a graph "
                    "on the CPU"
                )
            memory = Policy(name="host", others=Placement("pinned"))
        graph = declare_dynamic(dynamic)
    if isinstance(graph, Program):
        planned = plan_program(graph, machine, memory, budget)
        machine.refuse_peer(planned.placements.values())
        return planned
    options = Options(method=method, effort=effort, n_iterations=n_iterations, best_of=best_of)
    if graph is None:
        shape = shape_of_size(n_vertices, n_arcs, weighted, method)
        return plan_search(
            shape, options, lambda one: plan_shape(one, memory, budget, machine, kind=kind)
        )
    if n_vertices is not None or n_arcs is not None:
        raise OptionError(remedy="give a graph or n_vertices and n_arcs, not both")
    measured = measure(graph, method)
    about: Any = {"kind": kind, "skew": measured.skew, "source": measured.source}

    def plan_of(shape: Shape) -> Plan:
        found = plan_shape(shape, memory, budget, machine, **about)
        if found.compact:  # how many bytes that takes is known of a graph at hand
            from louvain_um.gpu.memory.packed import Packer

            width = Packer(measured.graph).target_bytes(sort=shape.sorts)
            found = plan_shape(replace(shape, target_bytes=width), memory, budget, machine, **about)
        return found

    return plan_search(measured.shape, options, plan_of)


def plan_search(shape: Shape, options: Options, plan_of: Callable[[Shape], Plan]) -> Plan:
    """Return the plan of a search: of its runs, of which a plan follows from a shape."""
    found = plan_of(shape)
    if options.effort != "best":
        course = SearchCourse(options.n_iterations, options.effort == "fast", options.best_of)
        return replace(found, course=course)
    other = found if shape.method == "louvain" else plan_of(replace(shape, method="louvain"))
    plain, quick, full = hierarchy.parts(options)
    again = hierarchy.COMBINED
    courses = (
        (found, SearchCourse(plain.n_iterations)),
        (other, SearchCourse(quick.n_iterations, fast=True, runs=again)),
        (found, SearchCourse(plain.n_iterations, runs=again, begun=True)),
        (found, SearchCourse(full.n_iterations, begun=True)),
    )

    def seconds(last: int | None) -> float:
        given = (*courses[:-1], (found, replace(courses[-1][1], cycles=last)))
        return sum(replace(plan, course=course).seconds for plan, course in given)

    expected, ends = seconds(full.n_iterations), (1.0, 1.0)
    if full.n_iterations == -1:
        low, _, high = UNTIL_NOTHING
        ends = seconds(low) / expected, seconds(high) / expected
    runs = options.best_of * expected / found.seconds
    return replace(found, course=SearchCourse(runs=runs, ends=ends))


@dataclass(frozen=True, slots=True)
class Measured:
    """The properties of a graph that a plan depends on."""

    shape: Shape
    skew: float
    source: Source
    graph: Graph | DeviceGraph


def measure(graph: Any, method: Method) -> Measured:
    """Return the shape of a graph and the skew of its degrees."""
    from louvain_um.gpu.graph import DeviceGraph
    from louvain_um.gpu.memory.loading import survey
    from louvain_um.gpu.memory.run_plan import shape_of

    if not isinstance(graph, Graph | DeviceGraph):
        from louvain_um.formats.reading import graph_of

        graph = graph_of(graph)
    graph = getattr(graph, "there", None) or graph
    degrees = survey(graph)
    source: Source = "device" if isinstance(graph, DeviceGraph) else "host"
    shape = shape_of(graph, Options(method=method), degrees)
    return Measured(shape, degrees.degree_squares / max(graph.n_arcs, 1), source, graph)


def shape_of_size(
    vertices: int | None,
    arcs: int | None,
    weighted: bool | Literal["integer", "real"],
    method: Method,
    names: tuple[str, str] = ("n_vertices", "n_arcs"),
) -> Shape:
    """Return the shape of a graph of known size; errors use `names` for vertices and arcs."""
    if vertices is None or arcs is None:
        raise OptionError(remedy=f"give a graph, or both {names[0]} and {names[1]}")
    vertices, arcs = whole_number(names[0], vertices), whole_number(names[1], arcs)
    bounds = (MAX_VERTICES, vertices * max(vertices - 1, 0))
    for name, value, most in zip(names, (vertices, arcs), bounds, strict=True):
        if not 0 <= value <= most:
            raise OptionError(name, value, f"must lie in 0 … {most:,}")
    if not is_switch(weighted) and not among(weighted, "integer", "real"):
        raise OptionError("weighted", weighted, "must be True, False, 'integer' or 'real'")
    return Shape(
        vertices=vertices,
        arcs=arcs,
        weight_bytes=0 if not weighted else 4 if weighted == "integer" else 8,
        sum_bytes=8 if weighted else sums_of_ones(arcs),
        method=method,
    )


def whole_number(name: str, value: Any) -> int:
    """Return a size as an integer, numpy's included; bool and fractions raise."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise OptionError(name, value, "must be a whole number")


def plan_shape(
    shape: Shape,
    memory: str | Path | Policy,
    budget: Budget,
    machine: str | Machine | None,
    *,
    kind: str | None = None,
    skew: float | None = None,
    source: Source = "host",
) -> Plan:
    """Return the plan of a run on a graph of a shape."""
    from louvain_um.gpu.memory.run_plan import declared_for

    memory = find_policy(memory)
    machine = machine_of(machine)
    if kind is None and skew is not None:
        kind = kind_of(skew * shape.vertices / max(shape.arcs, 1)).name
    elif kind is not None:
        kind = named_kind(kind).name
    shape = replace(shape, kind=kind or "unknown")
    facts = Facts(
        kind=kind,
        skew=skew,
        source=source,
        max_degree=shape.max_degree,
        isolated=shape.isolated,
        structure=shape.structure,
    )
    return make_plan(declared_for(shape, memory), memory, machine, budget, facts)


def machine_of(machine: str | Machine | None, peer_memory: str | None = None) -> Machine:
    """Return the machine that a user named, or this one, with or without a neighbour."""
    if machine is None:
        found = machine_for()
    else:
        found = machine if isinstance(machine, Machine) else load_machine(machine)
    if peer_memory is None:
        return found
    Options(peer_memory=peer_memory)  # checks it
    return found.with_peer()
