"""From a graph and options to a plan: the engine's declarations meet the placement's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from louvain_um.core.array_spec import Declared
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import sum_type
from louvain_um.gpu.memory.array_specs import declare, declare_paging
from louvain_um.gpu.memory.degree_stats import Spread
from louvain_um.gpu.memory.shape import Shape, sums_of_ones
from louvain_um.options import Options
from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import MARGIN, managed_refusal
from louvain_um.placement.model.graph_kinds import kind_of
from louvain_um.placement.planner import Plan, make_plan
from louvain_um.placement.policy.policy import AUTO, Policy, find_policy

Survey = Callable[[Any], Spread]
"""Returns how many arcs a graph's vertices have."""


def shape_of(graph: Any, options: Options, spread: Spread) -> Shape:
    """Return what the sizes of a run's arrays follow from."""
    return Shape(
        vertices=graph.n_vertices,
        arcs=graph.n_arcs,
        weight_bytes=0 if graph.weights is None else graph.weights.dtype.itemsize,
        sum_bytes=sum_type(graph).itemsize,
        loops=graph.loops is not None and bool(graph.loops.any()),
        widest=spread.widest,
        isolated=spread.isolated,
        wide=spread.wide,
        method=options.method,
    )


def plan_run(
    graph: Any, options: Options, machine: Machine, *, survey: Survey
) -> tuple[Plan, Shape]:
    """Return the plan of a run on a graph at hand, and the graph's shape.

    Raises
    ------
    MemoryBudgetError
        The policy cannot keep to the budget, or the device is too small for it.
    """
    spread = survey(graph)
    skew = spread.squares / max(graph.n_arcs, 1)
    kind = kind_of(skew * graph.n_vertices / max(graph.n_arcs, 1)).name
    shape = replace(shape_of(graph, options, spread), kind=kind)
    free, total = cuda_calls.free_memory()
    if options.allow_driver_eviction:
        free = total  # what the driver evicts need not have been free
    on_device = isinstance(graph, DeviceGraph)
    plan = make_plan(
        lambda tight: declare(replace(shape, tight=tight)),
        options.memory,
        machine,
        options.budget_bytes,
        skew=skew,
        widest=spread.widest,
        source="device" if on_device else "host",
        free=free + (graph.nbytes if isinstance(graph, DeviceGraph) else 0) - MARGIN,
        at=lambda arcs: declare(scaled(shape, arcs, options.memory)),
        paging=lambda tight: declare_paging(replace(shape, tight=tight)),
        pack=packing(shape),
        managed=managed_refusal(cuda_calls.cupy_runtime().getDevice()) is None,
    )
    return plan, shape


def packing(shape: Shape) -> Callable[[bool], tuple[Declared, ...]] | None:
    """Return what declares a run's arrays with targets packed; None if they cannot be."""
    if not shape.packs:
        return None
    return lambda tight: declare(replace(shape, tight=tight, packed=True))


def scaled(shape: Shape, arcs: int, policy: str | Policy) -> Shape:
    """Return the shape of a larger or smaller graph of the same kind, as small as it works with."""
    ratio = arcs / max(shape.arcs, 1)
    larger = replace(
        shape,
        arcs=arcs,
        vertices=max(1, round(shape.vertices * ratio)),
        isolated=int(shape.isolated * ratio),
        wide=None if shape.wide is None else int(shape.wide * ratio),
        sum_bytes=shape.sum_bytes if shape.weight_bytes else sums_of_ones(arcs),
        tight=True,
    )
    return replace(larger, packed=larger.packs and find_policy(policy).name == AUTO.name)


def without_graph(plan: Plan) -> tuple[ArenaSpec, ...]:
    """Return the arenas of a run on a graph that is on the device already."""
    held = {a.name: a.nbytes for a in plan.arrays if a.name in GIVEN}
    return tuple(
        replace(spec, capacity=spec.capacity - sum(held.values()))
        if spec.group in ("graph", None)
        else spec
        for spec in plan.layout
    )


GIVEN = ("offsets.0", "targets.0", "weights.0")
"""Arrays of a graph that the engine does not change."""
