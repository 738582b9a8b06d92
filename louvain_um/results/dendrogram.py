"""Labels after each level, composed from the maps between levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import number_by_size
from louvain_um.errors import OptionError

U32 = NDArray[np.uint32]


def labels_at(
    level: int, maps: Sequence[U32], coarse_labels: Sequence[U32], cycles: Sequence[int]
) -> U32:
    """Return the labels after a level, numbered by size.

    Parameters
    ----------
    level : int
        Index of a level; negative values count from the last.
    maps, coarse_labels : sequence of uint32 arrays
        As in `Communities`.
    cycles : sequence of int
        Cycle of each level; each cycle starts at the input graph again. Empty for one cycle.

    Raises
    ------
    OptionError
        There is no such level.
    """
    count = len(maps)
    if not -count <= level < count:
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
