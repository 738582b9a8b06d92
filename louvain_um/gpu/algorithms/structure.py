"""Components, spanning forest and triangles on the device, each in the `.cu` file of its name."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.algorithms.launch import DeviceRows, Launch, state

FOREST_STATE: Final = 40
"""Bytes of `ForestState` of spanning_forest.cu; the number of edges follows the barrier."""


def components(rows: DeviceRows) -> Any:
    """Return the smallest member of each vertex's component, uint32[n]."""
    import cupy

    parents = cupy.empty(rows.n_vertices, np.uint32)
    if not rows.n_vertices:
        return parents
    Launch("components", "components")(rows.argument(weighted=False), parents, state(8))
    return parents


def spanning_forest(rows: DeviceRows) -> tuple[Any, Any]:
    """Return the forest's edges, smaller end << 32 | larger end, ascending, and their weights."""
    import cupy

    n, control = rows.n_vertices, state(FOREST_STATE)
    edges, weights = cupy.empty(n, np.uint64), cupy.empty(n, np.uint64)
    Launch("spanning_forest", "spanning_forest", rows.types)(
        rows.argument(), *(cupy.empty(n, np.uint32) for _ in range(3)),
        *(cupy.empty(n, np.uint64) for _ in range(3)), edges, weights, control,
    )  # fmt: skip
    count = int(control[1])
    order = cupy.argsort(edges[:count])
    return edges[order], weights[order].view(np.int64)


def triangles(rows: DeviceRows) -> Any:
    """Return the number of triangles of each vertex, int64[n]."""
    import cupy

    n = rows.n_vertices
    counts = cupy.zeros(n, np.uint64)
    launch = Launch("triangles", "triangles")
    launch(
        rows.argument(weighted=False), cupy.empty(n + 1, np.int64),
        cupy.empty(rows.n_arcs // 2 + 1, np.uint32), launch.partials(), counts, state(16),
    )  # fmt: skip
    return counts.view(np.int64)
