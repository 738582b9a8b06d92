"""Breadth-first search and shortest paths on the device (`bfs.cu`, `sssp.cu`)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.algorithms.launch import DeviceRows, Launch, state

SEARCH_STATE: Final = 64
"""Bytes of `SearchState` of bfs.cu."""

PATH_STATE: Final = 64
"""Bytes of `PathState` of sssp.cu."""

WIDTH: Final = 32
"""The limit between near and far grows by so many mean weights per mean degree: the lanes of a
warp (Davidson and others)."""


def bfs(rows: DeviceRows, source: int) -> tuple[Any, Any]:
    """Return distances int32[n] and parents int64[n], −1 for what is not reached."""
    import cupy

    n, words = rows.n_vertices, (rows.n_vertices + 31) // 32
    distances, parents = cupy.empty(n, np.int32), cupy.empty(n, np.int64)
    launch = Launch("bfs", "bfs")
    launch(
        rows.argument(weighted=False), np.int64(rows.n_arcs), np.uint32(source), distances,
        cupy.empty(n, np.uint32), parents, cupy.empty(n, np.uint32), cupy.empty(n + 1, np.int64),
        launch.partials(), cupy.empty(words, np.uint32), cupy.empty(words, np.uint32),
        state(SEARCH_STATE),
    )  # fmt: skip
    return distances, parents


def sssp(rows: DeviceRows, source: int) -> tuple[Any, Any]:
    """Return distances int64[n] and parents int64[n], −1 for what is not reached."""
    import cupy

    n, arcs = rows.n_vertices, max(1, rows.n_arcs)
    width = max(1, int(WIDTH * (rows.total_weight / arcs) * n / arcs))
    distances, parents = cupy.empty(n, np.uint64), cupy.empty(n, np.int64)
    launch = Launch("sssp", "sssp", rows.types)
    launch(
        rows.argument(), np.uint32(source), np.uint64(width), distances, parents,
        cupy.empty(2 * n, np.uint32), cupy.empty(2 * n, np.uint32), cupy.empty(n, np.uint32),
        cupy.empty(n, np.uint32), cupy.empty(n + 1, np.int64), launch.partials(),
        state(PATH_STATE),
    )  # fmt: skip
    return distances.view(np.int64), parents
