"""A run on a device: what its steps work with, and one level of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.events import Observer
from louvain_um.gpu.memory.packed import HEADER
from louvain_um.gpu.runtime.kernel_list import LISTED
from louvain_um.options import Options

if TYPE_CHECKING:
    import cupy

    from louvain_um.core.objective import Problem, Sums
    from louvain_um.gpu.aggregate.limits import AggregationLimits
    from louvain_um.placement.memory.run_memory import RunMemory

NULL = np.uint64(0)
"""A null pointer as a kernel's argument."""

CXX = {
    np.dtype(np.uint8): "Weights8",
    np.dtype(np.uint16): "Weights16",
    np.dtype(np.uint32): "u32",
    np.dtype(np.uint64): "u64",
    np.dtype(np.int64): "u64",
}
"""C++ types by dtype; non-negative int64 weights are read as u64, short ones as
`short_weights.cuh` says."""


def unsigned(values: Any) -> Any:
    """Return integers, if any, as kernels read them."""
    return values.view(np.uint64) if values is not None and values.dtype == np.int64 else values


JOINED: Final = 1 << 16
"""Vertices of a level above the first up to which arrays that come and go together are one: such
levels are many, and the device waits while the host allocates."""

ARCS_A_BLOCK: Final = 2048
"""Arcs of a level per block of its grid: a barrier of fewer blocks takes less time."""


@dataclass(slots=True, kw_only=True)
class DeviceRun:
    """What the steps of a run on the current device work with."""

    options: Options
    observer: Observer
    problem: Problem
    total: int
    memory: RunMemory
    limits: AggregationLimits
    low_scratch: bool = False

    @property
    def leiden(self) -> bool:
        """Whether levels are refined."""
        return self.options.method == "leiden"


class Lasting(NamedTuple):
    """Names of the arrays that a level keeps until the end of its cycle."""

    labels: str
    refined: str
    start: str


@dataclass(slots=True)
class GpuLevel:
    """A level; all arrays are CuPy's."""

    cycle: int
    number: int
    vertices: int
    arcs: int
    sums: DTypeLike
    offsets: cupy.ndarray
    targets: cupy.ndarray
    weights: cupy.ndarray | None
    loops: cupy.ndarray | None
    degrees: cupy.ndarray | None
    inside: int = 0
    squares: int = 0
    start: Any = None
    labels: Any = None
    totals: Any = None
    refined: Any = None
    numbers: Any = None
    max_degree: int = -1
    hub_arcs: int | None = None
    read_again: int = 0
    region: int = 0
    compact: str = ""
    heads: Any = None
    lines: Any = None
    tag: str = "0"
    byte_sizes: bool = False
    second: Any = None
    members: Any = None
    fixed: Any = None
    whole: bool = False
    second_totals: Any = None
    start_sums: Sums | None = None
    found_sums: Any = None
    awake: Any = None

    @property
    def most_blocks(self) -> int:
        """Blocks of a grid that reads the level's rows, at most."""
        return (self.arcs + self.vertices) // ARCS_A_BLOCK

    @property
    def joined(self) -> bool:
        """Whether arrays that come and go together are parts of one (`carve`)."""
        return self.number > 0 and self.vertices <= JOINED

    @property
    def lasting(self) -> Lasting:
        """Names of the arrays that the level keeps until the end of its cycle."""
        return Lasting(*(f"{name}.{self.cycle}.{self.number}" for name in Lasting._fields))

    @property
    def targets24(self) -> bool:
        """Whether targets take 24 bits, of a coarse level."""
        if self.compact:
            return False
        return self.targets is not None and self.targets.dtype == np.uint8

    @property
    def target_bytes(self) -> float:
        """Bytes of a target, on average."""
        if self.compact:
            return float(self.targets.nbytes / max(self.arcs, 1))
        return 3 if self.targets24 else 4

    @property
    def weights_argument(self) -> Any:
        """What kernels take as weights: of packed targets, the heads of their blocks."""
        return self.weights if self.heads is None else self.heads[HEADER:]

    @property
    def types(self) -> str:
        """Template arguments of the kernels that run on this level."""
        if self.compact:
            return self.compact
        weights = "Unweighted" if self.weights is None else CXX[self.weights.dtype]
        if self.targets24:
            weights += "Targets24"
        return f"{weights}, {CXX[np.dtype(self.sums)]}"

    def source(self, name: str) -> str:
        """Return the file of the kernels of a step that run on this level."""
        return f"listed_{name}" if self.compact == LISTED else name


def next_region(level: GpuLevel) -> int:
    """Return the region of the next level: the one that this level is not in."""
    return 2 if level.region == 1 else 1


def tag_after(level: GpuLevel) -> str:
    """Return the suffix of the names of the next level's arrays."""
    number, region = level.number + 1, next_region(level)
    return str(number) if number == region else f"{region}.{number}"


def or_null(array: Any) -> Any:
    """Return the array, or a null pointer where there is none."""
    return NULL if array is None else array


def sum_type(graph: Any, *, extended: bool = False) -> np.dtype[Any]:
    """Return the type of a graph's sums of weights: uint32 where they fit, else uint64."""
    short = not extended and (graph.weights is None or graph.weights.dtype == np.uint32)
    return np.dtype(np.uint32 if short and graph.total_weight < 2**32 else np.uint64)
