"""What every graph has, and the sizes that its integer types allow."""

# ruff: noqa: D102

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError, is_number, shown

Duplicates = Literal["once", "sum"]
"""What an edge listed more than once counts for: one edge, or the sum of its weights."""

GraphKind = Literal["undirected", "directed", "bipartite", "signed"]
"""What a graph keeps in addition to symmetric rows: directions, two modes, or signs."""

KINDS: Final[tuple[str, ...]] = get_args(GraphKind)

MAX_VERTICES: Final = 2**32 - 2
"""Vertex ids are uint32; the largest value marks an empty hash slot."""

MAX_TOTAL_WEIGHT: Final = 2**53
"""Sums of weights stay below this, so that each is exact as a float64 too."""


def check_kind(kind: object) -> None:
    """Raise a GraphError for a kind that no graph has."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise GraphError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {shown(kind)}")


def check_scale(scale: object) -> None:
    """Raise a GraphError unless a scale is a power of two, above or below 1."""
    if not is_number(scale) or math.frexp(scale)[0] != 0.5:
        raise GraphError(f"scale must be a power of two, such as 1.0, not {shown(scale)}")


def checked_names(names: Sequence[Any] | NDArray[Any], n: int) -> NDArray[Any]:
    """Return names of n vertices as an array: those of a list as objects, each as it is."""
    from louvain_um.core.plain_data import objects, plain_array

    array = objects(names) if isinstance(names, list | tuple) else plain_array(names, "names")
    if array.shape != (n,):
        raise GraphError(f"names must have one entry per vertex, {n} in all")
    return array


class GraphData(Protocol):
    """The arrays of a graph; `Graph` documents them."""

    @property
    def offsets(self) -> NDArray[np.int64]: ...
    @property
    def targets(self) -> NDArray[np.uint32]: ...
    @property
    def weights(self) -> NDArray[np.uint32] | NDArray[np.int64] | None: ...
    @property
    def loops(self) -> NDArray[np.int64]: ...
    @property
    def scale(self) -> float: ...
    @property
    def names(self) -> NDArray[Any] | None: ...
    def arcs(
        self, begin: int, end: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32] | NDArray[np.int64] | None]: ...
    @property
    def n_vertices(self) -> int: ...
    @property
    def n_edges(self) -> int: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def total_weight(self) -> int: ...
