"""Breadth-first search and shortest paths on the device (`bfs.cu`, `sssp.cu`)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.algorithms.launch import DeviceRows, Launch
from louvain_um.gpu.algorithms.workspace import PLAIN, Workspace

WIDTH: Final = 32
"""The limit between near and far grows by so many mean weights per mean degree: the lanes of a
warp (Davidson and others)."""


def bfs(rows: DeviceRows, source: int, space: Workspace = PLAIN) -> tuple[Any, Any]:
    """Return distances int32[n] and parents int64[n], −1 for what is not reached."""
    n, words = rows.n_vertices, (rows.n_vertices + 31) // 32
    state, partials = space.control()
    distances, parents = space.empty("distances", n, np.int32), space.empty("parents", n, np.int64)
    launch = Launch("bfs", "bfs", rows.kind)
    with space.phase("run"):
        launch(
            rows.argument_by_kind(weighted=False),
            np.int64(rows.n_arcs), np.uint32(source), distances,
            space.empty("least_parents", n, np.uint32), parents,
            space.empty("queue", n, np.uint32), space.empty("arcs_before", n + 1, np.int64),
            partials, space.empty("front", words, np.uint32),
            space.empty("next_front", words, np.uint32), state,
        )  # fmt: skip
    return distances, parents


def sssp(rows: DeviceRows, source: int, space: Workspace = PLAIN) -> tuple[Any, Any]:
    """Return distances int64[n] and parents int64[n], −1 for what is not reached."""
    n, arcs = rows.n_vertices, max(1, rows.n_arcs)
    width = max(1, int(WIDTH * (rows.total_weight / arcs) * n / arcs))
    state, partials = space.control()
    distances, parents = space.empty("distances", n, np.uint64), space.empty("parents", n, np.int64)
    launch = Launch("sssp", "sssp", rows.types)
    with space.phase("run"):
        launch(
            rows.argument(), np.uint32(source), np.uint64(width), distances, parents,
            space.empty("near", 2 * n, np.uint32), space.empty("far", 2 * n, np.uint32),
            space.empty("stamps", n, np.uint32), space.empty("is_far", n, np.uint32),
            space.empty("arcs_before", n + 1, np.int64), partials, state,
        )  # fmt: skip
    return distances.view(np.int64), parents
