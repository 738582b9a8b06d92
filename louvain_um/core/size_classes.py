"""Size classes of rows: room for 4·2ᵏ or 6·2ᵏ arcs, at most a third of it unused after growth."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

CAPACITIES: Final = np.array([base << k for k in range(31) for base in (4, 6)], np.int64)
"""Arcs that a page of each class holds, up to more than any row can have."""

NONE: Final = np.uint8(255)
"""Class of a row without arcs, which has no page."""


def classes_for(
    lengths: NDArray[np.int64], capacities: NDArray[np.int64] = CAPACITIES
) -> NDArray[np.uint8]:
    """Return the smallest class that holds each length; `NONE` for 0.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.core.size_classes import classes_for
    >>> classes_for(np.array([0, 1, 4, 5, 7, 9])).tolist()
    [255, 0, 0, 1, 2, 3]
    """
    classes = np.searchsorted(capacities, lengths).astype(np.uint8)
    classes[lengths == 0] = NONE
    return classes
