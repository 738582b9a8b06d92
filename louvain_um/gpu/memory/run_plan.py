"""From a graph and options to a plan: the engine's declarations meet the placement's model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from louvain_um.core.array_spec import ArraySpec
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.objective import takes_extended_rule
from louvain_um.errors import MemoryBudgetError
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import sum_type
from louvain_um.gpu.memory.array_specs import declare, declare_out_of_core
from louvain_um.gpu.memory.graph_stats import DegreeStats
from louvain_um.gpu.memory.packed import WORTH, Packer, most_bytes
from louvain_um.gpu.memory.shape import Shape, sums_of_ones
from louvain_um.options import Options
from louvain_um.placement.detection_plan import Plan, make_plan
from louvain_um.placement.layout import ArenaSpec, device_bytes, size_of
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import MARGIN, managed_refusal
from louvain_um.placement.migration.pages import kept_bytes
from louvain_um.placement.model.workload import Facts, kind_of
from louvain_um.placement.policy.auto import DeclaredRun
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy

Survey = Callable[[Any], DegreeStats]
"""Returns how many arcs a graph's vertices have."""


def shape_of(graph: Any, options: Options, degrees: DegreeStats) -> Shape:
    """Return what the sizes of a run's arrays follow from."""
    return Shape(
        vertices=graph.n_vertices,
        arcs=graph.n_arcs,
        weight_bytes=0 if graph.weights is None else graph.weights.dtype.itemsize,
        sum_bytes=sum_type(graph, extended=takes_extended_rule(options)).itemsize,
        total_weight=None if graph.weights is None else int(graph.total_weight),
        loops=graph.has_loops,
        max_degree=degrees.max_degree,
        isolated=degrees.isolated,
        hub_arcs=degrees.hub_arcs,
        clustering=degrees.clustering,
        structure=degrees.structure,
        weights16=degrees.weights16,
        skew=degrees.degree_squares * graph.n_vertices / max(graph.n_arcs, 1) ** 2,
        method=options.method,
        extended=takes_extended_rule(options),
        second=options.objective in ("directed", "bipartite", "signed"),
        members=options.max_size is not None,
        fixed=options.fixed is not None,
        keeps_all=holds_small(graph.n_vertices, options),
    )


def holds_small(vertices: int, options: Options) -> bool:
    """Say whether all communities of a run may stay small."""
    limited = options.max_size is not None and options.max_size < vertices
    return limited or options.fixed is not None or options.objective == "cpm"


def plan_run(
    graph: Any,
    options: Options,
    machine: Machine,
    *,
    survey: Survey,
    packer: Packer | None = None,
    starts_joined: bool = False,
) -> tuple[Plan, Shape]:
    """Return the plan of a run on a graph at hand, and the graph's shape."""
    degrees = survey(graph)
    skew = degrees.degree_squares / max(graph.n_arcs, 1)
    kind = kind_of(skew * graph.n_vertices / max(graph.n_arcs, 1)).name
    shape = shape_of(graph, options, degrees)
    shape = replace(shape, kind=kind, starts_joined=starts_joined)
    if shape.keeps_all:
        try:
            plan = plan_shape(graph, options, machine, shape, degrees, skew)
        except MemoryBudgetError:
            pass
        else:
            if not plan.out_of_core:
                return plan, shape
        shape = replace(shape, keeps_all=False)
    plan = plan_shape(graph, options, machine, shape, degrees, skew)
    if plan.compact and packer:
        shape = replace(shape, target_bytes=packer.target_bytes(sort=shape.sorts))
        plan = plan_shape(graph, options, machine, shape, degrees, skew)
    return plan, shape


def plan_shape(
    graph: Any, options: Options, machine: Machine, shape: Shape, degrees: DegreeStats, skew: float
) -> Plan:
    """Return the plan of a run on a graph of this shape."""
    on_device = isinstance(graph, DeviceGraph)
    facts = Facts(
        skew=skew,
        max_degree=degrees.max_degree,
        isolated=degrees.isolated,
        structure=degrees.structure,
        source="device" if on_device else "host",
    )
    held = graph.nbytes if on_device else 0

    def planned(free: int) -> Plan:
        return make_plan(
            declared_for(shape, options.memory), options.memory, machine, options.budget, facts,
            free=free + held - MARGIN,
            managed=managed_refusal(cuda_calls.cupy_runtime().getDevice()) is None,
        )  # fmt: skip

    free, total = cuda_calls.free_memory()
    if options.allow_driver_eviction:
        return planned(total)  # what the driver evicts need not have been free
    plan = None
    with suppress(MemoryBudgetError):
        plan = planned(free)
        smaller = plan.in_pages or plan.low_scratch or plan.compact or plan.out_of_core
        needed = sum(array.nbytes for array in plan.arrays)
        # Where the budget is the limit, more free memory gives no other plan.
        if needed <= free and (plan.request.budgeted or not smaller):
            return plan
    more, _ = cuda_calls.reclaimed_memory()
    return plan if plan and more <= free else planned(more)


def declared_for(shape: Shape, policy: str | Policy) -> DeclaredRun:
    """Return the arrays of a run under a policy."""
    return DeclaredRun(
        arrays=partial(declared, shape),
        out_of_core=partial(declared_out_of_core, shape),
        compact=declare_compact(shape),
        at=partial(declared_at, shape, policy),
        kept=shape.kept,
    )


def declare_compact(shape: Shape) -> Callable[[bool], tuple[ArraySpec, ...]] | None:
    """Return what declares a run's arrays with the input in fewer bytes; None if it cannot be."""
    if not shape.allows_compact:
        return None
    return partial(declared, shape.compacted())


# A plan holds these with their shapes, so that it can be sent to another process.


def declared(shape: Shape, low_scratch: bool) -> tuple[ArraySpec, ...]:
    """Return a run's arrays, with scratch at its minimum or not."""
    return declare(replace(shape, low_scratch=low_scratch))


def declared_out_of_core(shape: Shape, low_scratch: bool) -> tuple[ArraySpec, ...]:
    """Return the arrays of a run in blocks of vertices."""
    return declare_out_of_core(replace(shape, low_scratch=low_scratch))


def declared_at(shape: Shape, policy: str | Policy, arcs: int) -> tuple[ArraySpec, ...]:
    """Return the arrays of a run on a graph of so many arcs."""
    return declare(scaled(shape, arcs, policy))


def scaled(shape: Shape, arcs: int, policy: str | Policy) -> Shape:
    """Return the shape of a larger or smaller graph of the same kind, with low scratch."""
    ratio = arcs / max(shape.arcs, 1)
    width, most = shape.target_bytes, most_bytes(shape.vertices)
    total = shape.total_weight
    larger = replace(
        shape,
        sorted_rows=False,
        offsets32=False,
        # Ids of neighbours spread as they did; where that is any distance, it grows.
        target_bytes=width if width and width <= WORTH * most else None,
        arcs=arcs,
        total_weight=None if total is None else int(total * ratio),
        vertices=max(1, round(shape.vertices * ratio)),
        isolated=int(shape.isolated * ratio),
        hub_arcs=None if shape.hub_arcs is None else int(shape.hub_arcs * ratio),
        sum_bytes=shape.sum_bytes if shape.weight_bytes else sums_of_ones(arcs),
        low_scratch=True,
    )
    return larger.compacted() if find_policy(policy).name == AUTO.name else larger


def without_graph(plan: Plan) -> tuple[ArenaSpec, ...]:
    """Return the arenas of a run on a graph that is on the device already."""
    held = {a.name: a.nbytes for a in plan.arrays if a.name in GIVEN}
    return tuple(
        replace(spec, capacity=spec.capacity - sum(held.values()))
        if spec.group in ("graph", None)
        else spec
        for spec in plan.layout
    )


def check_host_room(layout: Sequence[ArenaSpec]) -> None:
    """Raise an error if the host lacks the memory that a layout takes of it."""
    check_host_memory(
        sum(
            size_of(spec) - device_bytes(spec.placement, spec.capacity)
            for spec in layout
            if spec.placement.kind in ("host_mapped", "pinned", "split")
        )
        - kept_bytes(),
        "what the plan leaves on the host",
        "raise the budget, or use a machine with more memory",
    )


GIVEN = ("offsets.0", "targets.0", "weights.0")
"""Arrays of a graph that the engine does not change."""
