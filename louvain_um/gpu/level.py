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
    """A level; all arrays are CuPy's.

    Parameters
    ----------
    cycle, number : int
    vertices, arcs : int
    sums : dtype
        Type of degrees, totals, loops and coarse weights: uint32 if 2m < 2³² and the graph's own
        weights are no wider, else uint64.
    offsets : int64[n + 1]
    targets : uint32[arcs]
        With `compact`, packed, as `louvain_um.gpu.memory.packed` says, and offsets, too. On a
        coarse level also uint8: targets take 24 bits, offsets are as ever.
    weights : uint32[arcs], uint64[arcs], uint16[arcs], uint8[arcs] or None
        Those of 8 or 16 bits are those of `louvain_um.gpu.memory.short_weights`, but in an input.
    loops : sums[n] or None
        None where no vertex has one.
    degrees : sums[n] or None
        None with `compact` and no weights: they follow from offsets.
    inside, squares : int
        Σ 2·loops and Σ degree².
    max_degree, hub_arcs : int
        Most arcs of a vertex; arcs of all hubs, if known.
    start : uint32[n] or None
        Community each vertex starts in; None when each vertex is its own community.
    labels, totals, refined, numbers
        After moving: communities and their degree sums; after refining: sub-communities; after
        aggregating: vertices of the next level.
    read_again : int
        Arcs of vertices that moved, read once more to activate their neighbours.
    region : {0, 1, 2}
        Where its graph is: with the input, or in one of two regions
        (`louvain_um.gpu.memory.coarse_memory`).
    tag : str
        Suffix of the names of its graph's arrays.
    byte_sizes : bool
        Whether sizes of communities take a byte while vertices move (`move_rule.cuh`).
    compact : str
        Template arguments of the kernels that read an input in fewer bytes; empty for others.
    heads : int64[…] or None
        Heads of blocks of packed targets, with `compact`.
    lines : uint32[…], optional
        The line of 128 bytes that each of these blocks begins in, in host memory.
    second, members, fixed : uint64[n] or None
        Under the extended rule: second masses (signed), vertices of the input in each vertex, and
        how many of them may not move; None where not in use.
    whole : bool
        Whether refinement only splits communities into their connected components.
    awake : uint8[n] or None
        Vertices that are active in the first sweep; None for all.
    second_totals : uint64[n] or None
        Second mass of each community, between moving and aggregation.
    start_sums : Sums or None
        Of the communities it starts in, where these are known.
    found_sums : uint8[…] or None
        Sums of `labels`, as far as refinement found them (`louvain_um.gpu.relabel.relabel`);
        between refinement and aggregation.
    """

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
    """Return the suffix of the names of the arrays of a level's graph.

    Examples
    --------
    >>> from louvain_um.gpu.level import tag_of
    >>> [tag_of(number, region) for number, region in ((1, 1), (2, 2), (3, 1), (2, 1))]
    ['1', '2', '1.3', '1.2']
    """
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
    """Return the type of a graph's sums of weights: uint32 where they fit, else uint64.

    The extended rule takes uint64.
    """
    short = not extended and (graph.weights is None or graph.weights.dtype == np.uint32)
    return np.dtype(np.uint32 if short and graph.total_weight < 2**32 else np.uint64)
