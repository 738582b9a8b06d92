"""What the communities of a graph on the device add up to, for measures of quality."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.gpu.relabel.relabel import RELABEL_RESULT
from louvain_um.gpu.runtime.launch import column_type


def community_counts(device: Any, graph: Any, labels: Any, *, parts: bool) -> NDArray[np.int64]:
    """Return rows of int64[k] of a graph's communities, given as uint32[n] on a device or here.

    These are arcs' weight inside (loops twice) and total degree; with `parts`, also arcs inside and
    connected parts.
    """
    xp, n = device.xp, graph.n_vertices
    labels, named = xp.asarray(labels), None
    communities = int(labels.max()) + 1 if n else 0
    sums = xp.zeros((4 if parts else 2, communities), np.uint64)
    rows = np.int64(n), graph.offsets, graph.targets
    if parts and n:
        named, parents = labels.copy(), xp.empty(n, np.uint32)
        result = xp.zeros(RELABEL_RESULT.itemsize, np.uint8)
        device.launch(
            "relabel", "split_communities", "", n, *rows, None, np.uint32(0), None, None, named,
            parents, result,
        )  # fmt: skip
    if n:
        device.launch(
            "relabel", "weigh_communities", "", 32 * n, rows[0], np.int64(communities), *rows[1:],
            graph.weights, column_type(graph.weights), graph.loops, labels, named, sums,
        )  # fmt: skip
    counted: NDArray[np.int64] = device.get(sums).view(np.int64)
    return counted
