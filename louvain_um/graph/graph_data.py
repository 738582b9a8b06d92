"""What exports need to know of a graph; `Graph` offers it and imports them."""

# ruff: noqa: D102

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


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
    @property
    def n_vertices(self) -> int: ...
    @property
    def n_edges(self) -> int: ...
    @property
    def total_weight(self) -> int: ...
