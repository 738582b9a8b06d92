"""Labels after each level, composed from the maps between levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import number_by_size
from louvain_um.errors import OptionError
from louvain_um.options import is_whole

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
        for part, own, later in zip(nested, counts, [*counts[1:], -1], strict=True)
        if own > later
    ]


def _cut(finer: U32, coarser: U32) -> NDArray[np.uint64]:
    """Return the partition whose communities lie within one of both."""
    return finer * np.uint64(int(coarser.max(initial=0)) + 1) + coarser
