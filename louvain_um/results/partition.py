"""What comparison, saving and display need to know of a result; `Communities` offers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import number_by_size
from louvain_um.errors import OptionError
from louvain_um.graph.graph import Graph
from louvain_um.options import ObjectiveName, is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One round of moving and aggregating.

    Parameters
    ----------
    cycle : int
        Number of the cycle, from 0. Each cycle but the first starts at the input graph again,
        from the communities found before, and moves single vertices: it may split them.
    vertices, arcs : int
        Size of the level's graph.
    communities : int
        Communities the level ended with: the vertices of the next level.
    modularity : float
        Of the partition the level ended with; for an objective other than modularity, its value.
    iterations : int
        Sweeps over the active vertices.
    arcs_visited : int
        Arcs read while moving.
    seconds : float
    """

    cycle: int = 0
    vertices: int
    arcs: int
    communities: int
    modularity: float
    iterations: int
    arcs_visited: int
    seconds: float


@runtime_checkable
class Partition(Protocol):
    """Communities of vertices that may have names."""

    @property
    def labels(self) -> NDArray[np.uint32]:
        """Community of each vertex."""

    @property
    def names(self) -> NDArray[Any] | None:
        """Names of the vertices; None when they are 0 … n − 1."""

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""


class Outcome(Protocol):
    """What is known of a detection besides labels; `Communities` documents the fields."""

    @property
    def n_vertices(self) -> int: ...  # noqa: D102

    @property
    def graph(self) -> Graph | None: ...  # noqa: D102

    @property
    def n_communities(self) -> int: ...  # noqa: D102

    @property
    def sizes(self) -> NDArray[np.int64]: ...  # noqa: D102

    @property
    def levels(self) -> tuple[Level, ...]: ...  # noqa: D102

    @property
    def modularity(self) -> float: ...  # noqa: D102

    @property
    def objective(self) -> ObjectiveName: ...  # noqa: D102

    @property
    def value(self) -> float | None: ...  # noqa: D102

    @property
    def resolution(self) -> float: ...  # noqa: D102

    @property
    def method(self) -> str: ...  # noqa: D102

    @property
    def timings(self) -> Mapping[str, float]: ...  # noqa: D102

    @property
    def memory(self) -> Mapping[str, int]: ...  # noqa: D102

    @property
    def provenance(self) -> Mapping[str, Any]: ...  # noqa: D102


class Result(Partition, Outcome, Protocol):
    """A partition and how it came about."""

    @property
    def maps(self) -> tuple[NDArray[np.uint32], ...]: ...  # noqa: D102

    @property
    def coarse_labels(self) -> tuple[NDArray[np.uint32], ...]: ...  # noqa: D102

    def at_level(self, level: int) -> NDArray[np.uint32]: ...  # noqa: D102

    def hierarchy(self) -> list[NDArray[np.uint32]]: ...  # noqa: D102

    def require_graph(self) -> Graph: ...  # noqa: D102


U32 = NDArray[np.uint32]


def labels_at(
    level: int, maps: Sequence[U32], coarse_labels: Sequence[U32], cycles: Sequence[int]
) -> U32:
    """Return the labels after a level, numbered by size."""
    count = len(maps)
    if not is_whole(level) or not -count <= level < count:
        known = f"levels 0 … {count - 1}" if count else "no levels"
        raise OptionError("level", level, "pass one of these", problem=f"this result has {known}")
    last = level % count
    first = cycles.index(cycles[last]) if cycles else 0
    composed = maps[first]
    for map_ in maps[first + 1 : last + 1]:
        composed = map_[composed]
    if coarse_labels:
        composed = coarse_labels[last][composed]
    return number_by_size(composed)


def nested_labels(
    labels: U32, maps: Sequence[U32], coarse_labels: Sequence[U32], cycles: Sequence[int]
) -> list[U32]:
    """Return partitions of which each is coarser than the one before; the last is `labels`."""
    nested = [labels]
    numbers = list(cycles) or [0] * len(maps)
    for cycle in sorted(set(numbers), reverse=True):
        first = numbers.index(cycle)
        level, parts = None, list[U32]()
        for map_ in maps[first : first + numbers.count(cycle)]:
            level = map_ if level is None else map_[level]
            parts.append(number_by_size(_cut(level, nested[0])))
        nested = parts + nested
        if coarse_labels:
            break
    # Of two nested partitions with as many communities, both are the same.
    counts = [int(part.max(initial=0)) for part in nested]
    return [
        part
        for part, this, later in zip(nested, counts, [*counts[1:], -1], strict=True)
        if this > later
    ]


def _cut(finer: U32, coarser: U32) -> NDArray[np.uint64]:
    """Return the partition whose communities lie within one of both."""
    return finer * np.uint64(int(coarser.max(initial=0)) + 1) + coarser
