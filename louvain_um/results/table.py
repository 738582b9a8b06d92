"""A table of communities: size, edges inside and out, and the members that stand out."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.errors import OptionError
from louvain_um.graph.graph import Graph
from louvain_um.options import is_whole
from louvain_um.results.partition import Result
from louvain_um.results.quality import quality

if TYPE_CHECKING:
    import pandas as pd

MOST_HUBS = 1000
"""More would be a list of members."""


def community_table(graph: Graph, result: Result, hubs: int) -> pd.DataFrame:
    """Return one row per community; `Communities.table` documents the columns."""
    if not is_whole(hubs) or not 0 <= hubs <= MOST_HUBS:
        raise OptionError("hubs", hubs, f"must be a whole number in 0 … {MOST_HUBS}")
    frame = quality(graph, result.labels, result.resolution, objective=result.objective).to_frame()
    if hubs:
        found = hub_members(graph, result.labels, hubs)
        lists = [row[row >= 0] for row in found]
        named = lists if result.names is None else [result.names[row] for row in lists]
        frame["hubs"] = [row.tolist() for row in named]
    return frame


def hub_members(graph: Graph, labels: NDArray[np.uint32], hubs: int) -> NDArray[np.int64]:
    """Return the members of highest degree of each community, one pass over the vertices."""
    communities = int(labels.max()) + 1 if len(labels) else 0
    found = np.full((communities, hubs), -1, np.int64)
    _insert(labels, graph.degrees, found)
    return found


@kernel()
def _insert(labels, degrees, found):
    most = found.shape[1]
    for v in range(len(labels)):
        row = found[labels[v]]
        place = most
        while place > 0 and (row[place - 1] < 0 or degrees[row[place - 1]] < degrees[v]):
            if place < most:
                row[place] = row[place - 1]
            place -= 1
        if place < most:
            row[place] = v
