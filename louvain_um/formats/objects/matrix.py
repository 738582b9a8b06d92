"""From an adjacency matrix to edges of an undirected graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.formats.edge_list.edges import EdgeList
from louvain_um.formats.objects.symmetric import all_entries, one_half


def undirected(
    offsets: NDArray[np.int64],
    columns: NDArray[np.uint32],
    values: NDArray[Any] | None,
    *,
    symmetrize: bool,
    base: int = 0,
    error: Callable[..., Exception],
    line: tuple[int, ...] = (),
) -> EdgeList:
    """Return the edges of a symmetric matrix, or all entries if the caller may symmetrize.

    `line` is where a file declares what kind of matrix it holds.

    Raises
    ------
    GraphError
        Made by `error`, for a matrix that is not symmetric.
    """
    half = one_half(offsets, columns, values)
    if isinstance(half, EdgeList):
        return half
    if symmetrize:
        return all_entries(offsets, columns, values)
    raise error(
        f"the matrix is not symmetric, which declares a directed graph: {half.describe(base)}; "
        "pass symmetrize=True (--symmetrize) to read every entry as an undirected edge",
        *line,
    )
