"""What a run on the device derives from its graph, options and plan before the first level."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from louvain_um.gpu.aggregate.limits import Limits, limits_within, low_scratch_limits
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import CXX, sum_type
from louvain_um.gpu.memory import short_weights
from louvain_um.gpu.memory.shape import Shape
from louvain_um.gpu.runtime.kernel_list import PACKED, PACKED_OFFSETS32, PACKED_WEIGHTS16
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.layout import MANAGED
from louvain_um.placement.memory.guard import ballast
from louvain_um.placement.planner import Plan


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
            widths = short_weights.widths(weighted=graph.weights is not None)
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


def aggregation_limits(plan: Plan, shape: Shape, limits: Limits, options: Options) -> Limits:
    """Return what bounds the memory of aggregation, as planned."""
    near, far = shape.out_of_core_regions if plan.out_of_core else shape.coarse_regions
    found = low_scratch_limits(shape.arcs) if plan.low_scratch else limits
    widths = () if shape.extended else short_weights.widths(weighted=shape.weight_bytes > 0)
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
        options.ballast_bytes,
        managed,
        device,
        allow_driver_eviction=options.allow_driver_eviction,
    )


def provenance(plan: Plan, /, **measured: Any) -> Mapping[str, Any]:
    """Return the device, policy and budget of a run, beside what was `measured` of it."""
    import cupy

    device = cupy.cuda.Device()
    name = cupy.cuda.runtime.getDeviceProperties(device.id)["name"].decode()
    return {
        "device": f"cuda:{device.id} ({name})",
        "policy": plan.policy,
        "placements": {group: str(where) for group, where in plan.placements.items()},
        "budget_bytes": plan.budget,
        **measured,
        "threads": None,
    }
