"""One level on the device: its graph, start communities and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.gpu.memory.packed import HEADER

if TYPE_CHECKING:
    import cupy

    from louvain_um.core.objectives.objective import Sums

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


def tag_of(number: int, region: int) -> str:
    """Return the suffix of the names of the arrays of a level's graph."""
    return str(number) if number == region else f"{region}.{number}"


def next_region(level: GpuLevel) -> int:
    """Return the region of the next level: the one that this level is not in."""
    return 2 if level.region == 1 else 1


def tag_after(level: GpuLevel) -> str:
    """Return the suffix of the names of the next level's arrays."""
    return tag_of(level.number + 1, next_region(level))


def or_null(array: Any) -> Any:
    """Return the array, or a null pointer where there is none."""
    return NULL if array is None else array


def sum_type(graph: Any, *, extended: bool = False) -> np.dtype[Any]:
    """Return the type of a graph's sums of weights: uint32 where they fit, else uint64."""
    short = not extended and (graph.weights is None or graph.weights.dtype == np.uint32)
    return np.dtype(np.uint32 if short and graph.total_weight < 2**32 else np.uint64)
