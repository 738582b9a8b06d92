"""Of runs on a GPU: on which device, what is refused, and what CuPy's errors mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from louvain_um.errors import (
    DeviceUnavailableError,
    GraphError,
    MemoryBudgetError,
    OptionError,
)

if TYPE_CHECKING:
    from louvain_um.gpu.graph import DeviceGraph
    from louvain_um.graph.graph import Graph
    from louvain_um.placement.planner import Plan

MOST_ARCS: Final = 1 << 30
"""Arcs of a vertex: tables of kernels have at least twice as many slots, counted in 32 bits."""


def device_of(graph: object, device: str) -> str:
    """Return the device option of a run: of a graph that is on a device already, that device.

    If that is left open ("auto") and the device is none to run on, the CPU.

    Raises
    ------
    OptionError
        Another device was asked for.
    """
    from louvain_um.gpu.graph import DeviceGraph
    from louvain_um.gpu.runtime.device import pick

    if device == "cpu" or not isinstance(graph, DeviceGraph):
        return device
    here = f"cuda:{graph.offsets.device.id}"
    if device == "auto":
        try:
            return str(pick(here))
        except DeviceUnavailableError:
            return "cpu"
    if device not in ("cuda", here):
        raise OptionError(
            "device",
            device,
            f"use device={here!r}, or give graph.to_host()",
            problem=f"the graph is on {here}, not on {device}",
        )
    return here


def refuse_widest(graph: Graph | DeviceGraph) -> None:
    """Raise `GraphError` if a vertex has more arcs than a table of the GPU's kernels can hold."""
    if graph.n_vertices <= MOST_ARCS:
        return
    widest = int((graph.offsets[1:] - graph.offsets[:-1]).max())
    if widest > MOST_ARCS:
        raise GraphError(
            f"a vertex has {widest:,} arcs, more than the {MOST_ARCS:,} that fit a table on the "
            "GPU; use device='cpu'"
        )


def beyond(plan: Plan | None, error: Exception) -> MemoryBudgetError:
    """Return the error of a device that had less memory than was planned with, or is full."""
    held = [] if plan is None else [(a.name, a.nbytes) for a in plan.arrays]
    planned = 0 if plan is None else plan.device_bytes
    return MemoryBudgetError(
        planned + max(1, getattr(error, "_size", 1)),
        planned,
        held,
        "other programs may have taken memory of the device since it was planned with; close them, "
        "or leave room by device_budget",
    )
