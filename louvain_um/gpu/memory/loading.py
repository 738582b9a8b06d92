"""Level 0 where its plan places it: adopted, uploaded, or divided into vertex blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import GpuLevel, sum_type
from louvain_um.gpu.memory.graph_stats import DegreeStats, fit16, graph_stats
from louvain_um.gpu.memory.packed import HEADER, Packer
from louvain_um.gpu.move.move import add_degrees
from louvain_um.gpu.out_of_core.vertex_blocks import PageToucher, VertexBlocks
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.runtime.kernel_list import PACKED_OFFSETS32
from louvain_um.graph.graph import Graph
from louvain_um.placement.detection_plan import Plan
from louvain_um.placement.layout import HELD_BLOCKS
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.block_cache import ArcArray, BlockCache
from louvain_um.placement.program.blocking import launches_for


def survey(graph: Graph | DeviceGraph) -> DegreeStats:
    """Return what a plan needs to know of a graph besides its size."""
    if isinstance(graph, DeviceGraph):
        found = relabel.survey(graph.offsets, graph.targets)
        return found._replace(weights16=fit16(graph.weights))
    return graph_stats(graph)


def upload(
    memory: RunMemory,
    graph: Graph | DeviceGraph,
    *,
    packer: Packer | None = None,
    compact: str = "",
    extended: bool = False,
) -> GpuLevel:
    """Fill arrays of the run's own with a graph."""

    def put(name: str, group: Any, array: Any) -> Any:
        there = memory.empty(f"{name}.0", group, len(array), array.dtype)
        memory.fill(f"{name}.0", array)
        return there

    sums, weights, loops = sum_type(graph, extended=extended), graph.weights, None
    offsets, targets, packed = graph.offsets, graph.targets, None
    if compact:
        packed = (packer or Packer(graph)).pack(sort=compact != PACKED_OFFSETS32)
        offsets, targets, weights = packed.offsets, packed.targets, packed.weights
    elif weights is not None:
        weights = weights.view(np.uint32 if weights.dtype == np.uint32 else np.uint64)
    if weights is not None:
        weights = put("weights", "graph", weights)
    if graph.loops is not None and graph.has_loops:
        loops = put("loops", "graph", graph.loops.astype(sums))
    level = first_level(
        graph,
        offsets=put("offsets", "graph", offsets),
        targets=put("targets", "graph", targets),
        weights=weights,
        loops=loops,
    )
    level.sums, level.compact = sums, compact
    if packed is not None:
        if weights is not None:
            packed.heads[HEADER - 1] = weights.data.ptr
        level.heads, level.lines = put("heads", "graph", packed.heads), packed.lines
    if compact and weights is None:
        return level  # which has no degrees: `packed.cuh`
    there = ("offsets.0", "loops.0") if loops is not None else ("offsets.0",)
    counted = weights is None and all(map(memory.on_device, there))
    if extended:
        empty_degrees(memory, level)
    elif isinstance(graph, Graph) and not counted:
        level.degrees = put("degrees", "community", graph.degrees.astype(sums))
    else:
        count_degrees(memory, level)
    return level


def adopt(memory: RunMemory, graph: DeviceGraph, *, extended: bool = False) -> GpuLevel:
    """Work on arrays that are on the device already; they are not changed."""
    given = {name: getattr(graph, name) for name in ("offsets", "targets", "weights")}
    for name, array in given.items():
        if array is not None:
            memory.ledger.add(f"{name}.0", "graph", array.nbytes, array.data.ptr)
    loops, sums = None, sum_type(graph, extended=extended)
    if graph.loops is not None:
        loops = memory.empty("loops.0", "graph", graph.n_vertices, sums)
        loops[...] = graph.loops
    level = first_level(graph, **given, loops=loops)
    level.sums = sums
    (empty_degrees if extended else count_degrees)(memory, level)
    return level


def first_level(graph: Graph | DeviceGraph, **arrays: Any) -> GpuLevel:
    """Return level 0 of a graph, without degrees."""
    return GpuLevel(
        cycle=0,
        number=0,
        vertices=graph.n_vertices,
        arcs=graph.n_arcs,
        sums=sum_type(graph),
        degrees=None,
        **arrays,
    )


def empty_degrees(memory: RunMemory, level: GpuLevel) -> None:
    """Give a level room for the masses of its vertices, which `load_masses` fills."""
    level.degrees = memory.empty("degrees.0", "community", level.vertices, level.sums)


def count_degrees(memory: RunMemory, level: GpuLevel) -> None:
    """Give a level its degrees."""
    empty_degrees(memory, level)
    add_degrees(level)


def cut(
    memory: RunMemory, plan: Plan, graph: Graph | DeviceGraph, level: GpuLevel, device: int
) -> VertexBlocks:
    """Divide level 0 into vertex blocks for an out-of-core run."""
    offsets = graph.offsets if isinstance(graph, Graph) else graph.offsets.get()
    arrays = [level.targets] if level.weights is None else [level.targets, level.weights]
    held = [ArcArray(array.data.ptr, array.itemsize) for array in arrays]
    capacity = sum(plan.out_of_core.values())
    arcs = {
        spec.name: (spec.placement, spec.capacity)
        for spec in plan.layout
        if spec.name in plan.out_of_core
    }
    slices = launches_for(arcs, graph.n_vertices, capacity=capacity // HELD_BLOCKS, offsets=offsets)
    cuts = np.array([0, *(each.end for each in slices)])
    touch = PageToucher(memory, plan.blocking)
    mode = plan.transfer_mode or "fault"
    cache = BlockCache(held, offsets[cuts], capacity, mode, device, touch=touch)
    begins = memory.empty("block_starts", "scratch", len(cuts), np.uint32)
    begins.set(cuts.astype(np.uint32))
    return VertexBlocks(cache, touch, begins, cuts.tolist())
