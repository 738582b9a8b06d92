"""Checks before a run on a GPU: its device, graphs that are refused, out-of-memory errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from louvain_um.errors import (
    DeviceUnavailableError,
    GraphError,
    KernelCompileError,
    MemoryBudgetError,
    OptionError,
)
from louvain_um.graph.graph import Graph

if TYPE_CHECKING:
    from louvain_um.gpu.runtime.device import Choice
    from louvain_um.placement.planner import Plan

MAX_DEGREE: Final = 1 << 30
"""Arcs of a vertex: hash tables have at least twice as many slots, counted in 32 bits."""


def is_several(device: str) -> bool:
    """Return whether an option names several devices."""
    return "," in device or device == "cuda:all"


def device_of(graph: object, device: str) -> str:
    """Return the device option of a run; a graph on a device is processed there."""
    if device == "cpu" or isinstance(graph, Graph):
        return device
    from louvain_um.gpu.graph import DeviceGraph
    from louvain_um.gpu.runtime.device import pick

    if not isinstance(graph, DeviceGraph):
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


def refuse_high_degrees(graph: Any) -> None:
    """Raise `GraphError` for a vertex with more arcs than a hash table on the GPU can hold."""
    if graph.n_vertices <= MAX_DEGREE:
        return
    max_degree = int((graph.offsets[1:] - graph.offsets[:-1]).max())
    if max_degree > MAX_DEGREE:
        raise GraphError(
            f"a vertex has {max_degree:,} arcs, more than the {MAX_DEGREE:,} that fit a hash table "
            "on the GPU; use device='cpu'"
        )


@contextmanager
def device_errors(chosen: Choice, plan: Callable[[], Plan | None] = lambda: None) -> Iterator[None]:
    """Turn what CuPy raises within a block into errors of this package."""
    from cupy.cuda import compiler, driver, memory, runtime

    try:
        yield
    except compiler.CompileException as error:  # of kernels that CuPy makes
        raise KernelCompileError(str(error)) from error
    except memory.OutOfMemoryError as error:  # of memory that CuPy's own functions take
        raise out_of_memory(plan(), error) from error
    except (driver.CUDADriverError, runtime.CUDARuntimeError) as error:
        raise DeviceUnavailableError(
            f"{chosen} stopped working ({error}); start again, or use device='cpu'"
        ) from error


def out_of_memory(plan: Plan | None, error: Exception) -> MemoryBudgetError:
    """Return the error for a device that has less free memory than the plan assumed."""
    arrays = [] if plan is None else [(a.name, a.nbytes) for a in plan.arrays]
    planned = 0 if plan is None else plan.device_bytes
    return MemoryBudgetError(
        planned + max(1, getattr(error, "_size", 1)),
        planned,
        arrays,
        "other programs may have taken device memory since the plan was made; close them, or set "
        "device_budget lower",
    )
