"""Preparing a run on a device: its plan, its kernels, its memory, and level 0 in place."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from louvain_um.core.objective import Objective, Problem, problem_of, takes_extended_rule
from louvain_um.errors import OptionError
from louvain_um.events import Event, Observer, array_listener
from louvain_um.gpu.aggregate.aggregate import prepare
from louvain_um.gpu.aggregate.limits import (
    LIMITS,
    AggregationLimits,
    limits_within,
    low_scratch_limits,
)
from louvain_um.gpu.graph import DeviceGraph, FetchedGraph, there_of
from louvain_um.gpu.level import CXX, DeviceRun, GpuLevel, sum_type
from louvain_um.gpu.memory import packed
from louvain_um.gpu.memory.loading import (
    adopt,
    count_degrees,
    cut,
    first_level,
    survey,
    upload,
)
from louvain_um.gpu.memory.packed import Packer
from louvain_um.gpu.memory.run_plan import check_host_room, plan_run, without_graph
from louvain_um.gpu.memory.shape import Shape
from louvain_um.gpu.move.extended import load_masses
from louvain_um.gpu.out_of_core.vertex_blocks import VertexBlocks
from louvain_um.gpu.runtime import kernel_list
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.kernel_list import (
    LISTED,
    PACKED,
    PACKED_OFFSETS32,
    PACKED_WEIGHTS16,
)
from louvain_um.gpu.runtime.launch import Struct, layout, pointers
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.detection_plan import Plan
from louvain_um.placement.layout import MANAGED
from louvain_um.placement.machine.profiles import machine_for
from louvain_um.placement.memory.guard import ballast, peer_for, peer_room
from louvain_um.placement.memory.run_memory import RunMemory


@dataclass(slots=True, kw_only=True)
class Planned:
    """The plan of a run, and the GPU whose memory it uses in addition, if any."""

    plan: Plan
    shape: Shape
    peer: int | None


@dataclass(slots=True, kw_only=True)
class Prepared:
    """A run whose level 0 is in memory; without a plan, all is on devices, where it stays."""

    run: DeviceRun
    level: GpuLevel
    planned: Planned | None = None
    blocks: VertexBlocks | None = None


def prepare_run(
    graph: Graph | DeviceGraph, options: Options, observer: Observer, stack: ExitStack,
    *, starts_joined: bool = False,
) -> Prepared:  # fmt: skip
    """Plan a run on the current device, lay out its memory, and put the graph in place."""
    # What the run holds is freed by `stack`. `starts_joined` says that vertices will be given
    # communities to start in although the options have none.
    import cupy

    extended, given = takes_extended_rule(options), graph
    problem = problem_of(given, options)
    if isinstance(given, Graph):
        graph = there_of(given) or given
    if isinstance(graph, DeviceGraph):
        # A kernel counts degrees for the plan; announce its compilation.
        kernels.prepare([("relabel", "")], observer)
    device = cupy.cuda.runtime.getDevice()
    packer = Packer(graph)
    planned = plan_of(graph, options, packer, device, starts_joined=starts_joined)
    plan, shape = planned.plan, planned.shape
    compact = compact_types(plan, shape)
    unchanged = plan.in_core and not compact and not plan.pages
    if isinstance(given, FetchedGraph) and given.there and not unchanged:
        # Its arrays would be in memory twice.
        there = given.leave_device()
        return prepare_run(there, options, observer, stack, starts_joined=starts_joined)
    observer(Event(kind="plan", phase="load", plan=plan))
    if extended and plan.out_of_core:
        raise OptionError(
            "device_budget",
            options.device_budget,
            "take memory='auto', raise device_budget, or use device='cpu'",
            problem="policies that move vertex blocks to the device and back work for "
            "modularity without constraints only",
        )
    pages = plan.pages is not None
    types, coarse = kernel_types(graph, LIMITS.small, extended=extended, pages=pages)
    large = graph.n_arcs > LIMITS.small
    load_kernels(problem, options, observer, compact or types, *coarse, large=large)
    held = graph if isinstance(graph, DeviceGraph) and unchanged else None
    layout = without_graph(plan) if held else plan.layout
    if planned.peer is None:
        check_host_room(layout)
    stack.enter_context(held_ballast(plan, options, device))
    memory = RunMemory(
        layout,
        device,
        budget=plan.limit,
        out_of_core=plan.out_of_core,
        pages=plan.pages,
        peer=planned.peer,
        listener=array_listener(observer),
    )
    stack.callback(memory.close)
    if plan.out_of_core:
        kernels.prepare([("vertex_blocks", types), ("vertex_blocks", "")], observer)
    if held:
        level = adopt(memory, held, extended=extended)
    else:
        level = upload(memory, graph, packer=packer, compact=compact, extended=extended)
    if extended:
        whole = given if isinstance(given, Graph) else given.as_graph()
        load_masses(memory, whole, problem, level)
    prepare(memory, level)
    blocks = cut(memory, plan, graph, level, device) if plan.out_of_core else None
    level.hub_arcs = shape.hub_arcs
    level.byte_sizes = bool(compact) and shape.compacted().byte_sizes
    run = DeviceRun(
        options=options,
        observer=observer,
        problem=problem,
        total=graph.total_weight,
        memory=memory,
        limits=aggregation_limits(plan, shape, options),
        low_scratch=plan.low_scratch,
    )
    return Prepared(run=run, level=level, planned=planned, blocks=blocks)


LISTED_ARCS: Final = layout(
    **pointers("places", "weights"), width=np.uint32, step=np.uint32, weight_bytes=np.uint32
)
"""`Listed` of listed.cuh."""


def prepare_rows(rows: Any, options: Options, observer: Observer, stack: ExitStack) -> Prepared:
    """Prepare a run on the rows of a changing graph in linked blocks, which stay where they are."""
    import cupy

    from louvain_um.gpu.algorithms.functors import listed
    from louvain_um.gpu.ranks.share import arena_for

    device, total = cupy.cuda.runtime.getDevice(), rows.total_weight
    objective = Objective(name="modularity", resolution=options.resolution, total=total, norm=total)
    problem = Problem(objective=objective)
    units = [(f"listed_{source}", LISTED) for source in ("move", "aggregate")]
    kernels.prepare([*units, ("operators", "")], observer)
    load_kernels(problem, options, observer, "u64, u64")
    arena, listener = arena_for(rows, device, rows.n_arcs), array_listener(observer)
    memory = RunMemory([arena], device, listener=listener)
    stack.callback(memory.close)
    n, weights = rows.n_vertices, rows.weights
    firsts, places, _ = listed(rows, cupy.arange(n, dtype=np.uint32)).lists
    width, step = rows.linked >> 32 & 0xFFFF, rows.linked >> 25 & 0xF
    pairs = memory.empty("offsets.0", "graph", 2 * n, np.int64)
    pairs[::2] = firsts[:-1] * width
    pairs[1::2] = pairs[::2] + (rows.ends - rows.begins)
    blocks = memory.empty("places.0", "graph", len(places), np.int64)
    blocks[...] = places
    arcs = memory.empty("arcs.0", "graph", LISTED_ARCS.itemsize, np.uint8)
    found = Struct(
        LISTED_ARCS, places=blocks, weights=weights, width=width, step=step,
        weight_bytes=0 if weights is None else weights.itemsize,
    )  # fmt: skip
    arcs.set(np.frombuffer(found.content, np.uint8))
    level = first_level(rows, offsets=pairs, targets=rows.targets, weights=arcs, loops=rows.loops)
    level.sums, level.compact = np.dtype(np.uint64), LISTED
    count_degrees(memory, level)
    prepare(memory, level)
    run = DeviceRun(
        options=options, observer=observer, problem=problem, total=total, memory=memory,
        limits=LIMITS,
    )  # fmt: skip
    return Prepared(run=run, level=level)


def plan_of(
    graph: Graph | DeviceGraph, options: Options, packer: Packer, device: int,
    *, starts_joined: bool = False,
) -> Planned:  # fmt: skip
    """Return the plan of a run, with another GPU's memory if that has the room."""
    machine, peer = machine_for(device), peer_for(options.peer_memory, device)
    planned = partial(
        plan_run, graph, options, survey=survey, packer=packer, starts_joined=starts_joined
    )
    if peer is not None:
        plan, shape = planned(machine.with_peer())
        if peer_room(peer) >= plan.beyond_bytes:
            return Planned(plan=plan, shape=shape, peer=peer)
    plan, shape = planned(machine)
    return Planned(plan=plan, shape=shape, peer=None)


def load_kernels(
    problem: Problem, options: Options, observer: Observer, *types: str, large: bool = False
) -> None:
    """Load the kernels for levels of these types; of the first, what a `large` one takes."""
    sources = kernel_list.SOURCES[options.method]
    units = [(source, each) for source in sources for each in dict.fromkeys(types)]
    if problem.extended:
        moving = ("move", "refine")
        units = [(s, f"{each}, Extended" if s in moving else each) for s, each in units]
    later = kernel_list.unneeded(types[0]) if large and types[0] not in types[1:] else ()
    kernels.prepare([*units, ("relabel", "")], observer, later=later)


def kernel_types(
    graph: Graph | DeviceGraph,
    small: int,
    *,
    extended: bool = False,
    pages: bool = False,
    widths: tuple[int, ...] | None = None,
) -> tuple[str, list[str]]:
    """Return the template arguments of kernels on level 0, and those on coarse levels."""
    sums = CXX[sum_type(graph, extended=extended)]
    weights = "Unweighted" if graph.weights is None else CXX[graph.weights.dtype]
    coarse = [f"{sums}, {sums}"]
    if graph.n_arcs > small and not extended:
        if widths is None:
            widths = packed.widths(weighted=graph.weights is not None)
        coarse += [f"Weights{8 * width}, {sums}" for width in widths]
        if pages:
            coarse.append(f"Weights8Targets24, {sums}")
    return f"{weights}, {sums}", coarse


def compact_types(plan: Plan, shape: Shape) -> str:
    """Return the template arguments of kernels on an input in fewer bytes; empty for others."""
    if not plan.compact:
        return ""
    if shape.weight_bytes:
        return PACKED_WEIGHTS16[shape.sum_bytes // 8]
    return PACKED if shape.sorts else PACKED_OFFSETS32


def aggregation_limits(plan: Plan, shape: Shape, options: Options) -> AggregationLimits:
    """Return what bounds the memory of aggregation, as planned."""
    near, far = shape.out_of_core_regions if plan.out_of_core else shape.coarse_regions
    found = low_scratch_limits(shape.arcs) if plan.low_scratch else LIMITS
    widths = () if shape.extended else packed.widths(weighted=shape.weight_bytes > 0)
    found = replace(found, short_weights=widths)
    if plan.pages:  # rows take what they need
        return limits_within(found, plan.pages.device, shape.sum_bytes)
    found = replace(found, region_arcs=(near.arcs, far.arcs))
    if options.method == "leiden" and plan.in_core:
        found = replace(found, coarse_share=shape.coarse_shares.next_arcs)
    return found


def held_ballast(plan: Plan, options: Options, device: int) -> AbstractContextManager[Any]:
    """Hold device memory, so that the run has less; refused where the driver would evict."""
    if not options.ballast_bytes:
        return nullcontext()
    managed = sum(arena.capacity for arena in plan.layout if arena.placement.kind in MANAGED)
    return ballast(
        options.ballast_bytes, managed, device, allow_driver_eviction=options.allow_driver_eviction
    )
